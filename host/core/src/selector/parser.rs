//! The text form of a selector, as `kubectl get --selector` takes it.

use std::str::FromStr;

use super::error::SelectorError;
use super::requirement::{Operator, Requirement};
use super::{Selector, labels};

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

/// Reads the text form, one requirement at a time.
struct Parser<'a> {
    text: &'a str,
    /// The position in the text, in bytes.
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

    /// Skips spaces, then takes a mark if it comes next.
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

    /// Takes a key, a value or an operator in letters: all up to a space or a mark.
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
        labels::check_key(key).map_err(|problem| self.error(start, problem))?;
        Ok(key.into())
    }

    fn value(&mut self) -> Result<Box<str>, SelectorError> {
        let (start, value) = self.word();
        labels::check_value(value).map_err(|problem| self.error(start, problem))?;
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
