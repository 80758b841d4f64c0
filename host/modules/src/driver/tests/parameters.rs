//! Parameters and schemas: nothing is evaluated by the driver, and a guest never gets parameters
//! that were not checked for it.

use innkeeper_contract::JsonText;
use innkeeper_sandbox::schema::SchemaError;

use super::*;

fn sized(generation: i64, size: &Value) -> Input<Fake> {
    module(generation, &with(json!({"parameters": {"size": size}})))
}

fn with_schema(name: &str, schema: &Value) -> Input<Fake> {
    loaded(name, |manifest| manifest.parameters_schema = Some(JsonText::from(schema)))
}

fn number() -> Value {
    json!({"properties": {"size": {"type": "integer"}}})
}

fn text() -> Value {
    json!({"properties": {"size": {"type": "string"}}})
}

fn parameters(driver: &Driver<Fake>) -> Value {
    driver.active_revision("m").unwrap().spec.parameters.clone()
}

fn job(actions: &[Action<Fake>]) -> ParametersJob<Fake> {
    actions.iter().find_map(check_job).expect("a check")
}

fn ready(driver: &Driver<Fake>) -> (String, String) {
    let conditions = driver.report("m").unwrap().conditions;
    let ready = conditions.into_iter().find(|one| one.type_ == "Ready").unwrap();
    (ready.status.as_str().to_owned(), ready.reason)
}

#[test]
fn schema_is_never_evaluated_by_the_driver_itself() {
    let mut driver = driver();
    let mut endless = json!({"type": "object"});
    for _ in 0..60 {
        endless = json!({"allOf": [endless, endless.clone()]});
        if endless.to_string().len() > 1 << 20 {
            break;
        }
    }
    driver.handle("m", module(1, &spec()));
    driver.handle("m", source("a"));
    let actions = driver.handle("m", with_schema("a", &endless));
    assert_eq!(actions.iter().map(show).collect::<Vec<_>>(), ["check null"]);
    // Where it is evaluated, it is refused for good.
    driver.handle("m", job(&actions).run_with(validate));
    assert_eq!(ready(&driver), ("False".into(), "InvalidParametersSchema".into()));
    // A Module that is deleted meanwhile goes, and the late answer is dropped.
    let mut driver = super::driver();
    driver.handle("m", module(1, &spec()));
    driver.handle("m", source("a"));
    let actions = driver.handle("m", with_schema("a", &endless));
    let gone = driver.handle("m", Input::Gone);
    assert_eq!(gone.iter().map(show).collect::<Vec<_>>(), ["stop"]);
    assert!(driver.handle("m", job(&actions).run_with(validate)).is_empty());
}

#[test]
fn parameters_that_change_while_they_are_checked_are_checked_again() {
    let mut driver = driver();
    driver.handle("m", sized(1, &json!(1)));
    driver.handle("m", source("a"));
    handle(&mut driver, with_schema("a", &number()));
    let first = job(&driver.handle("m", sized(2, &json!("x"))));
    assert_eq!(ready(&driver), ("Unknown".into(), "CheckingParameters".into()));
    let second = job(&driver.handle("m", sized(3, &json!(3))));
    // The answer about the old parameters does not apply to the present ones.
    assert!(driver.handle("m", first.run_with(validate)).is_empty());
    assert_eq!(parameters(&driver), json!({"size": 1}));
    driver.handle("m", second.run_with(validate));
    assert_eq!(parameters(&driver), json!({"size": 3}));
    assert_eq!(ready(&driver), ("True".into(), "RevisionActive".into()));
}

#[test]
fn parameters_that_change_while_the_decision_is_written_are_not_used_unchecked() {
    let mut driver = driver();
    driver.handle("m", sized(1, &json!(1)));
    driver.handle("m", source("a"));
    let checked = job(&driver.handle("m", with_schema("a", &number())));
    driver.handle("m", checked.run_with(validate));
    // The decision is being written; now the parameters do not fit any more.
    driver.handle("m", sized(2, &json!("x")));
    let committed = Event::Committed { digest: component("a").digest, result: Ok(()) };
    let actions = driver.handle("m", committed);
    assert_eq!(parameters(&driver), json!({"size": 1}));
    driver.handle("m", job(&actions).run_with(validate));
    assert_eq!(parameters(&driver), json!({"size": 1}));
    assert_eq!(ready(&driver), ("False".into(), "InvalidParameters".into()));
}

#[test]
fn parameters_that_the_guest_itself_refuses_reject_the_candidate_until_they_change() {
    let mut driver = driver();
    let refused = with(json!({"parameters": {"refuse": "name a label"}}));
    driver.handle("m", module(1, &refused));
    driver.handle("m", source("a"));
    let checked = job(&driver.handle("m", with_schema("a", &json!({"type": "object"}))));
    driver.handle("m", checked.run_with(validate));
    assert!(driver.active_revision("m").is_none());
    let conditions = driver.report("m").unwrap().conditions;
    let ready = conditions.iter().find(|one| one.type_ == "Ready").unwrap();
    assert_eq!((ready.status.as_str(), &*ready.reason), ("False", "InvalidParameters"));
    let text = "spec.parameters: the policy refuses them: name a label";
    assert!(ready.message.contains(text), "{}", ready.message);
    // With other parameters the candidate is loaded and checked again.
    let actions = driver.handle("m", module(2, &with(json!({"parameters": {"size": 1}}))));
    assert_eq!(actions.iter().filter(|action| matches!(action, Action::Load(_))).count(), 1);
    handle(&mut driver, with_schema("a", &json!({"type": "object"})));
    assert_eq!(parameters(&driver), json!({"size": 1}));
}

#[test]
fn rollback_uses_parameters_that_fit_the_previous_revision() {
    let mut driver = driver();
    let immediate = |generation, size: Value| {
        module(
            generation,
            &with(json!({"parameters": {"size": size}, "rollout": {"strategy": "Immediate"}})),
        )
    };
    driver.handle("m", immediate(1, json!(1)));
    driver.handle("m", source("a"));
    handle(&mut driver, with_schema("a", &number()));
    driver.handle("m", immediate(2, json!("x")));
    driver.handle("m", source("b"));
    handle(&mut driver, with_schema("b", &text()));
    assert_eq!(parameters(&driver), json!({"size": "x"}));
    let rejection = Rejection::new("GuestTrapped", "trapped", RetryPolicy::Later);
    let digest = component("b").digest;
    driver.handle("m", Event::FailureThresholdExceeded { digest, rejection });
    let committed = Event::RollbackCommitted { digest: component("a").digest, result: Ok(()) };
    let actions = handle(&mut driver, committed);
    assert_eq!(parameters(&driver), json!({"size": 1}), "{:?}", actions.iter().map(show));
    assert_eq!(ready(&driver), ("False".into(), "InvalidParameters".into()));
}

#[test]
fn check_that_the_host_cannot_do_is_tried_again() {
    let mut driver = driver();
    driver.handle("m", sized(1, &json!(1)));
    driver.handle("m", source("a"));
    handle(&mut driver, with_schema("a", &number()));
    let job = |actions: &[Action<Fake>]| job(actions);
    let first = job(&driver.handle("m", sized(2, &json!(2))));
    let unavailable = |_: &Value, _: &Value| Err(SchemaError::Unavailable("no disk".into()));
    let actions = driver.handle("m", first.run_with(unavailable));
    assert!(
        actions.iter().any(|action| matches!(action, Action::Direct(DirectEffect::RetryLater)))
    );
    assert_eq!(ready(&driver), ("False".into(), "ParametersNotChecked".into()));
    assert_eq!(parameters(&driver), json!({"size": 1}));
    let again = job(&driver.handle("m", Event::Retry));
    driver.handle("m", again.run_with(validate));
    assert_eq!(parameters(&driver), json!({"size": 2}));
    assert_eq!(ready(&driver), ("True".into(), "RevisionActive".into()));
}

#[test]
fn schema_that_costs_too_much_for_the_parameters_waits_for_others() {
    let schema = json!({"additionalProperties": {"uniqueItems": true}});
    let mut driver = driver();
    let large = Value::Array((0..20_000).map(Value::from).collect());
    driver.handle("m", sized(1, &large));
    driver.handle("m", source("a"));
    handle(&mut driver, with_schema("a", &schema));
    assert_eq!(ready(&driver), ("False".into(), "InvalidParametersSchema".into()));
    let actions = driver.handle("m", sized(2, &json!([1])));
    assert!(actions.iter().any(|action| matches!(action, Action::Load(_))));
    handle(&mut driver, with_schema("a", &schema));
    assert_eq!(parameters(&driver), json!({"size": [1]}));
}
