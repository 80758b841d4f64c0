use expect_test::expect;
use serde_json::json;

use super::*;
use crate::primary_revisions::simulated::{Server, WEB};

async fn shown(server: &Server, named: PrimaryName<'_>) -> String {
    shown_to(&server.client(), named).await
}

async fn shown_to(client: &ApiClient, named: PrimaryName<'_>) -> String {
    let now = jiff::Timestamp::from_second(300).unwrap();
    match history(client, named, now).await {
        Ok(page) => page.text().to_owned(),
        Err(error) => format!("{error:#}\n"),
    }
}

#[tokio::test]
async fn history_lists_each_revision_with_the_fields_that_differ() {
    let server = Server::start(&json!({"size": 2, "template": {"image": "c", "port": 80}})).await;
    for (number, template) in [
        (1, json!({"image": "a", "port": 8080, "x": 1, "y": 1})),
        (2, json!({"image": "b", "port": 80})),
        (3, json!({"image": "c", "port": 80})),
    ] {
        server.store(number, "spec.template", &json!({"spec": {"template": template}})).await;
    }
    server.store_without_annotation(9).await;
    expect![[r#"
        REVISION  AGE  NAME   DIFFERS FROM PRESENT IN
        3         5m   web-3  <present>
        2         5m   web-2  .spec.template.image
        1         5m   web-1  .spec.template.image .spec.template.port .spec.template.x ...
    "#]]
    .assert_eq(&shown(&server, WEB).await);
}

#[tokio::test]
async fn history_names_another_api_version_in_place_of_fields() {
    let server = Server::start(&json!({"size": 2})).await;
    server.store_in_version("example.com/v1beta1", 1, &json!({"size": 2})).await;
    server.store_in_version("example.com/v1", 2, &json!({"size": 1})).await;
    server.store_in_version("no version", 3, &json!({"size": 3})).await;
    expect![[r#"
        REVISION  AGE  NAME   DIFFERS FROM PRESENT IN
        2         5m   web-2  .spec.size
        1         5m   web-1  <fields of example.com/v1beta1>
    "#]]
    .assert_eq(&shown(&server, WEB).await);
}

#[tokio::test]
async fn kind_is_found_by_its_plural_and_group() {
    let server = Server::start(&json!({"size": 2})).await;
    server.store(1, "spec", &json!({"spec": {"size": 1}})).await;
    server.add_primary_of_other_group(&json!({"size": 3})).await;
    for (kind, found) in [
        ("Sites.example.com", "spec.size"),
        ("site.example.org", "no stored revisions\n"),
        ("site", "give one of sites.example.com, sites.example.org\n"),
        ("site.example.net", "has no stored revisions in namespace default"),
        ("pod", "pod web has no stored revisions in namespace default"),
    ] {
        let text = shown(&server, PrimaryName { kind, ..WEB }).await;
        assert!(text.contains(found), "{kind}: {text}");
    }
    let other = shown(&server, PrimaryName { namespace: "other", ..WEB }).await;
    assert!(other.contains("check the kind, the name and --namespace"), "{other}");
}

#[tokio::test]
async fn foreign_revision_that_cannot_be_read_is_left_out_and_named() {
    // Given a revision of the host, and one that is deeper than the host reads.
    let server = Server::start(&json!({"size": 2})).await;
    server.store(1, "spec", &json!({"spec": {"size": 1}})).await;
    let deep = format!(
        r#"{{"metadata": {{"name": "evil"}}, "revision": 1, "data": {}{}}}"#,
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    let damaged = r#"{"metadata": {"name": "worse"}, "data": 1e999}"#;
    let no_object = r#""text""#;
    let client = server.client_with(&[no_object, &deep, damaged]);

    // When a user lists the revisions, then a line names those that are left out.
    expect![[r"
        REVISION  AGE  NAME   DIFFERS FROM PRESENT IN
        1         5m   web-1  .spec.size
        left out: 2 ControllerRevisions, the first is evil, in namespace default cannot be read: recursion limit exceeded at line 1 column 181; the host stores no such object: delete it if nobody needs it
    "]]
    .assert_eq(&shown_to(&client, WEB).await);

    // When no revision is left, then the error says so too.
    let other = shown_to(&client, PrimaryName { name: "other", ..WEB }).await;
    assert!(other.contains("no stored revisions") && other.contains("evil"), "{other}");
}

#[tokio::test]
async fn revision_with_a_forged_api_version_of_its_controller_is_left_out() {
    let server = Server::start(&json!({"size": 2})).await;
    server.store(1, "spec", &json!({"spec": {"size": 1}})).await;
    for (index, version) in ["a b/v1", "../v1", "example.com/v1?x=", "%2e%2e/v1"].iter().enumerate()
    {
        let name = format!("evil-{index}");
        server.store_as(&name, (version, "1"), 9, "spec", &json!({"spec": {}})).await;
    }
    expect![[r"
        REVISION  AGE  NAME   DIFFERS FROM PRESENT IN
        1         5m   web-1  .spec.size
    "]]
    .assert_eq(&shown(&server, WEB).await);
}

#[test]
fn age_is_shown_in_its_largest_unit() {
    for (seconds, expected) in
        [(-5, "0s"), (119, "119s"), (120, "2m"), (7_200, "2h"), (172_800, "2d")]
    {
        let now = Timestamp::from_second(seconds).unwrap();
        assert_eq!(age(Timestamp::UNIX_EPOCH, now), expected);
    }
}
