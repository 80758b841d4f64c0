use serde::Serialize;

use crate::Metadata;

/// A `ServiceAccount`: the identity of pods.
///
/// ```
/// use innkeeper_sdk::kinds::ServiceAccount;
///
/// let account = ServiceAccount::new("web").automount_token(false);
/// assert_eq!(account.automount_service_account_token, Some(false));
/// ```
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceAccount {
    /// Metadata.
    pub metadata: Metadata,
    /// Whether pods get the token; they do if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automount_service_account_token: Option<bool>,
}

impl ServiceAccount {
    /// Creates a `ServiceAccount`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { metadata: Metadata::named(name), automount_service_account_token: None }
    }

    setters! {
        /// Sets whether pods get the token.
        automount_token(automount_service_account_token: bool);
    }
}

crate::kind!(Apply for ServiceAccount, "v1", "serviceaccounts");
