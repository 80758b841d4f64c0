//! Paths of fields of an object, as `spec.template`: names between dots.

use serde_json::{Map, Value};

/// Between the paths in an annotation; no path has it.
const SEPARATOR: &str = ",";

/// The text of paths in an annotation.
#[must_use]
pub fn joined(field_paths: &[String]) -> String {
    field_paths.join(SEPARATOR)
}

/// Reads the text of paths in an annotation.
#[must_use]
pub fn separated(field_paths: &str) -> Vec<String> {
    field_paths.split(SEPARATOR).map(str::to_owned).collect()
}

/// Returns a field of an object.
#[must_use]
pub fn field<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |place, name| place.get(name))
}

/// Sets a field, and makes the objects that it is in.
pub fn set(value: &mut Value, path: &str, field: Value) {
    let mut place = value;
    for name in path.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[name];
    }
    *place = field;
}

/// Removes a field, and returns it if the object had it.
pub fn remove(value: &mut Value, path: &str) -> Option<Value> {
    let (parents, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut names = parents.split('.').filter(|name| !name.is_empty());
    let parent = names.try_fold(value, |place, name| place.get_mut(name))?;
    parent.as_object_mut()?.remove(name)
}
