//! kubectl prints the same, whether the cluster is real or simulated.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::path::PathBuf;
use std::sync::LazyLock;
use std::thread;

use innkeeper_kubectl_tests::commands::{
    BEFORE, COMMANDS, DEFINITIONS, DOCUMENTS, EXPLAIN_LIMITS, EXPLAIN_SPEC, MODULE_TYPES, WATCHES,
    WHILE,
};
use innkeeper_kubectl_tests::side::{Printed, Side};
use serde_json::{Map, Value};
use similar::TextDiff;

/// Deletes what a real server says of Services that it finds before their addresses are noted down.
const FORGET_REPAIRS: &str =
    "delete events --all-namespaces --field-selector reason=ClusterIPNotAllocated";

/// What one side answered.
struct Transcript {
    commands: Vec<Printed>,
    watches: Vec<Vec<String>>,
    documents: Vec<Value>,
    definitions: Value,
}

/// Both sides, each asked once for all tests.
static TRANSCRIPTS: LazyLock<[Transcript; 2]> = LazyLock::new(|| {
    let real = thread::spawn(|| record(Side::real().unwrap()));
    let simulated = record(Side::simulated().unwrap());
    [real.join().unwrap(), simulated]
});

fn record(mut side: Side) -> Transcript {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("manifests");
    side.settle_in("watched", &folder).unwrap();
    let mut watches = Vec::new();
    for (line, first, then) in WATCHES {
        for line in BEFORE {
            side.run(line, &folder).unwrap();
        }
        watches.push(side.watch(line, *first, WHILE, *then, &folder).unwrap());
    }
    side.settle_in("shop", &folder).unwrap();
    let run = |line: &&str| {
        // A real server looks after its addresses at times of its own, and says so.
        if line.contains("events") || line.starts_with("describe service ") {
            side.run(FORGET_REPAIRS, &folder).unwrap();
        }
        side.run(line, &folder).unwrap()
    };
    let commands = COMMANDS.iter().map(run).collect();
    let document =
        |path: &&str| -> Value { serde_json::from_str(&side.raw(path).unwrap()).unwrap() };
    let documents = DOCUMENTS.iter().map(document).collect();
    let definitions = document(&DEFINITIONS)["definitions"].take();
    Transcript { commands, watches, documents, definitions }
}

/// What differs, for people.
fn difference(what: &str, real: &str, simulated: &str) -> String {
    let diff = TextDiff::from_lines(real, simulated);
    format!(
        "{}",
        diff.unified_diff().context_radius(1).header(&format!("{what}, real"), "simulated")
    )
}

#[test]
fn kubectl_prints_the_same_for_a_real_cluster_and_a_simulated_one() {
    let [real, simulated] = &*TRANSCRIPTS;
    let mut different = Vec::new();
    for ((line, real), simulated) in COMMANDS.iter().zip(&real.commands).zip(&simulated.commands) {
        if real == simulated {
            continue;
        }
        let mut lines = vec![format!("$ kubectl {line}")];
        if real.code != simulated.code {
            lines
                .push(format!("exit status: real {:?}, simulated {:?}", real.code, simulated.code));
        }
        for (what, one, other) in
            [("output", &real.out, &simulated.out), ("error", &real.error, &simulated.error)]
        {
            if one != other {
                lines.push(difference(what, one, other));
            }
        }
        different.push(lines.join("\n"));
    }
    let (count, of) = (different.len(), COMMANDS.len());
    assert!(different.is_empty(), "{count} of {of} commands differ:\n{}", different.join("\n"));
    // That most of them work is the lists' own doing.
    let worked = real.commands.iter().filter(|printed| printed.code == Some(0)).count();
    assert!(2 * worked > of, "only {worked} of {of} commands are accepted");
}

#[test]
fn watches_show_the_same_events_on_both_servers() {
    let [real, simulated] = &*TRANSCRIPTS;
    for ((watch, real), simulated) in WATCHES.iter().zip(&real.watches).zip(&simulated.watches) {
        assert_eq!(real, simulated, "{}", watch.0);
    }
}

#[test]
fn every_type_is_published_as_the_real_server_publishes_it() {
    let [real, simulated] = &*TRANSCRIPTS;
    for ((path, real), simulated) in DOCUMENTS.iter().zip(&real.documents).zip(&simulated.documents)
    {
        let schemas = simulated["components"]["schemas"].as_object().unwrap();
        assert!(schemas.len() > 2, "{path} has {} types", schemas.len());
        same_types(path, schemas, &real["components"]["schemas"]);
    }
}

#[test]
fn every_type_of_openapi_v2_is_published_as_the_real_server_publishes_it() {
    let [real, simulated] = &*TRANSCRIPTS;
    let simulated = simulated.definitions.as_object().unwrap();
    assert!(simulated.contains_key("dev.innkeeper.test.v1.Shape"), "custom kinds are published");
    same_types(DEFINITIONS, simulated, &real.definitions);
}

/// Fails if a real server publishes one of these types otherwise.
fn same_types(path: &str, simulated: &Map<String, Value>, real: &Value) {
    for (name, schema) in simulated {
        let mut published = real[name].clone();
        // Of types that all groups have, the groups are not shown.
        if schema.get("x-kubernetes-group-version-kind").is_none()
            && let Some(members) = published.as_object_mut()
        {
            members.remove("x-kubernetes-group-version-kind");
        }
        assert_eq!(schema, &published, "{name} in {path}");
    }
}

#[test]
fn explain_prints_the_description_of_every_field_of_a_module() {
    let [real, _] = &*TRANSCRIPTS;
    let index = DOCUMENTS.iter().position(|path| *path == MODULE_TYPES).unwrap();
    let schemas = &real.documents[index]["components"]["schemas"];
    let spec = &schemas["dev.innkeeper.v1alpha1.Module"]["properties"]["spec"];
    for (line, object) in [(EXPLAIN_SPEC, spec), (EXPLAIN_LIMITS, &spec["properties"]["limits"])] {
        let index = COMMANDS.iter().position(|command| *command == line).unwrap();
        // kubectl wraps the lines, and transcripts have a placeholder for each time.
        let is_kept = |word: &&str| !word.contains("AGE") && !word.contains(char::is_numeric);
        let one_line =
            |text: &str| text.split_whitespace().filter(is_kept).collect::<Vec<_>>().join(" ");
        let explained = one_line(&real.commands[index].out);
        let fields = object["properties"].as_object().unwrap();
        assert!(fields.len() > 5, "{line}: {} fields", fields.len());
        for (name, field) in fields {
            let description = one_line(field["description"].as_str().unwrap());
            assert!(explained.contains(&description), "{line} lacks {name}: {description}");
        }
    }
}
