//! `innkeeper modules rollback`: what it asks first, what it takes back, and how long it waits.

use innkeeper_modules::driver::snapshot_name;
use serde_json::{Value, json};

use super::super::rollback::{Arguments, run};
use super::server::{MODULE, Sent, Server};

/// Runs the command as an administrator.
async fn roll_back(server: &Server, digest: Option<&str>, wait: Option<u64>) -> Result<(), String> {
    let arguments = Arguments::new(MODULE, digest, wait);
    let result = run(&server.connect("", &[]).host(), &arguments).await;
    result.map_err(|error| format!("{error:#}"))
}

/// The ConfigMap that is the source of the Module.
fn source(module: &Value) -> &Value {
    &module["spec"]["source"]["configMap"]["name"]
}

#[tokio::test(start_paused = true)]
async fn rollback_asks_by_a_dry_run_before_it_rejects_and_changes_the_source() {
    let server = Server::start().await;
    let active = server.active.digest.to_string();
    roll_back(&server, None, None).await.unwrap();
    let sent = server.take();
    let at = |what: &dyn Fn(&Sent) -> bool| sent.iter().position(what).unwrap();
    let dry_run = at(&|one| one.is_of_source() && one.is_dry_run());
    let rejection = at(&|one| one.decision() == Some(["", &active]));
    let change = at(&|one| one.is_of_source() && !one.is_dry_run());
    assert!(dry_run < rejection && rejection < change, "{dry_run} {rejection} {change}");
    assert_eq!(sent.iter().filter(|one| one.method == "PATCH").count(), 3);
    assert_eq!(server.decisions().await, [String::new(), active]);
    let snapshot = snapshot_name(MODULE, server.earlier.digest);
    assert_eq!(*source(&server.module().await), json!(snapshot));
}

#[tokio::test(start_paused = true)]
async fn rollback_that_the_dry_run_refuses_rejects_nothing() {
    let server = Server::start().await;
    let before = server.module().await;
    server.refuse(Sent::is_of_source);
    let error = roll_back(&server, None, None).await.unwrap_err();
    assert!(error.contains("the test refuses it"), "{error}");
    assert_eq!(server.module().await, before);
    assert!(server.take().iter().all(|one| one.method == "GET" || one.is_dry_run()));
}

#[tokio::test(start_paused = true)]
async fn rollback_whose_source_is_refused_after_the_dry_run_lifts_the_rejection() {
    let server = Server::start().await;
    let active = server.active.digest.to_string();
    let before = source(&server.module().await).clone();
    server.refuse(|sent| sent.is_of_source() && !sent.is_dry_run());
    let error = roll_back(&server, None, None).await.unwrap_err();
    assert!(error.contains("the test refuses it"), "{error}");
    assert_eq!(server.decisions().await, [active, String::new()]);
    assert_eq!(*source(&server.module().await), before);
}

#[tokio::test(start_paused = true)]
async fn rollback_that_cannot_lift_the_rejection_says_how_to() {
    let server = Server::start().await;
    let active = server.active.digest.to_string();
    let lifts = [active.clone(), String::new()];
    server.refuse(move |sent| {
        let is_lift = sent.decision().is_some_and(|decision| decision[..] == lifts[..]);
        is_lift || sent.is_of_source() && !sent.is_dry_run()
    });
    let error = roll_back(&server, None, None).await.unwrap_err();
    let expected = format!("run `innkeeper modules approve shop {}`", &active[..12]);
    assert!(error.contains("stays rejected") && error.contains(&expected), "{error}");
    assert_eq!(server.decisions().await, [String::new(), active]);
}

#[tokio::test(start_paused = true)]
async fn rollback_to_a_snapshot_that_somebody_changed_writes_nothing() {
    let server = Server::start().await;
    let before = server.module().await;
    let name = snapshot_name(MODULE, server.earlier.digest);
    let other =
        innkeeper_modules::chunks::config_maps(&name, &server.active, &serde_json::Map::new());
    server.replace_config_map(&name, &other[0]).await;
    let error = roll_back(&server, None, None).await.unwrap_err();
    assert!(error.contains("so somebody changed it"), "{error}");
    assert_eq!(server.module().await, before);
}

#[tokio::test(start_paused = true)]
async fn rollback_waits_until_the_revision_is_active_held_or_rejected() {
    let candidate = |server: &Server, state: &str| {
        let digest = server.earlier.digest.to_string();
        json!({"candidate": {"digest": digest, "state": state, "reason": "WouldDelete",
            "message": "it would delete 1 object"}})
    };
    for (outcome, expected) in [
        ("Active", Ok(())),
        ("Held", Err("the guest is held (WouldDelete): it would delete 1 object")),
        ("Rejected", Err("the guest is rejected: WouldDelete: it would delete 1 object")),
        ("Previewing", Err("the guest is not active after 60 s: Previewing")),
    ] {
        let server = Server::start().await;
        let digest = server.earlier.digest.to_string();
        let mut status = match outcome {
            "Active" => json!({"digest": digest}),
            state => candidate(&server, state),
        };
        if outcome == "Held" {
            status["conditions"] = json!([{"type": "Held", "status": "True", "message": "m",
                "reason": "WouldDelete", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        }
        let snapshot = json!(snapshot_name(MODULE, server.earlier.digest));
        let (result, ()) = tokio::join!(
            roll_back(&server, None, Some(60)),
            server.observe_when(|module| *source(module) == snapshot, &status)
        );
        match (result, expected) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
            (result, _) => panic!("{outcome}: {result:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rollback_that_a_user_rejects_or_no_host_observes_ends_with_the_reason_once() {
    let server = Server::start().await;
    let error = roll_back(&server, None, Some(60)).await.unwrap_err();
    let silent = "the guest is not active after 60 s: the operator has not observed the change: check that it runs";
    assert!(error.ends_with(silent), "{error}");

    let server = Server::start().await;
    let digest = server.earlier.digest.to_string();
    let status = json!({"candidate": {"digest": digest, "state": "Rejected", "reason": "Rejected",
        "message": "a user has rejected it"}});
    let snapshot = json!(snapshot_name(MODULE, server.earlier.digest));
    let (result, ()) = tokio::join!(
        roll_back(&server, None, Some(60)),
        server.observe_when(|module| *source(module) == snapshot, &status)
    );
    let error = result.unwrap_err();
    assert!(error.ends_with(": the guest is rejected: a user has rejected it"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn rollback_to_a_revision_that_was_just_approved_waits_for_the_host() {
    // Given a rejected revision that a user has approved.
    let server = Server::start().await;
    let earlier = server.earlier.digest.to_string();
    let rejected = json!([{"digest": earlier, "reason": "RolledBack", "message": "it failed"}]);
    server.observe(&json!({ "rejected": rejected, "previous": null })).await;
    let annotations = json!({"innkeeper.dev/approve": earlier, "innkeeper.dev/reject": ""});
    server
        .apply(&json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
            "metadata": {"name": MODULE, "annotations": annotations},
            "spec": server.module().await["spec"]}))
        .await;

    // When the host does not observe it, then the rollback fails in time and writes nothing.
    let error = roll_back(&server, Some(&earlier), None).await.unwrap_err();
    assert!(error.contains("the operator has not observed its approval"), "{error}");
    assert!(server.take().iter().all(|one| one.method == "GET"));

    // When it does during the wait, then the rollback goes on.
    let lifted = json!({"rejected": []});
    let (result, ()) = tokio::join!(roll_back(&server, Some(&earlier), None), async {
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        server.observe(&lifted).await;
    });
    result.unwrap();
    assert_eq!(server.decisions().await, [String::new(), server.active.digest.to_string()]);
}
