//! The configuration of the connection: a kubeconfig, or the ServiceAccount of the pod.

use std::path::PathBuf;

use http::HeaderValue;
use http::header::USER_AGENT;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::{Cluster, ConnectError, Env, Fence, SecretDigestKey, Settings};

/// The choice of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kube {
    /// The kubeconfig. Without one: the files of the environment variable `KUBECONFIG`, then
    /// `~/.kube/config`, then the ServiceAccount of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// The context; the default is the kubeconfig's current one.
    pub context: Option<String>,
    /// The name of this host among several, the pod's name. The API server's audit log shows it in
    /// the user agent, next to name and version of this program.
    pub instance: Option<String>,
}

impl Kube {
    /// The user agent of the requests.
    fn agent(&self) -> Result<HeaderValue, ConnectError> {
        let mut agent = concat!("innkeeper/", env!("CARGO_PKG_VERSION")).to_owned();
        if let Some(instance) = &self.instance {
            agent = format!("{agent} ({instance})");
        }
        HeaderValue::from_str(&agent).map_err(|_| ConnectError {
            message: format!(
                "the user agent {agent:?} is no valid HTTP header; give this host another POD_NAME"
            ),
        })
    }
}

impl Cluster {
    /// Connects by a kubeconfig, or as a pod. It sends no request.
    ///
    /// # Errors
    /// [`ConnectError`] with the configuration, its problem, and the remedy, for a user.
    pub async fn open(
        kube: &Kube,
        env: Env,
        settings: Settings,
        secrets: SecretDigestKey,
        fence: Fence,
    ) -> Result<Self, ConnectError> {
        let agent = kube.agent()?;
        let mut config = config(kube).await?;
        config.headers.push((USER_AGENT, agent));
        Self::connect(config, env, settings, secrets, fence)
    }

    /// Connects as the user of a bearer token instead of the user of the kubeconfig.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_with_token(
        kube: &Kube,
        token: &str,
        env: Env,
        settings: Settings,
        secrets: SecretDigestKey,
        fence: Fence,
    ) -> Result<Self, ConnectError> {
        let agent = kube.agent()?;
        let mut config = config(kube).await?;
        config.headers.push((USER_AGENT, agent));
        let user = serde_json::from_value(serde_json::json!({ "token": token }));
        config.auth_info = user.map_err(|_| ConnectError {
            message: "the token is no valid bearer token".to_owned(),
        })?;
        Self::connect(config, env, settings, secrets, fence)
    }
}

async fn config(kube: &Kube) -> Result<kube::Config, ConnectError> {
    let (what, read) = match &kube.kubeconfig {
        Some(path) => (path.display().to_string(), Kubeconfig::read_from(path).map(Some)),
        None => match Kubeconfig::from_env() {
            Ok(None) => ("~/.kube/config".to_owned(), usual_file()),
            other => (env_files(), other),
        },
    };
    let failed = |message: String| ConnectError { message };
    let Some(file) = read.map_err(|error| failed(format!("{what}: {}", problem(&error))))? else {
        if let Some(context) = &kube.context {
            return Err(failed(format!("there is no kubeconfig, so no context {context}")));
        }
        return kube::Config::incluster().map_err(|error| {
            failed(format!(
                "there is no kubeconfig ({what} does not exist, KUBECONFIG is not set), and this is not a pod ({error}): give --kubeconfig"
            ))
        });
    };
    check_context(&what, &file, kube.context.as_deref())?;
    let options =
        KubeConfigOptions { context: kube.context.clone(), ..KubeConfigOptions::default() };
    kube::Config::from_custom_kubeconfig(file, &options)
        .await
        .map_err(|error| failed(format!("{what}: {}", problem(&error))))
}

/// Checks the text of a kubeconfig as [`Cluster::open`] does, without the files that it names.
///
/// # Errors
/// As [`Cluster::open`].
#[doc(hidden)]
pub fn check_text(text: &str, context: Option<&str>) -> Result<(), ConnectError> {
    let file = Kubeconfig::from_yaml(text)
        .map_err(|error| ConnectError { message: format!("the text: {}", problem(&error)) })?;
    check_context("the text", &file, context)
}

/// Checks that a kubeconfig has the requested context, or a current one.
fn check_context(what: &str, file: &Kubeconfig, context: Option<&str>) -> Result<(), ConnectError> {
    let failed = |message: String| ConnectError { message };
    let contexts: Vec<String> = file.contexts.iter().map(|context| context.name.clone()).collect();
    let has = if contexts.is_empty() {
        "it has none".to_owned()
    } else {
        format!("it has {}", contexts.join(", "))
    };
    match context.or(file.current_context.as_deref()) {
        None => {
            return Err(failed(format!(
                "{what}: there is no current context; name one with --context ({has})"
            )));
        }
        Some(context) if !contexts.iter().any(|name| name == context) => {
            return Err(failed(format!("{what}: there is no context {context} ({has})")));
        }
        Some(_) => {}
    }
    Ok(())
}

/// The files of the environment variable, for messages.
fn env_files() -> String {
    let files = std::env::var_os("KUBECONFIG").unwrap_or_default();
    format!("KUBECONFIG={}", files.to_string_lossy())
}

/// `~/.kube/config`; `None` if it does not exist.
fn usual_file() -> Result<Option<Kubeconfig>, KubeconfigError> {
    match Kubeconfig::read() {
        Ok(file) => Ok(Some(file)),
        Err(KubeconfigError::FindPath) => Ok(None),
        Err(KubeconfigError::ReadConfig(error, _))
            if error.kind() == std::io::ErrorKind::NotFound =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The problem in one line, without the path, which the caller adds.
fn problem(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(error, _) => format!("cannot be read: {error}"),
        // The further lines quote the file.
        KubeconfigError::Parse(error) => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            format!("is not a kubeconfig: {}", line.trim_start_matches("error: "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use jiff::Timestamp;

    use super::*;

    const GOOD: &str = r"
apiVersion: v1
kind: Config
current-context: here
contexts:
- {name: here, context: {cluster: c, user: u}}
- {name: there, context: {cluster: gone, user: u}}
clusters:
- {name: c, cluster: {server: 'https://127.0.0.1:1'}}
users:
- {name: u, user: {token: t}}
";

    async fn open(name: &str, text: Option<&str>, context: Option<&str>) -> Result<(), String> {
        let path = std::env::temp_dir().join(format!("innkeeper-{}-{name}", std::process::id()));
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        let kube = Kube {
            kubeconfig: Some(path.clone()),
            context: context.map(str::to_owned),
            instance: None,
        };
        let env = Env::scripted(1, Timestamp::UNIX_EPOCH);
        let secrets = SecretDigestKey::new(b"k");
        let fence = Fence::open(&env);
        let result = Cluster::open(&kube, env, Settings::default(), secrets, fence).await;
        let _ = std::fs::remove_file(&path);
        result.map(|_| ()).map_err(|error| error.message.replace(path.to_str().unwrap(), "FILE"))
    }

    async fn refused(name: &str, text: Option<&str>, context: Option<&str>, expected: &Expect) {
        expected.assert_eq(&open(name, text, context).await.unwrap_err());
    }

    #[tokio::test]
    async fn valid_kubeconfig_connects_without_a_request() {
        assert_eq!(open("good", Some(GOOD), None).await, Ok(()));
        assert_eq!(open("good-context", Some(GOOD), Some("here")).await, Ok(()));
    }

    #[tokio::test]
    async fn invalid_kubeconfig_is_refused_with_its_file_and_reason() {
        refused(
            "none",
            None,
            None,
            &expect!["FILE: cannot be read: No such file or directory (os error 2)"],
        )
        .await;
        refused(
            "yaml",
            Some("a: [b"),
            None,
            &expect!["FILE: is not a kubeconfig: line 1 column 4: unclosed bracket '['"],
        )
        .await;
        refused(
            "context",
            Some(GOOD),
            Some("nowhere"),
            &expect!["FILE: there is no context nowhere (it has here, there)"],
        )
        .await;
        refused(
            "cluster",
            Some(GOOD),
            Some("there"),
            &expect!["FILE: failed to load the cluster of context: gone"],
        )
        .await;
        refused(
            "empty",
            Some(""),
            None,
            &expect!["FILE: there is no current context; name one with --context (it has none)"],
        )
        .await;
        let groups = GOOD.replace("token: t", "token: t, as: jane, as-groups: ['system:masters']");
        refused("groups", Some(&groups), None, &expect!["the user of the kubeconfig impersonates somebody (`as`, `as-groups`): the host impersonates a ServiceAccount for each module, and these settings would be added to it; use a kubeconfig whose user acts as itself"]).await;
        let other =
            GOOD.replace("token: t", "token: t, as-uid: '1', as-user-extra: {scopes: [all]}");
        refused("extra", Some(&other), None, &expect!["the user of the kubeconfig impersonates somebody (`as-uid`, `as-user-extra`): the host impersonates a ServiceAccount for each module, and these settings would be added to it; use a kubeconfig whose user acts as itself"]).await;
        let current = GOOD.replace("current-context: here\n", "");
        refused(
            "current",
            Some(&current),
            None,
            &expect![
                "FILE: there is no current context; name one with --context (it has here, there)"
            ],
        )
        .await;
    }
}
