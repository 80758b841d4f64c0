//! Random documents made of those of a corpus, by a seed.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Changes of one document at most.
const CHANGES_MAX: usize = 5;

/// The longest document, in bytes.
const BYTES_MAX: usize = 1 << 16;

/// Texts that readers may stumble over.
const TOKENS: &[&str] = &[
    "",
    " ",
    "\n",
    "\t",
    "\r\n",
    "\0",
    "\u{7f}",
    "\u{202e}",
    "ſ",
    "é",
    "\u{feff}",
    "---\n",
    "# ",
    "a",
    "-",
    ".",
    "..",
    "/",
    "//",
    "../..",
    "%2e",
    "%2F",
    "?x",
    "#",
    "a.b/c",
    "A",
    "a-",
    "-a",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ",,",
    ":",
    "\"",
    "'",
    "\\",
    "=",
    "==",
    "!=",
    "!",
    "<",
    ">",
    "in",
    "notin",
    " in (a,b)",
    " notin (",
    "0",
    "-0",
    "+1",
    "007",
    "1.5",
    ".5",
    "1.",
    "1e3",
    "1e-400",
    "1e400",
    "1.5e-2147483648",
    "1e2147483647",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "340282366920938463463374607431768211455",
    "Ki",
    "Mi",
    "Gi",
    "Ti",
    "Pi",
    "Ei",
    "Zi",
    "k",
    "M",
    "G",
    "T",
    "P",
    "E",
    "m",
    "u",
    "n",
    "null",
    "true",
    "on",
    "no",
    "~",
    "&a",
    "*a",
    "!!binary",
    "innkeeper.dev",
    "innkeeper.dev/v1alpha1",
    "Module",
    "apps.k8s.io",
    "kube-system",
    "home",
    "Secret",
    "v1",
    "metadata",
    "namespace",
    "status",
    "ownerReferences",
    "uid",
    "merge",
    "innkeeper.dev/applied",
    "innkeeper.dev/chunks",
];

/// A stream of documents.
pub struct Mutator {
    random: Rng,
    corpus: Vec<Vec<u8>>,
}

impl Mutator {
    /// Documents made of these, which must not be none; the same for the same seed.
    pub fn new(seed: u64, corpus: Vec<Vec<u8>>) -> Self {
        Self { random: Rng::with_seed(seed), corpus }
    }

    /// The next document: one of the corpus with a few changes.
    pub fn document(&mut self) -> Vec<u8> {
        let mut document = self.pick();
        for _ in 0..self.random.usize(1..=CHANGES_MAX) {
            document = match serde_json::from_slice(&document) {
                Ok(value) if self.random.u8(..) < 220 => self.value(value).to_string().into_bytes(),
                _ => self.bytes(document),
            };
        }
        document.truncate(BYTES_MAX);
        document
    }

    fn pick(&mut self) -> Vec<u8> {
        self.random.choice(&self.corpus).cloned().unwrap_or_default()
    }

    fn token(&mut self) -> String {
        let token = self.random.choice(TOKENS).copied().unwrap_or_default();
        token.repeat([1, 1, 1, 1, 1, 2, 100][self.random.usize(0..7)])
    }

    /// Changes bytes, whatever they mean.
    fn bytes(&mut self, mut document: Vec<u8>) -> Vec<u8> {
        let at = self.random.usize(0..=document.len());
        let end = self.random.usize(at..=document.len().min(at + 32));
        match self.random.u8(0..7) {
            0 => {
                if let Some(byte) = document.get_mut(at) {
                    *byte ^= 1 << self.random.u8(0..8);
                }
            }
            1 => {
                document.drain(at..end);
            }
            2 => {
                let copy = document[at..end].to_vec();
                document.splice(end..end, copy);
            }
            3 => {
                let other = self.pick();
                let from = self.random.usize(0..=other.len());
                document.truncate(at);
                document.extend(&other[from..]);
            }
            4 => {
                document.splice(at..end, [self.random.u8(..)]);
            }
            _ => {
                let token = self.token();
                document.splice(at..if self.random.bool() { at } else { end }, token.into_bytes());
            }
        }
        document
    }

    /// Changes one value of a JSON document.
    fn value(&mut self, mut root: Value) -> Value {
        let count = count(&root);
        let at = self.random.usize(0..count);
        let Some(value) = nth(&mut root, &mut { at }) else { return root };
        match value {
            Value::Object(members) if self.random.bool() => self.members(members),
            Value::Array(items) if self.random.bool() && !items.is_empty() => {
                let at = self.random.usize(0..items.len());
                match self.random.u8(0..3) {
                    0 => {
                        items.remove(at);
                    }
                    1 => items.push(items[at].clone()),
                    _ => {
                        let other = self.random.usize(0..items.len());
                        items.swap(at, other);
                    }
                }
            }
            Value::String(text) if self.random.bool() => {
                let changed = self.bytes(std::mem::take(text).into_bytes());
                *text = String::from_utf8_lossy(&changed).into_owned();
            }
            value => *value = self.other(),
        }
        root
    }

    fn members(&mut self, members: &mut Map<String, Value>) {
        let names: Vec<String> = members.keys().cloned().collect();
        let name = self.random.choice(&names).cloned().unwrap_or_default();
        match self.random.u8(0..4) {
            0 => {
                members.remove(&name);
            }
            1 => {
                let value = members.remove(&name).unwrap_or_default();
                members.insert(self.token(), value);
            }
            2 => {
                members.insert(self.token(), self.other());
            }
            _ => {
                members.insert(name, self.other());
            }
        }
    }

    /// Another value: of the corpus, or one that readers may stumble over.
    fn other(&mut self) -> Value {
        if self.random.bool()
            && let Ok(mut document) = serde_json::from_slice::<Value>(&self.pick())
        {
            let mut at = self.random.usize(0..count(&document));
            if let Some(value) = nth(&mut document, &mut at) {
                return value.take();
            }
        }
        match self.random.u8(0..10) {
            0 => Value::Null,
            1 => json!(self.random.bool()),
            2 => json!(self.random.i64(..)),
            3 => json!(self.random.u64(..)),
            4 => json!(f64::from_bits(self.random.u64(..))),
            5 => json!([0, 1, -1, 253, 254, 1 << 20][self.random.usize(0..6)]),
            6 => json!([self.token(), {self.token(): self.token()}]),
            7 => json!({self.token(): [self.token()]}),
            _ => json!(self.token()),
        }
    }
}

/// How many values there are, the document itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Object(members) => members.values().map(count).sum(),
        Value::Array(items) => items.iter().map(count).sum(),
        _ => 0,
    }
}

/// The value with this number, in the order of [`count`].
fn nth<'a>(value: &'a mut Value, number: &mut usize) -> Option<&'a mut Value> {
    if *number == 0 {
        return Some(value);
    }
    *number -= 1;
    match value {
        Value::Object(members) => members.values_mut().find_map(|member| nth(member, number)),
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, number)),
        _ => None,
    }
}
