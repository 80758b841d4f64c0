//! The primaries of a module with refused writes, as the Module's condition shows them: in rough
//! numbers, so that each primary that comes and goes is no write of the Module's status.

use std::collections::BTreeMap;
use std::fmt;

use innkeeper_core::ObjectKey;

use super::run_outcome::{MessagePlace, Refusal};

/// Up to this number a count is exact.
const EXACT_MAX: usize = 10;

/// A condition names at most this many primaries.
const NAMED_MAX: usize = 3;

/// A number of primaries: exact up to ten, then a power of ten below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Exact(usize),
    /// More than this.
    MoreThan(usize),
}

impl Default for Count {
    fn default() -> Self {
        Self::Exact(0)
    }
}

impl Count {
    /// The rough count of a number. It becomes rougher than the count `before` only once the number
    /// is a fifth above the bound, so that it does not change with each primary at the bound.
    pub fn after(number: usize, before: Option<Self>) -> Self {
        if number <= EXACT_MAX {
            return Self::Exact(number);
        }
        let mut below = EXACT_MAX;
        while let Some(next) = below.checked_mul(10).filter(|next| *next < number) {
            below = next;
        }
        let is_near = number <= below + below / 5;
        match before {
            Some(Self::Exact(count)) if is_near && below == EXACT_MAX && count > 0 => {
                Self::Exact(number)
            }
            Some(Self::MoreThan(bound)) if is_near && bound < below => Self::MoreThan(bound),
            _ => Self::MoreThan(below),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(1) => f.write_str("1 primary"),
            Self::Exact(number) => write!(f, "{number} primaries"),
            Self::MoreThan(bound) => write!(f, "more than {bound} primaries"),
        }
    }
}

/// The primaries of a module with refused writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedWrites {
    primaries: Count,
    named: Vec<(ObjectKey, Refusal)>,
}

impl RefusedWrites {
    /// The primaries with refused writes. Those that were named `before` stay named as long as all
    /// of them are refused for the same reason.
    pub fn of(refused: &BTreeMap<ObjectKey, Refusal>, before: Option<&Self>) -> Self {
        let primaries = Count::after(refused.len(), before.map(|before| before.primaries));
        let stays = |before: &&Self| {
            before.primaries == primaries
                && before.named.iter().all(|(key, reason)| refused.get(key) == Some(reason))
        };
        if let Some(before) = before.filter(stays) {
            return before.clone();
        }
        let named = refused.iter().take(NAMED_MAX);
        Self { primaries, named: named.map(|(key, why)| (key.clone(), why.clone())).collect() }
    }

    /// The note for the condition; `None` if no write is refused.
    pub fn note(&self) -> Option<String> {
        if self.named.is_empty() {
            return None;
        }
        let named = self.named.iter().map(|(key, Refusal { reason, message })| match message {
            MessagePlace::Event { conflict: Some(conflict) } => {
                format!("{key} ({reason}: {conflict})")
            }
            _ => format!("{key} ({reason})"),
        });
        let named = named.collect::<Vec<_>>().join(", ");
        let decorates = self.named.iter().any(|(_, one)| one.message != MessagePlace::Synced);
        let place = if decorates {
            "an Event about each primary says why"
        } else {
            "the condition Synced of each primary says why"
        };
        let primaries = self.primaries;
        let more = if primaries == Count::Exact(self.named.len()) { "" } else { " and more" };
        Some(format!("Writes for {primaries} are refused: {named}{more}; {place}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(number: usize) -> BTreeMap<ObjectKey, Refusal> {
        let key = |n| ObjectKey::new("web", &format!("{n:05}"));
        (0..number).map(|n| (key(n), Refusal::of_reason("Invalid"))).collect()
    }

    #[test]
    fn count_is_exact_up_to_ten_and_rough_above() {
        for (number, expected) in [
            (1, "1 primary"),
            (10, "10 primaries"),
            (11, "more than 10 primaries"),
            (100, "more than 10 primaries"),
            (101, "more than 100 primaries"),
            (5_000, "more than 1000 primaries"),
        ] {
            assert_eq!(Count::after(number, None).to_string(), expected, "{number}");
        }
    }

    #[test]
    fn count_at_a_bound_does_not_change_with_each_primary() {
        let counts = |numbers: &[usize]| {
            let mut count = None;
            let mut shown = Vec::new();
            for number in numbers {
                count = Some(Count::after(*number, count));
                shown.extend(count.map(|one| one.to_string()));
            }
            shown
        };
        let exact = ["10 primaries", "11 primaries", "12 primaries"];
        assert_eq!(counts(&[10, 11, 12]), exact);
        let ten = "more than 10 primaries";
        assert_eq!(counts(&[10, 13, 11, 12]), ["10 primaries", ten, ten, ten]);
        assert_eq!(counts(&[10, 13, 10]), ["10 primaries", ten, "10 primaries"]);
        let hundred = "more than 100 primaries";
        assert_eq!(counts(&[99, 101, 99, 120]), [ten; 4]);
        assert_eq!(counts(&[99, 121, 101, 100]), [ten, hundred, hundred, ten]);
        // Many at once.
        assert_eq!(counts(&[1, 101]), ["1 primary", hundred]);
    }

    #[test]
    fn note_names_the_first_primaries_and_stays_while_they_are_refused() {
        let note = |refused: &RefusedWrites| refused.note().unwrap();
        let many = RefusedWrites::of(&refused(20), None);
        assert_eq!(
            note(&many),
            "Writes for more than 10 primaries are refused: web/00000 (Invalid), web/00001 (Invalid), web/00002 (Invalid) and more; the condition Synced of each primary says why."
        );
        let mut more = refused(30);
        more.insert(ObjectKey::new("a", "first"), Refusal::of_reason("Conflict"));
        assert_eq!(RefusedWrites::of(&more, Some(&many)), many);
        more.remove(&ObjectKey::new("web", "00001"));
        assert!(note(&RefusedWrites::of(&more, Some(&many))).contains("a/first (Conflict)"));
        assert_eq!(RefusedWrites::of(&refused(0), Some(&many)).note(), None);
    }

    #[test]
    fn note_about_a_decorator_quotes_the_conflict_since_its_primaries_have_no_condition() {
        let conflict = Some("Namespace web: gitops holds .metadata.labels.team".to_owned());
        let message = MessagePlace::Event { conflict };
        let refusal = Refusal { reason: "FieldConflict".to_owned(), message };
        let refused = [(ObjectKey::new("", "web"), refusal)].into();
        assert_eq!(
            RefusedWrites::of(&refused, None).note().unwrap(),
            "Writes for 1 primary are refused: web (FieldConflict: Namespace web: gitops holds .metadata.labels.team); an Event about each primary says why."
        );
    }
}
