use sha2::{Digest as _, Sha256};

use crate::PostgreSQL;

/// A `CronJob`'s name has at most so many characters: its Jobs' names are longer by eleven.
const CRON_JOB_NAME_MAX: usize = 52;

/// The names of what is made of a `PostgreSQL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// Deployment and Service: the `PostgreSQL`'s own.
    pub server: String,
    /// The claim of the data.
    pub data: String,
    /// The claim of the backups.
    pub backups: String,
    /// The `CronJob`.
    pub backup_job: String,
}

impl Names {
    /// The names of what is made of this one.
    pub fn of(postgres: &PostgreSQL) -> Self {
        let name = &postgres.metadata.name;
        Self {
            server: name.clone(),
            data: format!("{name}-data"),
            backups: format!("{name}-backups"),
            backup_job: shortened(name, "-backup"),
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

/// The first digits of the text's SHA-256, in hexadecimal.
pub(crate) fn digest(text: &str, digits: usize) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let halves = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.filter_map(|half| char::from_digit(half.into(), 16)).take(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_beginning_of_sha_256() {
        assert_eq!(digest("abc", 16), "ba7816bf8f01cfea");
    }

    #[test]
    fn a_name_that_is_too_long_for_a_cron_job_is_shortened_and_stays_its_own() {
        assert_eq!(shortened("foodb", "-backup"), "foodb-backup");
        let (one, other) = ("a".repeat(63), format!("{}b", "a".repeat(62)));
        assert_eq!(shortened(&one, "-backup").len(), CRON_JOB_NAME_MAX);
        assert_ne!(shortened(&one, "-backup"), shortened(&other, "-backup"));
    }
}
