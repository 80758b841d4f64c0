//! `innkeeper modules approve`: an approval that has counted before is withdrawn first.

use serde_json::json;

use super::super::approve;
use super::server::{MODULE, Server};

#[tokio::test(start_paused = true)]
async fn approval_is_written_once_when_it_has_not_counted_before() {
    let server = Server::start().await;
    let digest = server.earlier.digest.to_string();
    approve(&server.connect("", &[]).host(), MODULE, Some(&digest)).await.unwrap();
    let sent = server.take();
    let decisions: Vec<_> = sent.iter().filter_map(|one| one.decision()).collect();
    assert_eq!(decisions, [[&*digest, ""]]);
}

#[tokio::test(start_paused = true)]
async fn used_approval_is_renewed_once_the_host_has_observed_that_it_is_withdrawn() {
    let server = Server::start().await;
    let digest = server.earlier.digest.to_string();
    server.observe(&json!({ "usedApproval": digest })).await;
    let is_withdrawn = |module: &serde_json::Value| {
        module["metadata"]["annotations"]["innkeeper.dev/approve"] == ""
    };
    let (client, unused) = (server.connect("", &[]).host(), json!({ "usedApproval": null }));
    let (result, ()) = tokio::join!(
        approve(&client, MODULE, Some(&digest)),
        server.observe_when(is_withdrawn, &unused)
    );
    result.unwrap();
    let sent = server.take();
    let decisions: Vec<_> = sent.iter().filter_map(|one| one.decision()).collect();
    assert_eq!(decisions, [["", ""], [&*digest, ""]]);
}

#[tokio::test(start_paused = true)]
async fn used_approval_is_not_renewed_when_no_host_observes_its_withdrawal() {
    let server = Server::start().await;
    let digest = server.earlier.digest.to_string();
    server.observe(&json!({ "usedApproval": digest })).await;
    let began = tokio::time::Instant::now();
    let approved = approve(&server.connect("", &[]).host(), MODULE, Some(&digest)).await;
    let error = approved.unwrap_err().to_string();
    assert!(error.contains("the operator has not observed"), "{error}");
    assert!(began.elapsed() < std::time::Duration::from_secs(11), "{:?}", began.elapsed());
    assert_eq!(server.decisions().await, [String::new(), String::new()]);
}
