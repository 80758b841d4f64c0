use innkeeper_sdk::{Condition, Context, Observed, ReadError, condition, read};

use crate::PostgreSQL;

/// The key of the Secret that holds the password.
pub const SECRET_KEY: &str = "postgresql_password";

/// The annotation of the pods with the password's digest: a changed digest rolls out new pods.
pub const DIGEST_ANNOTATION: &str = "exp.wheel.jp/password-digest";

/// The result of reading the password, of which the guest sees only a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Password {
    /// The Secret has the password, with this digest.
    Found(String),
    /// The password cannot be read: reason and message.
    Missing(&'static str, String),
}

impl Password {
    /// Reads the Secret.
    pub(crate) fn read(context: &Context, observed: &Observed<PostgreSQL>) -> Self {
        let name = &observed.primary().spec.password;
        match context.get::<read::Secret>(observed.namespace(), name) {
            Ok(secret) => match secret.object.data.get(SECRET_KEY) {
                Some(digest) => Self::Found(digest.clone()),
                None => Self::Missing(
                    "KeyMissing",
                    format!("the Secret {name} has no key {SECRET_KEY}"),
                ),
            },
            Err(ReadError::NotFound) => {
                Self::Missing("SecretMissing", format!("there is no Secret {name}"))
            }
            Err(error) => Self::Missing(
                "SecretUnreadable",
                format!("the Secret {name} cannot be read: {error}"),
            ),
        }
    }

    /// Returns the condition `PasswordFound`.
    pub(crate) fn condition(&self) -> Condition {
        const TYPE: &str = "PasswordFound";
        match self {
            Self::Found(_) => condition::is_true(TYPE, "Found", "the Secret has the password"),
            Self::Missing(reason, message) => condition::is_false(TYPE, reason, message),
        }
    }
}
