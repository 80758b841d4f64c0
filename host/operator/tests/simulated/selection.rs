//! Which primaries a module reconciles: what its guest and its Module both select, by labels,
//! annotations and fields.

use serde_json::{Value, json};

use crate::support::{
    GROUP, NAMESPACE, Script, Setup, Stage, block_on, complete, config_map, desired, desired_with,
    primary_path,
};

/// The finalizer that the host writes for a guest that gives no name.
const FINALIZER: &str = "innkeeper.dev/scripts";

/// One way to select: the selector, and the changes of a primary after which it matches and does
/// not match any more.
struct Way {
    name: &'static str,
    selector: Value,
    select: Value,
    deselect: Value,
}

fn ways() -> [Way; 3] {
    let labels = |value: Value| json!({"metadata": {"labels": {"run": value}}});
    let annotations = |value: Value| json!({"metadata": {"annotations": {"run": value}}});
    let fields = |value: Value| json!({"spec": {"run": value}});
    let field = json!([{"key": "spec.run", "operator": "In", "values": ["yes"]}]);
    [
        Way {
            name: "label",
            selector: json!({"matchLabels": {"run": "yes"}}),
            select: labels(json!("yes")),
            deselect: labels(json!(null)),
        },
        Way {
            name: "annotation",
            selector: json!({"matchAnnotations": {"run": "yes"}}),
            select: annotations(json!("yes")),
            deselect: annotations(json!("no")),
        },
        Way {
            name: "field",
            selector: json!({ "matchFields": field }),
            select: fields(json!("yes")),
            deselect: fields(json!(null)),
        },
    ]
}

/// The spec of a primary that desires the ConfigMap `a`, and merges a label into `theirs`.
fn spec() -> Value {
    let merged = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "theirs", "namespace": NAMESPACE, "labels": {"ours": "yes"}}});
    complete(&json!({"objects": [
        {"object": config_map("a", "1")}, {"object": merged, "policy": ["merge"]}]}))
}

/// What becomes of a primary that is selected and then no more: the writes of the host, the
/// finalizers, and the objects that stay.
async fn outcome(way: &Way, setup: Setup) -> (Vec<String>, Value, Value) {
    let stage = setup.object(config_map("theirs", "1")).start().await;
    stage.create("one", &spec()).await;
    stage.settle().await;
    assert_eq!(stage.writes(), [""; 0], "{}: it is not selected yet", way.name);
    stage.merge("one", &way.select).await;
    stage.until_primary("one", "Synced", "True", "Applied").await;
    stage.settle().await;
    assert_eq!(stage.primary("one").await["metadata"]["finalizers"], json!([FINALIZER]));
    stage.merge("one", &way.deselect).await;
    stage.settle().await;
    stage.delete("one").await;
    stage.settle().await;
    let objects = json!({
        "a": stage.config_map("a").await.is_some(),
        "label": stage.config_map("theirs").await.unwrap()["metadata"]["labels"].clone(),
    });
    (stage.writes(), json!(stage.has_primary("one").await), objects)
}

#[test]
fn annotation_and_field_of_module_and_guest_act_as_a_label_when_a_primary_leaves() {
    block_on(async {
        // Given the outcome with a selector by label, as the Module gives it.
        let [label, annotation, field] = ways();
        let of_module = |way: &Way| {
            Setup::new(Script::new().finalizes()).spec(json!({ "selector": way.selector }))
        };
        let of_guest = |way: &Way| {
            Setup::new(Script::new().finalizes().with("selector", way.selector.clone()))
        };
        let expected = outcome(&label, of_module(&label)).await;
        assert_eq!(expected.1, json!(false), "nothing holds the deleted primary");
        assert_eq!(expected.2, json!({"a": false, "label": {"ours": "yes"}}));

        // Then selectors by annotation and field, of Module and guest, have the same outcome.
        for way in [&annotation, &field] {
            assert_eq!(outcome(way, of_module(way)).await, expected, "{} of the Module", way.name);
            assert_eq!(outcome(way, of_guest(way)).await, expected, "{} of the guest", way.name);
        }
    });
}

#[test]
fn label_merged_into_the_primary_stays_when_it_leaves_and_goes_when_the_guest_drops_it() {
    block_on(async {
        // Given a guest that selects by an annotation and merges a label into its primary.
        let owned = json!({"kind": {"apiVersion": format!("{GROUP}/v1"), "kind": "Script",
            "plural": "scripts", "scope": "Namespaced"}, "merges": true});
        let script =
            Script::new().owns(owned).with("selector", json!({"matchAnnotations": {"run": "yes"}}));
        let stage = Setup::new(script).may(&["get", "patch"], GROUP, "scripts").start().await;
        let merged = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Script",
            "metadata": {"name": "one", "labels": {"ours": "yes"}}});
        let labelled = complete(&desired_with(&merged, &["merge"]));
        stage.create("one", &labelled).await;
        stage.annotate("one", "run", &json!("yes")).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert_eq!(stage.primary("one").await["metadata"]["labels"]["ours"], "yes");

        // When the guest does not desire it, then the host removes the label.
        stage.set_spec("one", &complete(&json!({}))).await;
        stage.settle().await;
        assert_eq!(stage.primary("one").await["metadata"]["labels"]["ours"], Value::Null);

        // When the primary leaves the selection, then the label stays.
        stage.set_spec("one", &labelled).await;
        stage.settle().await;
        stage.annotate("one", "run", &json!(null)).await;
        stage.settle().await;
        assert_eq!(stage.primary("one").await["metadata"]["labels"]["ours"], "yes");
    });
}

#[test]
fn primary_is_reconciled_only_when_guest_and_module_both_select_it() {
    block_on(async {
        // Given a guest that selects by annotation, and a Module that selects by label.
        let script = Script::new()
            .finalizes()
            .with("selector", json!({"matchAnnotations": {"policy": "on"}}));
        let setup = Setup::new(script).spec(json!({"selector": {"matchLabels": {"team": "a"}}}));
        let stage = setup.start().await;
        let of_guest = stage.module().await["status"]["selector"].clone();
        assert_eq!(of_guest, json!({"matchAnnotations": {"policy": "on"}}));
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;

        // When a primary fulfils one of both, then the host does not touch it.
        stage.merge("one", &json!({"metadata": {"annotations": {"policy": "on"}}})).await;
        stage.settle().await;
        let label = |value: Value| json!({"metadata": {"labels": {"team": value}}});
        let annotation = |value: Value| json!({"metadata": {"annotations": {"policy": value}}});
        stage.merge("one", &annotation(json!("off"))).await;
        stage.merge("one", &label(json!("a"))).await;
        stage.settle().await;
        assert_eq!((stage.writes(), stage.runs()), (vec![], 0));

        // When it fulfils both, then it is reconciled.
        stage.merge("one", &annotation(json!("on"))).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert!(stage.config_map("a").await.is_some());
    });
}

#[test]
fn module_that_is_narrowed_by_a_field_releases_the_other_primaries() {
    block_on(async {
        // Given two primaries with the finalizer.
        let stage = Stage::start(Script::new().finalizes()).await;
        for name in ["one", "two"] {
            stage.create(name, &complete(&desired(&[config_map(name, "1")]))).await;
            stage.until_primary(name, "Synced", "True", "Applied").await;
        }

        // When the Module selects one of them by its name.
        let field = json!([{"key": "metadata.name", "operator": "In", "values": ["one"]}]);
        stage.merge_module(&json!({"spec": {"selector": {"matchFields": field}}})).await;
        stage.settle().await;

        // Then the other one loses the finalizer and keeps its object.
        assert_eq!(stage.primary("one").await["metadata"]["finalizers"], json!([FINALIZER]));
        assert_eq!(stage.primary("two").await["metadata"]["finalizers"], Value::Null);
        assert!(stage.config_map("two").await.is_some());
    });
}

#[test]
fn primary_that_left_the_selection_without_a_host_is_released_after_the_restart() {
    block_on(async {
        // Given a primary that the guest selects by annotation, and no host.
        let script =
            Script::new().finalizes().with("selector", json!({"matchAnnotations": {"run": "yes"}}));
        let stage = Setup::new(script).start().await;
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
        stage.annotate("one", "run", &json!("yes")).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        let stopped = stage.stop().await;

        // When the annotation changes, and a host starts.
        let change = json!({"metadata": {"annotations": {"run": null}}});
        stopped.merge_at(&primary_path("one"), &change).await;
        let stage = stopped.start().await;
        stage.settle().await;

        // Then the finalizer is removed, and the object stays.
        assert_eq!(stage.primary("one").await["metadata"]["finalizers"], Value::Null);
        assert!(stage.config_map("a").await.is_some());
    });
}
