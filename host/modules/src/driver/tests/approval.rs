//! Approvals and rejections by annotations: whole digests only.

use super::*;

/// A driver with the candidate `a` that waits for an approval.
fn held() -> Driver<Fake> {
    let mut driver = driver();
    driver.handle("m", module(1, &manual()));
    driver.handle("m", source("a"));
    driver.handle("m", loaded("a", |_| {}));
    let digest = component("a").digest;
    driver.handle("m", Input::Previewed { digest, result: Ok(Preview::default()) });
    assert_eq!(condition(&driver, "Held").0, "NeedsApproval");
    driver
}

fn manual() -> Value {
    with(json!({"rollout": {"strategy": "Manual"}}))
}

fn condition(driver: &Driver<Fake>, type_: &str) -> (String, String) {
    let all = driver.report("m").unwrap().conditions;
    let found = all.into_iter().find(|one| one.type_ == type_).unwrap();
    (found.reason, found.message)
}

fn annotate(driver: &mut Driver<Fake>, annotations: &Value) -> Vec<Action<Fake>> {
    handle(driver, annotated(1, &manual(), annotations))
}

#[test]
fn approval_by_the_first_digits_has_no_effect_and_a_message() {
    let digest = component("a").digest.to_string();
    for text in [&digest[..12], &digest[..63], "latest", "*", &format!("{digest}0"), "sha256:"] {
        let mut driver = held();
        let actions = annotate(&mut driver, &json!({"innkeeper.dev/approve": text}));
        assert_eq!(actions.iter().map(show).collect::<Vec<_>>(), ["report 1 Held"], "{text}");
        let (reason, message) = condition(&driver, "Held");
        assert_eq!(reason, "NeedsApproval");
        assert!(
            message.contains(&format!("`innkeeper.dev/approve: {text}` has no effect"))
                && message.contains("all 64 hex digits")
                && message.contains("`innkeeper modules approve m`"),
            "{message}"
        );
        assert!(driver.active_revision("m").is_none(), "{text}");
    }
}

#[test]
fn approval_by_the_whole_digest_activates_the_candidate_and_ends_the_message() {
    let mut driver = held();
    let digest = component("a").digest.to_string();
    annotate(&mut driver, &json!({"innkeeper.dev/approve": digest[..12]}));
    annotate(&mut driver, &json!({"innkeeper.dev/approve": format!(" {digest}\n")}));
    assert!(driver.active_revision("m").is_some());
    let (reason, message) = condition(&driver, "Held");
    assert_eq!((reason.as_str(), message.contains("has no effect")), ("NoApprovalNeeded", false));
}

#[test]
fn rejection_by_the_first_digits_has_no_effect_and_an_empty_annotation_no_message() {
    let mut driver = held();
    let digest = component("a").digest.to_string();
    annotate(
        &mut driver,
        &json!({"innkeeper.dev/approve": "", "innkeeper.dev/reject": digest[..12]}),
    );
    let (reason, message) = condition(&driver, "Held");
    assert_eq!(reason, "NeedsApproval");
    assert!(message.contains("The annotation `innkeeper.dev/reject: "), "{message}");
    annotate(&mut driver, &json!({"innkeeper.dev/approve": "", "innkeeper.dev/reject": digest}));
    assert_eq!(condition(&driver, "Loaded").0, "Rejected");
}

#[test]
fn hostile_annotation_is_quoted_as_visible_text_of_bounded_length() {
    let mut driver = held();
    let text = format!("\u{1b}[2J\u{202e}{}", "x".repeat(1 << 18));
    annotate(&mut driver, &json!({"innkeeper.dev/approve": text, "innkeeper.dev/reject": text}));
    let (_, message) = condition(&driver, "Held");
    assert!(message.chars().all(foreign::is_visible), "{message:?}");
    assert!(message.len() < 2_000, "{} bytes", message.len());
}

#[test]
fn names_in_the_examples_of_a_preview_are_visible_text() {
    let mut driver = driver();
    driver.handle("m", module(1, &manual()));
    driver.handle("m", source("a"));
    driver.handle("m", loaded("a", |_| {}));
    let text = "a\n\u{1b}[2J\u{202e}";
    let mut preview = Preview::default();
    preview.add(PlannedChange::Change, text.to_owned(), vec![text.to_owned()]);
    let digest = component("a").digest;
    driver.handle("m", Input::Previewed { digest, result: Ok(preview) });
    let members = driver.report("m").unwrap().members;
    let example = &members["candidate"]["examples"][0];
    for shown in [&example["object"], &example["fields"][0]] {
        assert_eq!(shown.as_str(), Some(r"a\n\u{1b}[2J\u{202e}"));
    }
}

#[test]
fn rejection_that_an_approval_lifted_stays_lifted_after_a_restart() {
    let digest = component("a").digest.to_string();
    let restarted = |before: &Driver<Fake>, annotations: &Value| {
        let status = Value::Object(before.report("m").unwrap().members);
        let document = json!({
            "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "status": status,
            "metadata": {"name": "m", "generation": 1, "annotations": annotations},
            "spec": manual(),
        });
        let mut host = driver();
        host.handle("m", Input::Module(Box::new(Module::from_value(&document).unwrap())));
        host
    };
    let is_rejected =
        |host: &Driver<Fake>| host.report("m").unwrap().members.contains_key("rejected");
    let (reject, both) = (
        json!({"innkeeper.dev/reject": digest}),
        json!({"innkeeper.dev/reject": digest, "innkeeper.dev/approve": digest}),
    );
    // Given a rejection and then an approval, which leave both annotations.
    let mut host = held();
    annotate(&mut host, &reject);
    assert!(is_rejected(&host));
    annotate(&mut host, &both);
    assert!(!is_rejected(&host));
    assert!(!is_rejected(&restarted(&host, &both)), "the approval came later");
    // When the annotation is removed while no host runs, it counts again.
    let mut host = restarted(&host, &json!({}));
    assert!(!host.report("m").unwrap().members.contains_key("usedRejection"));
    annotate(&mut host, &reject);
    assert!(is_rejected(&host));
    assert!(is_rejected(&restarted(&host, &reject)));
}
