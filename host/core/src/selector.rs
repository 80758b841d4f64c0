//! Label selectors: which objects are meant, by their labels.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::Labels;

/// A label selector: all of its requirements hold. Without any it selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector {
    /// Sorted, without repeats.
    requirements: Vec<Requirement>,
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    /// The label's name.
    pub key: Box<str>,
    /// What must hold of it.
    pub operator: Operator,
}

/// What must hold of a label. Values are sorted, without repeats, and at least one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// It has one of these values.
    In(Vec<Box<str>>),
    /// It is missing or has none of these values.
    NotIn(Vec<Box<str>>),
    /// It is there.
    Exists,
    /// It is missing.
    DoesNotExist,
    /// It is an integer greater than this.
    GreaterThan(i64),
    /// It is an integer less than this.
    LessThan(i64),
}

/// Why a text or a document is not a label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text has a part that cannot be read.
    #[error("label selector `{selector}`: {problem} at character {position}")]
    Syntax {
        /// The whole text.
        selector: String,
        /// What is wrong.
        problem: String,
        /// Where, counted from 1.
        position: usize,
    },
    /// A label's name or value that Kubernetes does not allow.
    #[error("label selector: {0}")]
    Label(String),
    /// An expression whose operator and values do not go together.
    #[error("label selector: matchExpressions for `{key}`: {problem}")]
    Expression {
        /// The label.
        key: String,
        /// What is wrong.
        problem: String,
    },
}

/// The selector's form in objects: `matchLabels` and `matchExpressions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must have these values.
    #[serde(default)]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Further requirements.
    #[serde(default)]
    pub match_expressions: Option<Vec<Expression>>,
}

/// One of `matchExpressions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Expression {
    /// The label's name.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values, for `In` and `NotIn`.
    #[serde(default)]
    pub values: Option<Vec<String>>,
}

impl Selector {
    /// A selector of requirements, all of which must hold.
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

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.operator.holds(labels.get(&requirement.key)))
    }

    /// How many comparisons a match takes at most: one for each requirement and each value.
    pub fn weight(&self) -> usize {
        self.requirements.iter().map(|one| 1 + one.operator.values().len()).sum()
    }

    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        let text = |text: &str| text.len() + ALLOCATION_BYTES;
        let of_requirement = |one: &Requirement| {
            let values: usize = one.operator.values().iter().map(|value| text(value)).sum();
            size_of::<Requirement>() + text(&one.key) + values
        };
        size_of::<Self>() + self.requirements.iter().map(of_requirement).sum::<usize>()
    }

    /// Whether there may be an object that both select.
    ///
    /// Labels are independent of each other, so it is enough to try, for each label that either
    /// names, the values that the requirements name, those beside their bounds, one that nobody
    /// names, and none.
    pub fn overlaps(&self, other: &Self) -> bool {
        let both = || self.requirements.iter().chain(&other.requirements);
        both().all(|Requirement { key, .. }| {
            let of_key: Vec<&Operator> =
                both().filter(|one| one.key == *key).map(|one| &one.operator).collect();
            let named = of_key.iter().flat_map(|operator| operator.telling_values());
            let mut values: Vec<Option<String>> = named.map(Some).collect();
            // No label's value may begin like this, so nobody names it.
            values.extend([Some("-".to_owned()), None]);
            values.iter().any(|value| of_key.iter().all(|one| one.holds(value.as_deref())))
        })
    }

    /// A label and the one value that it must have, the first in canonical order: what an
    /// index may look selectors up by. `None` if no requirement is of that form.
    pub fn first_equality(&self) -> Option<(&str, &str)> {
        self.requirements.iter().find_map(|requirement| match &requirement.operator {
            Operator::In(values) if let [value] = values.as_slice() => {
                Some((&*requirement.key, &**value))
            }
            _ => None,
        })
    }
}

/// What a text takes beside its bytes: its pointer and length, and the allocator's own.
const ALLOCATION_BYTES: usize = 32;

impl Operator {
    fn values(&self) -> &[Box<str>] {
        match self {
            Self::In(values) | Self::NotIn(values) => values,
            Self::Exists | Self::DoesNotExist | Self::GreaterThan(_) | Self::LessThan(_) => &[],
        }
    }

    /// Values that tell this requirement from others.
    fn telling_values(&self) -> Vec<String> {
        match self {
            Self::In(values) | Self::NotIn(values) => {
                values.iter().map(ToString::to_string).collect()
            }
            Self::Exists | Self::DoesNotExist => Vec::new(),
            Self::GreaterThan(bound) => bound.checked_add(1).iter().map(i64::to_string).collect(),
            Self::LessThan(bound) => bound.checked_sub(1).iter().map(i64::to_string).collect(),
        }
    }

    fn holds(&self, value: Option<&str>) -> bool {
        let is_one_of = |values: &[Box<str>]| {
            value.is_some_and(|value| values.iter().any(|other| **other == *value))
        };
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(values) => is_one_of(values),
            Self::NotIn(values) => !is_one_of(values),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Self::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl fmt::Display for Selector {
    /// The canonical text: what [`Selector::from_str`] reads back as the same selector, and
    /// what the API server takes as `labelSelector`.
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

impl FromStr for Selector {
    type Err = SelectorError;

    /// Reads Kubernetes' text form: `app=web,tier in (a,b),!old,size>3`.
    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut parser = Parser { text, position: 0 };
        let mut requirements = Vec::new();
        parser.skip_spaces();
        while !parser.rest().is_empty() {
            if !requirements.is_empty() {
                parser.expect(',')?;
            }
            requirements.push(parser.requirement()?);
            parser.skip_spaces();
        }
        Ok(Self::new(requirements))
    }
}

impl TryFrom<&LabelSelector> for Selector {
    type Error = SelectorError;

    fn try_from(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            check_key(key).and_then(|()| check_value(value)).map_err(SelectorError::Label)?;
            let operator = Operator::In(vec![value.as_str().into()]);
            requirements.push(Requirement { key: key.as_str().into(), operator });
        }
        for expression in selector.match_expressions.iter().flatten() {
            requirements.push(expression.try_into()?);
        }
        Ok(Self::new(requirements))
    }
}

impl TryFrom<&Expression> for Requirement {
    type Error = SelectorError;

    fn try_from(expression: &Expression) -> Result<Self, SelectorError> {
        let key = expression.key.as_str();
        let bad = |problem: String| SelectorError::Expression { key: key.to_owned(), problem };
        check_key(key).map_err(SelectorError::Label)?;
        let mut values: Vec<Box<str>> = Vec::new();
        for value in expression.values.iter().flatten() {
            check_value(value).map_err(SelectorError::Label)?;
            values.push(value.as_str().into());
        }
        values.sort();
        values.dedup();
        let operator = match (expression.operator.as_str(), values.is_empty()) {
            ("In", false) => Operator::In(values),
            ("NotIn", false) => Operator::NotIn(values),
            ("Exists", true) => Operator::Exists,
            ("DoesNotExist", true) => Operator::DoesNotExist,
            ("In" | "NotIn", true) => {
                return Err(bad(format!("{} needs at least one value", expression.operator)));
            }
            ("Exists" | "DoesNotExist", false) => {
                return Err(bad(format!("{} takes no values", expression.operator)));
            }
            (operator, _) => {
                return Err(bad(format!(
                    "the operator `{operator}` is none of In, NotIn, Exists and DoesNotExist"
                )));
            }
        };
        Ok(Self { key: key.into(), operator })
    }
}

/// Reads the text form, one requirement at a time.
struct Parser<'a> {
    text: &'a str,
    /// In bytes.
    position: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn error(&self, at: usize, problem: impl Into<String>) -> SelectorError {
        SelectorError::Syntax {
            selector: self.text.to_owned(),
            problem: problem.into(),
            position: self.text[..at].chars().count() + 1,
        }
    }

    fn skip_spaces(&mut self) {
        self.position = self.text.len() - self.rest().trim_ascii_start().len();
    }

    /// Takes a mark if it comes next.
    fn take(&mut self, mark: &str) -> bool {
        self.skip_spaces();
        let found = self.rest().starts_with(mark);
        if found {
            self.position += mark.len();
        }
        found
    }

    fn expect(&mut self, mark: char) -> Result<(), SelectorError> {
        if self.take(mark.encode_utf8(&mut [0; 4])) {
            return Ok(());
        }
        let found = match self.rest().chars().next() {
            None => "the end".to_owned(),
            Some(other) => format!("`{other}`"),
        };
        Err(self.error(self.position, format!("`{mark}` is missing, found {found}")))
    }

    /// Takes a name or a value: all up to a space or an operator.
    fn word(&mut self) -> (usize, &'a str) {
        self.skip_spaces();
        let start = self.position;
        let end = self
            .rest()
            .find(|c: char| c.is_ascii_whitespace() || "=!(),<>".contains(c))
            .unwrap_or(self.rest().len());
        self.position += end;
        (start, &self.text[start..start + end])
    }

    fn key(&mut self) -> Result<Box<str>, SelectorError> {
        let (start, key) = self.word();
        check_key(key).map_err(|problem| self.error(start, problem))?;
        Ok(key.into())
    }

    fn value(&mut self) -> Result<Box<str>, SelectorError> {
        let (start, value) = self.word();
        check_value(value).map_err(|problem| self.error(start, problem))?;
        Ok(value.into())
    }

    fn number(&mut self) -> Result<i64, SelectorError> {
        let (start, value) = self.word();
        value.parse().map_err(|_| {
            self.error(start, format!("`{value}` is no whole number, which < and > need"))
        })
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        if self.take("!") {
            return Ok(Requirement { key: self.key()?, operator: Operator::DoesNotExist });
        }
        let key = self.key()?;
        self.skip_spaces();
        let operator = if self.take("==") || self.take("=") {
            Operator::In(vec![self.value()?])
        } else if self.take("!=") {
            Operator::NotIn(vec![self.value()?])
        } else if self.take(">") {
            Operator::GreaterThan(self.number()?)
        } else if self.take("<") {
            Operator::LessThan(self.number()?)
        } else if self.rest().is_empty() || self.rest().starts_with(',') {
            Operator::Exists
        } else {
            match self.word() {
                (_, "in") => Operator::In(self.values()?),
                (_, "notin") => Operator::NotIn(self.values()?),
                (start, other) => {
                    let problem = format!("`{other}` is none of =, ==, !=, in, notin, < and >");
                    return Err(self.error(start, problem));
                }
            }
        };
        Ok(Requirement { key, operator })
    }

    fn values(&mut self) -> Result<Vec<Box<str>>, SelectorError> {
        self.expect('(')?;
        let mut values = vec![self.value()?];
        while self.take(",") {
            values.push(self.value()?);
        }
        self.expect(')')?;
        values.sort();
        values.dedup();
        Ok(values)
    }
}

/// Kubernetes' limits on the name and the value of a label, and on the prefix of a name.
const LABEL_BYTES_MAX: usize = 63;
const PREFIX_BYTES_MAX: usize = 253;

fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if name.is_empty() {
        return Err(if key.is_empty() {
            "a label's name is missing".to_owned()
        } else {
            format!("`{key}` is no label: its name is empty")
        });
    }
    let prefix_is_dns = prefix.is_none_or(|prefix| {
        prefix.len() <= PREFIX_BYTES_MAX
            && prefix.split('.').all(|part| {
                is_label(part)
                    && part
                        .bytes()
                        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            })
    });
    if name.len() > LABEL_BYTES_MAX || !is_label(name) || !prefix_is_dns {
        return Err(format!(
            "`{key}` is no label: it must be [prefix/]name, the prefix a DNS name, the name at most \
             {LABEL_BYTES_MAX} letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit"
        ));
    }
    Ok(())
}

fn check_value(value: &str) -> Result<(), String> {
    if value.is_empty() || (value.len() <= LABEL_BYTES_MAX && is_label(value)) {
        return Ok(());
    }
    Err(format!(
        "`{value}` is no label's value: at most {LABEL_BYTES_MAX} letters, digits, `-`, `_` and `.`, \
         beginning and ending with a letter or digit"
    ))
}

fn is_label(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter().all(|byte| byte.is_some_and(|byte| byte.is_ascii_alphanumeric()))
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
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
    fn every_form_is_read_and_written_canonically() {
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
    fn requirements_hold_or_not() {
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
    fn the_weight_counts_requirements_and_values() {
        for (text, weight) in [("", 0), ("a", 1), ("a=1,!b", 3), ("a in (1,2,3),b>4", 5)] {
            assert_eq!(read(text).weight(), weight, "{text}");
        }
        let (short, long) = (read("a=1"), read("a=1,b in (x,y)"));
        assert!(short.bytes() < long.bytes());
    }

    #[test]
    fn the_index_key_is_the_first_equality() {
        assert_eq!(read("z=1,b in (1),a!=1").first_equality(), Some(("b", "1")));
        assert_eq!(read("a in (1,2),b").first_equality(), None);
    }

    #[test]
    fn errors_say_what_and_where() {
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
    fn the_form_in_objects_gives_the_same_selector() {
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
    fn selectors_overlap_unless_one_label_keeps_them_apart() {
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
