//! The scope of a policy: which existing objects its settings select, and the mode for each.
//!
//! It follows the selectors of the webhook configuration. Conditions in CEL, which only the API
//! server evaluates, count as met.

use std::borrow::Cow;
use std::collections::BTreeSet;

use innkeeper_admission::webhook_configuration::selectors::NAME_LABEL;
use innkeeper_contract::{Kind, LabelRequirement, PolicyRule, SelectorOperator};
use innkeeper_core::selector::{Operator, Requirement};
use innkeeper_core::{Labels, Object, Selector};
use innkeeper_modules::ValidatedPolicy;
use innkeeper_modules::module::PolicyMode;

use super::active_policy::ActivePolicy;
use super::matched_kinds::is_matched;

/// Which existing objects a policy reviews.
#[derive(Clone, Debug)]
pub struct ReviewScope {
    rules: Vec<PolicyRule>,
    objects: Selector,
    namespaces: Selector,
    /// The only namespaces; empty for all, and for cluster-scoped objects.
    names: BTreeSet<String>,
    mode: PolicyMode,
    overrides: Vec<(Selector, PolicyMode)>,
}

impl ReviewScope {
    /// The scope of a policy.
    pub fn of(policy: &ActivePolicy) -> Self {
        let of_guest = policy.guest.manifest().policy.as_ref();
        let rules = of_guest.map(|one| policy.settings.policy.rules_of(one).to_vec());
        Self::new(rules.unwrap_or_default(), &policy.settings.policy, &policy.settings.namespaces)
    }

    /// The scope of these rules with the settings of a Module. `names` are the only namespaces, and
    /// empty for all.
    pub fn new(
        rules: Vec<PolicyRule>,
        settings: &ValidatedPolicy,
        names: &BTreeSet<String>,
    ) -> Self {
        let overrides = settings.overrides.iter();
        Self {
            rules,
            objects: selector(&settings.object_selector.requirements()),
            namespaces: selector(&settings.namespace_selector.requirements()),
            names: names.clone(),
            mode: settings.mode,
            overrides: overrides
                .map(|one| (selector(std::slice::from_ref(&one.namespaces)), one.mode))
                .collect(),
        }
    }

    /// The rules that count.
    pub fn rules(&self) -> &[PolicyRule] {
        &self.rules
    }

    /// Whether the labels of namespaces decide, apart from the one that has their name.
    pub fn needs_labels(&self) -> bool {
        let selectors =
            [&self.namespaces].into_iter().chain(self.overrides.iter().map(|(one, _)| one));
        selectors
            .flat_map(Selector::requirements)
            .any(|requirement| *requirement.key != *NAME_LABEL)
    }

    /// The mode in which the policy reviews an object; `None` if it does not. `namespace_labels`
    /// gives the labels of the namespace of a name, if they are known.
    pub fn mode(
        &self,
        kind: &Kind,
        object: &Object,
        namespace_labels: &dyn Fn(&str) -> Option<Labels>,
    ) -> Option<PolicyMode> {
        let is_matched = self.rules.iter().any(|rule| is_matched(rule, kind));
        if !is_matched || !self.objects.matches(&object.labels) {
            return None;
        }
        let is_namespace = kind.group().is_empty() && kind.plural == "namespaces";
        if is_namespace {
            // A policy of some namespaces reviews no cluster-scoped object.
            let is_open = self.names.is_empty();
            return is_open.then(|| self.by_labels(object.key.name(), &object.labels)).flatten();
        }
        self.mode_in(object.key.namespace(), namespace_labels)
    }

    /// The mode in which the policy reviews an object in a namespace, if a rule and the selector of
    /// objects match it; an empty namespace is that of a cluster-scoped object. `None` if the
    /// policy reviews nothing there, or the labels that decide are not known.
    pub fn mode_in(
        &self,
        namespace: &str,
        namespace_labels: &dyn Fn(&str) -> Option<Labels>,
    ) -> Option<PolicyMode> {
        if namespace.is_empty() {
            return self.names.is_empty().then_some(self.mode);
        }
        if !self.names.is_empty() && !self.names.contains(namespace) {
            return None;
        }
        let labels =
            if self.needs_labels() { namespace_labels(namespace)? } else { Labels::default() };
        self.by_labels(namespace, &labels)
    }

    /// Whether the policy certainly reviews no request in a namespace; an empty namespace is that
    /// of a cluster-scoped object. False if the labels that decide are not known.
    pub fn leaves_out(
        &self,
        namespace: &str,
        namespace_labels: &dyn Fn(&str) -> Option<Labels>,
    ) -> bool {
        let is_unknown =
            !namespace.is_empty() && self.needs_labels() && namespace_labels(namespace).is_none();
        let is_other = !self.names.is_empty() && !self.names.contains(namespace);
        is_other || (!is_unknown && self.mode_in(namespace, namespace_labels).is_none())
    }

    /// The mode in a namespace with these labels; `None` if the policy reviews nothing there.
    fn by_labels(&self, namespace: &str, labels: &Labels) -> Option<PolicyMode> {
        let holds = |selector: &Selector| {
            selector.matches_by(|key| match key {
                NAME_LABEL => Some(Cow::Borrowed(namespace)),
                key => labels.get(key).map(|value| Cow::Owned(value.to_owned())),
            })
        };
        if !holds(&self.namespaces) {
            return None;
        }
        let of_override = self.overrides.iter().find(|(selector, _)| holds(selector));
        Some(of_override.map_or(self.mode, |(_, mode)| *mode))
    }
}

/// The selector of checked requirements.
fn selector(requirements: &[LabelRequirement]) -> Selector {
    Selector::new(requirements.iter().map(|one| {
        let mut values: Vec<Box<str>> = one.values.iter().map(|value| (**value).into()).collect();
        values.sort();
        values.dedup();
        let operator = match one.operator {
            SelectorOperator::In => Operator::In(values),
            SelectorOperator::NotIn => Operator::NotIn(values),
            SelectorOperator::Exists => Operator::Exists,
            SelectorOperator::DoesNotExist => Operator::DoesNotExist,
        };
        Requirement { key: (*one.key).into(), operator }
    }))
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Operation;
    use serde_json::{Value, json};

    use super::*;

    fn requirements(document: &Value) -> Vec<LabelRequirement> {
        serde_json::from_value(document.clone()).unwrap()
    }

    /// A scope of all Namespaces, Nodes and ConfigMaps, with an override for `env=production`.
    fn scope() -> ReviewScope {
        let production = json!([{"key": "env", "operator": "In", "values": ["production"]}]);
        ReviewScope {
            rules: vec![PolicyRule {
                groups: vec![String::new()],
                versions: Vec::new(),
                resources: ["configmaps", "namespaces", "nodes"].map(str::to_owned).to_vec(),
                operations: vec![Operation::Update],
                scope: innkeeper_contract::RuleScope::All,
            }],
            objects: Selector::default(),
            namespaces: Selector::default(),
            names: BTreeSet::new(),
            mode: PolicyMode::Warn,
            overrides: vec![(selector(&requirements(&production)), PolicyMode::Enforce)],
        }
    }

    fn object(kind: &Kind, namespace: &str, name: &str, labels: &Value) -> Object {
        let text = json!({"metadata": {"namespace": namespace, "name": name, "labels": labels}});
        Object::decode(kind, &text.to_string(), None).unwrap()
    }

    fn labels(name: &str) -> Option<Labels> {
        match name {
            "prod" => Some(Labels::from_iter([("env", "production")])),
            "test" => Some(Labels::default()),
            _ => None,
        }
    }

    #[test]
    fn mode_of_an_object_is_that_of_its_namespace_as_for_requests() {
        let maps = Kind::namespaced("v1", "ConfigMap", "configmaps");
        let namespaces = Kind::cluster("v1", "Namespace", "namespaces");
        let nodes = Kind::cluster("v1", "Node", "nodes");
        let pods = Kind::namespaced("v1", "Pod", "pods");
        let production = json!({"env": "production"});
        let (warn, enforce) = (Some(PolicyMode::Warn), Some(PolicyMode::Enforce));
        for (kind, namespace, own, expected) in [
            (&maps, "test", json!({}), warn),
            (&maps, "prod", json!({}), enforce),
            (&maps, "unknown", json!({}), None),
            (&maps, "test", production.clone(), warn),
            (&pods, "test", json!({}), None),
            (&namespaces, "", json!({}), warn),
            (&namespaces, "", production.clone(), enforce),
            (&nodes, "", production.clone(), warn),
        ] {
            let object = object(kind, namespace, "a", &own);
            assert_eq!(scope().mode(kind, &object, &labels), expected, "{kind} {namespace} {own}");
        }
        assert_eq!(scope().mode_in("prod", &labels), enforce);
        assert_eq!(scope().mode_in("", &labels), warn);
    }

    #[test]
    fn policy_of_some_namespaces_reviews_no_cluster_scoped_object() {
        let scope = ReviewScope { names: BTreeSet::from(["prod".to_owned()]), ..scope() };
        let namespaces = Kind::cluster("v1", "Namespace", "namespaces");
        let prod = object(&namespaces, "", "prod", &json!({}));
        assert_eq!(scope.mode(&namespaces, &prod, &labels), None);
        assert_eq!(scope.mode_in("prod", &labels), Some(PolicyMode::Enforce));
        assert_eq!((scope.mode_in("test", &labels), scope.mode_in("", &labels)), (None, None));
        assert!(scope.leaves_out("test", &labels) && scope.leaves_out("", &labels));
        assert!(scope.leaves_out("unknown", &labels) && !scope.leaves_out("prod", &labels));
    }

    #[test]
    fn namespace_with_unknown_labels_is_not_left_out_for_certain() {
        let production = json!([{"key": "env", "operator": "In", "values": ["production"]}]);
        let namespaces = selector(&requirements(&production));
        let scope = ReviewScope { namespaces, ..scope() };
        let left_out = ["test", "prod", "unknown", ""].map(|name| scope.leaves_out(name, &labels));
        assert_eq!(left_out, [true, false, false, false]);
    }

    #[test]
    fn name_of_a_namespace_needs_no_labels_and_objects_are_selected_by_their_own() {
        let named = json!([{"key": NAME_LABEL, "operator": "NotIn", "values": ["test"]}]);
        let objects = json!([{"key": "team", "operator": "Exists"}]);
        let scope = ReviewScope {
            namespaces: selector(&requirements(&named)),
            objects: selector(&requirements(&objects)),
            overrides: Vec::new(),
            ..scope()
        };
        assert!(!scope.needs_labels());
        let maps = Kind::namespaced("v1", "ConfigMap", "configmaps");
        let nobody = |_: &str| None;
        let of = |namespace: &str, own: &Value| {
            scope.mode(&maps, &object(&maps, namespace, "a", own), &nobody)
        };
        assert_eq!(of("any", &json!({"team": "a"})), Some(PolicyMode::Warn));
        assert_eq!(of("any", &json!({})), None);
        assert_eq!(of("test", &json!({"team": "a"})), None);
    }
}
