use serde_json::Value;

use crate::{Manifest, OwnedKind, Resource};

/// Builds a [`Manifest`].
///
/// ```
/// use innkeeper_sdk::Describe;
/// use innkeeper_sdk::kinds::{ConfigMap, Deployment};
/// # struct Web;
/// # impl innkeeper_sdk::Resource for Web {
/// #     const API_VERSION: &'static str = "example.com/v1";
/// #     const KIND: &'static str = "Web";
/// #     const PLURAL: &'static str = "webs";
/// # }
///
/// let manifest = Describe::reconciler_of::<Web>("web", "1.2.0")
///     .owns::<Deployment>()
///     .reads::<ConfigMap>()
///     .resync_seconds(600)
///     .manifest();
/// assert_eq!(manifest.owned[0].kind.plural, "deployments");
/// ```
pub struct Describe {
    manifest: Manifest,
}

impl Describe {
    /// The manifest of a guest that reconciles `P`, with its name and version for people.
    pub fn reconciler_of<P: Resource>(name: &str, version: &str) -> Self {
        let manifest = Manifest {
            name: name.to_owned(),
            version: version.to_owned(),
            primary: P::kind(),
            owned: Vec::new(),
            reads: Vec::new(),
            crds: Vec::new(),
            resync_seconds: None,
            finalizer: None,
            decorates: false,
            parameters_schema: None,
        };
        Self { manifest }
    }

    /// The guest decorates its primaries, which something else controls: it gives no status. Kinds
    /// of Kubernetes' own are always decorated.
    pub fn decorates(mut self) -> Self {
        self.manifest.decorates = true;
        self
    }

    /// The guest makes objects of this kind.
    pub fn owns<R: Resource>(mut self) -> Self {
        self.manifest.owned.push(OwnedKind { kind: R::kind(), optional: false, merges: false });
        self
    }

    /// The guest makes objects of this kind where the cluster serves it: its objects are left
    /// out elsewhere without an error, and made as soon as it is served.
    pub fn owns_if_served<R: Resource>(mut self) -> Self {
        self.manifest.owned.push(OwnedKind { kind: R::kind(), optional: true, merges: false });
        self
    }

    /// The guest makes no objects of this kind, which may be the primary's, but merges into those
    /// that are there ([`Policy::Merge`](crate::Policy::Merge)).
    pub fn merges_into<R: Resource>(mut self) -> Self {
        self.manifest.owned.push(OwnedKind { kind: R::kind(), optional: false, merges: true });
        self
    }

    /// The guest reads this kind through its context.
    pub fn reads<R: Resource>(mut self) -> Self {
        self.manifest.reads.push(R::kind());
        self
    }

    /// A CustomResourceDefinition that the host installs (where the Module's `allowedCRDGroups`
    /// allow its group), as JSON text: mostly `include_str!("../crd.json")`, which a test
    /// holds equal to what `schema::crd` makes of the guest's types.
    ///
    /// A text that is no JSON reaches the host as it is, which refuses the component and says so.
    pub fn installs(mut self, crd: &str) -> Self {
        self.manifest
            .crds
            .push(serde_json::from_str(crd).unwrap_or_else(|_| Value::String(crd.to_owned())));
        self
    }

    /// Every primary is reconciled again after this many seconds even if nothing changed.
    pub fn resync_seconds(mut self, seconds: u32) -> Self {
        self.manifest.resync_seconds = Some(seconds);
        self
    }

    /// The guest is asked once more before a primary goes
    /// ([`Observed::is_deleting`](crate::Observed::is_deleting)). `name` is the finalizer's;
    /// `innkeeper.dev/<module>` if empty. Its domain belongs to the group of the primary, or to a
    /// group that the Module names in `spec.allowedCRDGroups`.
    pub fn finalizes(mut self, name: &str) -> Self {
        self.manifest.finalizer = Some(name.to_owned());
        self
    }

    /// JSON Schema of the Module's parameters; without it a Module must not give any.
    pub fn parameters(mut self, schema: Value) -> Self {
        self.manifest.parameters_schema = Some(schema);
        self
    }

    /// The manifest.
    pub fn manifest(self) -> Manifest {
        self.manifest
    }
}
