//! Who may do what, by the roles that are stored.

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::http::route::Target;
use crate::request::{Request, User};
use crate::status_error::StatusError;
use crate::store::Stored;

const GROUP: &str = "rbac.authorization.k8s.io";

/// What somebody wants to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

fn texts<'a>(rule: &'a Value, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
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

impl Cluster {
    fn all(&self, plural: &str) -> Vec<Value> {
        let kind = (GROUP.to_owned(), plural.to_owned());
        let objects = self.store.collection(&kind).map(|one| one.objects.values());
        objects.into_iter().flatten().map(Stored::object).collect()
    }

    fn role_allows(&self, reference: &Value, namespace: &str, wanted: &Attributes<'_>) -> bool {
        let name = reference["name"].as_str().unwrap_or_default();
        let (plural, namespace) = match reference["kind"].as_str() {
            Some("ClusterRole") => ("clusterroles", ""),
            _ => ("roles", namespace),
        };
        if plural == "clusterroles" && name == "cluster-admin" {
            return true;
        }
        let kind = (GROUP.to_owned(), plural.to_owned());
        let role = self.object(&kind, &(namespace.to_owned(), name.to_owned()));
        role.is_some_and(|role| {
            role["rules"].as_array().into_iter().flatten().any(|rule| allows(rule, wanted))
        })
    }

    /// Why a user may do something, if he may.
    pub(crate) fn granted(&self, user: &User, wanted: &Attributes<'_>) -> Option<String> {
        if user.groups.iter().any(|group| group == "system:masters") {
            return Some(String::new());
        }
        // Everybody may ask what he may do.
        let review = wanted.group == "authorization.k8s.io"
            && matches!(wanted.resource, "selfsubjectaccessreviews" | "selfsubjectrulesreviews");
        if review && user.groups.iter().any(|group| group == "system:authenticated") {
            return Some("RBAC: allowed by ClusterRoleBinding \"system:basic-user\" of ClusterRole \"system:basic-user\" to Group \"system:authenticated\"".to_owned());
        }
        for (plural, kind) in
            [("clusterrolebindings", "ClusterRoleBinding"), ("rolebindings", "RoleBinding")]
        {
            if plural == "rolebindings" && wanted.namespace.is_empty() {
                continue;
            }
            for binding in self.all(plural) {
                let namespace = binding["metadata"]["namespace"].as_str().unwrap_or_default();
                if plural == "rolebindings" && namespace != wanted.namespace {
                    continue;
                }
                let subjects = binding["subjects"].as_array().into_iter().flatten();
                let Some(subject) = subjects.into_iter().find(|one| is(user, one, namespace))
                else {
                    continue;
                };
                if self.role_allows(&binding["roleRef"], namespace, wanted) {
                    return Some(reason(kind, &binding, subject, namespace));
                }
            }
        }
        None
    }

    /// Refuses what a user may not do.
    pub(crate) fn authorize(
        &self,
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
        if self.granted(user, &wanted).is_some() {
            return Ok(());
        }
        Err(forbidden(user, &wanted))
    }

    /// As whom a request is done, if its user may act as that one.
    pub(crate) fn acting_user(&self, request: &Request) -> Result<User, StatusError> {
        let Some(acting) = &request.acting else { return Ok(request.user.clone()) };
        let account = acting.name.strip_prefix("system:serviceaccount:");
        let (resource, namespace, name) = match account.and_then(|rest| rest.split_once(':')) {
            Some((namespace, name)) => ("serviceaccounts", namespace, name),
            None => ("users", "", acting.name.as_str()),
        };
        let wanted = Attributes {
            verb: "impersonate",
            group: "",
            resource,
            subresource: "",
            namespace,
            name,
        };
        if self.granted(&request.user, &wanted).is_some() {
            return Ok(acting.clone());
        }
        Err(forbidden(&request.user, &wanted))
    }
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
fn forbidden(user: &User, wanted: &Attributes<'_>) -> StatusError {
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
