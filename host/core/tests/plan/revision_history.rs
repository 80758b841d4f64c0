//! Primary revisions: what the host stores, and the earlier primary.

use std::collections::BTreeSet;
use std::sync::Arc;

use expect_test::expect;
use innkeeper_contract::{Kind, RevisionHistory};
use innkeeper_core::desired::{DesiredObject, DesiredState, InvalidDesired};
use innkeeper_core::plan::Action;
use innkeeper_core::primary_revision::{
    self, PrimaryRevisions, REVISION_DIGEST_ANNOTATION, REVISION_FIELD_PATHS_ANNOTATION,
    RevisionInput, with_revision,
};
use innkeeper_core::{Object, ObjectRef, order};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::case::{Case, case, deployment, entry};

/// A primary, and the `ControllerRevisions` that exist for it.
pub(crate) struct History {
    case: Case,
    name: String,
    spec: Value,
    fields: RevisionHistory,
    key: &'static str,
    pub(crate) api_version: &'static str,
    deleting: bool,
    pub(crate) stored: Vec<Value>,
}

pub(crate) fn history_of(paths: &[&str], limit: u32, spec: Value) -> History {
    let field_paths = paths.iter().map(|path| (*path).to_owned()).collect();
    History {
        case: case(&json!([])),
        name: "first".to_owned(),
        spec,
        fields: RevisionHistory { limit, field_paths },
        key: "key",
        api_version: "quay.io/v1alpha1",
        deleting: false,
        stored: Vec::new(),
    }
}

fn kind() -> Arc<Kind> {
    Arc::new(Kind::namespaced("apps/v1", "ControllerRevision", "controllerrevisions"))
}

impl History {
    fn primary(&self) -> Object {
        let deleted = self.deleting.then_some("2026-01-01T00:00:00Z");
        let text = json!({"metadata": {"name": self.name, "namespace": "web", "uid": "u1",
            "generation": 3, "deletionTimestamp": deleted}, "spec": self.spec, "status": {"a": 1}});
        Object::decode(&self.case.primary.object_ref.kind, &text.to_string(), None).unwrap()
    }

    pub(crate) fn revisions(&self) -> PrimaryRevisions {
        let owned: Vec<(ObjectRef, Arc<Object>)> = self
            .stored
            .iter()
            .map(|value| {
                let object = Object::decode(&kind(), &value.to_string(), None).unwrap();
                (ObjectRef::new(kind(), object.key.clone()), Arc::new(object))
            })
            .collect();
        let mut primary = self.case.primary.clone();
        let kind_of_primary = Arc::make_mut(&mut primary.object_ref.kind);
        self.api_version.clone_into(&mut kind_of_primary.api_version);
        primary_revision::of(&RevisionInput {
            primary: &self.primary(),
            owner: &primary,
            history: &self.fields,
            kind: &kind(),
            owned: &owned,
            digest: &|text| self.digest(text),
        })
    }

    pub(crate) fn digest(&self, text: &str) -> String {
        hex::encode(&Sha256::digest(format!("{}{text}", self.key))[..8])
    }

    /// Lets the host write what it desires, and prune the rest.
    pub(crate) fn write(&mut self) {
        let desired = self.revisions().desired;
        self.stored = desired.iter().map(written).collect();
    }

    /// Plans with a conflict that stays, after a round with a problem, and lets the host write. The
    /// guest keeps all revisions.
    fn write_despite_a_conflict(&mut self, complete: bool) {
        let mut case = case(&json!([deployment(1)]));
        case.foreign("Deployment", "a", &json!([]));
        (case.complete, case.state.clean) = (complete, false);
        for one in &self.stored {
            case.put_as(&kind(), one);
        }
        let stored = case.live.iter().skip(1).map(|(object_ref, _)| object_ref.reference());
        case.desired_state.keep.extend(stored.collect::<Vec<_>>());
        self.revisions().add_to(&mut case.desired_state).unwrap();
        for step in case.plan().steps {
            match (step.action, step.desired_index) {
                (Action::Create, Some(index)) => {
                    self.stored.push(written(&case.desired_state.objects[index]));
                }
                (Action::Delete { uid }, _) => {
                    self.stored.retain(|one| one["metadata"]["uid"] != *uid);
                }
                _ => {}
            }
        }
    }

    /// Changes the spec, and lets the host write.
    pub(crate) fn change(&mut self, spec: Value) {
        self.spec = spec;
        self.write();
    }

    /// The numbers and images that the host desires, newest first.
    fn images(&self) -> Vec<(i64, String)> {
        let desired = self.revisions().desired;
        let mut images: Vec<(i64, String)> = desired
            .iter()
            .map(|one| {
                let image = one.body["data"]["spec"]["image"].as_str().unwrap_or_default();
                (one.body["revision"].as_i64().unwrap(), image.to_owned())
            })
            .collect();
        images.sort_by(|a, b| b.cmp(a));
        images
    }

    pub(crate) fn stored_image(&mut self, image: &str) -> &mut Value {
        let is_it = |one: &&mut Value| one["data"]["spec"]["image"] == image;
        self.stored.iter_mut().find(is_it).unwrap()
    }
}

/// A revision as the host has written it.
fn written(desired: &DesiredObject) -> Value {
    let mut value = desired.body.clone();
    value["metadata"]["uid"] = value["metadata"]["name"].clone();
    value["metadata"]["managedFields"] = json!([{"manager": "innkeeper/podroute/u1",
        "operation": "Apply", "fieldsV1": entry(&desired.body)}]);
    value
}

pub(crate) fn image(image: &str) -> Value {
    json!({ "image": image })
}

fn lines(images: &[(i64, String)]) -> Vec<String> {
    images.iter().map(|(number, image)| format!("{number} {image}")).collect()
}

#[test]
fn present_state_is_stored_with_its_digest_and_paths() {
    let spec = json!({"replicas": 3, "template": {"image": "a"}, "selector": null});
    let history = history_of(&["spec.template", "spec.strategy"], 2, spec);
    let revisions = history.revisions();
    let mut body = revisions.desired[0].body.clone();
    body["metadata"]["annotations"].as_object_mut().unwrap().remove("innkeeper.dev/applied");
    let text = serde_json::to_string_pretty(&body).unwrap();
    expect![[r#"
        {
          "apiVersion": "apps/v1",
          "data": {
            "spec": {
              "template": {
                "image": "a"
              }
            }
          },
          "kind": "ControllerRevision",
          "metadata": {
            "annotations": {
              "innkeeper.dev/revision-api-version": "quay.io/v1alpha1",
              "innkeeper.dev/revision-digest": "fde4f2d22f22832c",
              "innkeeper.dev/revision-field-paths": "spec.template,spec.strategy"
            },
            "name": "first-e630dbeef2",
            "namespace": "web",
            "ownerReferences": [
              {
                "apiVersion": "quay.io/v1alpha1",
                "blockOwnerDeletion": true,
                "controller": true,
                "kind": "Podroute",
                "name": "first",
                "uid": "u1"
              }
            ]
          },
          "revision": 1
        }"#]]
    .assert_eq(&text);
    assert_eq!((revisions.desired.len(), revisions.earlier.len()), (1, 0));
    assert_eq!(revisions.not_stored, None);
}

#[test]
fn change_of_another_field_stores_no_revision() {
    let mut history = history_of(&["spec.image"], 2, json!({"image": "a", "replicas": 1}));
    history.write();
    let before = history.revisions();
    history.spec = json!({"replicas": 2, "image": "a"});
    assert_eq!(history.revisions(), before);
}

#[test]
fn earlier_states_stay_up_to_the_limit_newest_first() {
    let mut history = history_of(&["spec"], 2, image("a"));
    history.write();
    for name in ["b", "c", "d"] {
        history.change(image(name));
    }
    assert_eq!(lines(&history.images()), ["4 d", "3 c", "2 b"]);
    let earlier: Vec<i64> = history.revisions().earlier.iter().map(|one| one.number).collect();
    assert_eq!(earlier, [3, 2]);
    history.fields.limit = 1;
    assert_eq!(lines(&history.images()), ["4 d", "3 c"]);
}

#[test]
fn history_keeps_its_limit_despite_a_conflict_that_stays() {
    for complete in [true, false] {
        let mut history = history_of(&["spec"], 2, image("0"));
        for number in 1..=50 {
            history.spec = image(&number.to_string());
            history.write_despite_a_conflict(complete);
            assert_eq!(history.stored.len(), number.min(3), "{complete} {number}");
        }
        assert_eq!(lines(&history.images()), ["50 50", "49 49", "48 48"]);
    }
}

#[test]
fn returned_state_gets_the_highest_number() {
    let mut history = history_of(&["spec"], 2, image("a"));
    history.write();
    history.change(image("b"));
    history.change(image("a"));
    assert_eq!(lines(&history.images()), ["3 a", "2 b"]);
    assert_eq!(history.stored.len(), 2);
    let before = history.revisions();
    history.write();
    assert_eq!(history.revisions(), before);
}

#[test]
fn text_of_others_is_no_revision() {
    let mut history = history_of(&["spec"], 2, image("a"));
    history.write();
    history.change(image("b"));
    let written = history.stored.clone();

    history.stored_image("a")["data"]["spec"]["image"] = "evil".into();
    assert_eq!(lines(&history.images()), ["2 b"], "other content");
    history.stored = written.clone();
    history.stored_image("a")["metadata"]["managedFields"] = json!([]);
    history.stored_image("a")["metadata"]["ownerReferences"][0]["uid"] = "u2".into();
    assert_eq!(lines(&history.images()), ["2 b"], "another owner");
    history.stored = written.clone();
    history.stored_image("a")["metadata"]["managedFields"][0]["manager"] = "kubectl".into();
    assert_eq!(lines(&history.images()), ["2 b"], "another manager");
    history.stored = written.clone();
    let annotations = "annotations";
    history.stored_image("a")["metadata"][annotations][REVISION_FIELD_PATHS_ANNOTATION] =
        "spec.image".into();
    assert_eq!(lines(&history.images()), ["2 b"], "other paths");
    history.stored = written;
    history.key = "another key";
    assert_eq!(lines(&history.images()), ["1 b"], "the key is lost");
    assert!(history.revisions().earlier.is_empty());
}

/// Sets or removes an annotation of a stored revision.
pub(crate) fn annotate(revision: &mut Value, name: &str, value: Option<&str>) {
    let annotations = revision["metadata"]["annotations"].as_object_mut().unwrap();
    match value {
        Some(value) => annotations.insert(name.to_owned(), value.into()),
        None => annotations.remove(name),
    };
}

#[test]
fn revision_with_a_changed_digest_is_deleted_unless_it_is_the_present_one() {
    let mut history = history_of(&["spec"], 2, image("a"));
    history.write();
    history.change(image("b"));
    let (before, written) = (history.revisions(), history.stored.clone());
    for digest in [Some("0123456789abcdef"), None] {
        annotate(history.stored_image("b"), REVISION_DIGEST_ANNOTATION, digest);
        assert_eq!(history.revisions(), before, "{digest:?}");
        annotate(history.stored_image("a"), REVISION_DIGEST_ANNOTATION, digest);
        let revisions = history.revisions();
        assert_eq!(lines(&history.images()), ["2 b"], "{digest:?}");
        let surplus: Vec<_> = revisions.surplus.iter().map(|one| one.key.name()).collect();
        assert_eq!(surplus, [written[1]["metadata"]["name"].as_str().unwrap()]);
        assert!(!revisions.has_earlier(), "{digest:?}");
        history.stored.clone_from(&written);
    }
}

#[test]
fn impossible_number_is_repaired() {
    let mut history = history_of(&["spec"], 2, image("a"));
    history.write();
    history.change(image("b"));
    for (number, expected) in
        [(7, ["8 b", "7 a"]), (i64::MAX, ["2 b", "1 a"]), (0, ["2 b", "1 a"]), (-4, ["2 b", "1 a"])]
    {
        history.stored_image("a")["revision"] = number.into();
        assert_eq!(lines(&history.images()), expected, "{number}");
    }
}

#[test]
fn highest_number_that_a_stored_revision_may_have_begins_the_numbers_again() {
    for number in [(1_i64 << 53) - 1, 1 << 53] {
        // Given a history whose oldest revision somebody gave the highest number.
        let mut history = history_of(&["spec"], 2, image("a"));
        history.write();
        history.change(image("b"));
        history.stored_image("a")["revision"] = number.into();

        // When the primary changes, then each state is newer than those before.
        history.write();
        history.change(image("c"));
        history.change(image("d"));
        assert_eq!(
            history.images().iter().map(|one| &*one.1).collect::<String>(),
            "dcb",
            "{number}"
        );
        history.change(image("e"));
        assert_eq!(
            history.images().iter().map(|one| &*one.1).collect::<String>(),
            "edc",
            "{number}"
        );
        assert!(history.images()[0].0 < 1_000, "{number}: {:?}", history.images());
        let before = history.revisions();
        history.write();
        assert_eq!(history.revisions(), before);
    }
}

#[test]
fn fields_over_the_limit_of_size_are_not_stored_and_earlier_ones_stay() {
    let mut history = history_of(&["spec"], 2, image("a"));
    history.write();
    // `{"image":"...",},}` around it.
    let around = r#"{"spec":{"image":"",},}"#.len();
    history.spec = image(&"x".repeat((256 << 10) - around));
    assert_eq!(history.revisions().not_stored, None);
    history.spec = image(&"x".repeat((256 << 10) - around + 1));
    let revisions = history.revisions();
    assert_eq!(lines(&history.images()), ["1 a"]);
    assert_eq!(revisions.earlier.len(), 1);
    expect!["the fields of revisionHistory.fieldPaths are not stored: they have 257 KiB, more than 256 KiB; name fewer fields"]
        .assert_eq(&revisions.not_stored.unwrap());
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let text =
        format!(r#"{{"metadata":{{"name":"first","namespace":"web"}},"spec":{{"a":{deep}}}}}"#);
    let primary = Object::decode(&history.case.primary.object_ref.kind, &text, None).unwrap();
    let revisions = primary_revision::of(&RevisionInput {
        primary: &primary,
        owner: &history.case.primary,
        history: &history.fields,
        kind: &kind(),
        owned: &[],
        digest: &str::to_owned,
    });
    expect!["the fields of revisionHistory.fieldPaths are not stored: the object is nested too deep; name other fields"]
        .assert_eq(&revisions.not_stored.unwrap());
}

#[test]
fn primary_that_is_being_deleted_keeps_its_revisions_and_gets_no_other() {
    let mut history = history_of(&["spec"], 2, image("a"));
    history.write();
    history.spec = image("b");
    history.deleting = true;
    let revisions = history.revisions();
    assert!(revisions.desired.is_empty() && revisions.earlier.is_empty());
    let mut desired = DesiredState::default();
    revisions.add_to(&mut desired).unwrap();
    let kept: Vec<&str> = desired.keep.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(kept, [history.stored[0]["metadata"]["name"].as_str().unwrap()]);
}

#[test]
fn revision_that_the_guest_desires_itself_is_a_duplicate() {
    let history = history_of(&["spec"], 2, image("a"));
    let revisions = history.revisions();
    let mut desired = DesiredState::default();
    revisions.add_to(&mut desired).unwrap();
    let error = revisions.add_to(&mut desired).unwrap_err();
    assert!(matches!(error, InvalidDesired::Duplicate { .. }), "{error}");
}

#[test]
fn name_is_a_name_of_kubernetes_whatever_the_name_of_the_primary() {
    let mut history = history_of(&["spec"], 2, image("a"));
    for (name, expected) in [
        ("web".to_owned(), "web-"),
        ("a".repeat(253), &*format!("{}-", "a".repeat(240))),
        (format!("{}.b", "a".repeat(239)), &*format!("{}-", "a".repeat(239))),
        ("system:node".to_owned(), "revision-"),
        (format!("{}é", "a".repeat(239)), &*format!("{}-", "a".repeat(239))),
    ] {
        history.name = name;
        let revision = history.revisions().desired.remove(0);
        let name = revision.object_ref.key.name();
        assert_eq!(name.strip_prefix(expected).unwrap().len(), 10, "{name}");
    }
}

#[test]
fn earlier_primary_has_the_stored_fields_and_lacks_those_that_were_added_since() {
    for (paths, then, now, expected) in [
        (&["spec"][..], json!({"a": 1}), json!({"a": 2, "b": 3}), json!({"a": 1})),
        (&["spec.a"], json!({"a": 1, "b": 1}), json!({"a": 2, "b": 3}), json!({"a": 1, "b": 3})),
        (&["spec.a"], json!({"b": 1}), json!({"a": 2, "b": 3}), json!({"b": 3})),
        (&["spec.a"], json!({"a": 1}), json!({}), json!({"a": 1})),
        (&["spec.a.b"], json!({"a": {"b": 1}}), json!({"a": "text"}), json!({"a": {"b": 1}})),
        (&["spec.a.b"], json!({"a": 3}), json!({"a": {"b": 2, "c": 1}}), json!({"a": {"c": 1}})),
        (&["spec.a.b"], json!({}), json!({}), json!({})),
        (&["spec.a"], json!({"a": null}), json!({"a": 2}), json!({"a": null})),
        (
            &["spec.a", "spec.b.c"],
            json!({"a": 1, "b": {"c": 1}}),
            json!({"a": 2, "b": {"c": 2, "d": 2}}),
            json!({"a": 1, "b": {"c": 1, "d": 2}}),
        ),
        (
            &["spec.a"],
            json!({"a": {"x": [1, 1.5, 1e30, 18_446_744_073_709_551_615_u64]}}),
            json!({}),
            json!({"a": {"x": [1, 1.5, 1e30, 18_446_744_073_709_551_615_u64]}}),
        ),
    ] {
        let mut history = history_of(paths, 2, then.clone());
        history.write();
        history.change(now.clone());
        let primary = history.primary();
        let revisions = history.revisions();
        let Some(revision) = revisions.earlier.first() else {
            assert_eq!(now, expected, "{paths:?}");
            continue;
        };
        let earlier = with_revision(&primary, revision);
        let text: Value = serde_json::from_str(&earlier.text.read()).unwrap();
        assert_eq!(text["spec"], expected, "{paths:?}");
        assert_eq!(
            (&text["status"], &text["metadata"]["generation"]),
            (&json!({"a": 1}), &json!(3))
        );
        assert_eq!(Object { text: primary.text.clone(), ..earlier }, primary);
    }
}

#[test]
fn revision_of_other_paths_brings_back_its_own_fields() {
    let mut history = history_of(&["spec.image"], 2, json!({"image": "a", "replicas": 1}));
    history.write();
    history.fields.field_paths = vec!["spec".to_owned()];
    history.change(json!({"image": "b", "replicas": 2}));
    let revisions = history.revisions();
    let earlier = with_revision(&history.primary(), &revisions.earlier[0]);
    let text: Value = serde_json::from_str(&earlier.text.read()).unwrap();
    assert_eq!(text["spec"], json!({"image": "a", "replicas": 2}));
}

#[test]
fn revisions_are_written_before_the_objects_that_change() {
    let kinds: BTreeSet<_> = ["ControllerRevision", "StatefulSet"]
        .map(|kind| (order::rank(&Kind::namespaced("apps/v1", kind, "")), kind))
        .into();
    assert_eq!(kinds.first().unwrap().1, "ControllerRevision");
}
