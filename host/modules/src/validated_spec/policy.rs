//! Checks `spec.policy` of a Module.

use std::time::Duration;

use innkeeper_contract::{MatchCondition, PolicyManifest, PolicyRule, PrimarySelector as Document};
use innkeeper_core::PrimarySelector;
use innkeeper_core::primary_selector::check_label_requirement;
use serde::{Deserialize, Serialize};

use super::checker::SpecChecker;
use crate::module::{FailurePolicy, LabelSelector, ModeOverride, PolicyMode, PolicySpec};
use crate::policy_manifest;

/// The longest time that a Module with a policy may give one call: the API server waits 30 s at
/// most, and the host needs some of it for the wait for a permit and for the response.
pub const REVIEW_TIME_MAX: Duration = Duration::from_secs(20);

/// The most overrides: each is a webhook of its own.
const OVERRIDES_MAX: usize = 8;

/// The checked `spec.policy` of a Module, with its defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ValidatedPolicy {
    /// What a verdict does.
    pub mode: PolicyMode,
    /// The failure policy; `None` for the default of the kind of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// The rules in place of those of the guest; empty for those of the guest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PolicyRule>,
    /// Which namespaces' objects are reviewed.
    #[serde(default, skip_serializing_if = "LabelSelector::is_everything")]
    pub namespace_selector: LabelSelector,
    /// Which objects are reviewed.
    #[serde(default, skip_serializing_if = "LabelSelector::is_everything")]
    pub object_selector: LabelSelector,
    /// Conditions in addition to those of the guest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_conditions: Vec<MatchCondition>,
    /// Other modes for some namespaces; the first that fits counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<ModeOverride>,
    /// Whether existing objects are reviewed in the background.
    pub background: bool,
}

impl Default for ValidatedPolicy {
    /// The settings of an empty `spec.policy`.
    fn default() -> Self {
        Self::of(&PolicySpec::default())
    }
}

impl ValidatedPolicy {
    /// The settings of a Module, not checked yet.
    fn of(spec: &PolicySpec) -> Self {
        Self {
            mode: spec.mode.unwrap_or_default(),
            failure_policy: spec.failure_policy,
            rules: spec.rules.clone(),
            namespace_selector: spec.namespace_selector.clone().unwrap_or_default(),
            object_selector: spec.object_selector.clone().unwrap_or_default(),
            match_conditions: spec.match_conditions.clone(),
            overrides: spec.overrides.clone(),
            background: spec.background.unwrap_or(true),
        }
    }

    /// The rules that count: those of the Module if it has some, else those of the guest.
    pub fn rules_of<'a>(&'a self, guest: &'a PolicyManifest) -> &'a [PolicyRule] {
        if self.rules.is_empty() { &guest.rules } else { &self.rules }
    }

    /// Whether the mode is Enforce, in some namespaces at least.
    pub fn enforces(&self) -> bool {
        let modes = self.overrides.iter().map(|one| one.mode);
        modes.chain([self.mode]).any(|mode| mode == PolicyMode::Enforce)
    }

    /// Checks the settings. Calls `report` with the path of each invalid field and the reason;
    /// `field` is the path of the settings.
    pub fn check(&self, field: &str, report: &mut dyn FnMut(&str, String)) {
        let mut errors = Vec::new();
        if !self.rules.is_empty() {
            policy_manifest::check_rules(&format!("{field}.rules"), &self.rules, &mut errors);
        }
        let conditions = format!("{field}.matchConditions");
        policy_manifest::check_conditions(&conditions, &self.match_conditions, &mut errors);
        for error in errors {
            let (place, problem) = error.split_once(": ").unwrap_or((field, &error));
            report(place, problem.to_owned());
        }
        for (member, selector) in [
            ("namespaceSelector", &self.namespace_selector),
            ("objectSelector", &self.object_selector),
        ] {
            let document = Document {
                match_labels: selector.match_labels.clone(),
                match_expressions: selector.match_expressions.clone(),
                ..Document::default()
            };
            PrimarySelector::read(&document, &format!("{field}.{member}"), report);
        }
        let overrides = format!("{field}.overrides");
        if self.overrides.len() > OVERRIDES_MAX {
            let count = self.overrides.len();
            return report(&overrides, format!("has {count} items; give at most {OVERRIDES_MAX}"));
        }
        for (index, ModeOverride { namespaces, .. }) in self.overrides.iter().enumerate() {
            let place = format!("{overrides}[{index}]");
            check_label_requirement(namespaces, (&place, "namespaces"), report);
        }
    }
}

impl SpecChecker {
    /// The settings of a policy. `time` is that of one call.
    pub(super) fn policy(
        &mut self,
        spec: Option<&PolicySpec>,
        time: Duration,
    ) -> Option<ValidatedPolicy> {
        let policy = ValidatedPolicy::of(spec?);
        policy.check("spec.policy", &mut |field, problem| self.error(field, problem));
        if time > REVIEW_TIME_MAX {
            let max = REVIEW_TIME_MAX.as_secs();
            self.error("spec.limits.timeout", format!(
                "{}s is out of bounds: with spec.policy at most {max}s, since the API server does not wait longer",
                time.as_secs_f64()
            ));
        }
        Some(policy)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use innkeeper_contract::{LabelRequirement, SelectorOperator};
    use innkeeper_sandbox::Limits;
    use serde_json::{Value, json};

    use super::super::{SourceKind, ValidatedSpec};
    use super::*;
    use crate::module::{self, Module};

    fn check(policy: &Value, limits: &Value) -> Result<Option<ValidatedPolicy>, String> {
        let document = json!({"apiVersion": module::API_VERSION, "kind": module::KIND,
            "metadata": {"name": "m"}, "spec": {"source": {"configMap": {"name": "m"}},
                "serviceAccountName": "m", "policy": policy, "limits": limits}});
        let module = Module::from_value(&document).map_err(|error| error.to_string())?;
        ValidatedSpec::new(&module, SourceKind::Cluster, Limits::default(), None)
            .map(|spec| spec.policy)
            .map_err(|errors| errors.to_string().replace("; spec", "\nspec"))
    }

    fn policy(policy: &Value) -> Result<Option<ValidatedPolicy>, String> {
        check(policy, &json!({}))
    }

    #[test]
    fn empty_policy_enforces_what_the_guest_says() {
        let expected = ValidatedPolicy {
            mode: PolicyMode::Enforce,
            failure_policy: None,
            rules: Vec::new(),
            namespace_selector: LabelSelector::default(),
            object_selector: LabelSelector::default(),
            match_conditions: Vec::new(),
            overrides: Vec::new(),
            background: true,
        };
        assert_eq!(policy(&json!({})), Ok(Some(expected)));
        assert_eq!(policy(&Value::Null), Ok(None));
    }

    #[test]
    fn whole_policy_is_understood_and_survives_a_round_trip() {
        let document = json!({
            "mode": "Warn", "failurePolicy": "Ignore",
            "rules": [{"groups": ["apps"], "versions": ["v1"], "resources": ["deployments"],
                "operations": ["CREATE", "UPDATE"], "scope": "Namespaced"}],
            "namespaceSelector": {"matchLabels": {"env": "prod"}},
            "objectSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            "matchConditions": [{"name": "no-leases", "expression": "true"}],
            "overrides": [{"namespaces": {"key": "kubernetes.io/metadata.name", "operator": "In",
                "values": ["dev"]}, "mode": "Audit"}],
            "background": false,
        });
        let read = policy(&document).unwrap().unwrap();
        assert_eq!((read.mode, read.background), (PolicyMode::Warn, false));
        assert_eq!(read.overrides[0].mode, PolicyMode::Audit);
        let env = LabelRequirement {
            key: "env".to_owned(),
            operator: SelectorOperator::In,
            values: vec!["prod".to_owned()],
        };
        assert_eq!(read.namespace_selector.requirements(), [env]);
        assert_eq!(serde_json::to_value(&read).unwrap(), document);
        assert_eq!(serde_json::from_value::<ValidatedPolicy>(document).unwrap(), read);
    }

    #[test]
    fn all_bad_values_of_a_policy_are_named_at_once() {
        let refused = policy(&json!({
            "rules": [{"groups": ["innkeeper.dev"], "resources": ["modules"], "operations": ["CONNECT"]}],
            "namespaceSelector": {"matchLabels": {"a b": "c"}},
            "objectSelector": {"matchExpressions": [{"key": "x", "operator": "In"}]},
            "matchConditions": [{"name": "innkeeper.dev/groups", "expression": ""}],
            "overrides": [{"namespaces": {"key": "x", "operator": "Exists", "values": ["y"]}, "mode": "Warn"}],
        }));
        expect![[r#"
            spec.policy.rules[0].groups: requests of innkeeper.dev are never sent to policies; leave it out
            spec.policy.rules[0].operations: CONNECT is not reviewed: a connection has no object; use a ValidatingAdmissionPolicy
            spec.policy.matchConditions[0].name: innkeeper.dev/groups belongs to the host, as all names of innkeeper.dev; take another
            spec.policy.matchConditions[0].expression: has 0 bytes; give 1 to 4096
            spec.policy.namespaceSelector.matchLabels["a b"]: "a b" is not a label: letters, digits, '-', '_' and '.', at most 63 characters, perhaps after a DNS name and '/'
            spec.policy.objectSelector.matchExpressions[0].values: is empty: In and NotIn need at least one value
            spec.policy.overrides[0].namespaces.values: must be left out with Exists and DoesNotExist"#]]
        .assert_eq(&refused.unwrap_err());
    }

    #[test]
    fn each_list_of_a_policy_is_bounded() {
        let rule = json!({"groups": [""], "resources": ["pods"], "operations": ["CREATE"]});
        let requirement = json!({"key": "a", "operator": "Exists"});
        let conditions = |count| {
            let all =
                (0..count).map(|index| json!({"name": format!("c{index}"), "expression": "true"}));
            all.collect::<Value>()
        };
        let overrides = |count| {
            vec![json!({"namespaces": requirement, "mode": "Warn"}); count]
                .into_iter()
                .collect::<Value>()
        };
        for (accepted, refused, max) in [
            (json!({"rules": vec![rule.clone(); 32]}), json!({"rules": vec![rule; 33]}), "32"),
            (
                json!({"matchConditions": conditions(16)}),
                json!({"matchConditions": conditions(17)}),
                "16",
            ),
            (json!({"overrides": overrides(8)}), json!({"overrides": overrides(9)}), "8"),
            (
                json!({"objectSelector": {"matchExpressions": vec![requirement.clone(); 64]}}),
                json!({"objectSelector": {"matchExpressions": vec![requirement.clone(); 65]}}),
                "64",
            ),
        ] {
            assert!(policy(&accepted).is_ok(), "{max}: {:?}", policy(&accepted));
            let error = policy(&refused).unwrap_err();
            let bound = [format!("at most {max}"), format!("to {max}")];
            let names_bound = bound.iter().any(|bound| error.ends_with(bound));
            assert!(names_bound && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn unknown_member_of_a_policy_is_refused_with_its_path() {
        let error = policy(&json!({"mod": "Warn"})).unwrap_err();
        assert!(error.starts_with("spec.policy.mod: unknown field"), "{error}");
        let error = policy(&json!({"mode": "warn"})).unwrap_err();
        assert!(error.starts_with("spec.policy.mode: unknown variant"), "{error}");
    }

    #[test]
    fn module_with_a_policy_gives_one_call_20_s_at_most() {
        let timed = |timeout: &str| check(&json!({}), &json!({ "timeout": timeout }));
        assert!(timed("20s").is_ok());
        let error = timed("20s500ms").unwrap_err();
        assert!(error.starts_with("spec.limits.timeout: 20.5s is out of bounds"), "{error}");
        assert!(check(&Value::Null, &json!({"timeout": "21s"})).is_ok(), "without a policy");
    }
}
