//! Guesses of values that the host copies: nothing that a guest sees confirms one.

use innkeeper_hostile_tests::{block_on, guest};
use serde_json::{Value, json};

use crate::leak::{ENCODED, HOLE, leak, quotes};
use crate::log::keep_log;
use crate::value_sources::{
    arena, copy, desires, granted, owns_secrets, pull, requests, secret, secret_path, source, texts,
};

#[test]
fn right_guess_of_a_value_looks_like_a_wrong_one() {
    // What the guest sees of the copy and of the source, for two values of the source.
    let mut seen = Vec::new();
    for value in [ENCODED, "YW5vdGhlci12YWx1ZS1vZi1pdA=="] {
        for (name, made, from) in [
            ("guess", "api", pull()),
            (
                "guess",
                "copy",
                json!({"kind": "Secret", "namespace": "attack-guess", "name": "api"}),
            ),
        ] {
            block_on(async {
                let arena = arena().await;
                let outcome = json!({"objects": [copy(made, &from)], "status": {"value": HOLE}});
                let reader = leak(name, 0, &outcome).manifest(&owns_secrets().to_string());
                let mut data = source();
                data["data"]["password"] = json!(value);
                arena.apply(&data).await;
                let honest = guest(&owns_secrets(), &json!({"objects": [copy(made, &from)]}));
                for object in granted(name, &honest, std::slice::from_ref(&from)).objects() {
                    arena.apply(&object).await;
                    if object["kind"] == "Namespace" && made == "copy" {
                        arena
                            .apply(&secret("attack-guess", "api", &json!({ "password": value })))
                            .await;
                    }
                }
                arena.primary_says(name, "Synced", "True", "Applied").await;
                let next = granted(name, &reader, std::slice::from_ref(&from)).objects();
                arena.apply(next.iter().find(|one| one["kind"] == "ConfigMap").unwrap()).await;
                arena.pass(60).await;
                seen.push((made, arena.primary(name).await["status"]["value"].clone()));

                // The guest stops to copy and guesses: the digest of its own value is no news.
                let object = secret("attack-guess", made, &json!({ "password": ENCODED }));
                let guess = guest(&owns_secrets(), &json!({"objects": [{ "object": object }]}));
                let next = granted(name, &guess, std::slice::from_ref(&from)).objects();
                arena.apply(next.iter().find(|one| one["kind"] == "ConfigMap").unwrap()).await;
                arena.pass(60).await;
                let made = arena.get(&secret_path(name, made)).await.unwrap();
                assert_eq!(made["data"]["password"], ENCODED);
                let annotations = &made["metadata"]["annotations"];
                assert_eq!(annotations.get("innkeeper.dev/copied-keys"), None, "{annotations}");
            });
        }
    }
    assert_eq!(seen[0], seen[2]);
    assert_eq!(seen[1], seen[3]);
    let shown = |index: usize| seen[index].1.as_str().unwrap().trim_end_matches('*').to_owned();
    assert_eq!((shown(0), shown(1)), ("copied".to_owned(), "value source".to_owned()));
}

#[test]
fn merge_of_another_module_into_a_copy_confirms_no_guess() {
    block_on(async {
        let arena = arena().await;
        arena.install(&desires("copied", &[copy("copy", &pull())], &[pull()])).await;
        arena.primary_says("copied", "Synced", "True", "Applied").await;
        for (name, guess) in [("right", ENCODED), ("wrong", "d3Jvbmc=")] {
            let object = secret("attack-copied", "copy", &json!({ "password": guess }));
            let guess = json!({"object": object, "policy": ["merge"]});
            let attack = desires(name, &[guess], &[]);
            let module = attack.objects().into_iter().find(|one| one["kind"] == "Module").unwrap();
            let mut spec = module["spec"].clone();
            spec["allowCrossNamespace"] = json!(true);
            arena.install(&attack.spec(spec)).await;
            let message = arena.primary_says(name, "Synced", "False", "ValuesCopied").await;
            assert!(message.contains("no guest merges data into it"), "{name}: {message}");
            assert_eq!(requests(&arena, name, "PATCH", "/secrets/"), 0, "{name}");
        }
    });
}

#[test]
fn mark_that_a_tenant_writes_or_removes_shows_no_value() {
    block_on(async {
        let arena = arena().await;
        arena.install(&desires("marked", &[copy("copy", &pull())], &[pull()])).await;
        arena.primary_says("marked", "Synced", "True", "Applied").await;
        let path = secret_path("marked", "copy");
        let mark = "innkeeper.dev/copied-keys";
        for change in [Value::Null, json!("[]"), json!("no list")] {
            arena.merge(&path, &json!({"metadata": {"annotations": {mark: change}}})).await;
            arena.pass(30).await;
            let copy = arena.get(&path).await.unwrap();
            assert_eq!(copy["metadata"]["annotations"][mark], r#"["password"]"#, "{change}");
            assert_eq!(copy["data"]["password"], ENCODED);
        }
        // On a Secret of a tenant the mark hides digests, and gives the guest nothing.
        keep_log();
        let outcome = json!({"status": {"value": HOLE}});
        let reader = leak("forged", 0, &outcome).manifest(&owns_secrets().to_string());
        let mut theirs = secret("attack-forged", "api", &json!({ "password": ENCODED }));
        theirs["metadata"]["annotations"] = json!({mark: r#"["password"]"#});
        for object in granted("forged", &reader, &[pull()]).objects() {
            arena.apply(&object).await;
            if object["kind"] == "Namespace" {
                arena.apply(&theirs).await;
            }
        }
        arena.primary_says("forged", "Synced", "True", "Applied").await;
        let found = arena.primary("forged").await["status"]["value"].clone();
        assert_eq!(found.as_str().unwrap().trim_end_matches('*'), "copied");
        assert!(!quotes(&texts(&arena, "forged").await));
    });
}
