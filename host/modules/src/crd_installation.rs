//! An installation of CustomResourceDefinitions for a module, and what its spec allows at present.

use std::collections::BTreeSet;

use innkeeper_contract::Manifest;

use crate::crd_refusal::CrdRefusal;
use crate::definitions::{self, CrdRequest};
use crate::installed_crds::InstalledCrds;
use crate::source::Digest;
use crate::validated_spec::ValidatedSpec;

/// CustomResourceDefinitions of a candidate or of the active revision, to be installed.
#[derive(Clone, Debug)]
pub struct CrdInstallation {
    /// What they are installed for.
    pub purpose: CrdPurpose,
    /// The number of the installation among those of the module; part of the answer.
    pub number: u64,
    /// The candidate or the active revision.
    pub digest: Digest,
    /// The definitions.
    pub crds: Vec<CrdRequest>,
    /// Whether foreign definitions, those that the host did not install, become the module's.
    pub adopts: bool,
    /// The namespaces of the module's primaries; empty for all.
    pub namespaces: BTreeSet<String>,
    /// The account; `None` for the host's own identity (a Module of a folder).
    pub service_account: Option<String>,
}

/// What definitions are installed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrdPurpose {
    /// A candidate, before it becomes active.
    Candidate,
    /// The active revision, over foreign definitions.
    Adoption,
    /// The active revision, after somebody deleted them.
    Reinstallation,
}

/// The end of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedInstallation {
    /// As in the installation.
    pub purpose: CrdPurpose,
    /// As in the installation.
    pub number: u64,
    /// As in the installation.
    pub digest: Digest,
    /// What it wrote, even if it failed then.
    pub written: InstalledCrds,
    /// Whether all definitions are established, or why not.
    pub result: Result<(), CrdRefusal>,
}

/// What the present spec and approval of a module let the host do with definitions. An installation
/// checks it again before each write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrdGrant {
    /// The groups whose definitions may be installed.
    pub groups: BTreeSet<String>,
    /// Whether foreign definitions of these groups may become the module's.
    pub adopts: bool,
    /// The component or the change of definitions that a user approves at present.
    pub approved: Option<Digest>,
}

impl CrdInstallation {
    /// All definitions of a guest, as the spec of its Module allows to install them; foreign
    /// definitions stay as they are.
    pub(crate) fn new(
        purpose: CrdPurpose,
        number: u64,
        digest: Digest,
        manifest: &Manifest,
        spec: &ValidatedSpec,
    ) -> Self {
        Self {
            purpose,
            number,
            digest,
            crds: definitions::crd_requests(manifest, spec),
            adopts: false,
            namespaces: spec.namespaces.clone(),
            service_account: spec.service_account.clone(),
        }
    }
}

impl CrdGrant {
    /// What a spec allows without an approval.
    #[must_use]
    pub fn of(spec: &ValidatedSpec) -> Self {
        Self { groups: spec.allowed_crd_groups.clone(), adopts: spec.adopts_now(), approved: None }
    }
}
