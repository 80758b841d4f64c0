use clap::{Args as _, FromArgMatches as _};
use expect_test::expect;
use serde_json::json;

use super::*;
use crate::primary_revisions::simulated::{Server, WEB};

/// A server whose primary is at the newest of three revisions.
async fn server() -> Server {
    let server =
        Server::start(&json!({"size": 2, "template": {"image": "b", "added": true}})).await;
    for (number, template) in [
        (1, json!({"image": "old"})),
        (2, json!({"image": "a"})),
        (3, json!({"image": "b", "added": true})),
    ] {
        server.store(number, "spec.template", &json!({"spec": {"template": template}})).await;
    }
    server
}

async fn plan(server: &Server, number: Option<i64>) -> Result<Undo, String> {
    Undo::plan(&server.client(), WEB, number).await.map_err(|error| format!("{error:#}"))
}

/// What the command prints for these arguments.
async fn printed(server: &Server, more: &[&str]) -> String {
    printed_to(&server.client(), more).await
}

async fn printed_to(client: &ApiClient, more: &[&str]) -> String {
    let words = [&["undo", "site", "web"], more].concat();
    let matches = Arguments::augment_args(clap::Command::new("undo")).get_matches_from(words);
    let arguments = Arguments::from_arg_matches(&matches).unwrap();
    answer(client, WEB, &arguments).await.unwrap().text().to_owned()
}

#[tokio::test]
async fn primary_returns_to_a_revision_next_to_one_that_cannot_be_read() {
    let server = server().await;
    let client = server.client_with(&[r#"{"metadata": {"name": "evil"}, "data": 1e999}"#]);
    let text = printed_to(&client, &["--to-revision", "1"]).await;
    assert!(text.contains("left out: ControllerRevision evil in namespace default"), "{text}");
    assert!(text.contains("Site default/web returned to revision 1 (web-1)"), "{text}");
    assert_eq!(server.primary().await["spec"]["template"], json!({"image": "old"}));
}

async fn send(server: &Server, undo: &Undo, dry_run: DryRun) -> Result<String, String> {
    undo.send(&server.client(), dry_run).await.map_err(|error| format!("{error:#}"))
}

#[tokio::test]
async fn newest_revision_that_differs_is_planned_when_no_number_is_given() {
    let server = server().await;
    server.merge("gitops", &json!({"spec": {"template": {"image": "b2"}}})).await;
    server.merge("gitops", &json!({"spec": {"template": {"image": "b"}}})).await;
    let undo = plan(&server, None).await.unwrap();
    expect![[r#"
        --- Site default/web (present)
        +++ revision 2 (web-2)
        @@ -1,4 +1,3 @@
         spec:
           template:
        -    added: true
        -    image: b
        +    image: a
        managers of the changed fields: gitops (Update), innkeeper-test (Update)
        If one of them applies its fields again, as a GitOps controller does, it sets them to its own values: change its source too.
    "#]].assert_eq(undo.difference().unwrap().text());
    let message = send(&server, &undo, DryRun::No).await.unwrap();
    expect!["Site default/web returned to revision 2 (web-2)"].assert_eq(&message);
    let primary = server.primary().await;
    assert_eq!(primary["spec"], json!({"size": 2, "template": {"image": "a"}}));
    let managers = primary["metadata"]["managedFields"].to_string();
    assert!(managers.contains(FIELD_MANAGER), "{managers}");
}

#[tokio::test]
async fn undo_without_a_number_changes_nothing_and_prints_the_command_line() {
    let server = server().await;
    let before = server.primary().await;
    let shown = printed(&server, &[]).await;
    let end: Vec<_> = shown.lines().rev().take(2).collect();
    expect![[r#"
        [
            "  innkeeper undo site web --namespace default --to-revision 2",
            "Nothing has changed: undo writes only with --to-revision. If you want this difference, run",
        ]
    "#]].assert_debug_eq(&end);
    let checked = printed(&server, &["--dry-run"]).await;
    assert!(checked.contains("would return to revision 2 (web-2) (dry run)"), "{checked}");
    assert!(checked.ends_with(&format!("{}\n", end[0])), "{checked}");
    assert_eq!(server.primary().await, before);
}

#[tokio::test]
async fn undo_without_a_number_writes_no_revision_of_somebody_else() {
    let server = server().await;
    let before = server.primary().await;
    let data = json!({"spec": {"template": {"image": "forged"}}});
    server.store(9, "spec.template", &data).await;
    let shown = printed(&server, &[]).await;
    assert!(shown.contains("image: forged") && shown.contains("--to-revision 9"), "{shown}");
    assert_eq!(server.primary().await, before);
}

#[tokio::test]
async fn printed_command_line_has_the_flags_of_the_user_as_a_shell_reads_them() {
    let server = server().await;
    let shown = printed(&server, &["--kubeconfig", "/my files/kube", "--context", "prod"]).await;
    let command_line = shown.lines().last().unwrap();
    assert!(
        command_line.ends_with(
            "--namespace default --kubeconfig '/my files/kube' --context prod --to-revision 2"
        ),
        "{command_line}"
    );
}

#[tokio::test]
async fn undo_with_a_number_writes_and_prints_no_command_line() {
    let server = server().await;
    let shown = printed(&server, &["--to-revision", "1"]).await;
    assert!(shown.ends_with("Site default/web returned to revision 1 (web-1)\n"), "{shown}");
    assert_eq!(server.primary().await["spec"]["template"], json!({"image": "old"}));
}

#[tokio::test]
async fn undo_to_a_numbered_revision_returns_to_it() {
    let server = server().await;
    let undo = plan(&server, Some(1)).await.unwrap();
    send(&server, &undo, DryRun::No).await.unwrap();
    assert_eq!(server.primary().await["spec"]["template"], json!({"image": "old"}));
}

#[tokio::test]
async fn dry_run_changes_nothing() {
    let server = server().await;
    let before = server.primary().await;
    let undo = plan(&server, None).await.unwrap();
    let message = send(&server, &undo, DryRun::Yes).await.unwrap();
    assert!(message.ends_with("(dry run)"), "{message}");
    assert_eq!(server.primary().await, before);
}

#[tokio::test]
async fn undo_fails_when_somebody_has_changed_the_primary_meanwhile() {
    let server = server().await;
    let undo = plan(&server, None).await.unwrap();
    server.merge("editor", &json!({"spec": {"size": 3}})).await;
    let before = server.primary().await;
    let error = send(&server, &undo, DryRun::No).await.unwrap_err();
    assert!(error.contains("somebody changed Site default/web meanwhile"), "{error}");
    assert_eq!(server.primary().await, before);
}

#[tokio::test]
async fn undo_to_what_the_api_server_does_not_accept_fails_with_its_message() {
    let server = server().await;
    server.store(4, "spec.size", &json!({"spec": {"size": 9}})).await;
    let undo = plan(&server, Some(4)).await.unwrap();
    for dry_run in [DryRun::Yes, DryRun::No] {
        let error = send(&server, &undo, dry_run).await.unwrap_err();
        assert!(error.contains("spec.size"), "{error}");
    }
    assert_eq!(server.primary().await["spec"]["size"], 2);
}

#[tokio::test]
async fn undo_to_the_present_state_sends_nothing() {
    let server = server().await;
    let before = server.primary().await;
    let undo = plan(&server, Some(3)).await.unwrap();
    let message = send(&server, &undo, DryRun::No).await.unwrap();
    assert!(message.ends_with("already"), "{message}");
    assert_eq!(server.primary().await, before);
}

#[tokio::test]
async fn revision_of_another_primary_is_refused() {
    let server = server().await;
    let data = json!({"spec": {"template": {"image": "foreign"}}});
    server.store_as("web-f", ("example.com/v1", "other"), 7, "spec.template", &data).await;
    let error = plan(&server, Some(7)).await.unwrap_err();
    assert!(error.contains("revision 7 (web-f) is of another object"), "{error}");
    let undo = plan(&server, None).await.unwrap();
    assert_eq!(undo.revision.number, 2);
}

#[tokio::test]
async fn revision_of_another_api_version_is_refused() {
    let server = Server::start(&json!({"size": 2})).await;
    server.store_in_version("example.com/v1beta1", 2, &json!({"size": 1})).await;
    let before = server.primary().await;
    expect!["undo does not write revision 2 (web-2): it has fields of example.com/v1beta1, and the primary is of example.com/v1, where the same fields may mean something else; look at it with `kubectl get controllerrevision web-2 -n default -o yaml`, and edit the primary"]
        .assert_eq(&plan(&server, Some(2)).await.unwrap_err());
    expect!["Site default/web has no stored revision of example.com/v1 that differs from its present state"]
        .assert_eq(&plan(&server, None).await.unwrap_err());

    // Without a number undo goes on to the next one that it can write.
    server.store_in_version("example.com/v1", 1, &json!({"size": 3})).await;
    assert_eq!(plan(&server, None).await.unwrap().revision.number, 1);
    assert_eq!(server.primary().await, before);
}

#[tokio::test]
async fn revisions_of_a_deleted_primary_are_not_those_of_its_successor() {
    let server = server().await;
    server.replace_primary(&json!({"template": {"image": "new"}})).await;
    for number in [None, Some(2)] {
        let error = plan(&server, number).await.unwrap_err();
        let is_named = error.contains("is of another object")
            || error.contains("no stored revision that differs");
        assert!(is_named, "{error}");
    }
}

#[tokio::test]
async fn number_that_no_revision_has_is_refused() {
    let server = server().await;
    expect!["Site default/web has no revision 8; stored revisions: 3, 2, 1"]
        .assert_eq(&plan(&server, Some(8)).await.unwrap_err());
}

#[tokio::test]
async fn number_that_several_revisions_have_is_refused() {
    let server = server().await;
    let data = json!({"spec": {"size": 1}});
    server.store(5, "spec.size", &data).await;
    let primary = ("example.com/v1", &*server.uid);
    server.store_as("web-again", primary, 5, "spec.size", &data).await;
    let error = plan(&server, Some(5)).await.unwrap_err();
    assert!(error.contains("have the number 5"), "{error}");
}

#[tokio::test]
async fn revision_that_names_fields_outside_the_spec_does_not_count() {
    let server = server().await;
    let data = json!({"metadata": {"finalizers": ["example.com/forged"]}});
    server.store(6, "metadata.finalizers", &data).await;
    let error = plan(&server, Some(6)).await.unwrap_err();
    assert!(error.contains("has no revision 6"), "{error}");
}
