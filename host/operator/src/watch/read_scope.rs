//! Which fields a run could read of the objects that it read, and which changes it cannot have
//! seen.
//!
//! The host learns the fields from the manifest (`readFields`), in which case the guest gets no
//! others, or from the answer of each run. What runs report is kept for each module and not for
//! each request: the runs of a module read the same types, and a change is compared once.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{KindMasks, Object, object_change};

use crate::modules::open_revision::OpenRevision;

/// The most bytes of the fields that the runs of a module report together: those of a guest that
/// reports more count as every field.
const REPORTED_BYTES_MAX: usize = 256 << 10;

/// Which fields a run could read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReadScope {
    /// Every field: it failed, or the host needs more of its objects than usual.
    #[default]
    Everything,
    /// Those of the manifest, and every field of kinds for which it has none.
    Declared,
    /// Those that the run reported; of other kinds the identity and the readiness.
    Reported(KindMasks),
}

/// Whether the requests of a module can have missed nothing by a change, by how the host knows
/// their fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Those with the fields of the manifest.
    pub declared: bool,
    /// Those with fields that runs reported.
    pub reported: bool,
}

impl Unread {
    /// Whether a change of an object leaves the requests of a module unconcerned. `reported` are
    /// the fields that its runs have reported.
    pub fn of(
        active: &OpenRevision,
        kind: &Kind,
        (before, after): (&Object, &Object),
        reported: Option<&KindMasks>,
    ) -> Self {
        let Some(host) = active.host_reads(kind) else { return Self::default() };
        let is_unread = |mask| object_change::is_unread(kind, (before, after), host, mask);
        let declared = active.read_masks().get(kind);
        let declared = declared.is_some_and(|mask| is_unread(Some(mask)));
        let reported = declared || reported.is_some_and(|masks| is_unread(masks.get(kind)));
        Self { declared, reported }
    }
}

/// [`Unread`] for some modules.
pub type UnreadByModule = BTreeMap<Arc<str>, Unread>;

/// How the host knows the fields that the last run of a request could read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScopeSource {
    Manifest,
    Reports,
}

/// Which fields the last runs of requests could read.
#[derive(Debug)]
pub(super) struct ReadScopes<R> {
    /// Requests that are not here read every field.
    sources: BTreeMap<R, ScopeSource>,
    /// The fields that the runs of each module have reported; `None` if these are too many.
    reported: BTreeMap<Arc<str>, Option<KindMasks>>,
    /// Whether every request counts as one that read every field.
    is_every_field_read: bool,
}

impl<R> Default for ReadScopes<R> {
    fn default() -> Self {
        Self { sources: BTreeMap::new(), reported: BTreeMap::new(), is_every_field_read: false }
    }
}

impl<R: Clone + Ord> ReadScopes<R> {
    /// Lets every request count as one that read every field, whatever its runs report.
    pub(super) fn read_every_field(&mut self) {
        self.is_every_field_read = true;
    }

    /// The fields that the runs of a module have reported, if they can be compared.
    pub(super) fn reported(&self, module: &str) -> Option<&KindMasks> {
        self.reported.get(module)?.as_ref()
    }

    /// Takes the scope of a run. The fields that it reports count for its module from now on.
    pub(super) fn set(&mut self, module: &Arc<str>, request: &R, scope: ReadScope) {
        let source = match scope {
            ReadScope::Everything => {
                self.sources.remove(request);
                return;
            }
            ReadScope::Declared => ScopeSource::Manifest,
            ReadScope::Reported(masks) => {
                self.add_reported(module, &masks);
                ScopeSource::Reports
            }
        };
        self.sources.insert(request.clone(), source);
    }

    fn add_reported(&mut self, module: &Arc<str>, masks: &KindMasks) {
        let all = self.reported.entry(module.clone()).or_insert_with(|| Some(masks.clone()));
        if let Some(reported) = all {
            reported.add(masks);
            if reported.bytes() > REPORTED_BYTES_MAX {
                *all = None;
            }
        }
    }

    /// Whether a change does not concern a request, whatever it read.
    pub(super) fn is_unread(&self, request: &R, unread: Unread) -> bool {
        match self.sources.get(request) {
            _ if self.is_every_field_read => false,
            None => false,
            Some(ScopeSource::Manifest) => unread.declared,
            Some(ScopeSource::Reports) => unread.reported,
        }
    }

    /// Lets a request count as one that read every field.
    pub(super) fn forget(&mut self, request: &R) {
        self.sources.remove(request);
    }

    /// Forgets the fields of a module: its requests count as such that read every field.
    pub(super) fn forget_module(&mut self, module: &str, is_of_module: impl Fn(&R) -> bool) {
        self.reported.remove(module);
        self.sources.retain(|request, _| !is_of_module(request));
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::{Manifest, ReadFields};
    use serde_json::json;

    use super::*;

    const READS_ALL: Unread = Unread { declared: false, reported: false };
    const READS_NONE: Unread = Unread { declared: true, reported: true };

    fn masks(fields: usize) -> KindMasks {
        let manifest: Manifest = serde_json::from_value(json!({"name": "x",
            "reads": [{"apiVersion": "v1", "kind": "Pod", "plural": "pods"}]}))
        .unwrap();
        let fields = (0..fields).map(|number| (format!("f:{number:0>200}"), json!({})));
        let fields = ReadFields {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            fields: fields.collect(),
        };
        KindMasks::read(&[fields], &manifest).unwrap()
    }

    #[test]
    fn request_is_concerned_until_a_run_gives_its_fields() {
        let (module, mut scopes) = (Arc::from("m"), ReadScopes::default());
        assert!(!scopes.is_unread(&1, READS_NONE));
        scopes.set(&module, &1, ReadScope::Declared);
        assert!(scopes.is_unread(&1, READS_NONE) && !scopes.is_unread(&1, READS_ALL));
        assert!(!scopes.is_unread(&1, Unread { declared: false, reported: true }));
        scopes.set(&module, &1, ReadScope::Reported(masks(1)));
        assert!(scopes.is_unread(&1, Unread { declared: false, reported: true }));
        assert!(!scopes.is_unread(&2, READS_NONE));
        scopes.set(&module, &1, ReadScope::Everything);
        assert!(!scopes.is_unread(&1, READS_NONE));
    }

    #[test]
    fn every_request_is_concerned_if_every_field_counts_as_read() {
        let (module, mut scopes) = (Arc::from("m"), ReadScopes::default());
        scopes.set(&module, &1, ReadScope::Declared);
        assert!(scopes.is_unread(&1, READS_NONE));
        scopes.read_every_field();
        assert!(!scopes.is_unread(&1, READS_NONE));
    }

    #[test]
    fn fields_of_a_module_are_those_of_all_its_runs_until_it_is_forgotten() {
        let (module, mut scopes) = (Arc::from("m"), ReadScopes::default());
        scopes.set(&module, &1, ReadScope::Reported(masks(1)));
        scopes.set(&module, &2, ReadScope::Reported(masks(2)));
        assert_eq!(scopes.reported("m"), Some(&masks(2)));
        scopes.forget_module("m", |request| *request == 1);
        assert_eq!(scopes.reported("m"), None);
        assert!(!scopes.is_unread(&1, READS_NONE) && scopes.is_unread(&2, READS_NONE));
        scopes.forget(&2);
        assert!(!scopes.is_unread(&2, READS_NONE));
    }

    #[test]
    fn too_many_reported_fields_count_as_every_field() {
        let (module, mut scopes) = (Arc::from("m"), ReadScopes::default());
        scopes.set(&module, &1, ReadScope::Reported(masks(2_000)));
        assert_eq!(scopes.reported("m"), None);
        scopes.set(&module, &1, ReadScope::Reported(masks(1)));
        assert_eq!(scopes.reported("m"), None, "it does not forget that there were more");
    }
}
