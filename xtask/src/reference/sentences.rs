//! The sentences of a description: `Default: ...` and `Limits: ...` have columns of their own.

/// A description, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sentences {
    /// The description without the other parts.
    pub(super) text: String,
    /// What applies if the field is left out.
    pub(super) default: Option<String>,
    /// Limits that the schema does not have.
    pub(super) limits: Option<String>,
    /// The meaning of each value of an enum, where the description gives it.
    pub(super) values: Vec<(String, String)>,
}

impl Sentences {
    /// Takes a description apart. A CustomResourceDefinition has the meanings of `values` at the
    /// end of the description, each after the value and a colon.
    pub(super) fn of(description: &str, values: &[&str]) -> Self {
        let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
        let (text, values) = split_values(&description, values);
        let mut sentences = Self { values, ..Self::default() };
        let mut rest = Vec::new();
        for sentence in split(text) {
            let value = |word: &str| {
                let value = sentence.strip_prefix(word)?;
                Some(value.strip_suffix('.').unwrap_or(value).to_owned())
            };
            if let Some(default) = value("Default: ") {
                sentences.default = Some(default);
            } else if let Some(limits) = value("Limits: ") {
                sentences.limits = Some(limits);
            } else {
                rest.push(sentence);
            }
        }
        sentences.text = rest.join(" ");
        sentences
    }
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

/// Splits the meanings of the values off a text.
fn split_values<'a>(text: &'a str, values: &[&str]) -> (&'a str, Vec<(String, String)>) {
    let mut places = Vec::new();
    let mut from = 0;
    for value in values {
        let Some(at) = text[from..].find(&format!(" {value}: ")) else {
            return (text, Vec::new());
        };
        places.push((from + at, *value));
        from += at + 1;
    }
    let Some((first, _)) = places.first() else { return (text, Vec::new()) };
    let ends = places.iter().skip(1).map(|(at, _)| *at).chain([text.len()]);
    let meanings = places.iter().zip(ends).map(|((at, value), end)| {
        let meaning = &text[at + value.len() + 3..end];
        ((*value).to_owned(), meaning.trim().to_owned())
    });
    (&text[..*first], meanings.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_and_limits_are_split_off_wherever_they_stand() {
        let text =
            "Maximum time, e.g. 2m. Default: 1m. Limits: more than 0s, at most 15m.\nIt may.";
        let sentences = Sentences::of(text, &[]);
        assert_eq!(sentences.text, "Maximum time, e.g. 2m. It may.");
        assert_eq!(sentences.default.as_deref(), Some("1m"));
        assert_eq!(sentences.limits.as_deref(), Some("more than 0s, at most 15m"));
    }

    #[test]
    fn meanings_of_values_are_split_off() {
        let text = "When. Default: B. A: At once. It asks nobody. B: After: a preview.";
        let sentences = Sentences::of(text, &["A", "B"]);
        assert_eq!(sentences.text, "When.");
        assert_eq!(sentences.default.as_deref(), Some("B"));
        let meaning = |value: &str, text: &str| (value.to_owned(), text.to_owned());
        let expected =
            [meaning("A", "At once. It asks nobody."), meaning("B", "After: a preview.")];
        assert_eq!(sentences.values, expected);
        assert_eq!(Sentences::of("Whether: A or B.", &["A", "B"]).values, []);
    }
}
