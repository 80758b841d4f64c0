//! Which API server a command talks to.

use std::path::PathBuf;

use innkeeper_cluster::{Cluster, ConnectError, Env, Fence, Kube, SecretKey, Settings};

/// Which API server.
#[derive(clap::Args)]
pub(crate) struct KubeArguments {
    /// The kubeconfig. If left out: the files in KUBECONFIG, then ~/.kube/config, then the
    /// ServiceAccount of the pod.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; its current one if left out.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl KubeArguments {
    pub(crate) fn kube(&self) -> Kube {
        Kube { kubeconfig: self.kubeconfig.clone(), context: self.context.clone(), instance: None }
    }

    /// Connects, for commands that read no Secret.
    pub(crate) async fn connect(&self) -> Result<Cluster, ConnectError> {
        let (key, env) = (SecretKey::new(&[]), Env::real());
        let fence = Fence::open(&env);
        Cluster::open(&self.kube(), env, Settings::default(), key, fence).await
    }
}
