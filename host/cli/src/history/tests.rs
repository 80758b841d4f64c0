use expect_test::expect;
use serde_json::json;

use super::*;
use crate::primary_revisions::simulated::{Server, WEB};

async fn shown(server: &Server, named: PrimaryName<'_>) -> String {
    let now = jiff::Timestamp::from_second(300).unwrap();
    match history(&server.client(), named, now).await {
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

#[test]
fn age_is_shown_in_its_largest_unit() {
    for (seconds, expected) in
        [(-5, "0s"), (119, "119s"), (120, "2m"), (7_200, "2h"), (172_800, "2d")]
    {
        let now = Timestamp::from_second(seconds).unwrap();
        assert_eq!(age(Timestamp::UNIX_EPOCH, now), expected);
    }
}
