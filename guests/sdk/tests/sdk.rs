//! What guest authors can rely on.

use innkeeper_sdk::ConditionStatus::{False, True, Unknown};
use innkeeper_sdk::kinds::{ConfigMap, Deployment, Service};
use innkeeper_sdk::testing::{FakeReader, Scenario};
use innkeeper_sdk::{
    Apply, Context, Describe, Desired, Labels, LogLevel, Manifest, Metadata, Observed, Outcome,
    Policy, Primary, RawOutcome, ReadError, Readiness, ReadinessState, Reconciler, Resource,
    condition, event, read, reconcile_text,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A primary whose spec selects what the guest under test does.
#[derive(Deserialize)]
struct Probe {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    /// Selects a branch of `reconcile`.
    act: String,
}

impl Resource for Probe {
    const API_VERSION: &'static str = "example.com/v1";
    const KIND: &'static str = "Probe";
    const PLURAL: &'static str = "probes";
}

impl Primary for Probe {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

struct Guest;

impl Reconciler for Guest {
    type Primary = Probe;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Probe>("probe", "1.0.0")
            .owns::<ConfigMap>()
            .owns_if_served::<Service>()
            .reads::<read::Secret>()
            .finalizes("example.com/probe")
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<Probe>) -> Outcome {
        let one = || ConfigMap::new("one").data("key", "value");
        let desired = Desired::new();
        match observed.primary().spec.act.as_str() {
            "everything" => desired
                .object_with(one().label("a", "b"), [Policy::CreateOnly, Policy::Orphan])
                .independent_object(
                    ConfigMap::new("two").namespace("elsewhere").annotation("c", "d"),
                )
                .keep::<ConfigMap>("", "three")
                .status(&json!({ "count": 2 }))
                .condition(condition::is_true("Fine", "Because", "of this"))
                .condition(condition::is_false("Bad", "Because", ""))
                .condition(condition::unknown("Strange", "Because", ""))
                .event(event::warning("Careful", "look here"))
                .requeue_after(30)
                .partial(),
            "ready" => desired
                .object(one())
                .object(Service::new("web", &Labels::new()).port(80, "http"))
                .ready_condition(observed)
                .complete_when_ready(observed),
            "undeclared" => {
                desired.object(Deployment::new("no", &Labels::new(), template())).complete()
            }
            "unwritable" => desired.status(&Unwritable).complete(),
            "finalize" if observed.is_deleting() => desired.finalized().complete(),
            "secret" => match context.get::<read::Secret>(observed.namespace(), "password") {
                Ok(secret) => {
                    context.info("there is a password");
                    desired.object(one().data("digest", &secret.object.data["value"])).complete()
                }
                Err(error) => Outcome::failed("NoPassword", error.to_string()),
            },
            "parameters" => match observed.parameters::<Vec<String>>() {
                Ok(names) => desired.status(&json!({ "names": names })).complete(),
                Err(error) => Outcome::failed_permanently("BadParameters", error.to_string()),
            },
            "refused" => Outcome::refused("NameTooLong", "the name has more than 63 characters"),
            other => Outcome::failed_permanently("UnknownAct", format!("`{other}` is not an act")),
        }
    }
}

fn template() -> innkeeper_sdk::kinds::PodTemplate {
    innkeeper_sdk::kinds::PodTemplate::new(&Labels::new())
}

/// A value that cannot be serialized.
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("this value has no JSON form"))
    }
}

fn act(act: &str) -> Scenario<Guest> {
    Scenario::of(json!({ "metadata": { "name": "probe" }, "spec": { "act": act } }))
}

fn secret() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "password" },
        "data": { "value": "0123456789abcdef" },
    })
}

#[test]
fn outcome_of_a_guest_is_a_document_that_the_host_accepts() {
    // `run` reads the document as strictly as the host.
    let run = act("everything").run();
    run.is_partial()
        .desires_objects(2)
        .keeps::<ConfigMap>("three")
        .status("/count", 2)
        .condition("Fine", True, "Because")
        .condition("Bad", False, "Because")
        .condition("Strange", Unknown, "Because")
        .event("Careful")
        .requeues_after(30);
    run.desires::<ConfigMap>("one")
        .with("/apiVersion", "v1")
        .with("/metadata/labels/a", "b")
        .without("/metadata/namespace")
        .policy(Policy::CreateOnly)
        .policy(Policy::Orphan);
    run.desires::<ConfigMap>("two")
        .with("/metadata/namespace", "elsewhere")
        .with("/metadata/annotations/c", "d")
        .without("/data")
        .policy(Policy::Independent);
}

#[test]
fn outcome_is_partial_until_all_desired_objects_are_ready() {
    let one = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "one" } });
    let web = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" } });

    act("ready").run().is_partial().condition_says("Ready", "ConfigMap one does not exist yet");
    act("ready")
        .owns_ready(one.clone())
        .owns_unready(web.clone(), "no address yet")
        .run()
        .is_partial()
        .condition_says("Ready", "Service web: no address yet");
    let failed = Readiness { state: ReadinessState::Failed, message: "broken".to_owned() };
    act("ready")
        .owns_ready(one.clone())
        .owns(web.clone(), failed)
        .run()
        .is_partial()
        .condition("Ready", False, "Failed");
    act("ready").owns_ready(one.clone()).owns_ready(web).run().is_complete();
    // Objects of kinds that are not served do not count.
    act("ready").owns_ready(one).without::<Service>().run().is_complete();
}

#[test]
fn object_is_unready_when_only_another_version_of_its_name_exists() {
    let other = json!({ "apiVersion": "v2", "kind": "ConfigMap", "metadata": { "name": "one" } });
    act("ready")
        .owns_ready(other)
        .run()
        .condition_says("Ready", "ConfigMap one does not exist yet");
}

#[test]
#[should_panic(expected = "the manifest does not own")]
fn run_panics_when_the_guest_desires_an_undeclared_kind() {
    act("undeclared").run();
}

#[test]
fn outcome_is_a_failure_when_the_status_cannot_be_serialized() {
    let run = act("unwritable").run();
    run.failed_because("UnwritableOutcome");
    assert!(run.failure().unwrap().message.contains("this value has no JSON form"));
}

#[test]
fn deleted_primary_is_finalized_when_the_guest_ends_finalization() {
    act("finalize").deleting().run().is_complete().is_finalized();
}

#[test]
fn failure_is_permanent_only_when_the_guest_says_so() {
    assert!(act("nonsense").run().failed_because("UnknownAct").failure().unwrap().permanent);
    assert!(!act("secret").run().failed_because("NoPassword").failure().unwrap().permanent);
}

#[test]
fn refused_outcome_is_permanent_and_sets_the_condition_ready() {
    let run = act("refused").run();
    assert!(run.failed_because("NameTooLong").failure().unwrap().permanent);
    run.condition("Ready", False, "NameTooLong").condition_says("Ready", "63 characters");
}

#[test]
fn read_returns_a_typed_object_or_an_error_that_names_the_cause() {
    let run = act("secret").with_object(secret()).run();
    run.is_complete().desires::<ConfigMap>("one").with("/data/digest", "0123456789abcdef");
    assert_eq!(run.logged(), [(LogLevel::Info, "there is a password".to_owned())]);

    let message = |scenario: Scenario<Guest>| scenario.run().failure().unwrap().message.clone();
    assert_eq!(message(act("secret")), "the object does not exist");
    assert_eq!(
        message(act("secret").without::<read::Secret>()),
        "the API server does not serve this kind"
    );
    assert!(
        message(act("secret").with_object(secret()).deny_reads::<read::Secret>())
            .contains("get Secret (v1) in default")
    );
    let mut strange = secret();
    strange["data"] = json!("text");
    assert!(message(act("secret").with_object(strange)).contains("Secret password"));
}

#[test]
fn list_returns_matching_objects_in_order() {
    let manifest = Guest::describe();
    let mut reader = FakeReader::of(&manifest);
    for (namespace, name, app) in
        [("b", "x", "web"), ("a", "z", "web"), ("a", "y", "web"), ("a", "w", "db")]
    {
        let mut one = secret();
        one["metadata"] = json!({ "namespace": namespace, "name": name, "labels": { "app": app } });
        reader.add(one, Readiness::default());
    }
    let context = Context::new(&reader);
    let names = |namespace: &str, selector: &str| -> Vec<String> {
        let list = context.list::<read::Secret>(namespace, selector).unwrap();
        list.into_iter().map(|one| one.object.metadata.name).collect()
    };
    assert_eq!(names("", "app=web"), ["y", "z", "x"]);
    assert_eq!(names("a", ""), ["w", "y", "z"]);
    assert!(matches!(context.list::<read::Secret>("", "a b"), Err(ReadError::Invalid(_))));
    assert!(matches!(context.list::<read::Deployment>("", ""), Err(ReadError::Undeclared)));
}

#[test]
fn answer_names_the_fields_that_the_run_read_when_the_host_takes_them() {
    let mut reader = FakeReader::of(&Guest::describe());
    let mut stored = secret();
    stored["metadata"]["namespace"] = json!("default");
    reader.add(stored, Readiness::default());
    let mut observed = json!({
        "object": {"metadata": {"name": "probe", "namespace": "default"}, "spec": {"act": "secret"}},
    });
    let answer = |observed: &Value| match reconcile_text::<Guest>(&reader, &observed.to_string()) {
        RawOutcome::Complete(text) => serde_json::from_str::<Value>(&text).unwrap(),
        other => panic!("{other:?}"),
    };
    // An earlier host would refuse the member.
    assert_eq!(answer(&observed).get("readFields"), None);
    observed["reportReadFields"] = json!(true);
    let fields = &answer(&observed)["readFields"];
    assert_eq!(fields[0]["kind"], "Probe");
    assert_eq!(fields[0]["fields"]["f:spec"], json!({"f:act": {}}));
    assert_eq!(
        (&fields[1]["kind"], &fields[1]["fields"]["f:data"]),
        (&json!("Secret"), &json!({}))
    );
    assert_eq!(fields.as_array().unwrap().len(), 2);
}

#[test]
fn parameters_deserialize_into_a_type_of_the_guest() {
    act("parameters").parameters(json!(["a", "b"])).run().status("/names/1", "b");
    act("parameters").parameters(json!({ "a": 1 })).run().failed_because("BadParameters");
}

#[test]
fn run_fails_when_the_primary_does_not_fit_the_type() {
    let run = Scenario::<Guest>::of(json!({ "spec": { "act": 7 } })).run();
    let message = &run.failed_because("UnreadablePrimary").failure().unwrap().message;
    assert!(
        message.contains("the Probe cannot be deserialized") && message.contains("invalid type"),
        "{message}"
    );
}

#[test]
fn manifest_lists_owned_and_read_kinds() {
    let manifest = Guest::describe();
    assert_eq!(manifest.primary.unwrap().resource(), "probes.example.com");
    assert_eq!(manifest.owned.len(), 2);
    assert!(manifest.owned[1].optional && !manifest.owned[0].optional);
    assert_eq!(manifest.reads[0].plural, "secrets");
    assert_eq!(manifest.finalizer.as_deref(), Some("example.com/probe"));
}

#[test]
fn manifest_contains_a_crd_that_is_not_json_as_text() {
    let manifest = Describe::reconciler_of::<Probe>("probe", "1").installs("not json").manifest();
    assert!(manifest.definitions().eq(["not json"]));
}
