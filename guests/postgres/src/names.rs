use sha2::{Digest as _, Sha256};

use crate::PostgreSQL;

/// Maximum length of a `CronJob`'s name: the names of its Jobs are 11 characters longer.
const CRON_JOB_NAME_MAX: usize = 52;

/// The names of the objects of a `PostgreSQL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Deployment and Service: the name of the `PostgreSQL`.
    pub server: String,
    /// `PersistentVolumeClaim` of the data.
    pub data: String,
    /// `PersistentVolumeClaim` of the backups.
    pub backups: String,
    /// `CronJob` of the backups.
    pub backup_job: String,
    /// The `PostgreSQL` itself, as its volumes name it: group, kind, namespace and name.
    pub identity: String,
}

impl Names {
    /// Returns the names of the objects of a `PostgreSQL`.
    pub fn of(postgres: &PostgreSQL) -> Self {
        let name = &postgres.metadata.name;
        Self {
            server: name.clone(),
            data: format!("{name}-data"),
            backups: format!("{name}-backups"),
            backup_job: shortened(name, "-backup"),
            identity: format!("exp.wheel.jp/PostgreSQL/{}/{name}", postgres.metadata.namespace),
        }
    }
}

/// The name with the suffix; where that is too long, its beginning and a digest of it.
fn shortened(name: &str, suffix: &str) -> String {
    if name.len() + suffix.len() <= CRON_JOB_NAME_MAX {
        return format!("{name}{suffix}");
    }
    let digest = digest(name, 8);
    let room = CRON_JOB_NAME_MAX - suffix.len() - digest.len() - 1;
    let beginning: String = name.chars().take(room).collect();
    format!("{beginning}-{digest}{suffix}")
}

/// Returns the first hexadecimal digits of the text's SHA-256.
pub(crate) fn digest(text: &str, digits: usize) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let halves = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.filter_map(|half| char::from_digit(half.into(), 16)).take(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_the_beginning_of_the_sha_256() {
        assert_eq!(digest("abc", 16), "ba7816bf8f01cfea");
    }

    #[test]
    fn cron_job_name_is_shortened_and_unique_when_it_is_too_long() {
        assert_eq!(shortened("foodb", "-backup"), "foodb-backup");
        let (one, other) = ("a".repeat(63), format!("{}b", "a".repeat(62)));
        assert_eq!(shortened(&one, "-backup").len(), CRON_JOB_NAME_MAX);
        assert_ne!(shortened(&one, "-backup"), shortened(&other, "-backup"));
    }
}
