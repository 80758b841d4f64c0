//! Which fields a run could read of the objects that it read, and which changes it cannot have
//! seen.
//!
//! The host learns the fields from the manifest (`readFields`), in which case the guest gets no
//! others, or from the answer of each run. What runs report is kept for each module and not for
//! each request: the runs of a module read the same types, and a change is compared once.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::object_change::{self, HostReads};
use innkeeper_core::{FieldMask, KindMasks, Object};

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
    Reported(Arc<KindMasks>),
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
    /// Whether a change of an object leaves the requests of a module unconcerned, if it does not
    /// concern the host. `reported` are the fields that its runs have reported.
    fn within_masks(
        active: &OpenRevision,
        kind: &Kind,
        (before, after): (&Object, &Object),
        reported: Option<&KindMasks>,
    ) -> Self {
        let has_mask = |masks: &KindMasks| masks.get(kind).is_some();
        if !has_mask(active.read_masks()) && !reported.is_some_and(has_mask) {
            return Self { declared: false, reported: reported.is_some() };
        }
        let (before, after) = (before.text.read(), after.text.read());
        let is_unread = |mask: &FieldMask| !mask.differs(&before, &after);
        let declared = active.read_masks().get(kind).is_some_and(is_unread);
        let reported =
            declared || reported.is_some_and(|masks| masks.get(kind).is_none_or(is_unread));
        Self { declared, reported }
    }

    /// Whether a change of an object leaves the requests of a module unconcerned. `reported` are
    /// the fields that its runs have reported.
    pub fn of(
        active: &OpenRevision,
        kind: &Kind,
        both: (&Object, &Object),
        reported: Option<&KindMasks>,
    ) -> Self {
        match active.host_reads(kind) {
            Some(host) if object_change::is_unread_by_host(kind, both, host) => {
                Self::within_masks(active, kind, both, reported)
            }
            _ => Self::default(),
        }
    }
}

/// The modules of which some requests may sleep through a change.
#[derive(Debug, Default)]
pub struct UnreadByModule(BTreeMap<Arc<str>, (Unread, Option<Arc<KindMasks>>)>);

impl UnreadByModule {
    /// Compares both versions of an object for each module, with the fields that its runs have
    /// reported. It may take long: not to be called with the index locked.
    pub fn compare(
        modules: Vec<(&Arc<OpenRevision>, Option<Arc<KindMasks>>)>,
        kind: &Kind,
        both: (&Object, &Object),
    ) -> Self {
        // What the host needs is the same for many modules.
        let mut of_host: Vec<(HostReads, bool)> = Vec::new();
        let mut unread_by_host = |host: HostReads| {
            let known = of_host.iter().find(|(of, _)| *of == host);
            let is_unread = known.map(|(_, is_unread)| *is_unread);
            is_unread.unwrap_or_else(|| {
                let is_unread = object_change::is_unread_by_host(kind, both, host);
                of_host.push((host, is_unread));
                is_unread
            })
        };
        let mut unread = BTreeMap::new();
        for (active, reported) in modules {
            let has_masks = reported.is_some() || active.read_masks().get(kind).is_some();
            let Some(host) = active.host_reads(kind).filter(|_| has_masks) else { continue };
            if unread_by_host(host) {
                let of_module = Unread::within_masks(active, kind, both, reported.as_deref());
                if of_module != Unread::default() {
                    unread.insert(active.name().clone(), (of_module, reported));
                }
            }
        }
        Self(unread)
    }

    /// The result for a module, if its runs have reported nothing since the comparison.
    fn get(&self, module: &str, reported: Option<&Arc<KindMasks>>) -> Option<Unread> {
        let (unread, compared_with) = self.0.get(module)?;
        let is_current = match (compared_with, reported) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        is_current.then_some(*unread)
    }

    /// The results of modules whose runs have reported nothing.
    #[cfg(test)]
    pub fn of<const N: usize>(all: [(Arc<str>, Unread); N]) -> Self {
        Self(all.map(|(module, unread)| (module, (unread, None))).into())
    }
}

/// How the host knows the fields that the last run of a request could read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScopeSource {
    /// The request counts as one that read every field.
    Nothing,
    Manifest,
    Reports,
}

impl ScopeSource {
    /// Whether a change does not concern a request.
    fn is_unread(self, unread: Unread) -> bool {
        match self {
            Self::Nothing => false,
            Self::Manifest => unread.declared,
            Self::Reports => unread.reported,
        }
    }
}

/// Which fields the last runs of the requests of one module could read.
#[derive(Debug)]
struct ModuleScopes<R> {
    /// Of all requests that have run.
    sources: BTreeMap<R, ScopeSource>,
    /// How many requests have each source.
    counts: [(ScopeSource, usize); 3],
    /// The fields that runs have reported; `None` if these are too many.
    reported: Option<Arc<KindMasks>>,
    /// Whether a run has reported any.
    has_reports: bool,
}

impl<R> Default for ModuleScopes<R> {
    fn default() -> Self {
        let sources = [ScopeSource::Nothing, ScopeSource::Manifest, ScopeSource::Reports];
        Self {
            sources: BTreeMap::new(),
            counts: sources.map(|source| (source, 0)),
            reported: None,
            has_reports: false,
        }
    }
}

impl<R: Clone + Ord> ModuleScopes<R> {
    fn add_reported(&mut self, masks: Arc<KindMasks>) {
        let all = match &self.reported {
            Some(reported) if Arc::ptr_eq(reported, &masks) || reported.contain(&masks) => return,
            Some(reported) => {
                let mut all = KindMasks::clone(reported);
                all.add(&masks);
                Arc::new(all)
            }
            None if self.has_reports => return,
            None => masks,
        };
        self.has_reports = true;
        self.reported = (all.bytes() <= REPORTED_BYTES_MAX).then_some(all);
    }

    fn set(&mut self, request: &R, source: ScopeSource) {
        let before = self.sources.insert(request.clone(), source);
        self.count(before, Some(source));
    }

    fn forget(&mut self, request: &R) {
        let before = self.sources.remove(request);
        self.count(before, None);
    }

    fn count(&mut self, less: Option<ScopeSource>, more: Option<ScopeSource>) {
        for (source, count) in &mut self.counts {
            *count -= usize::from(less == Some(*source));
            *count += usize::from(more == Some(*source));
        }
    }

    /// Whether a change concerns no request, whatever it read.
    fn all_are_unread(&self, unread: Unread) -> bool {
        self.counts.iter().all(|(source, count)| *count == 0 || source.is_unread(unread))
    }

    /// The same with each request as one that read every field.
    fn read_every_field(self) -> Self {
        let mut scopes = Self::default();
        for request in self.sources.into_keys() {
            scopes.set(&request, ScopeSource::Nothing);
        }
        scopes
    }
}

/// Which fields the last runs of requests could read.
#[derive(Debug)]
pub(super) struct ReadScopes<R> {
    by_module: BTreeMap<Arc<str>, ModuleScopes<R>>,
    /// Whether every request counts as one that read every field.
    is_every_field_read: bool,
}

impl<R> Default for ReadScopes<R> {
    fn default() -> Self {
        Self { by_module: BTreeMap::new(), is_every_field_read: false }
    }
}

impl<R: Clone + Ord> ReadScopes<R> {
    /// Lets every request count as one that read every field, whatever its runs report.
    pub(super) fn read_every_field(&mut self) {
        self.is_every_field_read = true;
    }

    /// The fields that the runs of a module have reported, if they can be compared.
    pub(super) fn reported(&self, module: &str) -> Option<&Arc<KindMasks>> {
        self.by_module.get(module)?.reported.as_ref()
    }

    /// Takes the scope of a run. The fields that it reports count for its module from now on.
    pub(super) fn set(&mut self, module: &Arc<str>, request: &R, scope: ReadScope) {
        let of_module = self.by_module.entry(module.clone()).or_default();
        let source = match scope {
            ReadScope::Everything => ScopeSource::Nothing,
            ReadScope::Declared => ScopeSource::Manifest,
            ReadScope::Reported(masks) => {
                of_module.add_reported(masks);
                ScopeSource::Reports
            }
        };
        of_module.set(request, source);
    }

    /// Whether a change does not concern a request of a module, whatever it read.
    pub(super) fn is_unread(&self, module: &str, request: &R, unread: Unread) -> bool {
        let of_module = self.by_module.get(module).filter(|_| !self.is_every_field_read);
        let source = of_module.and_then(|scopes| scopes.sources.get(request));
        source.is_some_and(|source| source.is_unread(unread))
    }

    /// The same by a comparison for all modules.
    pub(super) fn stays_asleep(&self, module: &str, request: &R, all: &UnreadByModule) -> bool {
        let unread = all.get(module, self.reported(module));
        unread.is_some_and(|unread| self.is_unread(module, request, unread))
    }

    /// Whether all requests of a module that have run stay asleep.
    pub(super) fn all_stay_asleep(&self, module: &str, all: &UnreadByModule) -> bool {
        let unread = all.get(module, self.reported(module)).filter(|_| !self.is_every_field_read);
        let of_module = self.by_module.get(module);
        of_module.zip(unread).is_some_and(|(scopes, unread)| scopes.all_are_unread(unread))
    }

    /// Forgets a request.
    pub(super) fn forget(&mut self, module: &str, request: &R) {
        let Some(of_module) = self.by_module.get_mut(module) else { return };
        of_module.forget(request);
        if of_module.sources.is_empty() {
            self.by_module.remove(module);
        }
    }

    /// Lets the requests of a module count as such that read every field, until they have run, and
    /// forgets what its runs have reported.
    pub(super) fn read_every_field_of(&mut self, module: &str) {
        if let Some(of_module) = self.by_module.get_mut(module) {
            *of_module = std::mem::take(of_module).read_every_field();
        }
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
        assert!(!scopes.is_unread("m", &1, READS_NONE));
        scopes.set(&module, &1, ReadScope::Declared);
        assert!(scopes.is_unread("m", &1, READS_NONE) && !scopes.is_unread("m", &1, READS_ALL));
        assert!(!scopes.is_unread("m", &1, Unread { declared: false, reported: true }));
        scopes.set(&module, &1, ReadScope::Reported(masks(1).into()));
        assert!(scopes.is_unread("m", &1, Unread { declared: false, reported: true }));
        assert!(!scopes.is_unread("m", &2, READS_NONE));
        scopes.set(&module, &1, ReadScope::Everything);
        assert!(!scopes.is_unread("m", &1, READS_NONE));
    }

    #[test]
    fn every_request_is_concerned_if_every_field_counts_as_read() {
        let (module, mut scopes) = (Arc::from("m"), ReadScopes::default());
        scopes.set(&module, &1, ReadScope::Declared);
        assert!(scopes.is_unread("m", &1, READS_NONE));
        scopes.read_every_field();
        assert!(!scopes.is_unread("m", &1, READS_NONE));
    }

    #[test]
    fn fields_of_a_module_are_those_of_all_its_runs_until_it_is_forgotten() {
        let (module, mut scopes) = (Arc::from("m"), ReadScopes::default());
        scopes.set(&module, &1, ReadScope::Reported(masks(1).into()));
        scopes.set(&module, &2, ReadScope::Reported(masks(2).into()));
        assert_eq!(scopes.reported("m").map(|all| &**all), Some(&masks(2)));
        assert!(scopes.is_unread("m", &1, READS_NONE) && scopes.is_unread("m", &2, READS_NONE));
        scopes.forget("m", &2);
        assert!(!scopes.is_unread("m", &2, READS_NONE));
        scopes.read_every_field_of("m");
        assert_eq!(scopes.reported("m"), None);
        assert!(!scopes.is_unread("m", &1, READS_NONE));
        scopes.forget("m", &1);
        assert!(scopes.by_module.is_empty());
    }

    #[test]
    fn all_requests_of_a_module_stay_asleep_if_each_does() {
        let module: Arc<str> = Arc::from("m");
        let mut rng = fastrand::Rng::with_seed(3);
        let mut scopes = ReadScopes::default();
        for _ in 0..2_000 {
            let request = rng.u8(0..4);
            match rng.u8(0..6) {
                0 => scopes.set(&module, &request, ReadScope::Everything),
                1 | 2 => scopes.set(&module, &request, ReadScope::Declared),
                3 if rng.u8(0..20) == 0 => scopes.read_every_field_of("m"),
                _ => scopes.forget("m", &request),
            }
            for (declared, reported) in [(true, true), (false, true), (false, false)] {
                let unread = Unread { declared, reported };
                let of_module = scopes.by_module.get("m");
                let mut requests = of_module.into_iter().flat_map(|one| one.sources.keys());
                let each = requests.all(|request| scopes.is_unread("m", request, unread));
                let all = UnreadByModule::of([(module.clone(), unread)]);
                assert_eq!(scopes.all_stay_asleep("m", &all), each && of_module.is_some());
            }
        }
    }

    #[test]
    fn too_many_reported_fields_count_as_every_field() {
        let (module, mut scopes) = (Arc::from("m"), ReadScopes::default());
        scopes.set(&module, &1, ReadScope::Reported(masks(2_000).into()));
        assert_eq!(scopes.reported("m"), None);
        scopes.set(&module, &1, ReadScope::Reported(masks(1).into()));
        assert_eq!(scopes.reported("m"), None, "it does not forget that there were more");
    }
}
