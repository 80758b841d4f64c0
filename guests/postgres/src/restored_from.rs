use serde::{Deserialize, Serialize};

/// Maximum length of a file name.
const FILE_NAME_MAX: usize = 255;
/// A time in the termination message; `0` stands for each digit.
const TIME: &str = "0000-00-00T00:00:00Z";

/// The backup from which `prepare` restored the data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct RestoredFrom {
    /// File of the backup.
    pub backup: String,
    /// Time of the backup in UTC: changes after it are lost.
    pub time: String,
}

/// The part of the status that the guest reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportedStatus {
    /// The backup that the last run reported.
    pub restored_from: Option<RestoredFrom>,
}

impl RestoredFrom {
    /// Parses the termination message of `prepare` (`scripts/restored_from.sh`). The container of
    /// another image may write anything.
    pub(crate) fn parse(message: &str) -> Option<Self> {
        let (backup, time) = message.trim().strip_prefix("restored from ")?.rsplit_once(" of ")?;
        let is_name = backup.len() <= FILE_NAME_MAX && !backup.contains(char::is_control);
        let digits = time.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
        let is_valid = is_name && digits.eq(TIME.bytes());
        is_valid.then(|| Self { backup: backup.to_owned(), time: time.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_of_prepare_is_parsed() {
        let message = "restored from 0000000002-20260101T000100Z.dump of 2026-01-01T00:01:00Z\n";
        let expected = RestoredFrom {
            backup: "0000000002-20260101T000100Z.dump".to_owned(),
            time: "2026-01-01T00:01:00Z".to_owned(),
        };
        assert_eq!(RestoredFrom::parse(message), Some(expected));
    }

    #[test]
    fn other_messages_are_ignored() {
        let long = format!("restored from {} of 2026-01-01T00:01:00Z", "a".repeat(256));
        for message in [
            "",
            "prepare: the data is there",
            "restored from foo.dump",
            "restored from foo.dump of yesterday",
            "restored from foo.dump of 2026-01-01T00:01:00Z, they say",
            "restored from foo\nbar of 2026-01-01T00:01:00Z",
            &long,
        ] {
            assert_eq!(RestoredFrom::parse(message), None, "{message}");
        }
    }
}
