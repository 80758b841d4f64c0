//! The identity of list items: keys, values or positions.

use serde_json::Value;

use crate::apply::fieldset::{Element, Scalar};
use crate::apply::node::List;
use crate::types::schema::ListType;

/// The step to `item`, or why it has none.
pub(crate) fn element(list: List<'_>, item: &Value) -> Result<Element, String> {
    match list.kind() {
        ListType::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        ListType::Set => match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => {
                Err("not supported: associative list with lists as elements".to_owned())
            }
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null"
                    .to_owned())
            }
            scalar => Ok(Element::Value(Scalar(scalar.clone()))),
        },
        ListType::Map(names) => {
            let map = match item {
                Value::Object(map) => map,
                Value::Null => {
                    return Err("associative list with keys may not have a null element".to_owned());
                }
                _ => {
                    return Err(
                        "associative list with keys may not have non-map elements".to_owned()
                    );
                }
            };
            let mut keys = Vec::new();
            for name in names {
                if let Some(value) = map.get(name).or_else(|| list.key_default(name)) {
                    keys.push((name.clone(), Scalar(value.clone())));
                }
            }
            if keys.is_empty() {
                let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
                return Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                    quoted.join(" ")
                ));
            }
            keys.sort();
            Ok(Element::Key(keys))
        }
    }
}
