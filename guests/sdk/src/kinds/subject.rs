use serde::Serialize;

/// Who gets the rights of a `RoleBinding` or `ClusterRoleBinding`.
///
/// ```
/// use innkeeper_sdk::kinds::Subject;
///
/// assert_eq!(Subject::service_account("shop", "web").namespace, "shop");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// API group of the kind; the core group is empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// `ServiceAccount`, `User` or `Group`.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Namespace of a `ServiceAccount`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// The role of a `RoleBinding` or `ClusterRoleBinding`. Immutable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleRef {
    /// `rbac.authorization.k8s.io`.
    pub api_group: String,
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// Name.
    pub name: String,
}

const GROUP: &str = "rbac.authorization.k8s.io";

impl Subject {
    /// A `ServiceAccount`.
    pub fn service_account(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            api_group: String::new(),
            kind: "ServiceAccount".to_owned(),
            name: name.into(),
            namespace: namespace.into(),
        }
    }

    /// A user.
    pub fn user(name: impl Into<String>) -> Self {
        Self::of_kind("User", name)
    }

    /// A group of users.
    pub fn group(name: impl Into<String>) -> Self {
        Self::of_kind("Group", name)
    }

    fn of_kind(kind: &str, name: impl Into<String>) -> Self {
        Self {
            api_group: GROUP.to_owned(),
            kind: kind.to_owned(),
            name: name.into(),
            namespace: String::new(),
        }
    }
}

impl RoleRef {
    /// A Role of the binding's namespace.
    pub fn role(name: impl Into<String>) -> Self {
        Self { api_group: GROUP.to_owned(), kind: "Role".to_owned(), name: name.into() }
    }

    /// A `ClusterRole`.
    pub fn cluster_role(name: impl Into<String>) -> Self {
        Self { api_group: GROUP.to_owned(), kind: "ClusterRole".to_owned(), name: name.into() }
    }
}
