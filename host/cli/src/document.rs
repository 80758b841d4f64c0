//! Documents for other programs: JSON, and YAML for `kubectl apply -f -`.
//!
//! A serialiser writes every value, a comment is one line whatever it quotes, and [`Yaml::finish`]
//! reads the text again. So no text of a guest changes the number or the values of the documents.

use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};

use anyhow::{Context as _, bail};
use innkeeper_core::foreign;
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value};

/// Characters that are not visible and that a YAML document may have in its scalars: they neither
/// end a line nor act as a terminal command. Joiners and variation selectors are not among them: as
/// codes the values stay the same, and names that look alike become distinguishable.
const HARMLESS: [char; 3] = ['\n', '\t', '\u{a0}'];

/// The number of digits in a mark: enough for a text of any size.
const NUMBER_DIGITS_MAX: usize = 20;

/// A finished document.
#[derive(Debug)]
pub(crate) struct Document(String);

impl Document {
    /// JSON, indented.
    ///
    /// # Errors
    /// If the value cannot be serialized.
    pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<Self> {
        let text = serde_json::to_string_pretty(value)?;
        Ok(Self(visible_json(&text) + "\n"))
    }

    /// A text that is part of this program.
    pub(crate) fn built_in(text: String) -> Self {
        Self(text)
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// Builds YAML documents.
#[derive(Default)]
pub(crate) struct Yaml {
    text: String,
    /// The values that a reader must find in the documents.
    values: Vec<Value>,
}

impl Yaml {
    /// Adds a comment of one line.
    pub(crate) fn comment(&mut self, line: impl Display) {
        self.indented_comment("", line);
    }

    /// Begins the next document.
    pub(crate) fn separator(&mut self) {
        self.text.push_str("---\n");
    }

    /// Adds the value of a document.
    ///
    /// # Errors
    /// If the value cannot be serialized.
    pub(crate) fn document(&mut self, value: &Value) -> anyhow::Result<()> {
        self.text.push_str(&block(value)?);
        self.values.push(value.clone());
        Ok(())
    }

    /// Adds the value of a document: an object and a list whose items have comments.
    ///
    /// # Errors
    /// If a value cannot be serialized.
    pub(crate) fn document_with_list(
        &mut self,
        object: &Map<String, Value>,
        list: &str,
        items: &[(String, Map<String, Value>)],
    ) -> anyhow::Result<()> {
        let mut value = object.clone();
        self.text.push_str(&block(&Value::Object(object.clone()))?);
        self.line("", list, None)?;
        for (comment, item) in items {
            for line in comment.lines() {
                self.indented_comment("  ", line);
            }
            for (index, (name, member)) in item.iter().enumerate() {
                self.line(if index == 0 { "  - " } else { "    " }, name, Some(member))?;
            }
        }
        let items = items.iter().map(|(_, item)| Value::Object(item.clone())).collect();
        value.insert(list.to_owned(), items);
        self.values.push(Value::Object(value));
        Ok(())
    }

    /// Reads the documents again and returns them.
    ///
    /// # Errors
    /// If a reader of YAML would find other documents than those that were added.
    pub(crate) fn finish(self) -> anyhow::Result<Document> {
        const FAILED: &str = "cannot print the documents as YAML";
        let mut read = Vec::new();
        for document in serde_yaml_ng::Deserializer::from_str(&self.text) {
            read.push(Value::deserialize(document).context(FAILED)?);
        }
        // Comments without a value are a document that is null.
        read.retain(|value| !value.is_null());
        if read != self.values {
            bail!("{FAILED}: a reader would find other values in them; use another output format");
        }
        Ok(Document(self.text))
    }

    fn indented_comment(&mut self, indent: &str, line: impl Display) {
        let line = foreign::one_line(line, foreign::LINE_BYTES_MAX);
        // Writing into a String cannot fail.
        let _ = writeln!(self.text, "{indent}# {line}");
    }

    /// Adds a member whose value is JSON in one line, with all scalars quoted.
    fn line(&mut self, indent: &str, name: &str, value: Option<&Value>) -> anyhow::Result<()> {
        let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
        let name = if is_plain { name.to_owned() } else { flow(&name.into())? };
        match value {
            Some(value) => writeln!(self.text, "{indent}{name}: {}", flow(value)?)?,
            None => writeln!(self.text, "{indent}{name}:")?,
        }
        Ok(())
    }
}

/// A value as YAML in block style. Quotes texts that YAML readers interpret differently: the
/// serialiser writes a mark for each, which the quoted text then replaces.
fn block(value: &Value) -> anyhow::Result<String> {
    let mark = unused_mark(&serde_json::to_string(value)?);
    let mut quoted = Vec::new();
    let marked = with_marks(value, &mark, &mut quoted);
    let marked = serde_yaml_ng::to_string(&marked)?;
    let mut text = String::with_capacity(marked.len());
    let mut parts = marked.split(mark.as_str());
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (index, rest) = part.split_once('.').context("a mark without its end")?;
        let index: usize = index.parse().context("a mark without its number")?;
        let original = quoted.get(index).context("a mark of no text")?;
        text.push_str(&flow(&original.as_str().into())?);
        text.push_str(rest);
    }
    Ok(text)
}

/// A short text that does not occur in this one: `quoted`, a number and a letter.
///
/// All is found in one pass, whatever the text holds: a guest may have written it.
fn unused_mark(json: &str) -> String {
    const WORD: &str = "quoted";
    let numbers = json.match_indices(WORD).filter_map(|(at, word)| {
        let rest = &json[at + word.len()..];
        let digits = rest.bytes().take(NUMBER_DIGITS_MAX).take_while(u8::is_ascii_digit).count();
        rest[..digits].parse::<usize>().ok()
    });
    let used: BTreeSet<usize> = numbers.collect();
    // There are fewer numbers in the text than numbers.
    let unused = (0..=used.len()).find(|number| !used.contains(number)).unwrap_or_default();
    format!("{WORD}{unused}n")
}

/// The value with `MARK INDEX .` for each text that has to be quoted.
fn with_marks(value: &Value, mark: &str, quoted: &mut Vec<String>) -> Value {
    match value {
        Value::String(text) => marked(text, mark, quoted).into(),
        Value::Array(items) => items.iter().map(|one| with_marks(one, mark, quoted)).collect(),
        Value::Object(members) => {
            let mut object = Map::new();
            for (name, member) in members {
                let name = marked(name, mark, quoted);
                object.insert(name, with_marks(member, mark, quoted));
            }
            Value::Object(object)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// A value as JSON in one line, with a blank after each comma.
fn flow(value: &Value) -> anyhow::Result<String> {
    Ok(match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect::<anyhow::Result<_>>()?;
            format!("[{}]", items.join(", "))
        }
        value => escaped(&serde_json::to_string(value)?, yaml_code),
    })
}

fn marked(text: &str, mark: &str, quoted: &mut Vec<String>) -> String {
    if is_clear(text) {
        return text.to_owned();
    }
    quoted.push(text.to_owned());
    format!("{mark}{}.", quoted.len() - 1)
}

/// Whether every reader of YAML finds the text in what the serialiser writes for it.
///
/// The serialiser quotes what YAML 1.2 reads as another scalar than a text. YAML 1.1, which kubectl
/// reads, has further booleans, the merge key, and numbers with underscores and capital prefixes.
fn is_clear(text: &str) -> bool {
    if !text.chars().all(|c| foreign::is_visible(c) || HARMLESS.contains(&c)) {
        return false;
    }
    let word = text.to_ascii_lowercase();
    if matches!(&*word, "y" | "n" | "yes" | "no" | "on" | "off" | "<<" | "=") {
        return false;
    }
    let digits = text.trim_start_matches(['+', '-']);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && text.bytes().all(|byte| byte.is_ascii_hexdigit() || b"+-_.oOxX".contains(&byte));
    let is_of_yaml_1_1 =
        text.contains('_') || ["0X", "0O", "0B"].iter().any(|prefix| digits.starts_with(prefix));
    !(is_number && is_of_yaml_1_1)
}

/// JSON whose texts have the codes of characters that are not visible.
fn escaped(json: &str, code: impl Fn(char) -> String) -> String {
    let mut text = String::with_capacity(json.len());
    let mut rest = json;
    loop {
        let (printable, behind) = foreign::split_printable(rest);
        text.push_str(printable);
        let mut characters = behind.chars();
        let Some(c) = characters.next() else { return text };
        // Newlines of a text are codes already; these are those between members.
        if c == '\n' || foreign::is_visible(c) {
            text.push(c);
        } else {
            text.push_str(&code(c));
        }
        rest = characters.as_str();
    }
}

/// JSON on one line or more, with the codes of characters that are not visible.
pub(crate) fn visible_json(json: &str) -> String {
    escaped(json, json_code)
}

fn json_code(c: char) -> String {
    let mut text = String::new();
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Writing into a String cannot fail.
        let _ = write!(text, "\\u{unit:04x}");
    }
    text
}

/// YAML has no pairs of surrogates.
fn yaml_code(c: char) -> String {
    let code = u32::from(c);
    if code > 0xffff { format!("\\U{code:08x}") } else { format!("\\u{code:04x}") }
}

#[cfg(test)]
pub(crate) mod tests;
