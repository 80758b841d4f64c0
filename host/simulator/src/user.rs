//! Who asks.

/// A user, as authentication finds him.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
}

impl User {
    /// One of this name and these groups.
    pub fn new(name: impl Into<String>, groups: Vec<String>) -> Self {
        Self { name: name.into(), groups }
    }

    /// Who may do everything.
    pub fn admin() -> Self {
        Self::new("admin", vec!["system:masters".to_owned(), "system:authenticated".to_owned()])
    }

    /// Who did not say who he is.
    pub fn anonymous() -> Self {
        Self::new("system:anonymous", vec!["system:unauthenticated".to_owned()])
    }

    /// Whether he is in a group.
    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }

    /// Another one, as impersonation makes it.
    pub(crate) fn impersonated(name: &str, mut groups: Vec<String>) -> Self {
        if groups.is_empty()
            && let Some(account) = name.strip_prefix("system:serviceaccount:")
            && let Some((namespace, _)) = account.split_once(':')
        {
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        let default = if name == "system:anonymous" {
            "system:unauthenticated"
        } else {
            "system:authenticated"
        };
        if !groups.iter().any(|group| group == "system:authenticated" || group == default) {
            groups.push(default.to_owned());
        }
        Self { name: name.to_owned(), groups }
    }
}
