//! The rights of a team in docs/install.md suffice for the commands, and each of them is needed.

use super::super::rollback::{Arguments, run};
use super::super::{approve, decide, get};
use super::server::{MODULE, Server};

/// The objects of the page that give the group `team-a` its rights.
fn rights() -> String {
    let page = include_str!("../../../../../docs/install.md");
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.into_iter().find(|block| block.contains("team-a-acts")).unwrap();
    let lines = block.lines().map(|line| line.strip_prefix("   ").unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test(start_paused = true)]
async fn team_with_the_rights_of_the_page_approves_rejects_and_rolls_back() {
    let server = Server::start().await;
    server.apply_all(&rights()).await;
    let client = server.connect("anna", &["team-a"]).host();
    get(&client, MODULE).await.unwrap();
    let digest = server.earlier.digest.to_string();
    approve(&client, MODULE, Some(&digest)).await.unwrap();
    decide(&client, MODULE, "", &digest).await.unwrap();
    decide(&client, MODULE, "", "").await.unwrap();
    run(&client, &Arguments::new(MODULE, None, None)).await.unwrap();
    assert_eq!(server.decisions().await[1], server.active.digest.to_string());
}

#[tokio::test(start_paused = true)]
async fn team_without_one_of_the_rights_of_a_rollback_changes_nothing() {
    for (right, other, expected) in [
        ("resources: [configmaps]", "resources: [pods]", "cannot get resource \"configmaps\""),
        ("verbs: [impersonate]", "verbs: [get]", "the user may not impersonate"),
        ("verbs: [update, patch, delete]", "verbs: [update]", "cannot patch resource \"modules\""),
    ] {
        let server = Server::start().await;
        let without = rights().replace(right, other);
        assert_ne!(without, rights(), "{right}");
        server.apply_all(&without).await;
        let before = server.module().await;
        let client = server.connect("anna", &["team-a"]).host();
        let error = run(&client, &Arguments::new(MODULE, None, None)).await.unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(expected), "{error}");
        assert_eq!(server.module().await, before, "{right}");
    }
}
