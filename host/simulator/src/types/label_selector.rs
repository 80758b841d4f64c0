//! Label selectors as texts, read as the server reads them.

use serde_json::Value;

use crate::types::kinds::{LABEL_VALUE, is_label_value, label_key_problem};

/// One requirement on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
    /// As numbers.
    Above(String, i64),
    Below(String, i64),
}

impl Requirement {
    /// Whether the labels of an object meet the requirement.
    pub(crate) fn fits(&self, labels: &Value) -> bool {
        let label = |key: &str| labels.get(key).and_then(Value::as_str);
        let one_of = |key: &str, values: &[String]| {
            label(key).is_some_and(|value| values.iter().any(|one| one == value))
        };
        let number = |key: &str| label(key)?.parse::<i64>().ok();
        match self {
            Self::In(key, values) => one_of(key, values),
            Self::NotIn(key, values) => !one_of(key, values),
            Self::Exists(key) => label(key).is_some(),
            Self::Absent(key) => label(key).is_none(),
            Self::Above(key, bound) => number(key).is_some_and(|number| number > *bound),
            Self::Below(key, bound) => number(key).is_some_and(|number| number < *bound),
        }
    }
}

/// A token: a name, or a mark of one or two characters. The end is an empty one.
fn tokens(text: &str) -> Vec<&str> {
    let special = |one: char| "=!(),><".contains(one);
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("==") || rest.starts_with("!=") {
            2
        } else if special(first) {
            1
        } else {
            let end = |one: char| special(one) || one.is_ascii_whitespace();
            rest.find(end).unwrap_or(rest.len())
        };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    found.push("");
    found
}

fn is_name(token: &str) -> bool {
    !token.is_empty() && !token.starts_with(|one: char| "=!(),><".contains(one))
}

struct Parser<'t> {
    tokens: Vec<&'t str>,
    place: usize,
}

impl<'t> Parser<'t> {
    fn ahead(&self) -> &'t str {
        self.tokens.get(self.place).copied().unwrap_or_default()
    }

    fn next(&mut self) -> &'t str {
        let token = self.ahead();
        self.place += 1;
        token
    }

    fn demand(&mut self) -> Result<Requirement, String> {
        let absent = self.ahead() == "!";
        if absent {
            self.next();
        }
        let key = self.next();
        if !is_name(key) {
            return Err(format!("found '{key}', expected: identifier"));
        }
        if let Some(problem) = label_key_problem(key) {
            return Err(problem);
        }
        let key = key.to_owned();
        if absent {
            return Ok(Requirement::Absent(key));
        }
        if matches!(self.ahead(), "" | ",") {
            return Ok(Requirement::Exists(key));
        }
        let operator = self.next();
        let values = match operator {
            "in" | "notin" => self.values()?,
            "=" | "==" | "!=" | ">" | "<" => vec![self.value()?],
            other => {
                return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt"));
            }
        };
        let mut problems = Vec::new();
        let number = values.first().and_then(|value| value.parse::<i64>().ok());
        if matches!(operator, ">" | "<") && number.is_none() {
            problems.push(format!(
                "values[0]: Invalid value: {:?}: for 'Gt', 'Lt' operators, the value must be an integer",
                values[0]
            ));
        }
        for (index, value) in values.iter().enumerate() {
            let long = (value.len() > 63).then_some("must be no more than 63 bytes");
            let wrong = (!is_label_value(value)).then_some(LABEL_VALUE);
            let why: Vec<&str> = long.into_iter().chain(wrong).collect();
            if !why.is_empty() {
                let why = why.join("; ");
                problems.push(format!("values[{index}][{key}]: Invalid value: {value:?}: {why}"));
            }
        }
        match problems.as_slice() {
            [] => {}
            [one] => return Err(one.clone()),
            many => return Err(format!("[{}]", many.join(", "))),
        }
        Ok(match operator {
            "in" | "=" | "==" => Requirement::In(key, values),
            "notin" | "!=" => Requirement::NotIn(key, values),
            ">" => Requirement::Above(key, number.unwrap_or_default()),
            _ => Requirement::Below(key, number.unwrap_or_default()),
        })
    }

    /// One value, which may be none.
    fn value(&mut self) -> Result<String, String> {
        if matches!(self.ahead(), "" | ",") {
            return Ok(String::new());
        }
        match self.next() {
            name if is_name(name) => Ok(name.to_owned()),
            other => Err(format!("found '{other}', expected: identifier")),
        }
    }

    /// Values in parentheses, in order and each once. Where none stands between commas is an empty
    /// one.
    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.next();
        if open != "(" {
            return Err(format!("found '{open}' expected: '('"));
        }
        if self.ahead() == ")" {
            self.next();
            return Ok(vec![String::new()]);
        }
        if !is_name(self.ahead()) && self.ahead() != "," {
            return Err(format!("found '{}', expected: ',', ')' or identifier", self.ahead()));
        }
        let mut found = std::collections::BTreeSet::new();
        loop {
            match self.next() {
                name if is_name(name) => {
                    found.insert(name.to_owned());
                    match self.ahead() {
                        "," => {}
                        ")" => break,
                        other => return Err(format!("found '{other}', expected: ',' or ')'")),
                    }
                }
                "," => {
                    if found.is_empty() || matches!(self.ahead(), ")" | ",") {
                        found.insert(String::new());
                    }
                    if self.ahead() == ")" {
                        break;
                    }
                }
                other => return Err(format!("found '{other}', expected: ',', or identifier")),
            }
        }
        self.next();
        Ok(found.into_iter().collect())
    }
}

/// Parses a selector. The error is what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser { tokens: tokens(text), place: 0 };
    let mut demands = Vec::new();
    loop {
        match parser.ahead() {
            "" => return Ok(demands),
            token if is_name(token) || token == "!" => {}
            other => {
                return Err(format!(
                    "found '{other}', expected: !, identifier, or 'end of string'"
                ));
            }
        }
        let demand = parser.demand();
        demands.push(demand.map_err(|why| format!("unable to parse requirement: {why}"))?);
        match parser.next() {
            "" => return Ok(demands),
            "," if is_name(parser.ahead()) || parser.ahead() == "!" => {}
            "," => {
                return Err(format!("found '{}', expected: identifier after ','", parser.ahead()));
            }
            other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requirements_are_parsed_with_and_without_spaces() {
        let labels = json!({"app": "a", "size": "12"});
        let fits = |text: &str| parse(text).unwrap().iter().all(|one| one.fits(&labels));
        for yes in ["app in(a,b)", "app notin(b)", "size>11", "size<13,app", "! no", "app in (,a)"]
        {
            assert!(fits(yes), "{yes}");
        }
        for no in ["app in(b)", "size>12", "app>1", "no<1", "app in ()", "!app"] {
            assert!(!fits(no), "{no}");
        }
        assert_eq!(
            parse("a b").unwrap_err(),
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"
        );
        assert_eq!(parse("a,,b").unwrap_err(), "found ',', expected: identifier after ','");
    }
}
