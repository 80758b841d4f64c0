//! A Module that is deleted: what becomes of its primaries, and what stands in the way.

use serde_json::{Value, json};

use crate::support::{Script, Stage, block_on, complete, config_map, desired, primary_path};

/// The finalizer that the host writes for a guest that gives no name.
const FINALIZER: &str = "innkeeper.dev/scripts";

/// A primary that desires an object, and nothing when it is deleted.
fn spec(object: &str) -> Value {
    json!({"complete": desired(&[config_map(object, "1")]), "finalizing": {"finalized": true}})
}

/// A stage with two primaries, whose guest has a finalizer.
async fn stage_with_two_primaries() -> Stage {
    let stage = Stage::start(Script::new().finalizes()).await;
    stage.create("one", &spec("a")).await;
    stage.create("two", &spec("b")).await;
    stage.settle().await;
    stage.writes();
    stage
}

async fn finalizers(stage: &Stage, name: &str) -> Value {
    stage.primary(name).await["metadata"]["finalizers"].clone()
}

#[test]
fn deleted_module_removes_its_finalizer_from_its_primaries_and_leaves_their_objects() {
    block_on(async {
        // Given a module with two primaries.
        let stage = stage_with_two_primaries().await;

        // When the Module is deleted.
        stage.delete_module().await;
        stage.until_module_gone().await;

        // Then the finalizer is off both, and nothing else was written.
        let mut writes = stage.writes();
        writes.sort();
        assert_eq!(writes, ["patch scripts/one", "patch scripts/two"]);
        for name in ["one", "two"] {
            assert_eq!(finalizers(&stage, name).await, Value::Null);
        }
        assert!(stage.config_map("a").await.is_some() && stage.config_map("b").await.is_some());
        let message = stage.module_event("FinalizersRemoved").await;
        assert!(message.contains("2 primaries"), "{message}");

        // And nobody reconciles the primaries any more.
        stage.apply(&config_map("a", "drift")).await;
        stage.settle().await;
        assert_eq!(stage.writes(), [""; 0]);
        stage.delete("one").await;
        assert!(!stage.has_primary("one").await);
    });
}

#[test]
fn deleted_module_without_a_finalizer_goes_at_once_and_leaves_its_objects() {
    block_on(async {
        // Given a module without a finalizer.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
        stage.settle().await;
        stage.writes();

        // When the Module is deleted, then it is gone before the host learns of it.
        stage.delete_module().await;
        assert_eq!(stage.find_module().await, None);
        stage.pass(5).await;

        // And nothing is written any more.
        stage.set_spec("one", &complete(&desired(&[config_map("a", "2")]))).await;
        stage.settle().await;
        assert_eq!(stage.writes(), [""; 0]);
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "1");
    });
}

#[test]
fn deleted_module_finalizes_primaries_that_are_being_deleted_before_it_goes() {
    block_on(async {
        // Given a primary that is being deleted, whose guest waits.
        let stage = stage_with_two_primaries().await;
        let waiting = json!({"complete": {}, "finalizing": desired(&[config_map("a", "1")])});
        stage.set_spec("one", &waiting).await;
        stage.delete("one").await;
        stage.settle().await;
        assert!(stage.has_primary("one").await);

        // When the Module is deleted, and the guest is done after 20 s.
        stage.delete_module().await;
        stage.pass(20).await;
        assert_eq!(finalizers(&stage, "two").await, Value::Null);
        assert_eq!(finalizers(&stage, "one").await, json!([FINALIZER]));
        stage.writes();
        let done = json!({"complete": {}, "finalizing": {"finalized": true}});
        stage.set_spec("one", &done).await;
        stage.until_module_gone().await;

        // Then its object was deleted before its finalizer was removed.
        assert_eq!(stage.writes(), ["delete configmaps/a", "patch scripts/one"]);
        assert!(!stage.has_primary("one").await);
    });
}

#[test]
fn deleted_module_waits_a_minute_for_a_primary_whose_guest_is_not_done() {
    block_on(async {
        // Given a primary that is being deleted, whose guest is never done.
        let stage = stage_with_two_primaries().await;
        let waiting = json!({"complete": {}, "finalizing": desired(&[config_map("a", "1")])});
        stage.set_spec("one", &waiting).await;
        stage.delete("one").await;
        stage.settle().await;
        stage.writes();

        // When the Module is deleted.
        stage.delete_module().await;
        stage.pass(55).await;
        assert!(stage.find_module().await.is_some());
        assert!(stage.has_primary("one").await);
        stage.pass(15).await;

        // Then Module and primary are gone after a minute, and the host deleted no object.
        assert_eq!(stage.find_module().await, None);
        assert!(!stage.has_primary("one").await);
        let writes = stage.writes();
        assert!(!writes.iter().any(|line| line.contains("configmaps")), "{writes:?}");
    });
}

#[test]
fn deleted_module_whose_account_may_not_change_its_primaries_says_so_and_goes_when_it_may() {
    block_on(async {
        // Given a module whose account lost the right to change its primaries.
        let stage = stage_with_two_primaries().await;
        stage.revoke("patch", "scripts").await;

        // When the Module is deleted.
        stage.delete_module().await;
        stage.pass(120).await;

        // Then the condition counts the primaries and says what to do.
        let message = stage.until_module("Ready", "False", "Finalizing").await;
        assert!(message.contains("its finalizer is still on 2 primaries"), "{message}");
        assert!(message.contains("take the finalizer innkeeper.dev/module off"), "{message}");
        assert_eq!(finalizers(&stage, "one").await, json!([FINALIZER]));

        // When the account gets the right, then the Module goes.
        stage.grant(&["patch"], crate::support::GROUP, "scripts").await;
        stage.until_module_gone().await;
        assert_eq!(finalizers(&stage, "one").await, Value::Null);
    });
}

#[test]
fn deleted_module_whose_account_may_not_change_its_primaries_names_the_missing_right() {
    block_on(async {
        // Given a Module that is being deleted, whose account may not change its primaries.
        let stage = stage_with_two_primaries().await;
        stage.revoke("patch", "scripts").await;
        stage.delete_module().await;
        stage.pass(120).await;

        // Then the condition names the right, as docs/modules.md says.
        let message = stage.until_module("Ready", "False", "Finalizing").await;
        assert!(message.contains("patch") && message.contains("scripts"), "{message}");
    });
}

#[test]
fn teardown_is_done_by_the_next_host_when_the_module_was_deleted_without_one() {
    block_on(async {
        // Given a module with two primaries, and no host.
        let stage = stage_with_two_primaries().await;
        stage.delete("one").await;
        let stopped = stage.stop().await;

        // When the Module is deleted, then it stays, with its primaries.
        stopped.delete_module().await;
        let deleted = stopped.api().get(&primary_path("one")).await.unwrap();
        assert!(deleted.is_some());

        // When a host starts, then it finalizes the deleted primary, and the Module goes.
        let stage = stopped.start().await;
        stage.until_module_gone().await;
        assert!(!stage.has_primary("one").await);
        assert_eq!(stage.config_map("a").await, None);
        assert_eq!(finalizers(&stage, "two").await, Value::Null);
        assert!(stage.config_map("b").await.is_some());
    });
}

#[test]
fn teardown_that_is_blocked_is_continued_by_the_next_host() {
    block_on(async {
        // Given a Module that is being deleted, whose account may not change its primaries.
        let stage = stage_with_two_primaries().await;
        stage.revoke("patch", "scripts").await;
        stage.delete_module().await;
        stage.pass(120).await;

        // When the host restarts, then the Module still says what stands in the way.
        let stage = stage.stop().await.start().await;
        stage.pass(120).await;
        let message = stage.until_module("Ready", "False", "Finalizing").await;
        assert!(message.contains("its finalizer is still on 2 primaries"), "{message}");
        assert_eq!(finalizers(&stage, "two").await, json!([FINALIZER]));

        // When the account gets the right, then the Module goes.
        stage.grant(&["patch"], crate::support::GROUP, "scripts").await;
        stage.until_module_gone().await;
        assert_eq!(finalizers(&stage, "two").await, Value::Null);
    });
}

#[test]
fn module_whose_finalizer_a_user_removes_leaves_its_primaries_as_they_are() {
    block_on(async {
        // Given a Module that is being deleted, whose account may not change its primaries.
        let stage = stage_with_two_primaries().await;
        stage.revoke("patch", "scripts").await;
        stage.delete_module().await;
        stage.pass(120).await;

        // When a user removes its finalizer, as the condition advises.
        stage.merge_module(&json!({"metadata": {"finalizers": []}})).await;
        stage.pass(30).await;

        // Then the Module is gone, the primaries keep theirs, and nothing reconciles them.
        assert_eq!(stage.find_module().await, None);
        assert_eq!(finalizers(&stage, "one").await, json!([FINALIZER]));
        let before = stage.runs();
        stage.writes();
        stage.set_spec("one", &spec("other")).await;
        stage.pass(60).await;
        assert_eq!(stage.runs(), before);
        assert_eq!(stage.writes(), [""; 0]);
    });
}

#[test]
fn module_that_gives_up_a_namespace_removes_its_finalizer_from_the_primaries_there() {
    block_on(async {
        // Given a module of all namespaces with two primaries.
        let stage = stage_with_two_primaries().await;

        // When it is restricted to another namespace.
        stage.merge_module(&json!({"spec": {"namespaces": ["default"]}})).await;
        stage.pass(60).await;

        // Then the finalizer is off the primaries, and their objects stay.
        for name in ["one", "two"] {
            assert_eq!(finalizers(&stage, name).await, Value::Null);
        }
        assert!(stage.config_map("a").await.is_some() && stage.config_map("b").await.is_some());
    });
}
