//! The rules of a webhook, as the API server takes them.

use innkeeper_contract::{PolicyRule, RuleScope};
use serde_json::{Value, json};

/// Which objects a webhook reaches in addition to those in namespaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// All cluster-scoped objects.
    pub(super) has_cluster_scoped: bool,
    /// Namespaces: alone of the cluster-scoped objects they are selected by labels of a namespace,
    /// their own.
    pub(super) has_namespaces: bool,
}

/// The rules of a webhook with this reach. Empty if it reaches nothing.
pub(super) fn rules(rules: &[PolicyRule], reach: Reach) -> Vec<Value> {
    let mut all = Vec::new();
    for rule in rules {
        if reach.has_cluster_scoped {
            all.push(document(rule, rule.scope));
            continue;
        }
        if rule.scope != RuleScope::Cluster {
            all.push(document(rule, RuleScope::Namespaced));
        }
        if rule.scope != RuleScope::Namespaced && reach.has_namespaces {
            all.extend(of_namespaces(rule).map(|rule| document(&rule, RuleScope::Cluster)));
        }
    }
    all
}

/// The part of a rule that is about Namespaces.
fn of_namespaces(rule: &PolicyRule) -> Option<PolicyRule> {
    rule.groups.iter().find(|group| group.is_empty() || *group == "*")?;
    let of_namespaces = |resource: &String| match resource.split_once('/') {
        None => (resource == "*" || resource == "namespaces").then(|| "namespaces".to_owned()),
        Some(("*" | "namespaces", subresource)) => Some(format!("namespaces/{subresource}")),
        Some(_) => None,
    };
    let resources: Vec<String> = rule.resources.iter().filter_map(of_namespaces).collect();
    let groups = vec![String::new()];
    (!resources.is_empty()).then(|| PolicyRule { groups, resources, ..rule.clone() })
}

fn document(rule: &PolicyRule, scope: RuleScope) -> Value {
    let versions = if rule.versions.is_empty() { &["*".to_owned()][..] } else { &rule.versions };
    json!({
        "apiGroups": rule.groups,
        "apiVersions": versions,
        "operations": rule.operations,
        "resources": rule.resources,
        "scope": match scope {
            RuleScope::All => "*",
            RuleScope::Namespaced => "Namespaced",
            RuleScope::Cluster => "Cluster",
        },
    })
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Operation;

    use super::*;

    const OVERRIDE: Reach = Reach { has_cluster_scoped: false, has_namespaces: true };

    fn rule(groups: &[&str], resources: &[&str], scope: RuleScope) -> PolicyRule {
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        PolicyRule {
            groups: texts(groups),
            versions: Vec::new(),
            resources: texts(resources),
            operations: vec![Operation::Create],
            scope,
        }
    }

    /// Scope and resources of each rule.
    fn shown(rule: &PolicyRule, reach: Reach) -> Vec<String> {
        let show = |rule: &Value| format!("{} {}", rule["scope"], rule["resources"]);
        rules(std::slice::from_ref(rule), reach).iter().map(show).collect()
    }

    #[test]
    fn webhook_of_the_module_has_the_rules_as_they_are() {
        let all = Reach { has_cluster_scoped: true, has_namespaces: true };
        let rules = rules(&[rule(&["apps"], &["deployments"], RuleScope::All)], all);
        assert_eq!(
            rules,
            [json!({"apiGroups": ["apps"], "apiVersions": ["*"], "operations": ["CREATE"],
                "resources": ["deployments"], "scope": "*"})]
        );
    }

    #[test]
    fn override_reaches_objects_in_namespaces_and_namespaces_themselves() {
        for (groups, resources, scope, expected) in [
            (&["apps"], &["*"], RuleScope::All, vec![r#""Namespaced" ["*"]"#]),
            (
                &[""],
                &["*"],
                RuleScope::All,
                vec![r#""Namespaced" ["*"]"#, r#""Cluster" ["namespaces"]"#],
            ),
            (&["*"], &["*/*"], RuleScope::Cluster, vec![r#""Cluster" ["namespaces/*"]"#]),
            (
                &["*"],
                &["namespaces/finalize"],
                RuleScope::Cluster,
                vec![r#""Cluster" ["namespaces/finalize"]"#],
            ),
            (&["*"], &["nodes"], RuleScope::Cluster, vec![]),
            (&[""], &["namespaces"], RuleScope::Namespaced, vec![r#""Namespaced" ["namespaces"]"#]),
        ] {
            let rule = rule(groups, resources, scope);
            assert_eq!(shown(&rule, OVERRIDE), expected, "{rule:?}");
        }
    }

    #[test]
    fn policy_of_some_namespaces_reaches_no_cluster_scoped_object() {
        let reach = Reach { has_cluster_scoped: false, has_namespaces: false };
        let all = rule(&["*"], &["*/*"], RuleScope::All);
        assert_eq!(shown(&all, reach), [r#""Namespaced" ["*/*"]"#]);
        assert!(shown(&rule(&["*"], &["*"], RuleScope::Cluster), reach).is_empty());
    }
}
