//! Incidents: each of them really happens, and the host and its guests come through.

use innkeeper_check::{
    Budget, HostileModule, Incident, Law, Outcome, PlannedIncident, Scenario, ScenarioRunner, Step,
    check,
};
use innkeeper_faults::{Fault, FaultPlan, PlannedFault, WatchFault};
use innkeeper_lab::Guests;
use serde_json::{Value, json};

use crate::guest_fixture::{SEED, budget, documents, runner, subject};

fn shop() -> Value {
    documents("testing/faulty/samples/shop.yaml").remove(0)
}

fn shops() -> ScenarioRunner {
    println!("seed {SEED}");
    runner(&Guests::new().unwrap(), subject("faulty", &Value::Null, vec![shop()]))
}

fn apply_and_settle() -> Scenario {
    Scenario::new(SEED, vec![Step::Apply(shop()), Step::Settle])
}

fn at_write(write: u32, incident: Incident) -> Scenario {
    apply_and_settle().with_incidents(vec![PlannedIncident { write, incident }])
}

/// Plays a scenario whose end has to be that without its incidents.
fn assert_undisturbed(runner: &ScenarioRunner, scenario: &Scenario) -> Outcome {
    let outcome = runner.run(scenario).unwrap();
    let reference = runner.run(&scenario.undisturbed()).unwrap();
    assert_eq!(outcome.unused_incidents, 0, "every incident has happened");
    assert!(outcome.is_quiet && outcome.is_ended_well);
    let differences = outcome.end().differences_in_applied_fields(reference.end());
    assert!(differences.is_empty(), "{differences:#?}");
    outcome
}

#[test]
fn paused_host_sends_nothing_and_finishes_afterwards() {
    let pause = Incident::Pause { seconds: 120 };
    let outcome = assert_undisturbed(&shops(), &at_write(2, pause));
    assert_eq!(outcome.incidents, [(pause, 0)]);
}

#[test]
fn host_that_is_cut_off_reaches_nothing_and_finishes_afterwards() {
    let cut = Incident::CutOff { seconds: 120 };
    let outcome = assert_undisturbed(&shops(), &at_write(2, cut));
    assert_eq!(outcome.incidents, [(cut, 0)]);
}

#[test]
fn leader_that_wakes_up_after_another_took_over_writes_nothing() {
    let take_over = Incident::TakeOver { seconds: 5 };
    let runner = shops();
    for write in [1, 3] {
        let outcome = assert_undisturbed(&runner, &at_write(write, take_over));
        assert_eq!(outcome.writes_after_lease_loss, Vec::<String>::new());
        let holders: Vec<String> = outcome
            .requests()
            .filter(|one| one.info.resource == "leases" && one.code.is_some_and(|code| code < 300))
            .filter_map(|one| {
                let body: Value = serde_json::from_slice(&one.body).ok()?;
                body["spec"]["holderIdentity"].as_str().map(str::to_owned)
            })
            .collect();
        assert!(holders.iter().any(|holder| holder == "host-b"), "{holders:?}");
    }
}

#[test]
fn clock_of_the_host_that_is_set_changes_no_result() {
    let runner = shops();
    for seconds in [7 * 86_400, -7 * 86_400] {
        let outcome = assert_undisturbed(&runner, &at_write(2, Incident::SetClock { seconds }));
        let now = |object: &Value| object["metadata"]["creationTimestamp"].clone();
        assert!(outcome.end().objects().all(|(_, object)| now(object).is_null()));
    }
}

#[test]
fn swap_of_the_component_in_the_middle_of_a_reconcile_changes_no_result() {
    let runner = shops();
    for write in [1, 2, 4] {
        assert_undisturbed(&runner, &at_write(write, Incident::Swap {}));
    }
}

#[test]
fn swap_to_an_earlier_component_takes_place_and_its_rollback_too() {
    let guests = Guests::new().unwrap();
    let mut subject = subject("faulty", &Value::Null, vec![shop()]);
    let mut earlier = subject.module.clone();
    earlier["spec"]["parameters"] = json!({"bug": "never-scales-down"});
    subject.earlier_module = Some(earlier);
    let runner = runner(&guests, subject);
    let mut smaller = shop();
    smaller["spec"]["replicas"] = json!(1);
    let swapped = [
        Step::Apply(shop()),
        Step::Settle,
        Step::Incident(Incident::Swap {}),
        Step::Settle,
        Step::Replace(smaller),
        Step::Settle,
    ];
    let replicas = |outcome: &Outcome| {
        let mut objects = outcome.end().objects();
        objects.find(|(_, object)| object["kind"] == "Deployment").unwrap().1["spec"]["replicas"]
            .clone()
    };
    let outcome = runner.run(&Scenario::new(SEED, swapped.to_vec())).unwrap();
    assert_eq!(replicas(&outcome), 2, "the earlier component never scales down");
    let back = [Step::Incident(Incident::SwapBack {}), Step::Settle];
    let steps = swapped.into_iter().chain(back).collect();
    let outcome = runner.run(&Scenario::new(SEED, steps)).unwrap();
    assert_eq!(replicas(&outcome), 1);
}

#[test]
fn webhook_that_adds_to_objects_is_not_fought() {
    let runner = shops();
    let mut scenario = apply_and_settle();
    scenario.steps.insert(0, Step::Incident(Incident::Defaulting {}));
    let outcome = runner.run(&scenario).unwrap();
    assert!(outcome.is_quiet);
    let mut made = outcome.end().objects().filter(|(name, _)| !name.contains("kube-root-ca"));
    assert!(made.by_ref().count() > 3);
    let made = outcome.end().objects().filter(|(name, _)| !name.contains("kube-root-ca"));
    for (name, object) in made {
        for member in ["labels", "annotations"] {
            let added = &object["metadata"][member]["check.innkeeper.dev/added"];
            assert_eq!(added, "yes", "{name}: {member}");
        }
    }
    let without = runner.run(&apply_and_settle()).unwrap();
    let writes = |outcome: &Outcome| outcome.writes().count();
    assert!(writes(&outcome) <= writes(&without) + 2);
}

#[test]
fn primary_that_is_made_again_has_another_uid_and_the_same_objects() {
    let runner = shops();
    let steps = vec![Step::Apply(shop()), Step::Settle, Step::Recreate(shop()), Step::Settle];
    let outcome = runner.run(&Scenario::new(SEED, steps)).unwrap();
    assert_eq!(outcome.refused_steps, Vec::<String>::new());
    let reference = runner.run(&apply_and_settle()).unwrap();
    let differences = outcome.end().differences_in_applied_fields(reference.end());
    assert!(differences.is_empty(), "{differences:#?}");
    assert!(outcome.writes().count() > 2 * reference.writes().count() - 3);
}

fn restored(bump: bool) -> Scenario {
    let mut other = shop();
    other["spec"]["replicas"] = json!(0);
    other["spec"]["pages"] = json!(["legal"]);
    let steps = vec![
        Step::Apply(shop()),
        Step::Settle,
        Step::Incident(Incident::Backup {}),
        Step::Replace(other),
        Step::Settle,
        Step::Incident(Incident::Restore { bump }),
        Step::Settle,
    ];
    Scenario { needs_long_quiet: true, ..Scenario::new(SEED, steps) }
}

fn assert_as_at_the_backup(runner: &ScenarioRunner, scenario: &Scenario) {
    let outcome = runner.run(scenario).unwrap();
    let at_backup = runner.run(&Scenario::new(SEED, scenario.steps[..2].to_vec())).unwrap();
    let differences = outcome.states[1].differences_in_applied_fields(at_backup.end());
    assert!(!differences.is_empty(), "before the restore there are other objects");
    let differences = outcome.end().differences_in_applied_fields(at_backup.end());
    assert!(differences.is_empty(), "{differences:#?}");
}

#[test]
fn restored_backup_leads_to_the_objects_of_its_primaries() {
    let runner = shops();
    for bump in [true, false] {
        assert_as_at_the_backup(&runner, &restored(bump));
    }
}

#[test]
fn spec_after_a_restored_backup_is_followed_though_its_version_was_used_before() {
    let runner = shops();
    for bump in [true, false] {
        let mut scenario = restored(bump);
        let mut last = shop();
        last["spec"]["replicas"] = json!(1);
        scenario.steps.push(Step::Replace(last.clone()));
        let outcome = runner.run(&scenario).unwrap();
        let alone = runner.run(&Scenario::new(SEED, vec![Step::Apply(last)])).unwrap();
        let differences = outcome.end().differences_in_applied_fields(alone.end());
        assert!(differences.is_empty(), "bump {bump}: {differences:#?}");
    }
}

/// The watch of the primaries is frozen when the backup is restored.
#[test]
fn restored_backup_is_followed_though_the_watch_of_the_primaries_is_late() {
    println!("seed {SEED}");
    let mut imo = documents("imo/samples/imo.yaml").remove(0);
    imo["spec"] = json!({});
    let mut other = imo.clone();
    other["spec"] = json!({"size": 0});
    let runner = runner(&Guests::new().unwrap(), subject("imo", &Value::Null, vec![imo.clone()]));
    for count in [1, 2, 3, 4] {
        let freeze = Fault::Watch(WatchFault::Freeze { milliseconds: 30_000 });
        let fault =
            PlannedFault { count, ..PlannedFault::of_watches("imo.example.com/imos", freeze) };
        let mut scenario = restored(true);
        scenario.steps[0] = Step::Apply(imo.clone());
        scenario.steps[3] = Step::Replace(other.clone());
        scenario.faults = FaultPlan { faults: vec![fault] };
        assert_as_at_the_backup(&runner, &scenario);
    }
}

/// The guest imo, next to a guest with a bug on the same host.
fn imo_next_to(bug: &str, shop: Value) -> ScenarioRunner {
    println!("seed {SEED}");
    let imo = documents("imo/samples/imo.yaml");
    let mut module = subject("faulty", &json!({ "bug": bug }), vec![]).module;
    module["metadata"]["name"] = json!("neighbor");
    let hostile = HostileModule { module, preexisting: Vec::new(), primaries: vec![shop] };
    runner(&Guests::new().unwrap(), subject("imo", &Value::Null, imo)).with_hostile_module(hostile)
}

#[test]
fn guest_next_to_a_hostile_one_is_not_affected() {
    let mut trapping = shop();
    trapping["spec"].as_object_mut().unwrap().remove("image");
    let mut endless = shop();
    endless["spec"]["replicas"] = json!(0);
    for (bug, shop, reason) in [
        ("trap-on-empty-image", trapping, "GuestTrapped"),
        ("loop-on-zero-replicas", endless, "GuestTimeout"),
    ] {
        let runner = imo_next_to(bug, shop);
        let imo = runner.subject().samples[0].clone();
        let neighbor = Step::Incident(Incident::Neighbor {});
        let steps = vec![neighbor, Step::Apply(imo), Step::Settle];
        let scenario = Scenario { needs_long_quiet: true, ..Scenario::new(SEED, steps) };
        let outcome = assert_undisturbed(&runner, &scenario);
        assert_eq!(outcome.guest_failures, Vec::new(), "of imo");
        let reports = outcome.requests().filter(|one| one.info.resource == "shops");
        let bodies = reports.map(|one| String::from_utf8_lossy(&one.body).into_owned());
        assert!(bodies.into_iter().any(|body| body.contains(reason)), "{bug}: the neighbor fails");
    }
}

/// The Deployment of the shop, without fields.
fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "shop", "namespace": "default"}})
}

#[test]
fn field_that_another_client_takes_by_force_is_taken_back() {
    let runner = shops();
    let mut taken = deployment();
    taken["spec"] = json!({"replicas": 7});
    let steps = [Step::Apply(shop()), Step::Settle, Step::Apply(taken.clone()), Step::Settle];
    let outcome = runner.run(&Scenario::new(SEED, steps.to_vec())).unwrap();
    assert_eq!(outcome.refused_steps, Vec::<String>::new());
    let reference = runner.run(&apply_and_settle()).unwrap();
    let differences = outcome.end().differences_in_applied_fields(reference.end());
    assert!(differences.is_empty(), "{differences:#?}");
    let repairs = outcome.writes().filter(|one| one.info.resource == "deployments").count();
    assert_eq!(repairs, 2, "made once, and repaired once");
}

#[test]
fn object_that_somebody_holds_by_a_finalizer_keeps_no_primary_for_ever() {
    let runner = shops();
    let with = |finalizers: Value| {
        let mut patch = deployment();
        patch["metadata"]["finalizers"] = finalizers;
        Step::MergePatch(patch)
    };
    let steps = [
        Step::Apply(shop()),
        Step::Settle,
        with(json!(["example.com/slow"])),
        Step::Delete(shop()),
        Step::Settle,
        with(Value::Null),
    ];
    let outcome = runner.run(&Scenario::new(SEED, steps.to_vec())).unwrap();
    assert_eq!(outcome.refused_steps, Vec::<String>::new());
    assert!(outcome.is_quiet && outcome.is_ended_well);
    let kinds = |state: &innkeeper_check::ClusterState| {
        let kinds = state.objects().filter_map(|(_, object)| object["kind"].as_str());
        kinds.filter(|kind| ["Deployment", "Shop"].contains(kind)).map(str::to_owned).collect()
    };
    let held: Vec<String> = kinds(&outcome.states[1]);
    assert!(held.contains(&"Deployment".to_owned()), "somebody holds it: {held:?}");
    let left: Vec<String> = kinds(outcome.end());
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn objects_of_a_primary_whose_deletion_is_seen_late_are_not_made_again() {
    let guests = Guests::new().unwrap();
    let route = documents("podroute/samples/podroute.yaml").remove(0);
    let runner = runner(&guests, subject("podroute", &Value::Null, vec![route.clone()]));
    let lag = WatchFault::Lag { events: 2, milliseconds: 30_000 };
    let late = |kind| PlannedFault::of_watches(kind, Fault::Watch(lag));
    let lifecycle = [Step::Apply(route.clone()), Step::Settle, Step::Delete(route), Step::Settle];
    // A minute later all watches are others, which the faults affect.
    let steps = [Step::Wait(60)].into_iter().chain(lifecycle).collect();
    let mut scenario = Scenario { needs_long_quiet: true, ..Scenario::new(SEED, steps) };
    // The garbage collector deletes the Deployment and the Service: of these the host sees only the
    // Service's deletion at once.
    scenario.faults.faults = vec![late("quay.io/podroutes"), late("apps/deployments")];
    let outcome = runner.run(&scenario).unwrap();
    assert_eq!(outcome.unused_faults, Vec::<usize>::new());
    let services = outcome.writes().filter(|one| one.info.resource == "services");
    assert_eq!(services.count(), 1, "made once");
}

#[test]
fn exploration_lists_each_crash_with_each_staleness_and_goes_on_from_what_was_new() {
    let runner = shops();
    let budget = Budget { seed: 7, ..budget(&[Law::Exploration], 4) };
    let run = || {
        let report = check(&runner, &budget, |_| {}).unwrap();
        let law = &report.laws[0];
        assert!(law.broken.is_none(), "{}", law.broken.as_ref().unwrap());
        (law.cases, law.checked, law.signature_parts)
    };
    let (cases, checked, parts) = run();
    println!("exploration of faulty: {cases} cases");
    // Each write of the lifecycle of two shops, before and after, with the caches of none, each and
    // each two of all kinds one or two events late: more than four are not late at once.
    let subject = runner.subject();
    let kinds = subject.kinds().len() + subject.manifest.reads.len();
    assert!(kinds > 4, "{kinds} kinds");
    let combinations = 1 + 2 * kinds + 4 * (kinds * (kinds - 1) / 2);
    assert!(cases % (2 * combinations) == 0 && cases / (2 * combinations) > 10, "{cases}");
    assert_eq!(checked, 4);
    assert!(parts > 10, "{parts}");
    assert_eq!(run(), (cases, checked, parts), "the same seed gives the same");
}
