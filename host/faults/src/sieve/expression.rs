//! When an action happens: triggers joined by `&` (both), `|` (one of them) and `;` (one after the
//! other), in the order of their precedence, with parentheses.

use std::collections::BTreeSet;

use crate::plan_error::PlanError;

/// The maximum length of an expression in bytes.
const BYTES_MAX: usize = 4096;
/// The maximum number of triggers and parentheses of an expression.
const TOKENS_MAX: usize = 64;

/// An expression over triggers, which it names by their place in the definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// A trigger.
    Trigger(usize),
    /// Both.
    And(Box<Expression>, Box<Expression>),
    /// One of them.
    Or(Box<Expression>, Box<Expression>),
    /// The second is waited for once the first holds.
    Then(Box<Expression>, Box<Expression>),
}

impl Expression {
    /// Reads an expression. `place` gives the place of a trigger by its name.
    ///
    /// # Errors
    /// If the text is too long, has another form, or names an unknown trigger.
    pub fn parse(
        text: &str,
        place: &mut dyn FnMut(&str) -> Option<usize>,
    ) -> Result<Self, PlanError> {
        let refuse = |problem: String| PlanError::value("expression", &problem);
        if text.len() > BYTES_MAX {
            return Err(refuse(format!("it has {} bytes; at most {BYTES_MAX}", text.len())));
        }
        let tokens = tokens(text);
        if tokens.len() > TOKENS_MAX {
            return Err(refuse(format!("it has {} parts; at most {TOKENS_MAX}", tokens.len())));
        }
        let mut parser = Parser { tokens: &tokens, place };
        let expression = parser.joined(0).map_err(refuse)?;
        match parser.tokens {
            [] => Ok(expression),
            [token, ..] => Err(refuse(format!("`{token}` is not expected here"))),
        }
    }

    /// Whether it holds, once these triggers are satisfied.
    pub fn holds(&self, satisfied: &BTreeSet<usize>) -> bool {
        match self {
            Self::Trigger(place) => satisfied.contains(place),
            Self::And(a, b) | Self::Then(a, b) => a.holds(satisfied) && b.holds(satisfied),
            Self::Or(a, b) => a.holds(satisfied) || b.holds(satisfied),
        }
    }

    /// Adds the triggers that it waits for.
    pub fn waits_for(&self, satisfied: &BTreeSet<usize>, places: &mut BTreeSet<usize>) {
        match self {
            Self::Trigger(place) if !satisfied.contains(place) => {
                places.insert(*place);
            }
            Self::Trigger(_) => {}
            Self::Then(a, b) if a.holds(satisfied) => b.waits_for(satisfied, places),
            Self::Then(a, _) => a.waits_for(satisfied, places),
            Self::And(a, b) | Self::Or(a, b) => {
                a.waits_for(satisfied, places);
                b.waits_for(satisfied, places);
            }
        }
    }
}

/// The operators, those that bind the least first.
const OPERATORS: [&str; 3] = [";", "|", "&"];

fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find([';', '|', '&', '(', ')']) {
        tokens.push(rest[..at].trim());
        tokens.push(&rest[at..=at]);
        rest = &rest[at + 1..];
    }
    tokens.push(rest.trim());
    tokens.retain(|token| !token.is_empty());
    tokens
}

struct Parser<'a, 'p> {
    tokens: &'a [&'a str],
    place: &'p mut dyn FnMut(&str) -> Option<usize>,
}

impl<'a> Parser<'a, '_> {
    fn take(&mut self) -> Option<&'a str> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    /// Expressions joined by the operator of a level, and by those that bind more.
    fn joined(&mut self, level: usize) -> Result<Expression, String> {
        let Some(operator) = OPERATORS.get(level) else { return self.single() };
        let mut left = self.joined(level + 1)?;
        while self.tokens.first() == Some(operator) {
            self.take();
            let right = Box::new(self.joined(level + 1)?);
            let both = Box::new(left);
            left = match *operator {
                ";" => Expression::Then(both, right),
                "|" => Expression::Or(both, right),
                _ => Expression::And(both, right),
            };
        }
        Ok(left)
    }

    fn single(&mut self) -> Result<Expression, String> {
        match self.take() {
            Some("(") => {
                let inner = self.joined(0)?;
                match self.take() {
                    Some(")") => Ok(inner),
                    _ => Err("a `)` is missing".to_owned()),
                }
            }
            Some(name) if !matches!(name, ")" | ";" | "|" | "&") => (self.place)(name)
                .map(Expression::Trigger)
                .ok_or_else(|| format!("there is no trigger `{name}`; define it")),
            _ => Err("the name of a trigger is missing".to_owned()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Expression, PlanError> {
        Expression::parse(text, &mut |name| name.strip_prefix('t')?.parse().ok())
    }

    fn waits(text: &str, satisfied: &[usize]) -> (bool, Vec<usize>) {
        let expression = parse(text).unwrap();
        let satisfied = satisfied.iter().copied().collect();
        let mut places = BTreeSet::new();
        expression.waits_for(&satisfied, &mut places);
        (expression.holds(&satisfied), places.into_iter().collect())
    }

    #[test]
    fn and_binds_more_than_or_and_or_more_than_then() {
        assert!(waits("t1&t2|t3", &[3]).0);
        assert_eq!(waits("t1&t2|t3", &[1]), (false, vec![2, 3]));
        assert_eq!(waits("t1&(t2|t3)", &[3]), (false, vec![1, 2]));
        assert_eq!(waits("t1;t2|t3", &[]), (false, vec![1]));
        assert_eq!(waits("t1;t2|t3", &[1]), (false, vec![2, 3]));
        assert_eq!(waits("t1 ; t2 ; t3", &[1, 2]), (false, vec![3]));
        assert!(waits("t1;t2;t3", &[1, 2, 3]).0);
    }

    #[test]
    fn text_of_another_form_is_refused() {
        for text in ["", "t1&", "&t1", "(t1", "t1)", "t1 t2&", "u", "t1||t2", "()"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"t1&".repeat(2000)).is_err());
        assert!(parse(&"(".repeat(TOKENS_MAX)).is_err());
        assert!(parse(&"(".repeat(4000)).unwrap_err().to_string().contains("parts"));
    }
}
