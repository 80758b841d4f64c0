//! Released versions of the contract stay compatible: compares the current schemas with those of
//! each version in `wit/released`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by it")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use innkeeper_contract::{DOCUMENTS_VERSION, Desired, Failure, Kind, Manifest, Verdict};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Documents from guests to the host; the other documents go from the host to guests.
const GIVEN_BY_GUESTS: &[&str] = &["manifest.json", "desired.json", "failure.json", "verdict.json"];

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn releases() -> Vec<String> {
    let entries = fs::read_dir(here("released")).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<_> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn json(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

fn schemas(folder: &str) -> Vec<(String, Value)> {
    let mut found: Vec<_> = fs::read_dir(here(folder))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), json(&entry.path())))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Two versions of one schema.
struct Pair<'a> {
    released: &'a Value,
    present: &'a Value,
    by_guests: bool,
    /// Definitions that have been compared.
    compared: BTreeSet<String>,
    broken: Vec<String>,
}

impl Pair<'_> {
    fn compare(&mut self, place: &str, released: &Value, present: &Value) {
        if let (Some(a), Some(b)) = (released["$ref"].as_str(), present["$ref"].as_str()) {
            if self.compared.insert(format!("{a} {b}")) {
                let at = |root: &Value, reference: &str| {
                    root.pointer(reference.trim_start_matches('#')).unwrap().clone()
                };
                let (released, present) = (at(self.released, a), at(self.present, b));
                self.compare(place, &released, &present);
            }
            return;
        }
        if released["type"] != present["type"] || released["$ref"] != present["$ref"] {
            self.broken.push(format!("{place} has another type"));
            return;
        }
        self.compare_members(place, released, present);
        self.compare_values(place, released, present);
        for word in ["items", "additionalProperties"] {
            if released[word].is_object() {
                self.compare(&format!("{place}[]"), &released[word], &present[word]);
            }
        }
        for word in ["anyOf", "allOf"] {
            let alternatives =
                |schema: &Value| schema[word].as_array().cloned().unwrap_or_default();
            let (released, present) = (alternatives(released), alternatives(present));
            if released.len() != present.len() {
                self.broken.push(format!("{place} has other alternatives"));
            }
            for (released, present) in released.iter().zip(&present) {
                self.compare(place, released, present);
            }
        }
    }

    fn compare_members(&mut self, place: &str, released: &Value, present: &Value) {
        for (name, member) in released["properties"].as_object().into_iter().flatten() {
            let place = format!("{place}.{name}");
            match present["properties"].get(name) {
                Some(now) => self.compare(&place, member, now),
                None => self.broken.push(format!("{place} is gone")),
            }
        }
        let required = |schema: &Value| -> BTreeSet<String> {
            let names = schema["required"].as_array().into_iter().flatten();
            names.map(|name| name.as_str().unwrap().to_owned()).collect()
        };
        let (then, now) = (required(released), required(present));
        let (more, less) = if self.by_guests { (&now, &then) } else { (&then, &now) };
        for name in more.difference(less) {
            let what = if self.by_guests { "must be given now" } else { "may be left out now" };
            self.broken.push(format!("{place}.{name} {what}"));
        }
    }

    /// Compares the values of an enum: the host must send no new one, and accept each old one.
    fn compare_values(&mut self, place: &str, released: &Value, present: &Value) {
        let values = |schema: &Value| -> BTreeSet<String> {
            let of_enum = schema["enum"].as_array().into_iter().flatten();
            let of_docs = schema["oneOf"].as_array().into_iter().flatten();
            of_enum
                .chain(of_docs.filter_map(|one| one.get("const")))
                .map(Value::to_string)
                .collect()
        };
        let (then, now) = (values(released), values(present));
        let (more, less) = if self.by_guests { (&then, &now) } else { (&now, &then) };
        for value in more.difference(less) {
            let what = if self.by_guests { "is no longer taken" } else { "is new to guests" };
            self.broken.push(format!("{place}: {value} {what}"));
        }
    }
}

fn breaks(document: &str, released: &Value, present: &Value) -> Vec<String> {
    let by_guests = GIVEN_BY_GUESTS.contains(&document);
    let mut pair =
        Pair { released, present, by_guests, compared: BTreeSet::new(), broken: Vec::new() };
    pair.compare(document.trim_end_matches(".json"), released, present);
    pair.broken
}

#[test]
fn current_schemas_are_compatible_with_every_release() {
    assert!(!releases().is_empty());
    for version in releases() {
        for (document, released) in schemas(&format!("released/{version}/schema")) {
            let present = json(&here("schema").join(&document));
            let broken = breaks(&document, &released, &present);
            assert_eq!(broken, Vec::<String>::new(), "since {version}");
        }
    }
}

/// Returns the schema without descriptions.
fn bare(mut schema: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                // A member named `description` has a schema; the keyword has a text.
                members.retain(|name, value| name != "description" || !value.is_string());
                members.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut schema);
    schema
}

#[test]
fn current_version_equals_its_release() {
    let frozen = format!("released/{DOCUMENTS_VERSION}");
    let advice =
        "`cargo xtask schema --freeze` after raising the version, see wit/released/README.md";
    let now: Vec<_> = schemas("schema").into_iter().map(|(name, one)| (name, bare(one))).collect();
    let then: Vec<_> = schemas(&format!("{frozen}/schema"))
        .into_iter()
        .map(|(name, one)| (name, bare(one)))
        .collect();
    assert!(now == then, "the documents are not those of {DOCUMENTS_VERSION}: {advice}");
    let functions = |path: PathBuf| -> Vec<String> {
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("//"));
        lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let (now, then) = (here("guest.wit"), here(&frozen).join("guest.wit"));
    assert_eq!(
        functions(now),
        functions(then),
        "the functions are not those of {DOCUMENTS_VERSION}: {advice}"
    );
}

/// Asserts that every member of the schema is in the example.
fn assert_shown(schema: &Value, example: &Value, document: &str) {
    for name in schema["properties"].as_object().unwrap().keys() {
        assert!(example.get(name).is_some(), "{document} shows no {name}");
    }
}

#[test]
fn examples_of_each_release_show_every_member_and_deserialize() {
    fn read<T: DeserializeOwned>(example: &Value) {
        T::deserialize(example).unwrap();
    }
    for version in releases() {
        let of = |document: &str| {
            let folder = here("released").join(&version);
            let example = json(&folder.join("examples").join(document));
            assert_shown(&json(&folder.join("schema").join(document)), &example, document);
            example
        };
        read::<Manifest>(&of("manifest.json"));
        read::<Desired>(&of("desired.json"));
        read::<Failure>(&of("failure.json"));
        if here("released").join(&version).join("schema/verdict.json").exists() {
            read::<Verdict>(&of("verdict.json"));
        }
    }
}

#[test]
fn every_released_manifest_still_has_a_primary() {
    for version in releases() {
        let example = here("released").join(&version).join("examples/manifest.json");
        let manifest = Manifest::deserialize(json(&example)).unwrap();
        let primary = manifest.primary.as_ref().map(Kind::resource);
        assert_eq!(primary.as_deref(), Some("examples.example.com"), "since {version}");
        let written = serde_json::to_value(&manifest).unwrap();
        assert_eq!(written["primary"]["kind"], "Example", "since {version}");
    }
}

#[test]
fn breaking_changes_are_found() {
    use serde_json::json;

    let of = |properties: Value, required: Value| {
        json!({"type": "object", "properties": properties, "required": required,
            "$defs": {"Word": {"type": "string", "enum": ["a", "b"]}}})
    };
    let then = of(
        json!({"a": {"type": "string"}, "b": {"type": "array", "items": {"$ref": "#/$defs/Word"}}}),
        json!(["a"]),
    );
    let mut more = of(
        json!({"a": {"type": "string"}, "b": {"type": "array", "items": {"$ref": "#/$defs/Word"}}, "c": {}}),
        json!(["a"]),
    );
    assert_eq!(breaks("manifest.json", &then, &more), Vec::<String>::new());
    assert_eq!(breaks("observed.json", &then, &more), Vec::<String>::new());
    more["required"] = json!(["c"]);
    assert_eq!(breaks("manifest.json", &then, &more), ["manifest.c must be given now"]);
    assert_eq!(breaks("observed.json", &then, &more), ["observed.a may be left out now"]);
    let less = of(json!({"a": {"type": "integer"}}), json!(["a"]));
    let broken = ["manifest.a has another type", "manifest.b is gone"];
    assert_eq!(breaks("manifest.json", &then, &less), broken);
    let mut values = then.clone();
    values["$defs"]["Word"]["enum"] = json!(["a", "c"]);
    assert_eq!(breaks("desired.json", &then, &values), ["desired.b[]: \"b\" is no longer taken"]);
    assert_eq!(breaks("observed.json", &then, &values), ["observed.b[]: \"c\" is new to guests"]);
}
