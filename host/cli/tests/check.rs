//! `innkeeper check --policies`: the policies of a set in all orders, and with reconcilers.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod support;

use std::path::Path;

use expect_test::{Expect, expect};
use innkeeper_tiny_guests::{ALLOWED, OUTCOME_AT, Tiny};
use serde_json::{Value, json};

use support::{Files, component, innkeeper, text};

/// A folder of Modules and a file of objects.
struct Set {
    files: Files,
}

impl Set {
    fn new(members: &[(&str, Tiny)]) -> Self {
        let files = Files::new();
        std::fs::create_dir(files.0.path().join("set")).unwrap();
        let set = Self { files };
        for (name, guest) in members {
            set.add(&format!("{name}.wasm"), guest.component());
        }
        set
    }

    fn add(&self, name: &str, content: impl AsRef<[u8]>) {
        self.files.write(&format!("set/{name}"), content);
    }

    /// Checks the set with these objects: the exit status, and both outputs without paths.
    fn check(&self, objects: &[Value], more: &[&str]) -> (i32, String, String) {
        let objects: Vec<String> = objects.iter().map(Value::to_string).collect();
        let objects = self.files.write("objects.yaml", objects.join("\n---\n"));
        let folder = self.files.0.path().to_str().unwrap().to_owned();
        let policies = format!("{folder}/set");
        let given = ["check", "--policies", &policies, "-f", &objects];
        let output = innkeeper(&[&given[..], more].concat());
        let hidden = |bytes: &[u8]| text(bytes).replace(&folder, "DIR");
        (output.status.code().unwrap(), hidden(&output.stdout), hidden(&output.stderr))
    }

    /// Expects this output and status of a check.
    fn prints(&self, objects: &[Value], status: i32, expected: &Expect) {
        let (code, stdout, stderr) = self.check(objects, &[]);
        expected.assert_eq(&(stdout + &stderr));
        assert_eq!(code, status);
    }
}

fn config_map(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"list": "a"},
        "metadata": {"name": name, "namespace": "web", "labels": labels}})
}

#[test]
fn policies_of_different_fields_go_together() {
    let set = Set::new(&[
        ("team", Tiny::replacing(r#""team":"""#, r#""team":"shop""#)),
        ("tier", Tiny::replacing(r#""tier":"""#, r#""tier":"front""#)),
        ("list", Tiny::replacing(r#""list":"a""#, r#""list":"b""#)),
    ]);
    let objects =
        [config_map("one", &json!({"team": "", "tier": ""})), config_map("two", &json!({}))];
    set.prints(&objects, 0, &expect![[r#"
        ok    CREATE ConfigMap web/one: list, team, tier, in all 6 orders: one result; a second pass changes nothing
        ok    CREATE ConfigMap web/two: list, team, tier, in all 6 orders: one result; a second pass changes nothing
        2 checks: 2 ok, 0 with problems, 0 without a result
    "#]]);
}

#[test]
fn policies_of_this_repository_go_together() {
    let set = Set::new(&[]);
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/policies");
    for name in ["allowed-registries", "deletion-guard", "pod-defaults", "required-labels"] {
        let module = std::fs::read(policies.join(name).join("module.yaml")).unwrap();
        set.add(&format!("{name}.yaml"), module);
        set.add(&format!("{name}.wasm"), std::fs::read(component(name)).unwrap());
    }
    let deployment = |name: &str, labels: &Value, image: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": "web", "labels": labels},
            "spec": {"selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "web", "image": image}]}}}})
    };
    let objects = [
        deployment("right", &json!({"team": "shop", "tier": "front"}), "ghcr.io/shop/web:1"),
        deployment("wrong", &json!({}), "example.com/web:1"),
        config_map("one", &json!({})),
    ];
    set.prints(&objects, 0, &expect![[r#"
        ok    CREATE Deployment web/right: pod-defaults: a second pass changes nothing
        ok    CREATE Deployment web/wrong: pod-defaults: a second pass changes nothing
        2 checks: 2 ok, 0 with problems, 0 without a result
        innkeeper: note: spec.policy.mode of the Module allowed-registries is Warn; this command shows each verdict as Enforce applies it
        innkeeper: note: spec.policy.mode of the Module required-labels is Warn; this command shows each verdict as Enforce applies it
    "#]]);
}

#[test]
fn policies_that_fight_over_a_field_are_named_with_both_orders() {
    let set = Set::new(&[
        ("backs", Tiny::replacing(r#""tier":"front""#, r#""tier":"back""#)),
        ("fronts", Tiny::replacing(r#""tier":"back""#, r#""tier":"front""#)),
        ("team", Tiny::replacing(r#""team":"""#, r#""team":"shop""#)),
    ]);
    let objects = [config_map("one", &json!({"team": "", "tier": "back"}))];
    set.prints(&objects, 1, &expect![[r#"
        FAIL  CREATE ConfigMap web/one: backs, fronts, team, in all 6 orders
              the result depends on the order of backs and fronts
                .metadata.labels.tier
                  backs, fronts, team: front
                  fronts, backs, team: back
              backs and fronts fight: backs changes the result of backs, fronts, team in a second pass
                .metadata.labels.tier
                  after backs, fronts, team: front
                  asked again: back
        1 check: 0 ok, 1 with problems, 0 without a result
    "#]]);
}

#[test]
fn policy_that_appends_each_time_is_not_idempotent() {
    let set = Set::new(&[("appends", Tiny::replacing(r#""list":"a"#, r#""list":"aa"#))]);
    set.prints(
        &[config_map("one", &json!({}))],
        1,
        &expect![[r#"
        FAIL  CREATE ConfigMap web/one: appends
              appends is not idempotent: it changes its own result
                .data.list
                  once: aa
                  twice: aaa
        1 check: 0 ok, 1 with problems, 0 without a result
    "#]],
    );
}

#[test]
fn policy_that_reads_what_another_one_sets_depends_on_the_order() {
    let set = Set::new(&[
        ("reads", Tiny::replacing(r#""team":"shop","tier":"""#, r#""team":"shop","tier":"front""#)),
        ("sets", Tiny::replacing(r#""team":"""#, r#""team":"shop""#)),
    ]);
    let objects = [config_map("one", &json!({"team": "", "tier": ""}))];
    set.prints(
        &objects,
        1,
        &expect![[r#"
        FAIL  CREATE ConfigMap web/one: reads, sets, in all 2 orders
              the result depends on the order of reads and sets
                .metadata.labels.tier
                  reads, sets: ''
                  sets, reads: front
              reads changes the result of reads, sets in a second pass
                .metadata.labels.tier
                  after reads, sets: ''
                  asked again: front
        1 check: 0 ok, 1 with problems, 0 without a result
    "#]],
    );
}

#[test]
fn policy_that_denies_the_result_of_one_order_is_named() {
    let set = Set::new(&[
        ("back", Tiny::replacing(r#""tier":"""#, r#""tier":"back""#)),
        ("front", Tiny::replacing(r#""tier":"""#, r#""tier":"front""#)),
        ("no-front", Tiny::denying(r#""tier":"front""#, "no front here")),
    ]);
    let (status, stdout, _) = set.check(&[config_map("one", &json!({"tier": ""}))], &[]);
    assert_eq!(status, 1);
    let denial =
        "no-front allows the result of back, front, and denies that of front, back: no front here";
    assert!(stdout.contains(denial), "{stdout}");
    // The original object is not the question: a policy may deny what all orders make of it.
    let (status, stdout, _) = set.check(&[config_map("one", &json!({"tier": "front"}))], &[]);
    assert_eq!(status, 0, "{stdout}");
}

#[test]
fn modules_of_the_folder_give_rules_selectors_and_conditions() {
    let set = Set::new(&[
        ("backs", Tiny::replacing(r#""tier":"front""#, r#""tier":"back""#)),
        ("fronts", Tiny::replacing(r#""tier":"back""#, r#""tier":"front""#)),
    ]);
    let objects = [config_map("one", &json!({"tier": "back"}))];
    let module = |policy: Value| {
        json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
            "metadata": {"name": "fronts"}, "spec": {"source": {}, "policy": policy}})
        .to_string()
    };
    assert_eq!(set.check(&objects, &[]).0, 1);
    // What keeps the two policies apart ends their fight.
    for policy in [
        json!({"rules": [{"groups": [""], "resources": ["secrets"], "operations": ["CREATE"]}]}),
        json!({"objectSelector": {"matchLabels": {"tier": "middle"}}}),
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}),
        json!({"matchConditions": [{"name": "a", "expression": "object.metadata.name == 'two'"}]}),
    ] {
        set.add("fronts.yaml", module(policy.clone()));
        let (status, stdout, _) = set.check(&objects, &[]);
        assert_eq!(status, 0, "{policy}: {stdout}");
        assert!(!stdout.contains("fronts") || stdout.contains("one result"), "{stdout}");
    }
    // A selector is asked about the object as other policies left it.
    set.add("fronts.yaml", module(json!({"objectSelector": {"matchLabels": {"tier": "back"}}})));
    assert_eq!(set.check(&objects, &[]).0, 1);
    // Another mode changes nothing about the check.
    set.add("fronts.yaml", module(json!({"mode": "Audit"})));
    let (status, _, stderr) = set.check(&objects, &[]);
    assert_eq!(status, 1);
    assert!(stderr.contains("spec.policy.mode of the Module fronts is Audit"), "{stderr}");
}

#[test]
fn update_is_checked_where_a_policy_reviews_only_updates() {
    let manifest = innkeeper_tiny_guests::POLICY_MANIFEST
        .replace("Validate", "Mutate")
        .replace(r#""CREATE","#, "");
    let appends = Tiny::replacing(r#""list":"a"#, r#""list":"aa"#).manifest(&manifest);
    let set = Set::new(&[("appends", appends)]);
    let (status, stdout, _) = set.check(&[config_map("one", &json!({}))], &[]);
    assert_eq!(status, 1);
    assert!(stdout.starts_with("FAIL  UPDATE ConfigMap web/one: appends"), "{stdout}");
}

#[test]
fn more_than_six_policies_are_asked_in_pairs() {
    let labels = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let sets =
        |label: &str| Tiny::replacing(&format!(r#""{label}":"""#), &format!(r#""{label}":"x""#));
    let mut members: Vec<(&str, Tiny)> = labels.map(|label| (label, sets(label))).into();
    let object: Value = labels.iter().map(|label| ((*label).to_owned(), json!(""))).collect();
    let (status, stdout, _) = Set::new(&members).check(&[config_map("one", &object)], &[]);
    assert_eq!(status, 0);
    let all = "a, b, c, d, e, f, g, h, in pairs, by name and reversed, since 8 policies have too many orders";
    assert!(stdout.contains(all), "{stdout}");
    // Two of them fight.
    members[6].1 = Tiny::replacing(r#""b":"""#, r#""b":"y""#);
    let (status, stdout, _) = Set::new(&members).check(&[config_map("one", &object)], &[]);
    assert_eq!(status, 1);
    assert!(stdout.contains("the result depends on the order of b and g"), "{stdout}");
}

#[test]
fn six_policies_and_many_objects_are_checked() {
    let labels = ["a", "b", "c", "d", "e", "f"];
    let members = labels.map(|label| {
        (label, Tiny::replacing(&format!(r#""{label}":"""#), &format!(r#""{label}":"x""#)))
    });
    let object: Value = labels.iter().map(|label| ((*label).to_owned(), json!(""))).collect();
    let objects: Vec<Value> =
        (0..10).map(|index| config_map(&format!("one-{index}"), &object)).collect();
    let (status, stdout, _) = Set::new(&members).check(&objects, &["--timeout", "3000"]);
    assert_eq!(status, 0, "{stdout}");
    assert!(
        stdout.ends_with("10 checks: 10 ok, 0 with problems, 0 without a result\n"),
        "{stdout}"
    );
}

#[test]
fn broken_policies_fail_with_their_own_status_and_harm_no_other_check() {
    let fine = || ("fine", Tiny::replacing(r#""tier":"""#, r#""tier":"x""#));
    let mutate = innkeeper_tiny_guests::POLICY_MANIFEST.replace("Validate", "Mutate");
    let large = json!({"allowed": true, "object": {"apiVersion": "v1", "kind": "ConfigMap",
        "data": {"list": "x".repeat(3 << 20)}, "metadata": {"name": "one", "namespace": "web"}}});
    for (name, broken, why) in [
        ("hangs", Tiny::policy(ALLOWED).review_wat("(loop $again (br $again))"), "longer than"),
        ("traps", Tiny::policy(ALLOWED).review_wat("unreachable"), "the guest trapped"),
        ("grows", Tiny::policy(&large.to_string()), "bytes"),
        ("gives-up", Tiny::policy(ALLOWED).decision(1, "no quota is known"), "no quota is known"),
    ] {
        let only_labelled = json!({"objectSelector": {"matchLabels": {"broken": "yes"}}});
        let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
            "metadata": {"name": name}, "spec": {"source": {}, "policy": only_labelled,
                "limits": {"timeout": "100ms"}}});
        let set = Set::new(&[fine(), (name, broken.manifest(&mutate))]);
        set.add("module.yaml", module.to_string());
        let objects: Vec<Value> = ["no", "yes", "yes", "yes", "yes"]
            .iter()
            .enumerate()
            .map(|(index, broken)| {
                config_map(&format!("o{index}"), &json!({"broken": broken, "tier": ""}))
            })
            .collect();
        let (status, stdout, stderr) = set.check(&objects, &[]);
        assert_eq!(status, 3, "{name}: {stdout}{stderr}");
        assert!(stdout.starts_with("ok    CREATE ConfigMap web/o0:"), "{name}: {stdout}");
        let failed = format!("a review of {name} failed: ");
        assert_eq!(stdout.matches(&failed).count(), 3, "{name}: {stdout}");
        assert!(stdout.contains(why), "{name}: {stdout}");
        let ended = format!("web/o4: not checked, since 3 reviews of {name} had no result");
        assert!(stdout.contains(&ended), "{name}: {stdout}");
    }
}

#[test]
fn time_that_is_over_ends_the_checks() {
    let set = Set::new(&[("team", Tiny::replacing(r#""team":"""#, r#""team":"shop""#))]);
    let (status, stdout, _) = set.check(&[config_map("one", &json!({}))], &["--timeout", "0"]);
    assert_eq!(status, 3);
    assert!(stdout.contains("not checked: the time of --timeout is over"), "{stdout}");
}

#[test]
fn answers_are_json_for_programs() {
    let set = Set::new(&[
        ("a", Tiny::replacing(r#""tier":"""#, r#""tier":"x""#)),
        ("b", Tiny::replacing(r#""tier":"""#, r#""tier":"y""#)),
    ]);
    let objects = [config_map("one", &json!({"tier": ""}))];
    let (status, stdout, _) = set.check(&objects, &["-o", "json"]);
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    let finding = &answer["checks"][0]["findings"][0];
    assert_eq!((status, &answer["summary"]["found"]), (1, &json!(1)), "{stdout}");
    assert_eq!(finding["reason"], "OrderMatters");
    assert_eq!(finding["policies"], json!(["a", "b"]));
    let values = json!([{"case": "a, b", "value": "x"}, {"case": "b, a", "value": "y"}]);
    assert_eq!(finding["fields"][0], json!({"path": ".metadata.labels.tier", "values": values}));
}

#[test]
fn files_that_cannot_be_used_are_refused() {
    let label = || Tiny::replacing(r#""team":"""#, r#""team":"shop""#);
    let objects = [config_map("one", &json!({"team": ""}))];
    let refused = |set: &Set, objects: &[Value], why: &str| {
        let (status, stdout, stderr) = set.check(objects, &[]);
        assert_eq!((status, &*stdout), (2, ""), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
    };
    refused(&Set::new(&[]), &objects, "there is no component (*.wasm) and no Module");
    refused(&Set::new(&[("No_Name", label())]), &objects, "is no name of a Module");
    let set = Set::new(&[("team", label())]);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}});
    refused(&set, &[secret], "there is nothing to check");
    set.add("team.yaml", "apiVersion: innkeeper.dev/v1alpha1\nkind: Module\nmetadata: {name: team}\nspec: {source: {}}\n");
    refused(&set, &objects, "PolicyNotGranted");
    set.add("team.yaml", "apiVersion: innkeeper.dev/v1alpha1\nkind: Module\nmetadata: {name: none}\nspec: {source: {file: ./none.wasm}}\n");
    refused(&set, &objects, "none.wasm");
    set.add("team.yaml", "a: [");
    refused(&set, &objects, "is not YAML");
    let many: Vec<Value> = (0..1_001).map(|_| objects[0].clone()).collect();
    refused(&set, &many, "at most 1000");
}

/// A reconciler of Makers that makes the ConfigMap `made`.
fn maker() -> Tiny {
    let kind = |api_version: &str, kind: &str, plural: &str| json!({"apiVersion": api_version, "kind": kind, "plural": plural, "scope": "Namespaced"});
    let manifest = json!({"name": "maker", "version": "1.0.0",
        "primary": kind("example.com/v1", "Maker", "makers"),
        "owned": [{"kind": kind("v1", "ConfigMap", "configmaps")}]});
    Tiny::default().manifest(&manifest.to_string()).outcome(0, &made().to_string())
}

/// What it desires.
fn made() -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"mode": "a", "n": "1"},
        "metadata": {"name": "made", "labels": {"app": "made"}}});
    json!({"objects": [{"object": object}]})
}

/// The definition of Makers, and one of them.
fn makers() -> [Value; 2] {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"openAPIV3Schema": {"type": "object",
        "properties": {"spec": any, "status": any}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "makers.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Maker", "plural": "makers"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": schema}]}});
    let maker = json!({"apiVersion": "example.com/v1", "kind": "Maker",
        "metadata": {"name": "one", "namespace": "web"}, "spec": {}});
    [definition, maker]
}

#[test]
fn policy_that_changes_what_a_reconciler_applies_settles() {
    let set = Set::new(&[
        ("maker", maker()),
        ("modes", Tiny::replacing(r#""mode":"a""#, r#""mode":"b""#)),
    ]);
    set.prints(
        &makers(),
        0,
        &expect![[r#"
        ok    reconciler maker: with the policies nobody writes any more after 16 s
        1 check: 1 ok, 0 with problems, 0 without a result
    "#]],
    );
}

#[test]
fn policy_and_reconciler_that_loop_are_named_with_the_field() {
    // The reconciler tries another number as long as it sees the mode of the policy.
    let number = OUTCOME_AT + made().to_string().find(r#""n":"1""#).unwrap() + 5;
    let other = format!("(i32.store8 (i32.const {number}) (i32.const {}))", u32::from('2'));
    let tries = maker().echoing().when_observed(&[r#""mode":"b""#, r#""n":"1""#], &other);
    let set = Set::new(&[
        ("harmless", Tiny::labelling("team", "shop")),
        ("maker", tries),
        ("modes", Tiny::replacing(r#""mode":"a""#, r#""mode":"b""#)),
    ]);
    set.prints(&makers(), 1, &expect![[r#"
        FAIL  reconciler maker: the host stops a fight
              the reconciler maker and the policy modes fight; Maker web/one: NotConverging: 10 rounds did not converge: the guest desires something else after each write, or another client changes the objects; the host tries again later.
                .data.n of ConfigMap web/made, changed 59 times
                  one value: '1'
                  another one: '2'
        1 check: 0 ok, 1 with problems, 0 without a result
    "#]]);
}

#[test]
fn reconciler_that_loops_alone_is_named_without_a_policy() {
    let number = OUTCOME_AT + made().to_string().find(r#""n":"1""#).unwrap() + 5;
    let other = format!("(i32.store8 (i32.const {number}) (i32.const {}))", u32::from('2'));
    let tries = maker().echoing().when_observed(&[r#""n":"1""#], &other);
    let set = Set::new(&[("maker", tries), ("modes", Tiny::labelling("team", "shop"))]);
    let (status, stdout, stderr) = set.check(&makers(), &[]);
    assert_eq!(status, 1, "{stdout}{stderr}");
    assert!(
        stdout.contains("the reconciler maker never ends, also without the policies"),
        "{stdout}"
    );
}
