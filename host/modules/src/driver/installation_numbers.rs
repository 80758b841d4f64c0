//! The order of one module's installations of definitions.

use std::collections::BTreeMap;

use crate::crd_installation::CrdPurpose;

/// The numbers of one module's installations.
#[derive(Debug, Default)]
pub(super) struct InstallationNumbers {
    /// The last one.
    last: u64,
    /// The last one of each purpose.
    latest: BTreeMap<CrdPurpose, u64>,
}

impl InstallationNumbers {
    /// The number of the next installation.
    pub(super) fn next(&self) -> u64 {
        self.last + 1
    }

    /// Notes that an installation with this number begins.
    pub(super) fn begin(&mut self, purpose: CrdPurpose, number: u64) {
        self.last = number;
        self.latest.insert(purpose, number);
    }

    /// Whether no later installation of the purpose has begun: of two for one component, the result
    /// of the first may be about an earlier spec.
    pub(super) fn is_latest(&self, purpose: CrdPurpose, number: u64) -> bool {
        self.latest.get(&purpose) == Some(&number)
    }
}
