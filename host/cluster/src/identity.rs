//! The identity of a request.

use std::fmt;

/// A ServiceAccount.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

impl Account {
    /// The ServiceAccount of this namespace and name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The name of its user, as in RBAC subjects and audit logs. The API server itself adds the
    /// groups of a ServiceAccount.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The identity of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// The host itself: the user of its kubeconfig, or its own ServiceAccount.
    Host,
    /// A ServiceAccount that the host impersonates.
    Account(Account),
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("the host"),
            Self::Account(account) => write!(f, "ServiceAccount {account}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_of_an_account_is_named_as_in_rbac() {
        let account = Account::new("innkeeper-modules", "podroute");
        assert_eq!(account.user(), "system:serviceaccount:innkeeper-modules:podroute");
        assert_eq!(
            Identity::Account(account).to_string(),
            "ServiceAccount innkeeper-modules/podroute"
        );
    }
}
