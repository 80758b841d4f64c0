//! Which requests a rule of a policy matches.

use crate::{GroupVersionResource, Operation, PolicyRule, RuleScope};

impl PolicyRule {
    /// Returns whether the rule matches a request with this operation and resource, as the API
    /// server decides it. `subresource` and `namespace` are empty for none. The rule takes versions
    /// as they are: the API server first converts the object into one of them.
    pub fn matches(
        &self,
        operation: Operation,
        resource: &GroupVersionResource,
        subresource: &str,
        namespace: &str,
    ) -> bool {
        let is = |of: &str, one: &str| of == "*" || of == one;
        let any = |all: &[String], one: &str| all.iter().any(|of| is(of, one));
        // The request for a Namespace names it as its namespace.
        let is_namespace = resource.group.is_empty() && resource.resource == "namespaces";
        let is_namespaced = !namespace.is_empty() && !is_namespace;
        let scope = match self.scope {
            RuleScope::All => true,
            RuleScope::Namespaced => is_namespaced,
            RuleScope::Cluster => !is_namespaced,
        };
        scope
            && self.operations.contains(&operation)
            && any(&self.groups, &resource.group)
            && (self.versions.is_empty() || any(&self.versions, &resource.version))
            && self.resources.iter().any(|one| {
                let (plural, of) = one.split_once('/').unwrap_or((one, ""));
                is(plural, &resource.resource) && is(of, subresource)
            })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    /// Whether a rule matches an update of Deployments, or of another resource of their group.
    fn matches(rule: &Value, resource: &str, subresource: &str) -> bool {
        let rule: PolicyRule = from_value(rule.clone()).unwrap();
        let (group, version) = ("apps".to_owned(), "v1".to_owned());
        let resource = GroupVersionResource { group, version, resource: resource.to_owned() };
        rule.matches(Operation::Update, &resource, subresource, "web")
    }

    #[test]
    fn rule_matches_resources_and_subresources_as_the_api_server_does() {
        for (rule, resource, subresource, expected) in [
            ("deployments", "deployments", "", true),
            ("deployments", "deployments", "scale", false),
            ("deployments", "statefulsets", "", false),
            ("deployments/scale", "deployments", "scale", true),
            ("deployments/scale", "deployments", "", false),
            ("deployments/*", "deployments", "scale", true),
            ("deployments/*", "deployments", "", true),
            ("*", "deployments", "", true),
            ("*", "deployments", "scale", false),
            ("*/scale", "deployments", "scale", true),
            ("*/*", "deployments", "", true),
        ] {
            let of = json!({"groups": ["apps"], "resources": [rule], "operations": ["UPDATE"]});
            let found = matches(&of, resource, subresource);
            assert_eq!(found, expected, "{rule}: {resource} {subresource}");
        }
    }

    #[test]
    fn rule_matches_only_requests_that_match_each_member() {
        let all = json!({"groups": ["*"], "resources": ["*"], "operations": ["CREATE", "UPDATE"]});
        let with = |member: &str, value: Value| {
            let mut rule = all.clone();
            rule[member] = value;
            matches(&rule, "deployments", "")
        };
        assert!(matches(&all, "deployments", ""));
        assert!(with("versions", json!(["v1", "v2"])) && with("versions", json!(["*"])));
        assert!(!with("versions", json!(["v2"])));
        assert!(!with("groups", json!(["", "batch"])));
        assert!(!with("operations", json!(["DELETE"])));
        assert!(with("scope", json!("Namespaced")) && !with("scope", json!("Cluster")));
    }

    #[test]
    fn namespace_is_cluster_scoped_though_its_request_names_a_namespace() {
        let rule = |scope: &str| {
            let rule = json!({"groups": [""], "resources": ["namespaces"],
                "operations": ["CREATE"], "scope": scope});
            from_value::<PolicyRule>(rule).unwrap()
        };
        let namespaces = GroupVersionResource {
            version: "v1".to_owned(),
            resource: "namespaces".to_owned(),
            ..Default::default()
        };
        assert!(rule("Cluster").matches(Operation::Create, &namespaces, "", "web"));
        assert!(!rule("Namespaced").matches(Operation::Create, &namespaces, "", "web"));
    }
}
