//! The API versions of primary revisions.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use innkeeper_core::ObjectRef;
use innkeeper_core::primary_revision::{
    REVISION_API_VERSION_ANNOTATION, REVISION_DIGEST_ANNOTATION, RevisionOfOtherVersion,
};
use serde_json::Value;

use crate::revision_history::{History, annotate, history_of, image};

impl History {
    /// Makes the revision with an image one of a host that recorded no API version.
    fn forget_version(&mut self, image: &str) {
        let content = format!(r#"{{"spec":{{"image":"{image}",}},}}"#);
        let digest = self.digest(&format!("u1\0spec\0{content}"));
        let annotations = &mut self.stored_image(image)["metadata"]["annotations"];
        annotations[REVISION_DIGEST_ANNOTATION] = digest.into();
        annotations.as_object_mut().unwrap().remove(REVISION_API_VERSION_ANNOTATION);
    }

    /// The images that the host desires with the API versions that it records, newest first.
    fn versions(&self) -> Vec<String> {
        let mut desired = self.revisions().desired;
        desired.sort_by_key(|one| Reverse(one.body["revision"].as_i64()));
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        desired
            .iter()
            .map(|one| {
                let annotations = &one.body["metadata"]["annotations"];
                let version = text(&annotations[REVISION_API_VERSION_ANNOTATION]);
                format!("{} {version}", text(&one.body["data"]["spec"]["image"]))
            })
            .collect()
    }
}

#[test]
fn revision_without_a_version_counts_as_the_present_one_and_gets_it() {
    let mut history = history_of(&["spec"], 2, image("a"));
    history.write();
    history.change(image("b"));
    let before = history.revisions();
    for image in ["a", "b"] {
        history.forget_version(image);
    }
    assert_eq!(history.revisions(), before);
    // So it does in the first round after the module has moved.
    history.api_version = "quay.io/v1";
    assert_eq!(history.versions(), ["b quay.io/v1", "a quay.io/v1"]);
    assert_eq!(history.revisions().earlier.len(), 1);
}

#[test]
fn revision_of_another_version_stays_and_is_no_earlier_state_until_the_module_returns() {
    let mut history = history_of(&["spec"], 2, image("a"));
    history.write();
    history.change(image("b"));
    let names = |history: &History| -> BTreeSet<ObjectRef> {
        history.revisions().desired.into_iter().map(|one| one.object_ref).collect()
    };
    let before = names(&history);

    history.api_version = "quay.io/v1";
    history.write();
    assert_eq!(history.versions(), ["b quay.io/v1", "a quay.io/v1alpha1"]);
    assert_eq!(names(&history), before, "equal fields are one revision");
    let revisions = history.revisions();
    let name = history.stored_image("a")["metadata"]["name"].as_str().unwrap().to_owned();
    let other = RevisionOfOtherVersion { name, api_version: "quay.io/v1alpha1".to_owned() };
    assert_eq!((revisions.earlier.len(), revisions.of_other_version), (0, vec![other]));

    // They count for the limit, and age.
    history.change(image("c"));
    assert_eq!(history.versions(), ["c quay.io/v1", "b quay.io/v1", "a quay.io/v1alpha1"]);
    assert_eq!(history.revisions().earlier[0].number, 2);

    history.api_version = "quay.io/v1alpha1";
    let back = ["c quay.io/v1alpha1", "b quay.io/v1", "a quay.io/v1alpha1"];
    assert_eq!(history.versions(), back);
    assert_eq!(history.revisions().earlier[0].number, 1);
    history.api_version = "quay.io/v1";

    // A state of the other version that returns is one of the present version.
    history.change(image("a"));
    assert_eq!(history.versions(), ["a quay.io/v1", "c quay.io/v1", "b quay.io/v1"]);
}

#[test]
fn version_that_others_change_is_repaired_or_the_revision_is_deleted() {
    let mut history = history_of(&["spec"], 2, image("a"));
    history.write();
    history.change(image("b"));
    let (before, written) = (history.revisions(), history.stored.clone());
    let forged = [Some("quay.io/v1"), Some("quay.io/v1\0"), Some(""), None];
    for version in forged {
        for image in ["a", "b"] {
            annotate(history.stored_image(image), REVISION_API_VERSION_ANNOTATION, version);
        }
        assert_eq!(history.revisions(), before, "{version:?}");
    }

    // Of another version than the present one nothing else proves it.
    history.stored = written;
    history.api_version = "quay.io/v1";
    history.write();
    for version in forged {
        annotate(history.stored_image("a"), REVISION_API_VERSION_ANNOTATION, version);
        let revisions = history.revisions();
        assert_eq!(history.versions(), ["b quay.io/v1"], "{version:?}");
        assert_eq!((revisions.surplus.len(), revisions.has_earlier()), (1, false));
    }
}
