//! The decision whether an object is in sync, compared with recordings of a real API server.
//!
//! `record-fixtures` writes `fixtures/recorded` from the cases in `fixtures/cases` (see
//! `fixtures/README.md`). `unchanged` is recorded: a further apply changes nothing.

#![expect(clippy::unwrap_used, clippy::panic, reason = "an error fails the test")]

use std::path::Path;

use expect_test::expect;
use innkeeper_contract::Kind;
use innkeeper_core::fieldset::{self, FieldSet};
use innkeeper_core::in_sync::{self, LastApplied};
use innkeeper_core::{Manager, Object};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    name: String,
    #[serde(default, rename = "about")]
    _about: String,
    kind: Kind,
    manager: String,
    desired: Value,
    live: Value,
    unchanged: bool,
    churns: Churns,
    #[serde(rename = "settled")]
    in_sync: bool,
    changes: Vec<Change>,
}

/// Whether the server treats every apply as a change.
#[derive(PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Churns {
    No,
    /// Not after `known_noops::drop_known_noops`.
    Dropped,
    /// Yes; only the resource version changes.
    Left,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    name: String,
    #[serde(default, rename = "about")]
    _about: String,
    live: Value,
    unchanged: bool,
    #[serde(rename = "settled")]
    in_sync: bool,
    lost: Vec<String>,
}

impl Fixture {
    fn manager(&self) -> Manager {
        Manager::parse(&self.manager).unwrap()
    }

    fn object(&self, live: &Value) -> Object {
        Object::decode(&self.kind, &live.to_string(), None).unwrap()
    }

    fn entry(&self, object: &Object) -> FieldSet {
        FieldSet::parse(&object.applied_by(&self.manager()).unwrap_or("{}".into())).unwrap()
    }
}

#[expect(clippy::disallowed_methods, reason = "recordings are files; core itself reads none")]
fn fixtures() -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/recorded");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        })
        .collect()
}

/// Collects failures, so that one run names every failed case.
#[derive(Default)]
struct Failures(Vec<String>);

impl Failures {
    fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(what());
        }
    }

    fn none(self) {
        assert!(self.0.is_empty(), "{} cases failed:\n{}", self.0.len(), self.0.join("\n"));
    }
}

#[test]
fn recordings_agree_with_the_cases() {
    let mut failures = Failures::default();
    let mut cases = 0;
    let mut changes = 0;
    for fixture in fixtures() {
        cases += 1;
        failures.check(fixture.unchanged == (fixture.churns != Churns::Left), || {
            format!("{}: unchanged by a further apply is {}", fixture.name, fixture.unchanged)
        });
        for change in &fixture.changes {
            changes += 1;
            failures.check(change.unchanged == change.in_sync, || {
                format!("{} after {}: unchanged is {}", fixture.name, change.name, change.unchanged)
            });
        }
    }
    failures.none();
    assert!(cases >= 40 && changes >= 40, "only {cases} cases and {changes} changes are recorded");
}

#[test]
fn applied_object_is_in_sync_after_a_restart() {
    let mut failures = Failures::default();
    for fixture in fixtures() {
        let live = fixture.object(&fixture.live);
        let in_sync =
            in_sync::is_in_sync_after_restart(&live, &fixture.manager(), &fixture.desired);
        failures.check(in_sync == fixture.in_sync, || {
            let entry = fixture.entry(&live).paths().join(" ");
            format!("{}: in sync is {in_sync}; the entry: {entry}", fixture.name)
        });
    }
    failures.none();
}

#[test]
fn change_by_another_manager_is_found_after_a_restart() {
    let mut failures = Failures::default();
    for fixture in fixtures() {
        for change in &fixture.changes {
            let live = fixture.object(&change.live);
            let in_sync =
                in_sync::is_in_sync_after_restart(&live, &fixture.manager(), &fixture.desired);
            failures.check(in_sync == change.in_sync, || {
                format!("{} after {}: in sync is {in_sync}", fixture.name, change.name)
            });
        }
    }
    failures.none();
}

#[test]
fn last_applied_finds_changes_and_nothing_else() {
    let mut failures = Failures::default();
    for fixture in fixtures() {
        let manager = fixture.manager();
        let before = fixture.object(&fixture.live);
        let last_applied = LastApplied::new(&fixture.desired, &before, &manager).unwrap();
        failures.check(last_applied.is_in_sync(&fixture.desired, &before, &manager), || {
            format!("{}: not in sync after its own apply", fixture.name)
        });
        for change in &fixture.changes {
            let live = fixture.object(&change.live);
            let in_sync = last_applied.is_in_sync(&fixture.desired, &live, &manager);
            failures.check(in_sync == change.in_sync, || {
                format!("{} after {}: in sync is {in_sync}", fixture.name, change.name)
            });
        }
    }
    failures.none();
}

#[test]
fn lost_paths_of_a_change_are_listed() {
    let mut failures = Failures::default();
    for fixture in fixtures() {
        let before = fixture.entry(&fixture.object(&fixture.live));
        for change in &fixture.changes {
            let after = fixture.entry(&fixture.object(&change.live));
            let lost = fieldset::lost_paths(&before, &after);
            failures.check(lost == change.lost, || {
                format!("{} after {}: lost {lost:?}", fixture.name, change.name)
            });
        }
    }
    failures.none();
}

#[test]
fn loss_of_any_one_field_is_found() {
    let mut failures = Failures::default();
    let mut fields = 0;
    for fixture in fixtures().iter().filter(|fixture| fixture.in_sync) {
        let live = fixture.object(&fixture.live);
        let text = live.applied_by(&fixture.manager()).unwrap();
        let entry: Value = serde_json::from_str(&text).unwrap();
        for pointer in leaves(&entry) {
            let mut less = entry.clone();
            if !remove(&mut less, &pointer) {
                continue;
            }
            fields += 1;
            let less = FieldSet::parse(&less.to_string()).unwrap();
            failures.check(!in_sync::matches(&fixture.desired, &less), || {
                format!("{}: without {}", fixture.name, pointer.join(" "))
            });
        }
    }
    failures.none();
    assert!(fields >= 500, "only {fields} fields were taken");
}

/// The comparison with the entry finds the change without the digest.
#[test]
fn added_or_removed_member_of_the_desired_object_is_found() {
    let mut failures = Failures::default();
    for fixture in fixtures().iter().filter(|fixture| fixture.in_sync) {
        let live = fixture.object(&fixture.live);
        let entry = fixture.entry(&live);
        assert!(in_sync::matches(&fixture.desired, &entry), "{}", fixture.name);
        let mut more = fixture.desired.clone();
        more["metadata"]["labels"]["one-more"] = Value::from("x");
        failures.check(!in_sync::matches(&more, &entry), || format!("{}: one more", fixture.name));
        let members = fixture.desired.as_object().unwrap().keys();
        for name in members.filter(|name| entry.field(name).is_some()) {
            let mut less = fixture.desired.clone();
            less.as_object_mut().unwrap().remove(name);
            failures.check(!in_sync::matches(&less, &entry), || {
                format!("{}: without {name}", fixture.name)
            });
        }
    }
    failures.none();
}

#[test]
fn object_is_not_in_sync_with_another_digest_or_without_annotation() {
    let mut failures = Failures::default();
    for fixture in fixtures() {
        let live = fixture.object(&fixture.live);
        let mut desired = fixture.desired.clone();
        desired["spec"]["one"]["more"] = Value::from(1);
        // The annotation has the digest of the changed object.
        let name = desired["metadata"]["annotations"].as_object().unwrap();
        let name = name.keys().find(|name| name.starts_with(in_sync::APPLIED_ANNOTATION)).unwrap();
        let (name, digest) = (name.clone(), in_sync::digest(&desired));
        desired["metadata"]["annotations"][&name] = Value::from(digest);
        let in_sync = in_sync::is_in_sync_after_restart(&live, &fixture.manager(), &desired);
        failures.check(!in_sync, || format!("{}: with another digest", fixture.name));

        let mut bare = fixture.desired.clone();
        bare["metadata"]["annotations"].as_object_mut().unwrap().remove(&name);
        let in_sync = in_sync::is_in_sync_after_restart(&live, &fixture.manager(), &bare);
        failures.check(!in_sync, || format!("{}: without the annotation", fixture.name));
        failures.check(in_sync::digest(&bare) == in_sync::digest(&fixture.desired), || {
            format!("{}: the annotation changed the digest", fixture.name)
        });
    }
    failures.none();
}

#[test]
fn digest_is_stable() {
    // The text: {"a b":{"c":[1,1.5,"ü\n\"x\u0001",null,true,],},"kind":"K",}
    let desired = json!({"kind": "K", "a b": {"c": [1, 1.5, "ü\n\"x\u{1}", null, true]}});
    assert_eq!(in_sync::digest(&desired), "c01750921e8771972b66741c24165e7a");
}

#[test]
fn counts_are_those_in_the_documents() {
    let fixtures = fixtures();
    let changes: Vec<_> = fixtures.iter().flat_map(|fixture| &fixture.changes).collect();
    let misses: Vec<_> =
        fixtures.iter().filter(|fixture| !fixture.in_sync).map(|fixture| &*fixture.name).collect();
    expect!["91 objects, 80 changes of which 22 concern other fields; needlessly applied after a restart: custom-emptied-set, emptied-granular-list, resource-divisor"].assert_eq(&format!(
        "{} objects, {} changes of which {} concern other fields; needlessly applied after a restart: {}",
        fixtures.len(),
        changes.len(),
        changes.iter().filter(|change| change.in_sync).count(),
        misses.join(", "),
    ));
}

/// The paths of all members without members of their own.
fn leaves(entry: &Value) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (name, below) in entry.as_object().into_iter().flatten() {
        if name == "." {
            continue;
        }
        let mut deeper = leaves(below);
        if deeper.is_empty() {
            deeper.push(Vec::new());
        }
        found.extend(deeper.into_iter().map(|mut path| {
            path.insert(0, name.clone());
            path
        }));
    }
    found
}

/// Removes a member as the server does: a parent that is then empty and not itself in the set goes
/// too.
///
/// Returns false if an element without members would stay in the set: the entry alone does not
/// distinguish it from a value that is kept whole. The recorded change `custom-free` has this case.
fn remove(entry: &mut Value, path: &[String]) -> bool {
    let [name, rest @ ..] = path else { return true };
    let members = entry.as_object_mut().unwrap();
    if !rest.is_empty() && !remove(&mut members[name], rest) {
        return false;
    }
    if rest.is_empty() || members[name].as_object().is_some_and(serde_json::Map::is_empty) {
        members.remove(name);
    }
    !(members.len() == 1 && members.contains_key("."))
}
