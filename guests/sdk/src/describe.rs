use innkeeper_contract::{
    LabelRequirement, PolicyKind, ReadFields, SelectorOperator, ValueRequirement,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::kinds::LabelSelector;
use crate::read_fields;
use crate::{
    DescribePolicy, KindParameter, KindRole, Labels, Manifest, OwnedKind, PrimarySelector, Resource,
};

/// Builds a [`Manifest`]: the kinds that the guest uses, and how the host runs it.
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
    /// Starts the manifest of a guest that reconciles `P`. `name` and `version` are for people.
    pub fn reconciler_of<P: Resource>(name: &str, version: &str) -> Self {
        let manifest = Manifest {
            name: name.to_owned(),
            version: version.to_owned(),
            primary: Some(P::kind()),
            owned: Vec::new(),
            reads: Vec::new(),
            read_fields: Vec::new(),
            crds: Vec::new(),
            resync_seconds: None,
            finalizer: None,
            decorates: false,
            parameters_schema: None,
            kind_parameters: Vec::new(),
            selector: None,
            policy: None,
        };
        Self { manifest }
    }

    /// Starts the manifest of a guest that allows or denies requests. `name` and `version` are for
    /// people.
    pub fn validating_policy(name: &str, version: &str) -> DescribePolicy {
        DescribePolicy::new(name, version, PolicyKind::Validate)
    }

    /// Starts the manifest of a guest that allows or denies requests, and changes their objects.
    /// `name` and `version` are for people.
    pub fn mutating_policy(name: &str, version: &str) -> DescribePolicy {
        DescribePolicy::new(name, version, PolicyKind::Mutate)
    }

    /// Adds a policy to a guest that reconciles: the rules of its manifest and the kinds that it
    /// reads. The schema of the parameters is that of the reconciler, if it has one. Export the
    /// guest with `export!(reconciler: R, reviewer: P)`.
    ///
    /// ```
    /// use innkeeper_sdk::{Describe, RequestRule, kind};
    ///
    /// kind!(Web, "example.com/v1", "webs");
    ///
    /// let policy = Describe::validating_policy("web", "1.0.0").rule(RequestRule::of::<Web>());
    /// let manifest = Describe::reconciler_of::<Web>("web", "1.0.0")
    ///     .and_policy(policy.manifest())
    ///     .manifest();
    /// assert!(manifest.primary.is_some() && manifest.policy.is_some());
    /// ```
    pub fn and_policy(mut self, policy: Manifest) -> Self {
        self.manifest.policy = policy.policy;
        if self.manifest.parameters_schema.is_none() {
            self.manifest.parameters_schema = policy.parameters_schema;
        }
        for read in policy.reads {
            if !self.manifest.reads.contains(&read) {
                self.manifest.reads.push(read);
            }
        }
        for parameter in policy.kind_parameters {
            if !self.manifest.kind_parameters.contains(&parameter) {
                self.manifest.kind_parameters.push(parameter);
            }
        }
        self
    }

    /// Declares that another controller owns the primaries: the guest returns no status and no
    /// conditions. The host treats Kubernetes' own kinds so in any case.
    pub fn decorates(mut self) -> Self {
        self.manifest.decorates = true;
        self
    }

    /// Declares that a parameter of the Module names the kind of the primaries: an object with
    /// `apiVersion` and `kind`, a [`KindName`](crate::KindName). The kind `P` is the default. The
    /// guest [decorates](Self::decorates) its primaries; [`Raw`](crate::Raw) is a type for
    /// primaries of any kind.
    ///
    /// ```
    /// use innkeeper_sdk::serde_json::json;
    /// use innkeeper_sdk::{Describe, KindRole, kind};
    ///
    /// kind!(StatefulSet, "apps/v1", "statefulsets");
    ///
    /// let manifest = Describe::reconciler_of::<StatefulSet>("service-per-pod", "1.0.0")
    ///     .parameters(json!({"type": "object", "properties": {"target": {}}}))
    ///     .decorator_of_parameter("target")
    ///     .manifest();
    /// assert_eq!(manifest.kind_parameters[0].role, KindRole::Primary);
    /// ```
    pub fn decorator_of_parameter(self, parameter: &str) -> Self {
        self.decorates().kind_parameter(parameter, KindRole::Primary, false)
    }

    /// Declares that the guest creates objects of the kinds that a parameter of the Module names:
    /// one [`KindName`](crate::KindName), or a list of at most 20. Desire such objects as
    /// [`KindObject`](crate::KindObject).
    pub fn owns_parameter(self, parameter: &str) -> Self {
        self.kind_parameter(parameter, KindRole::Owned, false)
    }

    /// Declares that the guest merges fields into objects of the kinds that a parameter names, as
    /// [`merges_into`](Self::merges_into).
    pub fn merges_into_parameter(self, parameter: &str) -> Self {
        self.kind_parameter(parameter, KindRole::Owned, true)
    }

    /// Declares that the guest reads the kinds that a parameter names, with
    /// [`Context::get_of`](crate::Context::get_of).
    pub fn reads_parameter(self, parameter: &str) -> Self {
        self.kind_parameter(parameter, KindRole::Reads, false)
    }

    fn kind_parameter(mut self, parameter: &str, role: KindRole, merges: bool) -> Self {
        let parameter = parameter.to_owned();
        let parameter = KindParameter { parameter, role, merges, optional: false };
        self.manifest.kind_parameters.push(parameter);
        self
    }

    /// Selects the primaries by labels, in addition to other selections. The host leaves objects
    /// alone that any of the selections or the Module's leaves out, and releases a primary that is
    /// no longer selected.
    ///
    /// ```
    /// use innkeeper_sdk::{Describe, kind, labels};
    ///
    /// kind!(StatefulSet, "apps/v1", "statefulsets");
    ///
    /// let manifest = Describe::reconciler_of::<StatefulSet>("service-per-pod", "1.0.0")
    ///     .selects_labels(&labels([("tier", "front")]))
    ///     .selects_annotation_key("service-per-pod-label")
    ///     .selects_field("spec.podManagementPolicy", "OrderedReady")
    ///     .manifest();
    /// assert_eq!(manifest.selector.unwrap().match_labels["tier"], "front");
    /// ```
    pub fn selects_labels(self, labels: impl Into<LabelSelector>) -> Self {
        let LabelSelector { match_labels, match_expressions } = labels.into();
        let match_expressions = match_expressions.into_iter().map(Into::into).collect();
        self.selects(PrimarySelector { match_labels, match_expressions, ..Default::default() })
    }

    /// Selects the primaries by the value of an annotation, in addition to other selections.
    pub fn selects_annotation(self, key: &str, value: &str) -> Self {
        let match_annotations = [(key.to_owned(), value.to_owned())].into();
        self.selects(PrimarySelector { match_annotations, ..Default::default() })
    }

    /// Selects the primaries that have an annotation, in addition to other selections.
    pub fn selects_annotation_key(mut self, key: &str) -> Self {
        self.selector().match_annotation_expressions.push(ValueRequirement {
            key: key.to_owned(),
            operator: SelectorOperator::Exists,
            values: Vec::new(),
        });
        self
    }

    /// Selects the primaries by the value of a field (`spec.type`), in addition to other
    /// selections. The value is the field's text; of a field that is no text, its JSON (`true`).
    pub fn selects_field(mut self, path: &str, value: &str) -> Self {
        self.selector().match_fields.push(ValueRequirement {
            key: path.to_owned(),
            operator: SelectorOperator::In,
            values: vec![value.to_owned()],
        });
        self
    }

    /// Adds a selector of the primaries as the manifest has it, in addition to other selections. A
    /// label or annotation that has another value already becomes a requirement of its own, so
    /// that no primary is selected.
    pub fn selects(mut self, selector: PrimarySelector) -> Self {
        let all = self.selector();
        all.match_expressions.extend(selector.match_expressions);
        all.match_annotation_expressions.extend(selector.match_annotation_expressions);
        all.match_fields.extend(selector.match_fields);
        for (key, value) in added(&mut all.match_labels, selector.match_labels) {
            let (operator, values) = (SelectorOperator::In, vec![value]);
            all.match_expressions.push(LabelRequirement { key, operator, values });
        }
        for (key, value) in added(&mut all.match_annotations, selector.match_annotations) {
            let (operator, values) = (SelectorOperator::In, vec![value]);
            all.match_annotation_expressions.push(ValueRequirement { key, operator, values });
        }
        self
    }

    fn selector(&mut self) -> &mut PrimarySelector {
        self.manifest.selector.get_or_insert_default()
    }

    /// Declares that the guest creates objects of this kind.
    pub fn owns<R: Resource>(mut self) -> Self {
        self.manifest.owned.push(OwnedKind { kind: R::kind(), optional: false, merges: false });
        self
    }

    /// Declares that the guest creates objects of this kind if the API server serves it. While it
    /// does not, the host leaves these objects out without an error; it creates them as soon as
    /// the kind is served.
    pub fn owns_if_served<R: Resource>(mut self) -> Self {
        self.manifest.owned.push(OwnedKind { kind: R::kind(), optional: true, merges: false });
        self
    }

    /// Declares that the guest creates no objects of this kind, but merges fields into existing
    /// ones ([`Policy::Merge`](crate::Policy::Merge)). The kind may be the primary's.
    pub fn merges_into<R: Resource>(mut self) -> Self {
        self.manifest.owned.push(OwnedKind { kind: R::kind(), optional: false, merges: true });
        self
    }

    /// Declares that the guest reads this kind through its [`Context`](crate::Context).
    pub fn reads<R: Resource>(mut self) -> Self {
        self.manifest.reads.push(R::kind());
        self
    }

    /// Adds a CustomResourceDefinition, as JSON text, that the host installs if the Module's
    /// `allowedCRDGroups` contain its group. Use `include_str!("../crd.json")`, and compare that
    /// file with `schema::crd` in a test.
    ///
    /// When the component describes itself, it compares the definition of the primary with the type
    /// of the primary, and logs a warning that names the fields in which the two differ.
    ///
    /// The host rejects a component whose text is not JSON.
    pub fn installs(mut self, crd: &str) -> Self {
        self.manifest
            .crds
            .push(serde_json::from_str(crd).unwrap_or_else(|_| Value::from(crd).into()));
        self
    }

    /// Sets the resync period: the host reconciles every primary again after this many seconds
    /// even if nothing changed.
    pub fn resync_seconds(mut self, seconds: u32) -> Self {
        self.manifest.resync_seconds = Some(seconds);
        self
    }

    /// Adds a finalizer to every primary: the host runs the guest for a deleted primary
    /// ([`Observed::is_deleting`](crate::Observed::is_deleting)) until the guest calls
    /// [`Desired::finalized`](crate::Desired::finalized).
    ///
    /// `name` is the finalizer's name; if empty, `innkeeper.dev/<module>`. Its domain must belong
    /// to the primary's group or to a group in the Module's `spec.allowedCRDGroups`.
    pub fn finalizes(mut self, name: &str) -> Self {
        self.manifest.finalizer = Some(name.to_owned());
        self
    }

    /// Sets the JSON Schema of the Module's `spec.parameters`. Without a schema the host rejects
    /// a Module that sets parameters.
    pub fn parameters(mut self, schema: Value) -> Self {
        self.manifest.parameters_schema = Some(schema.into());
        self
    }

    /// Returns the manifest.
    pub fn manifest(self) -> Manifest {
        self.manifest
    }

    /// Declares that the guest reads this kind, and only the fields of the type `R`: runs get
    /// objects with these fields. The host keeps no others in memory unless it or another module
    /// needs them. With [`reads`](Self::reads) it keeps whole objects, since it learns only from a
    /// run which fields the run reads.
    ///
    /// If runs deserialize objects of the kind into several types, call it for each: a type that is
    /// missing here finds nothing in the fields that the others do not have.
    ///
    /// ```
    /// use innkeeper_sdk::{Describe, kind};
    /// # kind!(Web, "example.com/v1", "webs");
    ///
    /// #[derive(serde::Deserialize)]
    /// struct ObservedPod {
    ///     status: ObservedStatus,
    /// }
    ///
    /// #[derive(serde::Deserialize)]
    /// struct ObservedStatus {
    ///     phase: String,
    /// }
    ///
    /// kind!(Resource for ObservedPod = "Pod", "v1", "pods");
    ///
    /// let manifest =
    ///     Describe::reconciler_of::<Web>("web", "1.0.0").reads_fields::<ObservedPod>().manifest();
    /// assert_eq!(
    ///     serde_json::to_value(&manifest.read_fields[0].fields).unwrap(),
    ///     serde_json::json!({"f:status": {"f:phase": {}}}),
    /// );
    /// ```
    pub fn reads_fields<R: Resource + DeserializeOwned>(mut self) -> Self {
        let kind = R::kind();
        let fields = read_fields::fields::<R>();
        let all = &mut self.manifest.read_fields;
        let named =
            all.iter_mut().find(|one| one.api_version == kind.api_version && one.kind == kind.kind);
        match named {
            Some(named) => {
                named.fields = read_fields::union(std::mem::take(&mut named.fields), fields);
            }
            None => all.push(ReadFields {
                api_version: kind.api_version.clone(),
                kind: kind.kind.clone(),
                fields,
            }),
        }
        if !self.manifest.reads.contains(&kind) {
            self.manifest.reads.push(kind);
        }
        self
    }
}

/// Adds pairs, and returns those whose key has another value already.
fn added(all: &mut Labels, more: Labels) -> Vec<(String, String)> {
    let mut left = Vec::new();
    for (key, value) in more {
        match all.get(&key) {
            None => drop(all.insert(key, value)),
            Some(there) if *there == value => {}
            Some(_) => left.push((key, value)),
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;
    use crate::labels;

    crate::kind!(Web, "example.com/v1", "webs");

    #[derive(serde::Deserialize)]
    #[allow(dead_code, reason = "only its fields count")]
    struct Phase {
        status: PhaseStatus,
    }

    #[derive(serde::Deserialize)]
    #[allow(dead_code, reason = "only its fields count")]
    struct PhaseStatus {
        phase: String,
    }

    crate::kind!(Resource for Phase = "Pod", "v1", "pods");

    #[derive(serde::Deserialize)]
    #[allow(dead_code, reason = "only its fields count")]
    struct Spec {
        spec: Value,
    }

    crate::kind!(Resource for Spec = "Pod", "v1", "pods");

    #[test]
    fn fields_of_all_types_of_a_kind_are_declared_together() {
        let manifest = Describe::reconciler_of::<Web>("web", "1.0.0")
            .reads_fields::<Phase>()
            .reads_fields::<Spec>()
            .manifest();
        assert_eq!(manifest.reads, [Phase::kind()]);
        assert_eq!(
            to_value(manifest.read_fields).unwrap(),
            json!([{"apiVersion": "v1", "kind": "Pod",
                "fields": {"f:status": {"f:phase": {}}, "f:spec": {}}}])
        );
    }

    #[test]
    fn selections_add_up_when_they_have_the_same_key() {
        let manifest = Describe::reconciler_of::<Web>("web", "1.0.0")
            .selects_labels(&labels([("tier", "front"), ("app", "web")]))
            .selects_labels(LabelSelector::from(&labels([("tier", "back")])).exists("team"))
            .selects_annotation("mode", "a")
            .selects_annotation("mode", "a")
            .selects_annotation("mode", "b")
            .selects_annotation_key("other")
            .selects(PrimarySelector {
                match_labels: labels([("app", "web"), ("zone", "one")]),
                ..Default::default()
            })
            .selects_field("spec.type", "x")
            .manifest();
        assert_eq!(
            to_value(manifest.selector).unwrap(),
            json!({
                "matchLabels": {"app": "web", "tier": "front", "zone": "one"},
                "matchExpressions": [
                    {"key": "team", "operator": "Exists"},
                    {"key": "tier", "operator": "In", "values": ["back"]},
                ],
                "matchAnnotations": {"mode": "a"},
                "matchAnnotationExpressions": [
                    {"key": "mode", "operator": "In", "values": ["b"]},
                    {"key": "other", "operator": "Exists"},
                ],
                "matchFields": [{"key": "spec.type", "operator": "In", "values": ["x"]}],
            })
        );
    }
}
