//! Primaries that no module would reconcile after a swap.

use std::fmt;

use innkeeper_core::counted;

/// The primaries of the last active revision that no module would reconcile any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abandoned {
    /// How many exist; `None` if the host cannot read them now.
    pub primaries: Option<u32>,
    /// Their kind, with its group.
    pub kind: String,
    /// Why the candidate does not reconcile them.
    pub by: AbandonedBy,
}

/// Why a candidate does not reconcile primaries of the active revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AbandonedBy {
    /// It reconciles this other kind, with its group.
    OtherKind(String),
    /// It reconciles no kind.
    NoKind,
    /// It reconciles the same kind, and selects fewer primaries.
    Selector,
}

impl fmt::Display for Abandoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { primaries, kind, by } = self;
        match by {
            AbandonedBy::OtherKind(other) => write!(f, "it reconciles {other} and not {kind}")?,
            AbandonedBy::NoKind => {
                write!(f, "it reconciles no kind, and the last active revision {kind}")?;
            }
            AbandonedBy::Selector => {
                write!(
                    f,
                    "its selector leaves out primaries of {kind} that the last active revision selects"
                )?;
            }
        }
        let left = match primaries {
            Some(count) => counted(*count, "primary", "primaries"),
            None => "the primaries".to_owned(),
        };
        write!(f, ": no module would reconcile {left} any more")?;
        match by {
            AbandonedBy::OtherKind(_) | AbandonedBy::NoKind => {
                f.write_str("; a guest for another kind belongs in a Module of its own")
            }
            AbandonedBy::Selector => {
                f.write_str("; a guest for other primaries belongs in a Module of its own")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_says_who_reconciles_no_more_and_why() {
        let message = |primaries: Option<u32>, by: AbandonedBy| {
            Abandoned { primaries, kind: "Page of example.com".to_owned(), by }.to_string()
        };
        let other = message(Some(1), AbandonedBy::OtherKind("Namespace".to_owned()));
        assert_eq!(
            other,
            "it reconciles Namespace and not Page of example.com: no module would reconcile 1 primary any more; a guest for another kind belongs in a Module of its own"
        );
        let none = message(None, AbandonedBy::NoKind);
        assert!(
            none.starts_with("it reconciles no kind, and the last active revision Page")
                && none.contains("no module would reconcile the primaries"),
            "{none}"
        );
        let fewer = message(Some(2), AbandonedBy::Selector);
        assert!(
            fewer.starts_with("its selector leaves out primaries of Page of example.com")
                && fewer.contains("2 primaries"),
            "{fewer}"
        );
    }
}
