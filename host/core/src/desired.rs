//! What a guest wants, checked and completed: the objects of one `desired` document.
//!
//! A document that breaks the contract is refused whole: half of a desired state is not a
//! desired state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use innkeeper_contract::{Desired, Kind, Manifest, Policy, Reference};
use serde_json::{Map, Value, json};

use crate::host_names::{self, Grants};
use crate::ownership::Primary;
use crate::well_known::{ALLOW_DELETION_ANNOTATION, RETAINED_FOR_LABEL};
use crate::{
    ObjectKey, ObjectRef, control, foreign, guest_status, host_objects, in_sync, known_noops,
    names, order,
};

/// Why a `desired` document is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDesired {
    /// An object is of a kind that the manifest does not declare.
    #[error("the guest gave {what}, but its manifest does not own {kind}; add the kind to `owned`")]
    UndeclaredKind {
        /// The object.
        what: String,
        /// Its kind.
        kind: String,
    },
    /// An object lies outside the primary's namespace.
    #[error(
        "the guest gave {what}, outside the primary's namespace; the Module does not allow that (spec.allowCrossNamespace)"
    )]
    CrossNamespace {
        /// The object.
        what: String,
    },
    /// An object belongs to Innkeeper itself.
    #[error(
        "the guest gave {what}, which belongs to Innkeeper itself: no module writes the host's namespace ({} unless it was installed in another one), the namespace {}, kinds of {}, or the host's own roles and policies; have the guest leave it out",
        host_objects::HOST_NAMESPACE,
        host_objects::MODULES_NAMESPACE,
        host_objects::GROUP
    )]
    Reserved {
        /// The object.
        what: String,
    },
    /// Two objects have the same name.
    #[error("the guest gave {what} twice")]
    Duplicate {
        /// The object.
        what: String,
    },
    /// A member is missing or is not the guest's to give.
    #[error("the guest gave an unusable object ({what}): {problem}")]
    Malformed {
        /// The object, as far as it has a name.
        what: String,
        /// What is wrong.
        problem: String,
    },
    /// What it says of the primary cannot be written.
    #[error("the guest gave an unusable status: {problem}")]
    MalformedStatus {
        /// What is wrong.
        problem: String,
    },
}

impl InvalidDesired {
    /// One CamelCase word, for conditions.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::UndeclaredKind { .. } => "UndeclaredKind",
            Self::CrossNamespace { .. } => "CrossNamespace",
            Self::Reserved { .. } => "ReservedObject",
            Self::Duplicate { .. } | Self::Malformed { .. } => "MalformedObject",
            Self::MalformedStatus { .. } => "MalformedStatus",
        }
    }
}

/// One object that should be, complete: with its namespace, its owner (or what says that it has
/// none), and its stamp.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredObject {
    /// Which object.
    pub object_ref: ObjectRef,
    /// The fields to apply, without guards.
    pub body: Value,
    /// The digest of the body, as in its annotation.
    digest: String,
    /// How it differs from an ordinary owned object.
    pub policy: BTreeSet<Policy>,
    /// Its kind may be unserved without that being an error.
    pub optional: bool,
    /// The labels that the guest gave, for adoption.
    pub labels: BTreeMap<String, String>,
}

impl DesiredObject {
    /// The body of a guarded create: `resourceVersion: "1"` lets the server answer 409 if
    /// something is there (rule 2).
    pub fn create_body(&self) -> Value {
        self.with_metadata("resourceVersion", "1")
    }

    /// The body of a guarded update: with the uid the server answers 409 if the object is
    /// gone, and 422 if another took its name (rule 2).
    pub fn apply_body(&self, uid: &str) -> Value {
        self.with_metadata("uid", uid)
    }

    /// The body of an adoption: only of exactly the version whose owners were checked.
    pub fn adopt_body(&self, uid: &str, resource_version: &str) -> Value {
        let mut body = self.with_metadata("uid", uid);
        body["metadata"]["resourceVersion"] = resource_version.into();
        body
    }

    /// The digest of the body, as in its annotation.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The name of the annotation with the digest of the body.
    pub fn annotation(&self, primary: &Primary) -> String {
        if self.has(Policy::Merge) {
            in_sync::merge_annotation(&primary.merger)
        } else {
            in_sync::APPLIED_ANNOTATION.to_owned()
        }
    }

    /// Whether the guest gave a policy.
    pub fn has(&self, policy: Policy) -> bool {
        self.policy.contains(&policy)
    }

    fn with_metadata(&self, name: &str, value: &str) -> Value {
        let mut body = self.body.clone();
        body["metadata"][name] = value.into();
        body
    }
}

/// What a guest wants of a primary, checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DesiredState {
    /// The objects, in the order in which they are applied.
    pub objects: Vec<DesiredObject>,
    /// Objects made before that stay although they are not wanted.
    pub keep: BTreeSet<Reference>,
}

/// How much of an object's kind and name is told, in bytes: as much as any real one has.
const WHAT_BYTES_MAX: usize = 512;

/// Members of `metadata` that are a guest's to give; all others are the server's or the host's.
const METADATA: [&str; 5] = ["annotations", "finalizers", "labels", "name", "namespace"];

impl DesiredState {
    /// Checks and completes a `desired` document.
    ///
    /// `grants`: what the Module allows.
    pub fn read(
        desired: &Desired,
        manifest: &Manifest,
        primary: &Primary,
        grants: Grants<'_>,
    ) -> Result<Self, InvalidDesired> {
        if control::decorates(manifest)
            && (desired.status.is_some() || !desired.conditions.is_empty())
        {
            return Err(InvalidDesired::MalformedStatus {
                problem: format!(
                    "the guest decorates {}, so status and conditions are not its to give",
                    manifest.primary
                ),
            });
        }
        guest_status::check(desired.status.as_ref(), &desired.conditions, &desired.events)
            .map_err(|problem| InvalidDesired::MalformedStatus { problem })?;
        let mut desired_object = Vec::with_capacity(desired.objects.len());
        let mut names = BTreeSet::new();
        for object in &desired.objects {
            let one = read_one(object, manifest, primary, grants)?;
            if !names.insert(one.object_ref.clone()) {
                return Err(InvalidDesired::Duplicate { what: one.object_ref.to_string() });
            }
            desired_object.push(one);
        }
        desired_object
            .sort_by(|a, b| order::sort_key(&a.object_ref).cmp(&order::sort_key(&b.object_ref)));
        for (index, kept) in desired.keep.iter().enumerate() {
            names::check_reference(&kept.api_version, &kept.kind, &kept.namespace, &kept.name)
                .map_err(|problem| InvalidDesired::Malformed {
                    what: format!("keep[{index}]"),
                    problem,
                })?;
        }
        let keep =
            desired.keep.iter().map(|reference| complete(reference, manifest, primary)).collect();
        Ok(Self { objects: desired_object, keep })
    }
}

/// A `keep` reference with the primary's namespace where it was left out.
fn complete(reference: &Reference, manifest: &Manifest, primary: &Primary) -> Reference {
    let mut reference = reference.clone();
    let namespaced = manifest.owned.iter().any(|owned| {
        owned.kind.kind == reference.kind
            && owned.kind.api_version == reference.api_version
            && owned.kind.is_namespaced()
    });
    if namespaced && reference.namespace.is_empty() {
        reference.namespace = primary.object_ref.key.namespace().to_string();
    }
    reference
}

fn read_one(
    desired: &innkeeper_contract::DesiredObject,
    manifest: &Manifest,
    primary: &Primary,
    grants: Grants<'_>,
) -> Result<DesiredObject, InvalidDesired> {
    let object = &desired.object;
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind_name) = (text("/apiVersion"), text("/kind"));
    let (name, given_namespace) = (text("/metadata/name"), text("/metadata/namespace"));
    let what = || {
        let kind = if kind_name.is_empty() { "an object" } else { kind_name };
        foreign::one_line(format_args!("{kind} {name}"), WHAT_BYTES_MAX)
    };
    let malformed =
        |problem: String| InvalidDesired::Malformed { what: what().trim_end().to_owned(), problem };

    for (member, value) in
        [("apiVersion", api_version), ("kind", kind_name), ("metadata.name", name)]
    {
        if value.is_empty() {
            return Err(malformed(format!("{member} is missing or is not a text")));
        }
    }
    let members = object["metadata"].as_object().into_iter().flat_map(Map::keys);
    if let Some(member) = members.into_iter().find(|member| !METADATA.contains(&member.as_str())) {
        let member = foreign::one_line(member, WHAT_BYTES_MAX);
        return Err(malformed(format!("metadata.{member} is not the guest's to give")));
    }
    // A name becomes a segment of a URL.
    if !names::is_object_name(api_version, kind_name, name) {
        return Err(malformed("metadata.name is not a name that Kubernetes allows".to_owned()));
    }
    if !given_namespace.is_empty() && !names::is_label(given_namespace) {
        return Err(malformed(
            "metadata.namespace is not a name that Kubernetes allows".to_owned(),
        ));
    }
    names::check_metadata(&object["metadata"]).map_err(malformed)?;
    // `kubectl` reads an object with this member as a list, and applies the items in its place.
    if object.get("items").is_some() {
        return Err(malformed("items is a member of lists, not of objects".to_owned()));
    }
    if object.get("status").is_some() {
        return Err(malformed("status belongs to the controller of the object".to_owned()));
    }

    let owned = manifest
        .owned
        .iter()
        .find(|owned| owned.kind.api_version == api_version && owned.kind.kind == kind_name)
        .ok_or_else(|| InvalidDesired::UndeclaredKind {
            what: what(),
            kind: foreign::one_line(format_args!("{api_version} {kind_name}"), WHAT_BYTES_MAX),
        })?;
    let policy: BTreeSet<Policy> = desired.policy.iter().copied().collect();
    let merges = policy.contains(&Policy::Merge);
    if merges && policy.len() > 1 {
        return Err(malformed(
            "the policy merge goes with no other: the object is somebody else's".to_owned(),
        ));
    }

    host_names::check(object, merges, grants).map_err(malformed)?;
    if owned.merges && !merges {
        return Err(malformed(format!(
            "the manifest says that the guest only merges into {}, so it needs the policy merge",
            owned.kind
        )));
    }

    let namespace = namespace_of(&owned.kind, given_namespace, primary).map_err(malformed)?;
    let object_ref = ObjectRef::new(Arc::new(owned.kind.clone()), ObjectKey::new(namespace, name));
    let at_home = primary.may_own(&object_ref);
    if !at_home && !grants.cross_namespace {
        return Err(InvalidDesired::CrossNamespace { what: object_ref.to_string() });
    }
    if host_objects::is_object_of(&object_ref.kind, &object_ref.key, grants.host_namespace) {
        return Err(InvalidDesired::Reserved { what: object_ref.to_string() });
    }
    if !merges && primary.is_at(&object_ref) {
        return Err(malformed(
            "it is the primary itself, which a guest does not make: give the policy merge"
                .to_owned(),
        ));
    }

    let mut body = object.clone();
    known_noops::drop_known_noops(&mut body);
    if owned.kind.is_namespaced() {
        body["metadata"]["namespace"] = namespace.into();
    }
    let orphan = policy.contains(&Policy::Orphan);
    if orphan {
        body["metadata"]["labels"][RETAINED_FOR_LABEL] = primary.identity().into();
    } else if at_home && !merges {
        body["metadata"]["ownerReferences"] = json!([primary.owner_reference()]);
    } else if !merges && manifest.finalizer.is_none() {
        // Nobody would delete it.
        return Err(malformed(
            "it lies outside the primary's namespace, so Kubernetes does not delete it with the primary: the guest must ask for a finalizer, or give the policy orphan".to_owned(),
        ));
    }
    if policy.contains(&Policy::Deletable) {
        body["metadata"]["annotations"][ALLOW_DELETION_ANNOTATION] = "true".into();
    }
    let digest = if merges {
        in_sync::set_merge_digest(&mut body, &primary.merger)
    } else {
        in_sync::set_digest(&mut body)
    };
    let labels = labels_of(object);
    Ok(DesiredObject { object_ref, body, digest, policy, optional: owned.optional, labels })
}

fn labels_of(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

fn namespace_of<'a>(kind: &Kind, given: &'a str, primary: &'a Primary) -> Result<&'a str, String> {
    let home = primary.object_ref.key.namespace();
    match (kind.is_namespaced(), given.is_empty()) {
        (false, true) => Ok(""),
        (false, false) => Err(format!("{kind} is cluster-scoped, so it has no metadata.namespace")),
        (true, false) => Ok(given),
        (true, true) if home.is_empty() => {
            Err("metadata.namespace is missing, and the primary is cluster-scoped".to_owned())
        }
        (true, true) => Ok(home),
    }
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "cases read better without references")]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn manifest() -> Manifest {
        serde_json::from_value(json!({
            "name": "podroute",
            "primary": {"apiVersion": "quay.io/v1alpha1", "kind": "Podroute", "plural": "podroutes"},
            "owned": [
                {"kind": {"apiVersion": "apps/v1", "kind": "Deployment", "plural": "deployments"}},
                {"kind": {"apiVersion": "v1", "kind": "Service", "plural": "services"}},
                {"kind": {"apiVersion": "v1", "kind": "Namespace", "plural": "namespaces", "scope": "Cluster"}}
            ]
        }))
        .unwrap()
    }

    fn primary() -> Primary {
        let kind = Arc::new(manifest().primary);
        Primary::new("podroute", ObjectRef::new(kind, ObjectKey::new("web", "first")), "u1")
    }

    fn read(objects: Value, cross_namespace: bool) -> Result<DesiredState, InvalidDesired> {
        read_with(&manifest(), objects, cross_namespace)
    }

    fn read_with(
        manifest: &Manifest,
        objects: Value,
        cross_namespace: bool,
    ) -> Result<DesiredState, InvalidDesired> {
        let desired: Desired = serde_json::from_value(json!({ "objects": objects })).unwrap();
        let grants = Grants { cross_namespace, ..Grants::default() };
        DesiredState::read(&desired, manifest, &primary(), grants)
    }

    fn refused(object: Value, expected: Expect) {
        expected.assert_eq(&read(json!([{ "object": object }]), false).unwrap_err().to_string());
    }

    #[test]
    fn an_object_gets_its_namespace_its_owner_and_its_stamp() {
        let desired_state = read(
            json!([{"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}}]),
            false,
        )
        .unwrap();
        let body = &desired_state.objects[0].body;
        assert_eq!(body["metadata"]["namespace"], "web");
        assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "u1");
        assert_eq!(
            body["metadata"]["annotations"][in_sync::APPLIED_ANNOTATION],
            in_sync::digest(body)
        );
    }

    #[test]
    fn a_name_or_namespace_with_a_nul_is_refused() {
        // A key holds namespace and name with a NUL between them: one more would move the border.
        for (namespace, name) in [("web\0x", "y"), ("web", "x\0y")] {
            let object = json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": name, "namespace": namespace}});
            let refusal = read(json!([{ "object": object }]), true).unwrap_err();
            assert_eq!(refusal.reason(), "MalformedObject");
        }
    }

    #[test]
    fn the_guards_of_a_create_and_of_an_update() {
        let desired_state = read(
            json!([{"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}}]),
            false,
        )
        .unwrap();
        assert_eq!(desired_state.objects[0].create_body()["metadata"]["resourceVersion"], "1");
        assert_eq!(desired_state.objects[0].apply_body("u9")["metadata"]["uid"], "u9");
        assert_eq!(desired_state.objects[0].body["metadata"].get("uid"), None);
    }

    #[test]
    fn objects_are_applied_in_order() {
        let desired_state = read(
            json!([
                {"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}},
                {"object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "b"}}},
            ]),
            false,
        )
        .unwrap();
        let names: Vec<String> =
            desired_state.objects.iter().map(|one| one.object_ref.to_string()).collect();
        assert_eq!(names, ["Deployment web/b", "Service web/a"]);
    }

    #[test]
    fn what_breaks_the_contract_is_refused_with_what_and_why() {
        refused(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}),
            expect![
                "the guest gave Secret a, but its manifest does not own v1 Secret; add the kind to `owned`"
            ],
        );
        refused(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "other"}}),
            expect![
                "the guest gave Service other/a, outside the primary's namespace; the Module does not allow that (spec.allowCrossNamespace)"
            ],
        );
        refused(
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}),
            expect![
                "the guest gave Namespace a, outside the primary's namespace; the Module does not allow that (spec.allowCrossNamespace)"
            ],
        );
        refused(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"generateName": "a-"}}),
            expect![
                "the guest gave an unusable object (Service): metadata.name is missing or is not a text"
            ],
        );
        refused(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "../secrets/a"}}),
            expect![
                "the guest gave an unusable object (Service ../secrets/a): metadata.name is not a name that Kubernetes allows"
            ],
        );
        refused(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a\n\u{202e}b"}}),
            expect![[
                r"the guest gave an unusable object (Service a\n\u{202e}b): metadata.name is not a name that Kubernetes allows"
            ]],
        );
        refused(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "b c"}}),
            expect![
                "the guest gave an unusable object (Service a): metadata.namespace is not a name that Kubernetes allows"
            ],
        );
        refused(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "items": []}),
            expect![
                "the guest gave an unusable object (Service a): items is a member of lists, not of objects"
            ],
        );
        refused(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "annotations": []}}),
            expect![
                "the guest gave an unusable object (Service a): metadata.annotations is not an object"
            ],
        );
        refused(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "uid": "u"}}),
            expect![
                "the guest gave an unusable object (Service a): metadata.uid is not the guest's to give"
            ],
        );
        refused(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "status": {}}),
            expect![
                "the guest gave an unusable object (Service a): status belongs to the controller of the object"
            ],
        );
        refused(
            json!("x"),
            expect![
                "the guest gave an unusable object (an object): apiVersion is missing or is not a text"
            ],
        );
        let twice =
            json!({"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}});
        assert_eq!(
            read(json!([twice, twice]), false).unwrap_err().to_string(),
            "the guest gave Service web/a twice"
        );
    }

    #[test]
    fn a_reference_to_keep_is_refused_when_its_name_is_none() {
        let keep = |api_version: &str, kind: &str, namespace: &str, name: &str| {
            let kept = json!({"keep": [{"apiVersion": api_version, "kind": kind,
                "namespace": namespace, "name": name}]});
            let desired: Desired = serde_json::from_value(kept).unwrap();
            DesiredState::read(&desired, &manifest(), &primary(), Grants::default())
                .map_err(|error| error.to_string())
        };
        assert_eq!(keep("v1", "Service", "", "a").unwrap().keep.len(), 1);
        for (api_version, kind, namespace, name, problem) in [
            ("v1", "Service", "", "a b", "name `a b`"),
            ("v1", "Service", "", "a\u{1b}[2J", r"name `a\u{1b}[2J`"),
            ("v1", "Service", "x\n", "a", r"namespace `x\n`"),
            ("v1/..", "Service", "", "a", "apiVersion `v1/..`"),
            ("v1", "\0", "", "a", r"kind `\u{0}`"),
        ] {
            let error = keep(api_version, kind, namespace, name).unwrap_err();
            assert!(error.contains("(keep[0])") && error.contains(problem), "{error}");
        }
    }

    #[test]
    fn what_a_guest_says_must_be_writable_and_what_is_told_of_it_is_cut() {
        let manifest = manifest();
        let primary = primary();
        let desired =
            json!({"conditions": [{"type": "Ready", "status": "True", "reason": "two words"}]});
        let desired: Desired = serde_json::from_value(desired).unwrap();
        let refusal =
            DesiredState::read(&desired, &manifest, &primary, Grants::default()).unwrap_err();
        assert_eq!(refusal.reason(), "MalformedStatus");
        assert_eq!(
            refusal.to_string(),
            "the guest gave an unusable status: conditions[0].reason is not a CamelCase word"
        );
        let long =
            json!({"apiVersion": "v1", "kind": "K".repeat(1 << 20), "metadata": {"name": "a"}});
        let refusal = read(json!([{ "object": long }]), false).unwrap_err();
        assert!(refusal.to_string().len() < 2_000, "{} bytes", refusal.to_string().len());
    }

    #[test]
    fn another_namespace_needs_the_modules_word_and_has_no_owner() {
        let elsewhere = |policy: Value| json!([{"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "other"}}, "policy": policy}]);
        let desired_state = read(elsewhere(json!(["orphan"])), true).unwrap();
        assert_eq!(desired_state.objects[0].body["metadata"].get("ownerReferences"), None);
        expect![
            "the guest gave an unusable object (Service a): it lies outside the primary's namespace, so Kubernetes does not delete it with the primary: the guest must ask for a finalizer, or give the policy orphan"
        ]
        .assert_eq(&read(elsewhere(json!([])), true).unwrap_err().to_string());
        let with_finalizer = Manifest { finalizer: Some(String::new()), ..manifest() };
        read_with(&with_finalizer, elsewhere(json!([])), true).unwrap();
    }

    #[test]
    fn an_object_of_innkeeper_itself_is_refused_whatever_the_module_allows() {
        let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let service = |namespace: &str| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": namespace}});
        let with_finalizer = Manifest { finalizer: Some(String::new()), ..manifest() };
        for object in [
            namespace("innkeeper-modules"),
            namespace("innkeeper-system"),
            service("innkeeper-modules"),
            service("innkeeper-system"),
        ] {
            for policy in [json!([]), json!(["merge"]), json!(["orphan"])] {
                let objects = json!([{"object": object, "policy": policy}]);
                let refusal = read_with(&with_finalizer, objects, true).unwrap_err();
                assert_eq!(refusal.reason(), "ReservedObject", "{refusal}");
            }
        }
        let objects = json!([{"object": namespace("web"), "policy": ["merge"]}]);
        read_with(&with_finalizer, objects, true).unwrap();
    }

    #[test]
    fn a_scope_that_a_manifest_invents_opens_no_other_namespace() {
        let mut manifest = manifest();
        manifest.primary.scope = innkeeper_contract::Scope::Cluster;
        let lies = Primary::new(
            "podroute",
            ObjectRef::new(Arc::new(manifest.primary.clone()), ObjectKey::new("web", "first")),
            "u1",
        );
        for object in [
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "other"}}),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}),
        ] {
            let desired: Desired =
                serde_json::from_value(json!({"objects": [{"object": object}]})).unwrap();
            let refusal =
                DesiredState::read(&desired, &manifest, &lies, Grants::default()).unwrap_err();
            assert_eq!(refusal.reason(), "CrossNamespace", "{refusal}");
        }
    }

    #[test]
    fn an_object_that_stays_has_no_owner_and_says_for_whom_it_is_kept() {
        let desired_state = read(
            json!([{"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}, "policy": ["orphan"]}]),
            false,
        )
        .unwrap();
        let metadata = &desired_state.objects[0].body["metadata"];
        assert_eq!(metadata.get("ownerReferences"), None);
        assert_eq!(metadata["labels"][RETAINED_FOR_LABEL], "a9b0903d4d9a82614e63870244d71cd8");
    }

    #[test]
    fn what_is_merged_has_no_owner_and_a_stamp_of_its_own() {
        let merged = |policy: Value| json!([{"object": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}, "policy": policy}]);
        let desired_state = read(merged(json!(["merge"])), false).unwrap();
        let metadata = &desired_state.objects[0].body["metadata"];
        assert_eq!(metadata.get("ownerReferences"), None);
        let annotations: Vec<_> = metadata["annotations"].as_object().unwrap().keys().collect();
        assert_eq!(annotations, [&desired_state.objects[0].annotation(&primary())]);
        assert_ne!(annotations[0], in_sync::APPLIED_ANNOTATION);
        expect![
            "the guest gave an unusable object (Service a): the policy merge goes with no other: the object is somebody else's"
        ]
        .assert_eq(&read(merged(json!(["merge", "orphan"])), false).unwrap_err().to_string());
    }
}
