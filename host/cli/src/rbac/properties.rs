//! Rights printed for random manifests that the host accepts.

use std::collections::BTreeSet;

use innkeeper_fuzz_tests::mutate::Mutator;
use innkeeper_modules::check_manifest;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::*;

/// Random manifests; some hundreds of them are accepted.
const CASES: usize = 4_000;

/// What the rights of a manifest have to be, made without text.
fn expected(manifest: &Manifest) -> BTreeSet<String> {
    let rules = rules(manifest, true);
    let rules = rules.iter().map(|rule| {
        let mut expected = json!({
            "apiGroups": [rule.group], "resources": [rule.resource], "verbs": rule.verbs,
        });
        if !rule.names.is_empty() {
            expected["resourceNames"] = json!(rule.names);
        }
        expected.to_string()
    });
    rules.collect()
}

/// The rights of the module `pr`, as they are printed.
fn printed(manifest: &Manifest, account: &str) -> String {
    let (module, account) = ("pr".to_owned(), account.to_owned());
    let account_namespace = module::NAMESPACE.to_owned();
    let grant =
        Grant { module, account, account_namespace, namespaces: BTreeSet::new(), crds: true };
    print(manifest, &grant).unwrap().text().to_owned()
}

/// Reads printed rights back, and checks that they are those of the manifest and nothing else.
fn is_safe(manifest: &Manifest, account: &str) {
    let text = printed(manifest, account);
    let objects: Vec<Value> = serde_yaml_ng::Deserializer::from_str(&text)
        .map(|document| Value::deserialize(document).unwrap_or_else(|e| panic!("{e}: {text}")))
        .collect();
    let mut granted = BTreeSet::new();
    for object in &objects {
        let kind = object["kind"].as_str().unwrap();
        if kind == "ServiceAccount" {
            assert_eq!(object["metadata"]["name"], account, "{text}");
            continue;
        }
        assert!(
            ["ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"].contains(&kind),
            "{text}"
        );
        assert_eq!(object["metadata"]["name"], "innkeeper-module-pr", "{text}");
        for rule in object["rules"].as_array().into_iter().flatten() {
            let all: Vec<_> =
                rule.as_object().unwrap().values().filter_map(Value::as_array).collect();
            let no_wildcard = all.iter().all(|list| list.iter().all(|one| one != "*"));
            assert!(no_wildcard, "{text}");
            assert!(rule.get("nonResourceURLs").is_none(), "{text}");
            granted.insert(rule.to_string());
        }
        for subject in object["subjects"].as_array().into_iter().flatten() {
            let expected = json!({"kind": "ServiceAccount", "name": account, "namespace": "innkeeper-modules"});
            assert_eq!(*subject, expected, "{text}");
        }
    }
    assert_eq!(granted, expected(manifest), "{text}");
}

#[test]
fn rights_of_an_accepted_manifest_are_read_back_as_they_were_meant() {
    let seed = std::env::var("INNKEEPER_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("seed {seed}: INNKEEPER_TEST_SEED={seed} runs it again");
    let target = innkeeper_fuzz_tests::TARGETS.iter().find(|target| target.name == "manifest");
    let folder = std::fs::read_dir(target.unwrap().corpus()).unwrap();
    let mut paths: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let corpus = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let mut mutator = Mutator::new(seed, corpus);
    let mut accepted = 0;
    for _ in 0..CASES {
        let Ok(manifest) = serde_json::from_slice::<Manifest>(&mutator.document()) else {
            continue;
        };
        if check_manifest(&manifest).is_ok() {
            accepted += 1;
            is_safe(&manifest, "pr-account");
        }
    }
    assert!(accepted > 100, "{accepted} of {CASES} manifests are accepted: too few to show much");
}

#[test]
fn names_that_yaml_reads_as_something_else_are_quoted() {
    for name in ["null", "true", "on", "y", "007", "1e3", "0x1f", "12"] {
        let mut manifest: Manifest = serde_json::from_value(json!({
            "name": "g", "primary": {"apiVersion": format!("{name}/v1"), "kind": "K", "plural": name},
        }))
        .unwrap();
        is_safe(&manifest, name);
        // kubectl reads YAML 1.1, which takes some more words for something else.
        let text = printed(&manifest, name);
        let yaml = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let mut words = yaml.flat_map(|line| line.split([' ', '[', ']', ',']));
        assert!(!words.any(|word| word == name), "{text}");
        // A name cannot end the comment that it stands in.
        manifest.name = "g\n---\napiVersion: v1\nkind: Pod".to_owned();
        manifest.version = "1\u{2028}kind: Pod\r".to_owned();
        is_safe(&manifest, name);
    }
}
