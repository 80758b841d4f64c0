//! The user that a request wants to act as.

use std::collections::BTreeMap;

use crate::auth::user::User;
use crate::types::kinds::is_account;

const AUTHENTICATION: &str = "authentication.k8s.io";

/// The user that the Impersonate headers of a request name.
#[derive(Clone, Debug, Default)]
pub(crate) struct ImpersonatedUser {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
    pub(crate) uid: String,
}

impl ImpersonatedUser {
    /// Whether the headers name no user.
    pub(crate) fn is_nobody(&self) -> bool {
        self.name.is_empty()
            && self.groups.is_empty()
            && self.extra.is_empty()
            && self.uid.is_empty()
    }

    /// The permissions to check: group, resource, subresource, namespace and name of each.
    pub(crate) fn parts(&self) -> Vec<[&str; 5]> {
        let mut parts = Vec::new();
        if !self.name.is_empty() {
            parts.push(match account(&self.name) {
                Some((namespace, name)) => ["", "serviceaccounts", "", namespace, name],
                None => ["", "users", "", "", &self.name],
            });
        }
        parts.extend(self.groups.iter().map(|group| ["", "groups", "", "", group]));
        for (key, values) in &self.extra {
            parts.extend(values.iter().map(|one| [AUTHENTICATION, "userextras", key, "", one]));
        }
        if !self.uid.is_empty() {
            parts.push([AUTHENTICATION, "uids", "", "", &self.uid]);
        }
        parts
    }

    /// The parts as Go prints them.
    pub(crate) fn printed(&self) -> String {
        let shown = self.parts().into_iter().map(|[group, resource, sub, namespace, name]| {
            let kind = match resource {
                "serviceaccounts" => "ServiceAccount",
                "users" => "User",
                "groups" => "Group",
                "uids" => "UID",
                _ => "UserExtra",
            };
            let version = if group.is_empty() { "" } else { "authentication.k8s.io/v1" };
            format!("{{{kind} {namespace} {name}  {version}  {sub}}}")
        });
        format!("[{}]", shown.collect::<Vec<_>>().join(" "))
    }

    /// The impersonated user. Given groups replace all groups except those of authentication.
    pub(crate) fn user(&self) -> User {
        let mut groups = self.groups.clone();
        if groups.is_empty()
            && let Some((namespace, _)) = account(&self.name)
        {
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        let (known, unknown) = ("system:authenticated", "system:unauthenticated");
        let has = |name: &str| groups.iter().any(|group| group == name);
        if self.name == "system:anonymous" {
            if !has(unknown) {
                groups.push(unknown.to_owned());
            }
        } else if !has(known) && !has(unknown) {
            groups.push(known.to_owned());
        }
        let (uid, extra) = (self.uid.clone(), self.extra.clone());
        User { uid, extra, ..User::new(self.name.as_str(), groups) }
    }
}

/// The namespace and the name of the ServiceAccount of a user.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    is_account(namespace, name).then_some((namespace, name))
}
