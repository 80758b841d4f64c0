//! Authorizes requests by the roles and bindings that are stored.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::http::route::Target;
use crate::apply::managed_object::ManagedObject;
use crate::auth::user::User;
use crate::state::cluster::Cluster;
use crate::types::status_error::StatusError;

/// The group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// The group of all authenticated users.
const AUTHENTICATED: &str = "system:authenticated";

/// The rules that a binding grants to a user.
struct Bound {
    rules: Vec<Value>,
    reason: String,
    /// Whether it is one of the whole cluster.
    cluster: bool,
}

/// The attributes of a request that RBAC decides on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

/// The rights of every authenticated user, and of every user, as the default roles of a real server
/// grant them.
const BASIC: [(&str, &[&str]); 2] = [
    ("authentication.k8s.io", &["selfsubjectreviews"]),
    ("authorization.k8s.io", &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
];
const DISCOVERY: [&str; 11] = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// The reason for a right of a default role.
fn from_the_beginning(role: &str, group: &str) -> String {
    format!(
        "RBAC: allowed by ClusterRoleBinding {role:?} of ClusterRole {role:?} to Group {group:?}"
    )
}

/// The texts of a list in a rule.
pub(crate) fn texts<'a>(rule: &'a Value, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    rule[name].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn allows(rule: &Value, wanted: &Attributes<'_>) -> bool {
    let resource = match wanted.subresource {
        "" => wanted.resource.to_owned(),
        sub => format!("{}/{sub}", wanted.resource),
    };
    let any_of_sub = format!("*/{}", wanted.subresource);
    texts(rule, "verbs").any(|verb| verb == "*" || verb == wanted.verb)
        && texts(rule, "apiGroups").any(|group| group == "*" || group == wanted.group)
        && texts(rule, "resources").any(|one| {
            one == "*" || one == resource || (!wanted.subresource.is_empty() && one == any_of_sub)
        })
        && (texts(rule, "resourceNames").next().is_none()
            || texts(rule, "resourceNames").any(|name| name == wanted.name))
}

/// The objects of a kind in a namespace; `None` for cluster-scoped objects.
fn objects(cluster: &Cluster, plural: &str, namespace: &str) -> Vec<Arc<ManagedObject>> {
    let kind = (GROUP.to_owned(), plural.to_owned());
    let first = (namespace.to_owned(), String::new());
    let objects = cluster.store.collection(&kind).map(|one| one.objects.range(first..));
    let here = objects.into_iter().flatten().take_while(|(key, _)| key.0 == namespace);
    here.map(|(_, stored)| stored.object()).collect()
}

fn role_allows(
    cluster: &Cluster,
    reference: &Value,
    namespace: &str,
    wanted: &Attributes<'_>,
) -> bool {
    let name = reference["name"].as_str().unwrap_or_default();
    let (plural, namespace) = match reference["kind"].as_str() {
        Some("ClusterRole") => ("clusterroles", ""),
        _ => ("roles", namespace),
    };
    if plural == "clusterroles" && name == "cluster-admin" {
        return true;
    }
    let kind = (GROUP.to_owned(), plural.to_owned());
    let role = cluster.object(&kind, &(namespace.to_owned(), name.to_owned()));
    role.is_some_and(|role| {
        role["rules"].as_array().into_iter().flatten().any(|rule| allows(rule, wanted))
    })
}

/// The reason why a request is allowed, or `None`.
pub(crate) fn granted(cluster: &Cluster, user: &User, wanted: &Attributes<'_>) -> Option<String> {
    if user.is_in("system:masters") {
        return Some(String::new());
    }
    // Every user may review their own rights.
    let basic = BASIC
        .iter()
        .any(|(group, resources)| *group == wanted.group && resources.contains(&wanted.resource));
    if basic && wanted.verb == "create" && user.is_in(AUTHENTICATED) {
        return Some(from_the_beginning("system:basic-user", AUTHENTICATED));
    }
    for (plural, kind) in
        [("clusterrolebindings", "ClusterRoleBinding"), ("rolebindings", "RoleBinding")]
    {
        let namespace = if plural == "rolebindings" { wanted.namespace } else { "" };
        if plural == "rolebindings" && namespace.is_empty() {
            continue;
        }
        for binding in objects(cluster, plural, namespace) {
            let subjects = binding["subjects"].as_array().into_iter().flatten();
            let Some(subject) = subjects.into_iter().find(|one| is(user, one, namespace)) else {
                continue;
            };
            if role_allows(cluster, &binding["roleRef"], namespace, wanted) {
                return Some(reason(kind, &binding, subject, namespace));
            }
        }
    }
    None
}

/// The reason why a non-resource path is allowed, or `None`.
pub(crate) fn granted_path(
    cluster: &Cluster,
    user: &User,
    verb: &str,
    path: &str,
) -> Option<String> {
    if user.is_in("system:masters") {
        return Some(String::new());
    }
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => pattern == path,
    };
    let beginning = [
        ("system:discovery", AUTHENTICATED, &DISCOVERY[..]),
        ("system:public-info-viewer", AUTHENTICATED, &PUBLIC[..]),
        ("system:public-info-viewer", "system:unauthenticated", &PUBLIC[..]),
    ];
    let found = beginning.into_iter().find(|(_, group, paths)| {
        verb == "get" && user.is_in(group) && paths.iter().any(|one| fits(one))
    });
    if let Some((role, group, _)) = found {
        return Some(from_the_beginning(role, group));
    }
    bindings_of(cluster, user, "").into_iter().find_map(|bound| {
        let allows = |rule: &&Value| {
            texts(rule, "verbs").any(|one| one == "*" || one == verb)
                && texts(rule, "nonResourceURLs").any(fits)
        };
        bound.rules.iter().find(allows).map(|_| bound.reason.clone())
    })
}

/// Refuses a non-resource path that a user may not get.
pub(crate) fn authorize_path(
    cluster: &Cluster,
    user: &User,
    method: &str,
    path: &str,
) -> Result<(), StatusError> {
    let verb = match method {
        "POST" => "post".to_owned(),
        method => method.to_lowercase(),
    };
    if granted_path(cluster, user, &verb, path).is_some() {
        return Ok(());
    }
    let message = format!("forbidden: User {:?} cannot {verb} path {path:?}", user.name);
    Err(StatusError::new(403, "Forbidden", message).details(json!({})))
}

/// The rights of a user in a namespace: rules about resources, and rules about paths.
pub(crate) fn rules(cluster: &Cluster, user: &User, namespace: &str) -> (Vec<Value>, Vec<Value>) {
    let (mut objects, mut paths) = (Vec::new(), Vec::new());
    let everything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    if user.is_in("system:masters") {
        objects.push(everything.clone());
        paths.push(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
    }
    if user.is_in(AUTHENTICATED) {
        for (group, resources) in BASIC.iter().rev() {
            objects
                .push(json!({"verbs": ["create"], "apiGroups": [group], "resources": resources}));
        }
        paths.push(json!({"verbs": ["get"], "nonResourceURLs": DISCOVERY}));
    }
    paths.push(json!({"verbs": ["get"], "nonResourceURLs": PUBLIC}));
    for bound in bindings_of(cluster, user, namespace) {
        for rule in bound.rules {
            let is_path = texts(&rule, "nonResourceURLs").next().is_some();
            if is_path && bound.cluster {
                paths.push(rule);
            } else if !is_path {
                objects.push(rule);
            }
        }
    }
    (objects, paths)
}

/// The rules that bindings give to a user: those of the cluster, and those of a namespace.
fn bindings_of(cluster: &Cluster, user: &User, namespace: &str) -> Vec<Bound> {
    let mut found = Vec::new();
    for (plural, kind) in
        [("clusterrolebindings", "ClusterRoleBinding"), ("rolebindings", "RoleBinding")]
    {
        let of = if plural == "rolebindings" { namespace } else { "" };
        if plural == "rolebindings" && of.is_empty() {
            continue;
        }
        for binding in objects(cluster, plural, of) {
            let mut subjects = binding["subjects"].as_array().into_iter().flatten();
            let Some(subject) = subjects.find(|one| is(user, one, of)) else { continue };
            let rules = rules_of(cluster, &binding["roleRef"], of).unwrap_or_default();
            let reason = reason(kind, &binding, subject, of);
            found.push(Bound { rules, reason, cluster: plural == "clusterrolebindings" });
        }
    }
    found
}

/// The messages for roles that are bound to a user and do not exist.
pub(crate) fn missing_roles(cluster: &Cluster, user: &User, namespace: &str) -> Vec<String> {
    let mut lost = Vec::new();
    for plural in ["clusterrolebindings", "rolebindings"] {
        let of = if plural == "rolebindings" { namespace } else { "" };
        if plural == "rolebindings" && of.is_empty() {
            continue;
        }
        for binding in objects(cluster, plural, of) {
            let mut subjects = binding["subjects"].as_array().into_iter().flatten();
            let role = &binding["roleRef"];
            if subjects.any(|one| is(user, one, of)) && rules_of(cluster, role, of).is_none() {
                let kind = role["kind"].as_str().unwrap_or_default().to_lowercase();
                lost.push(format!("{kind}s.{GROUP} {} not found", role["name"]));
            }
        }
    }
    lost
}

/// The rules of a role, if it is there.
pub(crate) fn rules_of(
    cluster: &Cluster,
    reference: &Value,
    namespace: &str,
) -> Option<Vec<Value>> {
    let name = reference["name"].as_str().unwrap_or_default();
    let (plural, namespace) = match reference["kind"].as_str() {
        Some("ClusterRole") => ("clusterroles", ""),
        _ => ("roles", namespace),
    };
    if plural == "clusterroles" && name == "cluster-admin" {
        return Some(vec![
            json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
            json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
        ]);
    }
    let kind = (GROUP.to_owned(), plural.to_owned());
    let role = cluster.object(&kind, &(namespace.to_owned(), name.to_owned()));
    role.map(|role| role["rules"].as_array().cloned().unwrap_or_default())
}

/// Refuses a request that a user may not make.
pub(crate) fn authorize(
    cluster: &Cluster,
    user: &User,
    verb: &str,
    target: &Target,
) -> Result<(), StatusError> {
    let wanted = Attributes {
        verb,
        group: &target.group,
        resource: &target.resource,
        subresource: &target.subresource,
        namespace: &target.namespace,
        name: &target.name,
    };
    if granted(cluster, user, &wanted).is_some() {
        return Ok(());
    }
    Err(forbidden(user, &wanted))
}

fn is(user: &User, subject: &Value, namespace: &str) -> bool {
    let name = subject["name"].as_str().unwrap_or_default();
    match subject["kind"].as_str() {
        Some("User") => user.name == name,
        Some("Group") => user.groups.iter().any(|group| group == name),
        Some("ServiceAccount") => {
            let of = subject["namespace"].as_str().unwrap_or(namespace);
            user.name == format!("system:serviceaccount:{of}:{name}")
        }
        _ => false,
    }
}

fn reason(kind: &str, binding: &Value, subject: &Value, namespace: &str) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = text(&binding["metadata"]["name"]);
    let name = if kind == "RoleBinding" { format!("{name}/{namespace}") } else { name };
    let who = match subject["kind"].as_str() {
        Some("ServiceAccount") => {
            format!("\"{}/{}\"", text(&subject["name"]), text(&subject["namespace"]))
        }
        _ => format!("\"{}\"", text(&subject["name"])),
    };
    format!(
        "RBAC: allowed by {kind} \"{name}\" of {} \"{}\" to {} {who}",
        text(&binding["roleRef"]["kind"]),
        text(&binding["roleRef"]["name"]),
        text(&subject["kind"]),
    )
}

/// 403, as the server words it.
pub(crate) fn forbidden(user: &User, wanted: &Attributes<'_>) -> StatusError {
    let resource = match wanted.group {
        "" => wanted.resource.to_owned(),
        group => format!("{}.{group}", wanted.resource),
    };
    let sub = match wanted.subresource {
        "" => wanted.resource.to_owned(),
        sub => format!("{}/{sub}", wanted.resource),
    };
    let head = match wanted.name {
        "" => format!("{resource} is forbidden"),
        name => format!("{resource} {name:?} is forbidden"),
    };
    let place = match wanted.namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {namespace:?}"),
    };
    let message = format!(
        "{head}: User {:?} cannot {} resource {sub:?} in API group {:?} {place}",
        user.name, wanted.verb, wanted.group
    );
    let mut details = json!({ "kind": wanted.resource });
    if !wanted.name.is_empty() {
        details["name"] = wanted.name.into();
    }
    if !wanted.group.is_empty() {
        details["group"] = wanted.group.into();
    }
    StatusError::new(403, "Forbidden", message).details(details)
}
