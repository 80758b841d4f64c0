//! The escalation check: a writer of roles and bindings can grant only what the writer holds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::request_context::RequestContext;
use crate::auth::rbac;
use crate::auth::rbac::{Attributes, GROUP, texts};
use crate::auth::user::User;
use crate::state::cluster::Cluster;
use crate::types::object::{copy_meta, meta};
use crate::types::status_error::{Named, StatusError};

/// A rule about one verb of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Single {
    /// Group, resource, and a name if the rule has one.
    Object {
        group: String,
        resource: String,
        name: Option<String>,
        verb: String,
    },
    Path {
        path: String,
        verb: String,
    },
}

/// The single rules that a rule consists of.
fn singles(rule: &Value) -> Vec<Single> {
    let own = |name: &str| texts(rule, name).map(str::to_owned).collect::<Vec<_>>();
    let mut found = Vec::new();
    let names: Vec<Option<String>> = match own("resourceNames") {
        names if names.is_empty() => vec![None],
        names => names.into_iter().map(Some).collect(),
    };
    for group in own("apiGroups") {
        for resource in own("resources") {
            for verb in own("verbs") {
                for name in &names {
                    let (group, resource) = (group.clone(), resource.clone());
                    let (name, verb) = (name.clone(), verb.clone());
                    found.push(Single::Object { group, resource, name, verb });
                }
            }
        }
    }
    for path in own("nonResourceURLs") {
        for verb in own("verbs") {
            found.push(Single::Path { path: path.clone(), verb });
        }
    }
    found
}

/// Whether a rule that the user holds covers a single rule.
fn covers(rule: &Value, single: &Single) -> bool {
    let has = |list: &str, wanted: &str| texts(rule, list).any(|one| one == wanted);
    let has_or_all = |list: &str, wanted: &str| has(list, wanted) || has(list, "*");
    match single {
        Single::Object { group, resource, name, verb } => {
            let sub = resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
            has_or_all("verbs", verb)
                && has_or_all("apiGroups", group)
                && (has_or_all("resources", resource)
                    || sub.is_some_and(|sub| has("resources", &sub)))
                && (texts(rule, "resourceNames").next().is_none()
                    || name.as_ref().is_some_and(|name| has("resourceNames", name)))
        }
        Single::Path { path, verb } => {
            has_or_all("verbs", verb)
                && texts(rule, "nonResourceURLs").any(|own| {
                    let start = own.ends_with('*').then(|| own.trim_end_matches('*'));
                    own == path || start.is_some_and(|start| path.starts_with(start))
                })
        }
    }
}

fn list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// Single rules in words, those about the same thing together.
fn described(missing: &[Single]) -> Vec<String> {
    let mut objects: BTreeMap<(String, String, Option<String>), Vec<String>> = BTreeMap::new();
    let mut lines = Vec::new();
    for single in missing {
        match single {
            Single::Object { group, resource, name, verb } => objects
                .entry((group.clone(), resource.clone(), name.clone()))
                .or_default()
                .push(verb.clone()),
            Single::Path { path, verb } => {
                let (path, verb) =
                    (list(std::slice::from_ref(path)), list(std::slice::from_ref(verb)));
                lines.push(format!("{{NonResourceURLs:{path}, Verbs:{verb}}}"));
            }
        }
    }
    for ((group, resource, name), verbs) in objects {
        let names = name.map(|name| format!(", ResourceNames:{}", list(&[name])));
        lines.push(format!(
            "{{APIGroups:{}, Resources:{}{}, Verbs:{}}}",
            list(&[group]),
            list(&[resource]),
            names.unwrap_or_default(),
            list(&verbs)
        ));
    }
    lines.sort();
    lines.dedup();
    lines
}

/// Whether only members change that the garbage collector writes.
fn only_collected(new: &Value, old: &Value) -> bool {
    let mut same = new.clone();
    for name in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
        copy_meta(old, &mut same, name);
    }
    same == *old
}

/// Refuses a role or binding that grants more than its writer holds.
pub(crate) fn check_escalation(
    cluster: &Cluster,
    context: &RequestContext<'_>,
    new: &Value,
    old: Option<&Value>,
) -> Result<(), StatusError> {
    let ours = context.kind.custom.is_none() && context.kind.group == GROUP;
    if !ours || context.user.is_in("system:masters") {
        return Ok(());
    }
    let forbidden = |why: &str| StatusError::refused(context.named(meta(new, "name")), why);
    let free = |verb: &str, resource: &str, name: &str| {
        let namespace = context.namespace();
        let wanted = Attributes { verb, group: GROUP, resource, subresource: "", namespace, name };
        rbac::granted(cluster, context.user, &wanted).is_some()
    };
    let collected = || old.is_some_and(|old| only_collected(new, old));
    if context.kind.plural.ends_with("roles") {
        if free("escalate", &context.kind.plural, &context.target.name) || collected() {
            return Ok(());
        }
        let rules = new["rules"].as_array().cloned().unwrap_or_default();
        holds_all(cluster, context.user, context.namespace(), &rules)
            .map_err(|why| forbidden(&why))?;
        let aggregates = |role: &Value| {
            let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
            selectors.is_some_and(|list| !list.is_empty())
        };
        if aggregates(new) || old.is_some_and(aggregates) {
            let all = rbac::rules_of(
                cluster,
                &json!({"kind": "ClusterRole", "name": "cluster-admin"}),
                "",
            );
            let why = "must have cluster-admin privileges to use the aggregationRule";
            let held = holds_all(cluster, context.user, "", &all.unwrap_or_default());
            held.map_err(|_| forbidden(why))?;
        }
        return Ok(());
    }
    let role = &new["roleRef"];
    let name = role["name"].as_str().unwrap_or_default();
    let plural = match role["kind"].as_str() {
        Some("ClusterRole") => "clusterroles",
        _ => "roles",
    };
    if free("bind", plural, name) || collected() {
        return Ok(());
    }
    let Some(rules) = rbac::rules_of(cluster, role, context.namespace()) else {
        // The server names the role.
        let named = Named { group: GROUP, what: &context.kind.plural, name };
        return Err(StatusError::not_found(named));
    };
    holds_all(cluster, context.user, context.namespace(), &rules).map_err(|why| forbidden(&why))
}

/// Whether a user holds all of these rules; otherwise the missing rules in words.
fn holds_all(
    cluster: &Cluster,
    user: &User,
    namespace: &str,
    rules: &[Value],
) -> Result<(), String> {
    let (objects, paths) = rbac::rules(cluster, user, namespace);
    let held: Vec<&Value> = objects.iter().chain(&paths).collect();
    let missing: Vec<Single> = rules
        .iter()
        .flat_map(singles)
        .filter(|single| !held.iter().any(|rule| covers(rule, single)))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut why = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        list(&user.groups),
        described(&missing).join("\n")
    );
    let lost = rbac::missing_roles(cluster, user, namespace);
    if !lost.is_empty() {
        let lost = if lost.len() > 1 { format!("[{}]", lost.join(", ")) } else { lost.concat() };
        why = format!("{why}; resolution errors: [{lost}]");
    }
    Err(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_covers_only_rules_that_it_allows() {
        let held = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/status"]});
        let covered = |rule: Value| singles(&rule).iter().all(|single| covers(&held, single));
        assert!(covered(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})));
        assert!(covered(
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["nodes/status"],
            "resourceNames": ["a"]})
        ));
        assert!(!covered(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"]})));
        assert!(!covered(json!({"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]})));
        let named = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]});
        let all = singles(&json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}));
        assert!(!covers(&named, &all[0]), "one is not all");
    }
}
