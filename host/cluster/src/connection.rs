//! One connection pool to one API server.

use std::sync::{Arc, OnceLock};

use http::{HeaderValue, Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use tower::{BoxError, Service, ServiceBuilder};

use crate::discovery::Discovery;
use crate::fence::FencedConnector;
use crate::transport::{self, Counts, Pool, Requests, Transport, is_impersonation};
use crate::{
    Account, ApiClient, ConnectError, Env, Fence, Identity, Revocation, SecretDigestKey, Settings,
};

/// One connection pool to one API server. Clones share it.
#[derive(Clone)]
pub struct Cluster {
    pool: Pool,
    default_namespace: Arc<str>,
    env: Env,
    settings: Settings,
    secrets: SecretDigestKey,
    counts: Counts,
    fence: Fence,
    /// The host's client, made at its first use.
    host: Arc<OnceLock<ApiClient>>,
}

impl Cluster {
    /// Connects by a configuration. It sends no request: the first request fails if the server
    /// cannot be reached.
    ///
    /// `secrets` is the key of the digests in place of values of Secrets. The connection sends
    /// nothing while `fence` is closed; open connections break then.
    /// The caller must be within a tokio runtime.
    ///
    /// # Errors
    /// [`ConnectError`] if the configuration is invalid or impersonates a user.
    pub fn connect(
        mut config: kube::Config,
        env: Env,
        settings: Settings,
        secrets: SecretDigestKey,
        fence: Fence,
    ) -> Result<Self, ConnectError> {
        refuse_impersonation(&config)?;
        // `transport` has the limits, by the clock of `Env`.
        config.read_timeout = None;
        config.write_timeout = None;
        let pool =
            pool(&config, &fence).map_err(|error| ConnectError { message: error.to_string() })?;
        let default_namespace = config.default_namespace.into();
        Ok(Self { default_namespace, ..Self::new(pool, env, settings, secrets, fence) })
    }

    /// Connects to a service instead of a server: a scripted one in tests, or a simulator. The
    /// service gets each request and repeat with its impersonation headers.
    ///
    /// The caller must be within a tokio runtime.
    pub fn over<S, B>(service: S, env: Env, settings: Settings, secrets: SecretDigestKey) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let fence = Fence::open(&env);
        // Such a service need not be one that can be cloned; a client of kube can.
        let client = kube::Client::new(service, "default");
        let service = tower::service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        Self::new(transport::pool(service), env, settings, secrets, fence)
    }

    fn new(
        pool: Pool,
        env: Env,
        settings: Settings,
        secrets: SecretDigestKey,
        fence: Fence,
    ) -> Self {
        let (counts, host) = (Counts::default(), Arc::default());
        let default_namespace = "default".into();
        Self { pool, default_namespace, env, settings, secrets, counts, fence, host }
    }

    /// The same service with this fence: requests that begin while it is closed fail.
    #[must_use]
    pub fn behind(self, fence: Fence) -> Self {
        Self { fence, host: Arc::default(), ..self }
    }

    /// The same connections with another key for the digests of Secrets, which the host reads from
    /// the cluster.
    #[must_use]
    pub fn with_secret_key(self, secrets: SecretDigestKey) -> Self {
        Self { secrets, host: Arc::default(), ..self }
    }

    /// The client of the host itself.
    pub fn host(&self) -> ApiClient {
        let make = || {
            let transport = self.transport(None, Revocation::default());
            let discovery = Arc::new(Discovery::new(transport.clone(), self.env.clone()));
            let (env, settings) = (self.env.clone(), self.settings.clone());
            let secrets = self.secrets.clone();
            ApiClient::new(transport, Identity::Host, env, settings, secrets, discovery)
        };
        self.host.get_or_init(make).clone()
    }

    /// The client of a module, which impersonates a ServiceAccount: see [`ApiClient::for_module`].
    ///
    /// A name that is invalid in a header cannot be a ServiceAccount's either; such a client
    /// impersonates a user without rights.
    pub fn as_account(&self, account: &Account) -> ApiClient {
        self.as_account_until(account, &Revocation::default())
    }

    /// The same client until its revocation: after that it sends nothing, and its requests fail.
    pub fn as_account_until(&self, account: &Account, revocation: &Revocation) -> ApiClient {
        let user = HeaderValue::from_str(&account.user())
            .unwrap_or(HeaderValue::from_static("system:serviceaccount::"));
        let identity = Identity::Account(account.clone());
        let discovery = self.host().discovery().clone();
        let (env, settings) = (self.env.clone(), self.settings.clone());
        let transport = self.transport(Some(user), revocation.clone());
        ApiClient::new(transport, identity, env, settings, self.secrets.clone(), discovery)
            .for_module()
    }

    /// Makes the clients ask discovery again before they use a kind of an API group, after a change
    /// of one of its CustomResourceDefinitions.
    pub fn kinds_changed(&self, group: &str) {
        self.host().discovery().forget(group);
    }

    /// Clock, timers, randomness and spawning.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The limits of requests.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The namespace that the kubeconfig, or the pod, gives to requests of a user that name none.
    pub fn default_namespace(&self) -> &str {
        &self.default_namespace
    }

    /// The number of requests so far, over all identities.
    pub fn requests(&self) -> Requests {
        self.counts.all()
    }

    fn transport(&self, user: Option<HeaderValue>, revocation: Revocation) -> Transport {
        Transport {
            pool: self.pool.clone(),
            env: self.env.clone(),
            settings: self.settings.clone(),
            counts: self.counts.clone(),
            fence: self.fence.clone(),
            user,
            revocation,
        }
    }
}

/// Refuses a configuration that impersonates a user: kube's client would add these headers to every
/// request, and each module would get the groups of the kubeconfig.
fn refuse_impersonation(config: &kube::Config) -> Result<(), ConnectError> {
    let user = &config.auth_info;
    let settings = [
        ("as", user.impersonate.is_some()),
        ("as-uid", user.impersonate_uid.is_some()),
        ("as-groups", user.impersonate_groups.is_some()),
        ("as-user-extra", user.impersonate_user_extra.is_some()),
    ];
    let mut found: Vec<String> = settings
        .iter()
        .filter(|(_, is_set)| *is_set)
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    let headers = config.headers.iter().map(|(name, _)| name);
    found.extend(headers.filter(|name| is_impersonation(name)).map(|name| format!("`{name}`")));
    if found.is_empty() {
        return Ok(());
    }
    Err(ConnectError {
        message: format!(
            "the user of the kubeconfig impersonates somebody ({}): the host impersonates a ServiceAccount for each module, and these settings would be added to it; use a kubeconfig whose user acts as itself",
            found.join(", ")
        ),
    })
}

/// The kube client's own stack with the fence around the socket, and without its repeats:
/// `transport` repeats with seeded jitter, and only requests that are safe to repeat.
fn pool(config: &kube::Config, fence: &Fence) -> kube::Result<Pool> {
    if let Some(proxy) = &config.proxy_url {
        return Err(kube::Error::ProxyProtocolUnsupported { proxy_url: Box::new(proxy.clone()) });
    }
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_connect_timeout(config.connect_timeout);
    let fenced = FencedConnector { inner: http, fence: fence.clone() };
    let https = config.rustls_https_connector_with_connector(fenced)?;
    let client: Client<_, Body> = Client::builder(TokioExecutor::new()).build(https);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(transport::pool(service))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use jiff::Timestamp;

    use super::*;

    fn connect(change: impl FnOnce(&mut kube::Config)) -> Result<(), String> {
        let mut config = kube::Config::new("https://127.0.0.1:1".parse().unwrap());
        change(&mut config);
        let env = Env::scripted(1, Timestamp::UNIX_EPOCH);
        let fence = Fence::open(&env);
        let key = SecretDigestKey::new(b"k");
        let connected = Cluster::connect(config, env, Settings::default(), key, fence);
        connected.map(|_| ()).map_err(|error| error.message)
    }

    #[tokio::test]
    async fn configuration_that_impersonates_a_user_is_refused() {
        assert_eq!(connect(|_| {}), Ok(()));
        let error = connect(|config| config.auth_info.impersonate = Some("jane".into()));
        assert!(error.unwrap_err().contains("(`as`)"));
        let error = connect(|config| config.auth_info.impersonate_uid = Some("1".into()));
        assert!(error.unwrap_err().contains("(`as-uid`)"));
        let error = connect(|config| {
            config.auth_info.impersonate_groups = Some(vec!["system:masters".into()]);
        });
        assert!(error.unwrap_err().contains("(`as-groups`)"));
        let error = connect(|config| {
            config.auth_info.impersonate_user_extra = Some(HashMap::default());
        });
        assert!(error.unwrap_err().contains("(`as-user-extra`)"));
        let error = connect(|config| {
            let name = http::HeaderName::from_static("impersonate-group");
            config.headers.push((name, HeaderValue::from_static("system:masters")));
        });
        assert!(error.unwrap_err().contains("(`impersonate-group`)"));
    }
}
