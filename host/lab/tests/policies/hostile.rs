//! Policies that trap, never end or answer nonsense: the lab goes on.

use std::time::Duration;

use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::json;

use crate::stage::{Stage, block_on, config_map};

/// Guests that give no verdict, and what the message has for each.
fn broken() -> [(&'static str, Tiny, &'static str); 4] {
    let policy = || Tiny::policy(ALLOWED);
    [
        ("traps", policy().review_wat("unreachable"), "the guest trapped"),
        ("loops", policy().review_wat("(loop $l (br $l))"), "longer than 50ms"),
        ("nonsense", Tiny::policy("{}"), "missing field `allowed`"),
        ("undecided", policy().decision(1, "\u{1b}[2J \"quoted\""), r"\\u{1b}[2J"),
    ]
}

#[test]
fn policy_without_a_verdict_denies_under_fail_and_not_under_ignore() {
    block_on(async {
        for (name, guest, why) in broken() {
            // Given a policy under Fail, which is the default.
            let spec = |failure: Option<&str>| json!({"policy": {"failurePolicy": failure}, "limits": {"timeout": "50ms"}});
            let stage = Stage::start(&[(name, guest.clone(), spec(None))]).await;

            // Then a request fails with the reason, and not the next one of another kind.
            let (code, message) = stage.refusal(&config_map("a", "1")).await;
            assert_eq!(code, 500, "{message}");
            let begins = format!(
                "Internal error occurred: failed calling webhook \"{name}.policy.innkeeper.dev\": failed to call webhook: an error on the server (\"policy {name} failed: "
            );
            assert!(message.starts_with(&begins) && message.contains(why), "{message}");
            assert_eq!(stage.config_map("a").await, None);
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
            stage.apply(&secret).await.unwrap();

            // Then the lab goes on, and ends.
            stage.lab.pass(Duration::from_mins(1)).await;
            assert!(stage.lab.end().await);

            // Given the same policy under Ignore, then the request is admitted.
            let stage = Stage::start(&[(name, guest, spec(Some("Ignore")))]).await;
            stage.apply(&config_map("a", "1")).await.unwrap();
            assert!(stage.config_map("a").await.is_some());
            assert!(stage.lab.end().await);
        }
    });
}

#[test]
fn policy_that_never_ends_does_not_delay_the_other_one() {
    block_on(async {
        let endless = Tiny::policy(ALLOWED).review_wat("(loop $l (br $l))");
        let denies = Tiny::policy(r#"{"allowed":false,"message":"no"}"#);
        let spec = json!({"policy": {"failurePolicy": "Ignore"}, "limits": {"timeout": "50ms"}});
        let modules = [("a", endless, spec), ("b", denies, json!({"policy": {}}))];
        let stage = Stage::start(&modules).await;
        for _ in 0..5 {
            let (code, message) = stage.refusal(&config_map("a", "1")).await;
            assert_eq!(code, 403, "{message}");
            assert!(message.ends_with("\"b.policy.innkeeper.dev\" denied the request: no"));
        }
    });
}
