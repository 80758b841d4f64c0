//! The JSON patch between two versions of an object.
//!
//! A policy returns the whole changed object, and the API server takes a patch. The patch names
//! the fields that differ and no others, so that the changes of two policies do not overwrite each
//! other, and it adds and removes single items of lists, as Kubernetes' documentation asks of
//! webhooks.

mod lists;

use json_patch::jsonptr::{PointerBuf, Token};
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::{Map, Value};

use self::lists::{Step, align};

/// The most operations of a patch.
pub const OPERATIONS_MAX: usize = 1_000;

/// The largest text of a patch, in bytes.
pub const BYTES_MAX: usize = 256 << 10;

/// The depth, in members and items, from which a value that differs is replaced as a whole: it
/// bounds the recursion.
const DEPTH_MAX: usize = 64;

/// A JSON patch (RFC 6902) of `add`, `remove` and `replace`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonPatch {
    operations: Vec<PatchOperation>,
    text: String,
}

impl JsonPatch {
    /// The operations, in the order in which they are applied.
    pub fn operations(&self) -> &[PatchOperation] {
        &self.operations
    }

    /// Its JSON text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Applies the patch to an object, as the API server does.
    ///
    /// # Errors
    /// If an operation does not fit the object, which then stays as it was.
    pub fn apply(&self, object: &mut Value) -> Result<(), PatchError> {
        json_patch::patch(object, &self.operations).map_err(|_| PatchError::Differs)
    }

    /// Whether the patch changes nothing.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

/// Why there is no patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// More changes than one review may make.
    #[error("the policy changes more than {OPERATIONS_MAX} fields; change fewer")]
    TooManyOperations,
    /// More text than one review may add.
    #[error("the policy's changes take {0} bytes; change fewer fields, in {BYTES_MAX} bytes")]
    TooLarge(usize),
    /// The patch does not make the object that the policy returned: a bug of the host.
    #[error("no patch makes the object that the policy returned; report a bug of Innkeeper")]
    Differs,
}

/// Returns the patch that makes `after` of `before`.
///
/// The function applies the patch before it returns it, so a patch that it returns is right.
///
/// # Errors
/// If the patch is larger than the limits, or does not make `after`.
pub fn patch(before: &Value, after: &Value) -> Result<JsonPatch, PatchError> {
    let mut operations = Operations { all: Vec::new(), path: Vec::new() };
    operations.walk(before, after)?;
    let operations = operations.all;
    let mut made = before.clone();
    json_patch::patch(&mut made, &operations).map_err(|_| PatchError::Differs)?;
    if made != *after {
        return Err(PatchError::Differs);
    }
    let text = serde_json::to_string(&operations).map_err(|_| PatchError::Differs)?;
    if text.len() > BYTES_MAX {
        return Err(PatchError::TooLarge(text.len()));
    }
    Ok(JsonPatch { operations, text })
}

struct Operations<'a> {
    all: Vec<PatchOperation>,
    path: Vec<Token<'a>>,
}

impl<'a> Operations<'a> {
    fn walk(&mut self, before: &'a Value, after: &'a Value) -> Result<(), PatchError> {
        match (before, after) {
            _ if before == after => Ok(()),
            (Value::Object(before), Value::Object(after)) if self.path.len() < DEPTH_MAX => {
                self.walk_members(before, after)
            }
            (Value::Array(before), Value::Array(after)) if self.path.len() < DEPTH_MAX => {
                self.walk_items(before, after)
            }
            _ => {
                let (path, value) = (self.pointer(), after.clone());
                self.push(PatchOperation::Replace(ReplaceOperation { path, value }))
            }
        }
    }

    fn walk_members(
        &mut self,
        before: &'a Map<String, Value>,
        after: &'a Map<String, Value>,
    ) -> Result<(), PatchError> {
        for (name, old) in before {
            match after.get(name) {
                Some(new) => self.at(Token::new(name), |it| it.walk(old, new))?,
                None => self.at(Token::new(name), Self::remove)?,
            }
        }
        for (name, new) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
            self.at(Token::new(name), |it| it.add(new))?;
        }
        Ok(())
    }

    fn walk_items(&mut self, before: &'a [Value], after: &'a [Value]) -> Result<(), PatchError> {
        // The position of the next item and the length of the list after the operations so far.
        let (mut at, mut length) = (0, before.len());
        for step in align(before, after) {
            match step {
                Step::Keep(old, new) => {
                    self.at(Token::from(at), |it| it.walk(old, new))?;
                    at += 1;
                }
                Step::Remove => {
                    self.at(Token::from(at), Self::remove)?;
                    length -= 1;
                }
                Step::Add(new) => {
                    let end = at == length;
                    let token = if end { Token::new("-") } else { Token::from(at) };
                    self.at(token, |it| it.add(new))?;
                    at += 1;
                    length += 1;
                }
            }
        }
        Ok(())
    }

    fn at(
        &mut self,
        token: Token<'a>,
        work: impl FnOnce(&mut Self) -> Result<(), PatchError>,
    ) -> Result<(), PatchError> {
        self.path.push(token);
        let result = work(self);
        self.path.pop();
        result
    }

    fn add(&mut self, value: &Value) -> Result<(), PatchError> {
        let (path, value) = (self.pointer(), value.clone());
        self.push(PatchOperation::Add(AddOperation { path, value }))
    }

    fn remove(&mut self) -> Result<(), PatchError> {
        let path = self.pointer();
        self.push(PatchOperation::Remove(RemoveOperation { path }))
    }

    fn pointer(&self) -> PointerBuf {
        PointerBuf::from_tokens(self.path.iter().cloned())
    }

    fn push(&mut self, operation: PatchOperation) -> Result<(), PatchError> {
        if self.all.len() == OPERATIONS_MAX {
            return Err(PatchError::TooManyOperations);
        }
        self.all.push(operation);
        Ok(())
    }
}
