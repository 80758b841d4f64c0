//! What a definition tells kubectl: short names, categories and columns.

use serde_json::Value;

use super::findings::Findings;
use super::versions;

/// Adds what users of kubectl lose: the API server replaces each of these lists as a whole.
pub(super) fn find_losses(before: &Value, after: &Value, found: &mut Findings) {
    for (list, what) in [("shortNames", "the short name"), ("categories", "the category")] {
        let pointer = format!("/spec/names/{list}");
        // A definition without the list leaves the installed one as it is.
        let Some(now) = after.pointer(&pointer).and_then(Value::as_array) else { continue };
        let was = before.pointer(&pointer).and_then(Value::as_array);
        for name in was.into_iter().flatten().filter(|name| !now.contains(name)) {
            found.add(format!("{what} {}", name.as_str().unwrap_or_default()));
        }
    }
    for old in versions::all(before) {
        let version = versions::name_of(old);
        let Some(new) = versions::named(after, version) else { continue };
        for column in columns(old).filter(|column| !columns(new).any(|other| other == *column)) {
            found.add(format!("the column {column} of version {version}"));
        }
    }
}

/// The names of a version's columns.
fn columns(version: &Value) -> impl Iterator<Item = &str> {
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
    columns.filter_map(|column| column["name"].as_str())
}
