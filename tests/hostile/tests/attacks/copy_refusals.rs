//! Refusals of requests about a copy whose body has no value of it: a webhook sees the live copy.

use innkeeper_hostile_tests::{Arena, block_on};
use serde_json::json;

use crate::leak::quotes;
use crate::log::keep_log;
use crate::value_sources::{
    arena, copy, desires, pull, quote_in_refusals, quoting, secret, secret_path, texts,
};

/// Checks that a refusal is reported, and that no text quotes the value.
async fn refusal_is_hidden(arena: &Arena, name: &str) {
    let texts = texts(arena, name).await;
    assert!(texts.contains("the API server's message is hidden"), "{texts}");
    assert!(!quotes(&texts), "{texts}");
    assert_eq!(quoting(), [""; 0]);
}

#[test]
fn webhook_that_refuses_the_delete_of_a_copy_is_not_quoted() {
    block_on(async {
        keep_log();
        let arena = arena().await;
        arena.install(&desires("deleted", &[copy("copy", &pull())], &[pull()])).await;
        arena.primary_says("deleted", "Synced", "True", "Applied").await;
        quote_in_refusals(&arena, &["DELETE"]).await;
        let module = "/apis/innkeeper.dev/v1alpha1/modules/deleted";
        let at_once =
            json!({"spec": {"rollout": {"strategy": "Immediate", "rollbackWindow": "0s"}}});
        arena.merge(module, &at_once).await;

        let next = desires("deleted", &[], &[pull()]).objects();
        arena.apply(next.iter().find(|one| one["binaryData"].is_object()).unwrap()).await;
        arena.pass(60).await;

        assert!(arena.get(&secret_path("deleted", "copy")).await.is_some());
        refusal_is_hidden(&arena, "deleted").await;
    });
}

#[test]
fn webhook_that_refuses_a_merge_of_another_module_into_a_copy_is_not_quoted() {
    block_on(async {
        keep_log();
        let arena = arena().await;
        arena.install(&desires("merged", &[copy("copy", &pull())], &[pull()])).await;
        arena.primary_says("merged", "Synced", "True", "Applied").await;
        quote_in_refusals(&arena, &["UPDATE"]).await;

        let mut object = secret("attack-merged", "copy", &json!({}));
        object.as_object_mut().unwrap().remove("data");
        object["metadata"]["labels"] = json!({"example.com/a": "b"});
        let merge = json!({"object": object, "policy": ["merge"]});
        let attack = desires("merges", &[merge], &[]);
        let module = attack.objects().into_iter().find(|one| one["kind"] == "Module").unwrap();
        let mut spec = module["spec"].clone();
        spec["allowCrossNamespace"] = json!(true);
        arena.install(&attack.spec(spec)).await;
        arena.pass(60).await;

        refusal_is_hidden(&arena, "merges").await;
    });
}
