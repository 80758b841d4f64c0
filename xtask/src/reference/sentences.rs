//! The sentences of a description: `Default: ...` and `Limits: ...` have columns of their own, and
//! `Value: ...` is the meaning of a value.

/// A description, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sentences {
    /// The description without the other parts.
    pub(super) text: String,
    /// What applies if the field is left out.
    pub(super) default: Option<String>,
    /// Limits that the schema does not have.
    pub(super) limits: Option<String>,
    /// The meaning of each value that the description names. A CustomResourceDefinition has those
    /// of an enum at the end of the description.
    pub(super) values: Vec<(String, String)>,
}

impl Sentences {
    /// Takes a description apart.
    pub(super) fn of(description: &str) -> Self {
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut sentences = Self::default();
        let mut rest = Vec::new();
        for sentence in split(&description) {
            match word(sentence) {
                Some(("Default", default)) => sentences.default = Some(without_stop(default)),
                Some(("Limits", limits)) => sentences.limits = Some(without_stop(limits)),
                Some((value, meaning)) => {
                    sentences.values.push((value.to_owned(), meaning.to_owned()));
                }
                None => match sentences.values.last_mut() {
                    Some((_, meaning)) => *meaning = format!("{meaning} {sentence}"),
                    None => rest.push(sentence),
                },
            }
        }
        sentences.text = rest.join(" ");
        sentences
    }
}

/// The word before the colon at the start of a sentence, and what is after it.
fn word(sentence: &str) -> Option<(&str, &str)> {
    let (word, rest) = sentence.split_once(": ")?;
    word.chars().all(char::is_alphanumeric).then_some((word, rest))
}

fn without_stop(text: &str) -> String {
    text.strip_suffix('.').unwrap_or(text).to_owned()
}

/// Splits a text after each full stop that a blank and a capital letter follow.
fn split(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(". ") {
        let next = text[at + 2..].chars().next();
        if next.is_some_and(|next| next.is_uppercase() || next == '`') {
            sentences.push(&text[start..=at]);
            start = at + 2;
        }
    }
    if start < text.len() {
        sentences.push(&text[start..]);
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_and_limits_are_split_off_wherever_they_stand() {
        let text =
            "Maximum time, e.g. 2m. Default: 1m. Limits: more than 0s, at most 15m.\nIt may.";
        let sentences = Sentences::of(text);
        assert_eq!(sentences.text, "Maximum time, e.g. 2m. It may.");
        assert_eq!(sentences.default.as_deref(), Some("1m"));
        assert_eq!(sentences.limits.as_deref(), Some("more than 0s, at most 15m"));
        assert_eq!(sentences.values, []);
    }

    #[test]
    fn meanings_of_values_are_split_off() {
        let text = "When. Default: B. A: At once. It asks nobody. B: After: a preview.";
        let sentences = Sentences::of(text);
        assert_eq!(sentences.text, "When.");
        assert_eq!(sentences.default.as_deref(), Some("B"));
        let meaning = |value: &str, text: &str| (value.to_owned(), text.to_owned());
        let expected =
            [meaning("A", "At once. It asks nobody."), meaning("B", "After: a preview.")];
        assert_eq!(sentences.values, expected);
        assert_eq!(Sentences::of("For people: A or B.").values, []);
    }
}
