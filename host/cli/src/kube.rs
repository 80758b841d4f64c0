//! Which API server a command talks to.

use std::path::PathBuf;

use innkeeper_cluster::{Cluster, ConnectError, Env, Fence, Kube, SecretDigestKey, Settings};

/// The flags that choose an API server.
#[derive(clap::Args)]
pub(crate) struct KubeArguments {
    /// Path of the kubeconfig file [default: the files in KUBECONFIG, then ~/.kube/config, then the
    /// ServiceAccount of the pod].
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// Name of the kubeconfig context to use [default: its current context].
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
}

impl KubeArguments {
    /// The settings of the connection.
    pub(crate) fn kube(&self) -> Kube {
        Kube { kubeconfig: self.kubeconfig.clone(), context: self.context.clone(), instance: None }
    }

    /// The flags that choose the same API server, for a command line to show.
    pub(crate) fn flags(&self) -> Vec<String> {
        let kubeconfig = self.kubeconfig.as_ref().map(|path| path.display().to_string());
        [("--kubeconfig", kubeconfig), ("--context", self.context.clone())]
            .into_iter()
            .filter_map(|(flag, value)| Some([flag.to_owned(), value?]))
            .flatten()
            .collect()
    }

    /// Connects, for commands that read no Secret.
    ///
    /// # Errors
    /// If there is no usable kubeconfig.
    pub(crate) async fn connect(&self) -> Result<Cluster, ConnectError> {
        let (key, env) = (SecretDigestKey::new(&[]), Env::real());
        let fence = Fence::open(&env);
        Cluster::open(&self.kube(), env, Settings::default(), key, fence).await
    }
}
