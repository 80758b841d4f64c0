//! Label selectors: which objects are selected by their labels.

mod error;
mod label_selector;
mod labels;
mod parser;
mod requirement;

use std::borrow::Cow;
use std::fmt;

use crate::Labels;

pub use error::SelectorError;
pub use label_selector::{Expression, LabelSelector};
pub use requirement::{Operator, Requirement};

/// How many bytes the allocation of a text takes in addition to the text: its pointer and length,
/// and the allocator's own data.
const ALLOCATION_BYTES: usize = 32;

/// A label selector: a conjunction of requirements. A selector without requirements selects every
/// object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector {
    /// Sorted and distinct.
    requirements: Vec<Requirement>,
}

impl Selector {
    /// Makes a selector of requirements, all of which must hold.
    pub fn new(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut requirements: Vec<_> = requirements.into_iter().collect();
        requirements.sort();
        requirements.dedup();
        Self { requirements }
    }

    /// The requirements, in canonical order.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether the selector has no requirement, so that it selects every object.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether the selector selects an object with these labels.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.operator.holds(labels.get(&requirement.key)))
    }

    /// The same for other values by key than labels.
    pub fn matches_by<'a>(&self, value: impl Fn(&str) -> Option<Cow<'a, str>>) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.operator.holds(value(&requirement.key).as_deref()))
    }

    /// The selector of what both select.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self::new(self.requirements.iter().chain(&other.requirements).cloned())
    }

    /// How many comparisons [`Selector::matches`] makes at most: one for each requirement and each
    /// value.
    pub fn weight(&self) -> usize {
        self.requirements.iter().map(|one| 1 + one.operator.values().len()).sum()
    }

    /// About how many bytes of memory the selector takes.
    pub fn bytes(&self) -> usize {
        let text = |text: &str| text.len() + ALLOCATION_BYTES;
        let of_requirement = |one: &Requirement| {
            let values: usize = one.operator.values().iter().map(|value| text(value)).sum();
            size_of::<Requirement>() + text(&one.key) + values
        };
        size_of::<Self>() + self.requirements.iter().map(of_requirement).sum::<usize>()
    }

    /// Whether an object can exist that both selectors select.
    ///
    /// Labels are independent of each other. So for each key in either selector it is enough to try
    /// the values in the requirements, the integers next to their bounds, a value that no
    /// requirement names, and a missing label.
    pub fn overlaps(&self, other: &Self) -> bool {
        let both = || self.requirements.iter().chain(&other.requirements);
        both().all(|Requirement { key, .. }| {
            let of_key: Vec<&Operator> =
                both().filter(|one| one.key == *key).map(|one| &one.operator).collect();
            let named = of_key.iter().flat_map(|operator| operator.boundary_values());
            let mut values: Vec<Option<String>> = named.map(Some).collect();
            // Longer than every value in the requirements, so that none names it; not a number.
            let unnamed = values.iter().flatten().map(String::as_str).collect::<String>() + "-";
            values.extend([Some(unnamed), None]);
            values.iter().any(|value| of_key.iter().all(|one| one.holds(value.as_deref())))
        })
    }

    /// The first requirement in canonical order that demands one value of a label, as key and
    /// value: an index of selectors can use it. `None` if no requirement has that form.
    pub fn first_equality(&self) -> Option<(&str, &str)> {
        self.requirements.iter().find_map(|requirement| match &requirement.operator {
            Operator::In(values) if let [value] = values.as_slice() => {
                Some((&*requirement.key, &**value))
            }
            _ => None,
        })
    }
}

impl fmt::Display for Selector {
    /// Writes the canonical text, which the API server accepts as `labelSelector`. Parsing it gives
    /// the same selector.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Requirement { key, operator }) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            match operator {
                Operator::In(values) if let [value] = values.as_slice() => {
                    write!(f, "{key}={value}")?;
                }
                Operator::NotIn(values) if let [value] = values.as_slice() => {
                    write!(f, "{key}!={value}")?;
                }
                Operator::In(values) => write!(f, "{key} in ({})", values.join(","))?,
                Operator::NotIn(values) => write!(f, "{key} notin ({})", values.join(","))?,
                Operator::Exists => write!(f, "{key}")?,
                Operator::DoesNotExist => write!(f, "!{key}")?,
                Operator::GreaterThan(bound) => write!(f, "{key}>{bound}")?,
                Operator::LessThan(bound) => write!(f, "{key}<{bound}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Selector {
        text.parse().unwrap()
    }

    fn labels(text: &str) -> Labels {
        text.split(',').filter_map(|pair| pair.split_once('=')).collect()
    }

    #[test]
    fn text_of_every_form_is_parsed_and_written_canonically() {
        for (text, canonical) in [
            ("", ""),
            ("  ", ""),
            ("a", "a"),
            (" ! a ", "!a"),
            ("b=1,a==2", "a=2,b=1"),
            ("a=", "a="),
            ("a!=1", "a!=1"),
            ("a in (y, x ,x)", "a in (x,y)"),
            ("a in (x)", "a=x"),
            ("a notin (x,)", "a notin (,x)"),
            ("a>3,b<-2", "a>3,b<-2"),
            ("a,a", "a"),
            ("in in (in)", "in=in"),
            ("app.kubernetes.io/name=x", "app.kubernetes.io/name=x"),
        ] {
            assert_eq!(read(text).to_string(), canonical, "{text}");
            assert_eq!(read(canonical), read(text), "{text}");
        }
    }

    #[test]
    fn selector_matches_labels_that_fulfil_all_requirements() {
        for (selector, matching, other) in [
            ("a=1", "a=1,b=2", "a=2"),
            ("a!=1", "b=1", "a=1"),
            ("a in (1,2)", "a=2", "b=2"),
            ("a notin (1,2)", "a=3", "a=1"),
            ("a", "a=", "b=1"),
            ("!a", "b=1", "a="),
            ("a>3", "a=4", "a=x"),
            ("a<3", "a=-1", "a=3"),
            ("a=1,b", "a=1,b=1", "a=1"),
        ] {
            assert!(read(selector).matches(&labels(matching)), "{selector}: {matching}");
            assert!(!read(selector).matches(&labels(other)), "{selector}: {other}");
        }
        assert!(read("").is_everything() && read("").matches(&labels("a=1")));
    }

    #[test]
    fn weight_counts_requirements_and_values() {
        for (text, weight) in [("", 0), ("a", 1), ("a=1,!b", 3), ("a in (1,2,3),b>4", 5)] {
            assert_eq!(read(text).weight(), weight, "{text}");
        }
        let (short, long) = (read("a=1"), read("a=1,b in (x,y)"));
        assert!(short.bytes() < long.bytes());
    }

    #[test]
    fn first_equality_is_the_first_requirement_with_one_value() {
        assert_eq!(read("z=1,b in (1),a!=1").first_equality(), Some(("b", "1")));
        assert_eq!(read("a in (1,2),b").first_equality(), None);
    }

    #[test]
    fn syntax_error_names_problem_and_position() {
        for (text, message) in [
            ("a in x", "label selector `a in x`: `(` is missing, found `x` at character 6"),
            ("a in (x", "`)` is missing, found the end at character 8"),
            ("a=b c", "`,` is missing, found `c` at character 5"),
            ("a ~ b", "`~` is none of =, ==, !=, in, notin, < and > at character 3"),
            ("a=b,", "a label's name is missing at character 5"),
            (",a", "a label's name is missing at character 1"),
            ("a/=b", "`a/` is no label: its name is empty"),
            ("A/b", "`A/b` is no label: it must be [prefix/]name"),
            ("a=-x", "`-x` is no label's value"),
            ("a>x", "`x` is no whole number"),
            ("ä=b", "`ä` is no label"),
        ] {
            let error = text.parse::<Selector>().map(|s| s.to_string()).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn label_selector_gives_the_same_selector_as_its_text() {
        let from =
            |text: &str| Selector::try_from(&serde_json::from_str::<LabelSelector>(text).unwrap());
        assert_eq!(
            from(
                r#"{"matchLabels":{"app":"x"},"matchExpressions":[
                {"key":"tier","operator":"In","values":["b","a"]},
                {"key":"env","operator":"NotIn","values":["dev"]},
                {"key":"new","operator":"Exists"},{"key":"old","operator":"DoesNotExist","values":[]}]}"#
            )
            .unwrap()
            .to_string(),
            "app=x,env!=dev,new,!old,tier in (a,b)"
        );
        assert!(from(r#"{"matchLabels":null}"#).unwrap().is_everything());
        for (text, message) in [
            (
                r#"{"matchExpressions":[{"key":"a","operator":"In"}]}"#,
                "In needs at least one value",
            ),
            (
                r#"{"matchExpressions":[{"key":"a","operator":"Exists","values":["x"]}]}"#,
                "Exists takes no values",
            ),
            (
                r#"{"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]}"#,
                "`Gt` is none of",
            ),
            (r#"{"matchLabels":{"a b":"x"}}"#, "`a b` is no label"),
        ] {
            let error = from(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn selectors_overlap_unless_their_requirements_on_one_label_conflict() {
        for (one, other, overlaps) in [
            ("", "", true),
            ("a=1", "", true),
            ("a=1", "b=2", true),
            ("a=1", "a=2", false),
            ("a in (1,2)", "a in (2,3)", true),
            ("a in (1,2)", "a notin (1,2)", false),
            ("a", "!a", false),
            ("a!=1", "!a", true),
            ("a!=1", "a!=2", true),
            ("a>1", "a<3", true),
            ("a>2", "a<3", false),
            ("a>1", "!a", false),
        ] {
            assert_eq!(read(one).overlaps(&read(other)), overlaps, "{one} and {other}");
            assert_eq!(read(other).overlaps(&read(one)), overlaps, "{other} and {one}");
        }
    }
}
