use innkeeper_sdk::{Condition, Context, Observed, ReadError, condition, read};

use crate::PostgreSQL;

/// The key of the Secret that holds the password.
pub const SECRET_KEY: &str = "postgresql_password";

/// The pods' annotation with the password's digest: when it changes, they are rolled out.
pub const DIGEST_ANNOTATION: &str = "exp.wheel.jp/password-digest";

/// What is known of the password. The guest sees a digest of it, never the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Password {
    /// It is there, with this digest.
    Found(String),
    /// It is not: the reason, and a sentence.
    Missing(&'static str, String),
}

impl Password {
    /// Looks for it.
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

    /// The condition `PasswordFound`.
    pub(crate) fn condition(&self) -> Condition {
        const TYPE: &str = "PasswordFound";
        match self {
            Self::Found(_) => condition::is_true(TYPE, "Found", "the Secret has the password"),
            Self::Missing(reason, message) => condition::is_false(TYPE, reason, message),
        }
    }
}
