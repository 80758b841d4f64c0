//! A loaded Kubewarden policy: [`KubewardenPolicy`].

use std::sync::Arc;

use super::metadata::KubewardenMetadata;
use crate::wapc::module::WapcModule;

/// A policy: a core module and its metadata. Clones are cheap.
#[derive(Clone)]
pub(crate) struct KubewardenPolicy {
    pub(crate) module: WapcModule,
    pub(crate) metadata: Arc<KubewardenMetadata>,
}
