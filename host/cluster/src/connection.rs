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
use crate::transport::{Counts, Requests, Transport};
use crate::{Account, ConnectError, Env, Fence, Identity, SecretKey, Session, Settings};

/// One connection pool to one API server. Clones share it.
#[derive(Clone)]
pub struct Cluster {
    pool: kube::Client,
    env: Env,
    settings: Settings,
    secrets: SecretKey,
    counts: Counts,
    fence: Fence,
    /// Asked for all the time, and a session has a task: made once.
    host: Arc<OnceLock<Session>>,
}

impl Cluster {
    /// Connects with a kubeconfig or with what a pod finds. Nothing is sent yet: a server
    /// that cannot be reached is an error of the first request.
    ///
    /// `secrets` is the key of the digests that stand for values of Secrets. Nothing is sent while
    /// `fence` is closed: connections that are open then break.
    /// Has to be called within a tokio runtime.
    pub fn connect(
        mut config: kube::Config,
        env: Env,
        settings: Settings,
        secrets: SecretKey,
        fence: Fence,
    ) -> Result<Self, ConnectError> {
        // Limits are those of `transport`, from `Env`.
        config.read_timeout = None;
        config.write_timeout = None;
        let pool =
            pool(&config, &fence).map_err(|error| ConnectError { message: error.to_string() })?;
        Ok(Self::new(pool, env, settings, secrets, fence))
    }

    /// Talks to a service instead of a server: a scripted one in tests, or a simulator.
    /// It gets each request after limits and repeats, with the impersonation headers.
    ///
    /// Has to be called within a tokio runtime.
    pub fn over<S, B>(service: S, env: Env, settings: Settings, secrets: SecretKey) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let fence = Fence::open(&env);
        Self::new(kube::Client::new(service, "default"), env, settings, secrets, fence)
    }

    fn new(
        pool: kube::Client,
        env: Env,
        settings: Settings,
        secrets: SecretKey,
        fence: Fence,
    ) -> Self {
        let (counts, host) = (Counts::default(), Arc::default());
        Self { pool, env, settings, secrets, counts, fence, host }
    }

    /// The same service behind a fence.
    #[cfg(test)]
    pub(crate) fn behind(self, fence: Fence) -> Self {
        Self { fence, host: Arc::default(), ..self }
    }

    /// The same connections with another key for the digests of Secrets: for when the key
    /// had to be read from the cluster first.
    #[must_use]
    pub fn with_secret_key(self, secrets: SecretKey) -> Self {
        Self { secrets, host: Arc::default(), ..self }
    }

    /// Requests as the host itself.
    pub fn host(&self) -> Session {
        let make = || {
            let client = self.client(None);
            let discovery = Arc::new(Discovery::new(client.clone(), self.env.clone()));
            let (env, settings) = (self.env.clone(), self.settings.clone());
            Session::new(client, Identity::Host, env, settings, self.secrets.clone(), discovery)
        };
        self.host.get_or_init(make).clone()
    }

    /// Requests as a ServiceAccount, by impersonation, for a module: see [`Session::for_module`].
    ///
    /// A name that cannot stand in a header cannot be a ServiceAccount's either; the
    /// requests of such a session go as a user who has no rights.
    pub fn as_account(&self, account: &Account) -> Session {
        let user = HeaderValue::from_str(&account.user())
            .unwrap_or(HeaderValue::from_static("system:serviceaccount::"));
        let identity = Identity::Account(account.clone());
        let discovery = self.host().discovery().clone();
        let (env, settings) = (self.env.clone(), self.settings.clone());
        let client = self.client(Some(user));
        Session::new(client, identity, env, settings, self.secrets.clone(), discovery).for_module()
    }

    /// What is served in an API group may have changed (a CustomResourceDefinition came, changed or
    /// went): discovery is asked again before its kinds are used.
    pub fn kinds_changed(&self, group: &str) {
        self.host().discovery().forget(group);
    }

    /// The ambient world that it was given.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The limits that it was given.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many requests were sent so far, over all identities.
    pub fn requests(&self) -> Requests {
        self.counts.all()
    }

    fn client(&self, user: Option<HeaderValue>) -> kube::Client {
        let transport = Transport {
            pool: self.pool.clone(),
            env: self.env.clone(),
            settings: self.settings.clone(),
            counts: self.counts.clone(),
            fence: self.fence.clone(),
            user,
        };
        kube::Client::new(transport, "default")
    }
}

/// The kube client's own stack, less its repeats (`transport` has them, and the client's would draw
/// unseeded jitter and repeat what is not safe to repeat) and with the fence around the socket.
fn pool(config: &kube::Config, fence: &Fence) -> kube::Result<kube::Client> {
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
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}
