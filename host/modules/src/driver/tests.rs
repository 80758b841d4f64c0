//! The driver with fake guests: bytes, guests and settings find each other.

mod approval;
mod grant;
mod parameters;
mod teardown;

use expect_test::{Expect, expect};
use innkeeper_contract::Kind;
use serde_json::{Value, json};

use innkeeper_sandbox::schema::validate;

use super::*;
use crate::machine::{Rejection, RetryPolicy};
use crate::module::{self, Module};
use crate::rollout::{PlannedChange, Preview};
use crate::source::{Component, SourceError};
use crate::testing::{Fake, manifest};
use innkeeper_contract::Manifest;
use innkeeper_core::foreign;

fn module(generation: i64, spec: &Value) -> Input<Fake> {
    annotated(generation, spec, &json!({}))
}

fn annotated(generation: i64, spec: &Value, annotations: &Value) -> Input<Fake> {
    let document = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "m", "generation": generation, "annotations": annotations},
        "spec": spec,
    });
    Input::Module(Box::new(Module::from_value(&document).unwrap()))
}

fn spec() -> Value {
    json!({"source": {"configMap": {"name": "m-1"}}, "serviceAccountName": "m"})
}

fn with(members: Value) -> Value {
    let mut spec = spec();
    let Value::Object(members) = members else { panic!("not an object") };
    spec.as_object_mut().unwrap().extend(members);
    spec
}

fn component(name: &str) -> Component {
    let bytes = format!("\0asm{name}");
    crate::source::unpack("it", bytes.as_bytes(), 1 << 20).unwrap()
}

fn source(name: &str) -> Input<Fake> {
    Input::Source(Ok(component(name)))
}

fn loaded(name: &str, change: impl FnOnce(&mut Manifest)) -> Input<Fake> {
    let mut manifest = manifest(name);
    change(&mut manifest);
    Input::Loaded { digest: component(name).digest, result: Ok(Fake::new(manifest)) }
}

fn show(action: &Action<Fake>) -> String {
    match action {
        Action::Fetch(source) => format!("fetch {source}"),
        Action::Load(job) => {
            let name = String::from_utf8_lossy(&job.component.bytes[4..]).into_owned();
            format!("load {name} within {} bytes", job.limits.memory_bytes)
        }
        Action::InstallCrds(installation) => {
            let crds: Vec<_> = installation
                .crds
                .iter()
                .map(|crd| format!("{} granted={}", crd.name, crd.granted))
                .collect();
            format!("install {}", crds.join(", "))
        }
        Action::Serve(revision) => format!(
            "serve {} #{} parameters={} memory={}",
            revision.guest.manifest.name,
            revision.version,
            revision.settings.parameters,
            revision.guest.limits.memory_bytes
        ),
        Action::FetchSnapshot(digest) => format!("fetch copy of {digest:?}"),
        Action::Preview { candidate, .. } => {
            format!("rehearse {} #{}", candidate.guest.manifest.name, candidate.version)
        }
        Action::Commit { component, .. } => {
            format!("commit{}", if component.is_some() { "" } else { " without bytes" })
        }
        Action::BeginRollbackWindow { failures_max, time, .. } => {
            format!("probation of {}s, {failures_max} may fail", time.as_secs())
        }
        Action::SaveSnapshot(_) => "keep a copy".into(),
        Action::CheckParameters(job) => format!("check {}", job.parameters),
        Action::Teardown(leaving) => format!(
            "leave {} with finalizer {:?}, {}",
            leaving.primary.as_ref().map_or("nothing".to_owned(), ToString::to_string),
            leaving.finalizer,
            if leaving.is_active { "serving" } else { "not serving" }
        ),
        Action::RemoveFinalizer => "let go".into(),
        Action::EndRollbackWindow => "end of probation".into(),
        Action::RetryLater => "retry later".into(),
        Action::Report(report) => {
            let ready = report.conditions.iter().find(|c| c.type_ == "Ready").unwrap();
            format!("report {} {}", report.generation, ready.reason)
        }
        Action::Notify(notice) => format!("notify {}", notice.reason),
        Action::Stop => "stop".into(),
    }
}

fn check(
    driver: &mut Driver<Fake>,
    inputs: impl IntoIterator<Item = Input<Fake>>,
    expected: &Expect,
) {
    let mut out = String::new();
    for input in inputs {
        let actions = handle(driver, input);
        out += &actions.iter().map(show).collect::<Vec<_>>().join("; ");
        out.push('\n');
    }
    expected.assert_eq(&out);
}

/// Hands an input in; parameters are checked, and what is to be written down is.
fn handle(driver: &mut Driver<Fake>, input: impl Into<Input<Fake>>) -> Vec<Action<Fake>> {
    let mut actions = driver.handle("m", input);
    if let Some(job) = actions.iter().find_map(check_job) {
        actions.extend(driver.handle("m", job.run_with(validate)));
    }
    let committing = actions.iter().find_map(|action| match action {
        Action::Commit { digest, .. } => Some(*digest),
        _ => None,
    });
    if let Some(digest) = committing {
        actions.extend(driver.handle("m", Event::Committed { digest, result: Ok(()) }));
    }
    actions
}

fn check_job(action: &Action<Fake>) -> Option<ParametersJob<Fake>> {
    match action {
        Action::CheckParameters(job) => Some(job.clone()),
        _ => None,
    }
}

fn driver() -> Driver<Fake> {
    Driver::new(SourceKind::Cluster, Limits::default())
}

#[test]
fn a_module_is_fetched_loaded_and_served_and_then_replaced() {
    let mut driver = driver();
    check(
        &mut driver,
        [
            module(1, &spec()),
            module(1, &spec()),
            source("a"),
            loaded("a", |_| {}),
            source("b"),
            loaded("b", |_| {}),
            Input::Previewed { digest: component("b").digest, result: Ok(Preview::default()) },
        ],
        &expect![[r#"
            fetch ConfigMap innkeeper-modules/m-1; report 1 Waiting

            load a within 67108864 bytes; report 1 Loading
            commit; report 1 Committing; serve a #1 parameters=null memory=67108864; notify RevisionActive; report 1 RevisionActive
            load b within 67108864 bytes; report 1 Loading
            rehearse b #2; report 1 Previewing
            commit; report 1 Committing; serve b #2 parameters=null memory=67108864; notify RevisionActive; probation of 120s, 0 may fail; report 1 RevisionActive
        "#]],
    );
    let revision = driver.active_revision("m").unwrap();
    assert_eq!((revision.guest.manifest.name.as_str(), revision.version), ("b", 2));
}

#[test]
fn a_call_in_flight_keeps_its_version() {
    let mut driver = driver();
    for input in [module(1, &spec()), source("a"), loaded("a", |_| {})] {
        handle(&mut driver, input);
    }
    let in_flight = driver.active_revision("m").unwrap().clone();
    for input in [source("b"), loaded("b", |_| {}), Input::Gone] {
        handle(&mut driver, input);
    }
    assert_eq!(in_flight.guest.manifest.name, "a");
    assert!(driver.active_revision("m").is_none());
    assert_eq!(driver.names().count(), 0);
}

#[test]
fn limits_change_without_a_load_and_parameters_only_if_they_fit() {
    let schema = json!({"properties": {"size": {"type": "integer"}}});
    check(
        &mut driver(),
        [
            module(1, &with(json!({"parameters": {"size": 1}}))),
            source("a"),
            loaded("a", |manifest| manifest.parameters_schema = Some(schema)),
            module(2, &with(json!({"parameters": {"size": 1}, "limits": {"memory": "1Mi"}}))),
            module(3, &with(json!({"parameters": {"size": "x"}, "limits": {"memory": "2Mi"}}))),
            module(4, &with(json!({"parameters": {"size": 2}}))),
        ],
        &expect![[r#"
            fetch ConfigMap innkeeper-modules/m-1; report 1 Waiting
            load a within 67108864 bytes; report 1 Loading
            check {"size":1}; commit; report 1 Committing; serve a #1 parameters={"size":1} memory=67108864; notify RevisionActive; report 1 RevisionActive
            serve a #2 parameters={"size":1} memory=1048576; report 2 RevisionActive
            serve a #3 parameters={"size":1} memory=2097152; check {"size":"x"}; report 3 CheckingParameters; notify InvalidParameters; report 3 InvalidParameters
            serve a #4 parameters={"size":1} memory=67108864; check {"size":2}; report 4 InvalidParameters; serve a #5 parameters={"size":2} memory=67108864; report 4 RevisionActive
        "#]],
    );
}

#[test]
fn a_candidate_that_refuses_the_parameters_is_loaded_again_when_they_change() {
    check(
        &mut driver(),
        [
            module(1, &with(json!({"parameters": {"size": 1}}))),
            source("a"),
            loaded("a", |_| {}),
            module(2, &spec()),
            loaded("a", |_| {}),
        ],
        &expect![[r#"
            fetch ConfigMap innkeeper-modules/m-1; report 1 Waiting
            load a within 67108864 bytes; report 1 Loading
            notify InvalidParameters; report 1 InvalidParameters
            load a within 67108864 bytes; report 2 Loading
            commit; report 2 Committing; serve a #1 parameters=null memory=67108864; notify RevisionActive; report 2 RevisionActive
        "#]],
    );
}

#[test]
fn definitions_are_granted_by_their_group() {
    let definition = |group: &str, plural: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "names": {"kind": "X", "plural": plural}, "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true}]},
        })
    };
    check(
        &mut driver(),
        [
            module(1, &with(json!({"allowedCRDGroups": ["quay.io"]}))),
            source("a"),
            loaded("a", |manifest| {
                manifest.crds = vec![definition("quay.io", "xs"), definition("example.com", "ys")];
            }),
            Event::Crds { digest: component("a").digest, result: Ok(()) }.into(),
        ],
        &expect![[r#"
            fetch ConfigMap innkeeper-modules/m-1; report 1 Waiting
            load a within 67108864 bytes; report 1 Loading
            install xs.quay.io granted=true, ys.example.com granted=false; report 1 InstallingCRDs
            commit; report 1 Committing; serve a #1 parameters=null memory=67108864; notify RevisionActive; report 1 RevisionActive
        "#]],
    );
}

#[test]
fn a_manifest_that_makes_no_sense_is_refused() {
    check(
        &mut driver(),
        [
            module(1, &spec()),
            source("a"),
            loaded("a", |manifest| manifest.primary.plural = "pods/exec".into()),
        ],
        &expect![[r#"
            fetch ConfigMap innkeeper-modules/m-1; report 1 Waiting
            load a within 67108864 bytes; report 1 Loading
            notify InvalidManifest; report 1 InvalidManifest
        "#]],
    );
}

#[test]
fn bytes_are_kept_only_while_they_may_be_loaded() {
    let mut driver = driver();
    let kept = |driver: &Driver<Fake>| {
        let module_state = &driver.states["m"];
        (!module_state.components.is_empty(), module_state.candidate.checked.is_some())
    };
    driver.handle("m", module(1, &spec()));
    driver.handle("m", source("a"));
    assert_eq!(kept(&driver), (true, false));
    driver.handle("m", loaded("a", |_| {}));
    assert_eq!(kept(&driver), (true, true), "to be copied, and then to serve");
    driver.handle("m", Event::Committed { digest: component("a").digest, result: Ok(()) });
    assert_eq!(kept(&driver), (false, false));
    driver.handle("m", source("b"));
    let later = Rejection::new("Busy", "busy", RetryPolicy::Later);
    driver.handle("m", Input::Loaded { digest: component("b").digest, result: Err(later) });
    assert_eq!(kept(&driver), (true, false));
    assert_eq!(
        driver.handle("m", Event::Retry).iter().map(show).next().unwrap(),
        "load b within 67108864 bytes"
    );
    let never = Rejection::new("Broken", "broken", RetryPolicy::Never);
    driver.handle("m", Input::Loaded { digest: component("b").digest, result: Err(never) });
    assert_eq!(kept(&driver), (false, false));
}

#[test]
fn a_report_says_what_serves_and_what_was_ever_owned() {
    let mut driver = driver();
    let mut first = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "m", "generation": 7}, "spec": spec(),
        "status": {"ownedKinds": [{"apiVersion": "batch/v1", "kind": "Job"}], "conditions": []},
    });
    let module = Module::from_value(&first).unwrap();
    driver.handle("m", Input::Module(Box::new(module)));
    driver.handle("m", source("a"));
    handle(&mut driver, loaded("a", |_| {}));
    let report = driver.report("m").unwrap();
    assert_eq!(
        Value::Object(report.members),
        json!({
            "digest": component("a").digest.to_string(),
            "guest": {"name": "a", "version": "0.1.0"},
            "primary": {"apiVersion": "quay.io/v1alpha1", "kind": "Podroute", "plural": "podroutes"},
            "contract": innkeeper_contract::VERSION,
            "ownedKinds": [
                {"apiVersion": "batch/v1", "kind": "Job"}, {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}
            ],
        })
    );
    // What was reported is understood when it is read back.
    first["status"] = Value::Object(driver.report("m").unwrap().members);
    assert!(Module::from_value(&first).is_ok());
}

#[test]
fn a_decision_is_told_only_where_it_is_written_down() {
    let mut driver = driver();
    let digests = |report: Option<Report>| {
        let members = report.unwrap().members;
        let digest = |value: &Value| value.as_str().map(|text| text[..12].to_owned());
        (digest(&members["digest"]), members.get("previous").and_then(|one| digest(&one["digest"])))
    };
    let short = |name: &str| Some(component(name).digest.short());
    driver.handle("m", module(1, &spec()));
    driver.handle("m", source("a"));
    handle(&mut driver, loaded("a", |_| {}));
    driver.handle("m", source("b"));
    driver.handle("m", loaded("b", |_| {}));
    let digest = component("b").digest;
    driver.handle("m", Input::Previewed { digest, result: Ok(Preview::default()) });
    // Its copy is not kept yet: a host that starts anew is to find what served.
    assert_eq!(digests(driver.report("m")), (short("a"), None));
    assert_eq!(digests(driver.decision("m")), (short("b"), short("a")));
    driver.handle("m", Event::Committed { digest, result: Ok(()) });
    assert_eq!(digests(driver.report("m")), (short("b"), short("a")));
}

#[test]
fn what_a_rehearsal_found_is_told_of_the_version_that_serves_also_after_a_restart() {
    let mut host = driver();
    let found = |host: &Driver<Fake>| host.report("m").unwrap().members.get("preview").cloned();
    host.handle("m", module(1, &spec()));
    host.handle("m", source("a"));
    handle(&mut host, loaded("a", |_| {}));
    assert_eq!(found(&host), None, "the first is not rehearsed");
    let mut swap = |name: &str, deed: PlannedChange| {
        host.handle("m", source(name));
        host.handle("m", loaded(name, |_| {}));
        let mut rehearsal = Preview { primaries: 2, previewed: 2, ..Preview::default() };
        rehearsal.add(deed, "ConfigMap web/a".to_owned(), vec![".data.x".to_owned()]);
        let digest = component(name).digest;
        host.handle("m", Input::Previewed { digest, result: Ok(rehearsal) });
        host.handle("m", Event::Committed { digest, result: Ok(()) });
        host.report("m").unwrap().members
    };
    let mut members = swap("b", PlannedChange::Change);
    let told = json!({"digest": component("b").digest.to_string(), "primaries": 2, "previewed": 2,
        "creates": 0, "changes": 1, "deletes": 0, "failures": 0, "examples": [
            {"action": "Change", "object": "ConfigMap web/a", "fields": [".data.x"]}]});
    assert_eq!(members["preview"], told);
    // One that is held is told as the candidate, and what serves as before.
    let held = swap("c", PlannedChange::Delete);
    assert_eq!(held["candidate"]["deletes"], 1);
    assert_eq!(held["preview"], told);

    members.insert("conditions".to_owned(), json!([]));
    let again = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": "m", "generation": 7}, "spec": spec(), "status": members});
    let mut host = driver();
    host.handle("m", Input::Module(Box::new(Module::from_value(&again).unwrap())));
    assert_eq!(found(&host), Some(told));
}

#[test]
fn a_refusal_is_told_in_the_status_and_is_never_too_long_for_it() {
    let mut driver = driver();
    driver.handle("m", module(1, &spec()));
    driver.handle("m", source("a"));
    let result = Err(Rejection::new("InvalidManifest", "x".repeat(20_000), RetryPolicy::Never));
    driver.handle("m", Input::Loaded { digest: component("a").digest, result });
    let members = driver.report("m").unwrap().members;
    for told in [&members["candidate"], &members["rejected"][0]] {
        assert_eq!(told["reason"], "InvalidManifest");
        let length = told["message"].as_str().unwrap().chars().count();
        assert!((1_000..=4_096).contains(&length), "{length}");
    }
    assert_eq!(members["candidate"]["state"], "Rejected");
}

#[test]
fn what_comes_for_a_module_that_is_gone_is_dropped() {
    let mut driver = driver();
    assert!(driver.handle("m", source("a")).is_empty());
    driver.handle("m", module(1, &spec()));
    driver.handle("m", Input::Gone);
    assert!(driver.handle("m", loaded("a", |_| {})).is_empty());
}

/// Every mixture of what may happen, with answers that come late, twice, or not at all: what
/// must hold, holds, and when the dust settles the present source serves or is refused.
#[test]
fn only_the_present_source_becomes_active_in_any_order_of_events() {
    for seed in 1..=300 {
        let mut dice = Dice(seed);
        let mut driver = driver();
        let mut world = World::default();
        for _ in 0..60 {
            let input = world.happen(&mut dice);
            world.feed(&mut driver, input, seed);
        }
        // The dust settles: a spec and a source that last, and all answers come.
        world.generation += if world.generation % 5 == 4 { 2 } else { 1 };
        let digest = component("good").digest.to_string();
        let annotations = json!({"innkeeper.dev/approve": digest});
        world.feed(&mut driver, annotated(world.generation, &spec(), &annotations), seed);
        world.source = Some("good");
        world.feed(&mut driver, source("good"), seed);
        for _ in 0..20 {
            let Some(input) = world.answer() else { break };
            world.feed(&mut driver, input, seed);
        }
        let revision = driver.active_revision("m").unwrap();
        assert_eq!(revision.guest.manifest.name, "good", "seed {seed}");
        let ready = driver.report("m").unwrap().conditions;
        let ready = ready.iter().find(|condition| condition.type_ == "Ready").unwrap();
        assert_eq!(ready.reason, "RevisionActive", "seed {seed}");
    }
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What the owner of the driver knows.
#[derive(Default)]
struct World {
    generation: i64,
    source: Option<&'static str>,
    loading: Vec<Component>,
    installing: Vec<Digest>,
    rehearsing: Vec<Digest>,
    committing: Vec<Digest>,
    retry: bool,
    version: u64,
}

impl World {
    fn happen(&mut self, dice: &mut Dice) -> Input<Fake> {
        match dice.roll(10) {
            0 | 1 => {
                self.generation += 1;
                let memory = ["1Mi", "2Mi", "nonsense"][usize::try_from(dice.roll(3)).unwrap()];
                let strategy =
                    ["Immediate", "Guarded", "Manual"][usize::try_from(dice.roll(3)).unwrap()];
                let rollout = json!({"strategy": strategy, "maxDeletions": dice.roll(2)});
                module(
                    self.generation,
                    &with(json!({"limits": {"memory": memory}, "rollout": rollout})),
                )
            }
            2 => {
                self.source = None;
                Input::Source(Err(SourceError::Missing("it".into())))
            }
            3..=5 => {
                let names = ["good", "crds", "bad", "trouble"];
                let name = names[usize::try_from(dice.roll(4)).unwrap()];
                self.source = Some(name);
                source(name)
            }
            6 if dice.roll(3) == 0 => Event::FailureThresholdExceeded(Rejection::new(
                "Trap",
                "trapped",
                RetryPolicy::Later,
            ))
            .into(),
            6 => Event::Retry.into(),
            _ => self.answer().unwrap_or(Event::Health(Ok(())).into()),
        }
    }

    /// The answer to what is under way, the oldest first.
    fn answer(&mut self) -> Option<Input<Fake>> {
        if !self.loading.is_empty() {
            let digest = self.loading.remove(0).digest;
            let refuse = |again| Err(Rejection::new("Refused", "refused", again));
            let result = match ["crds", "bad", "trouble"]
                .iter()
                .find(|name| component(name).digest == digest)
            {
                Some(&"crds") => {
                    let mut manifest = manifest("crds");
                    manifest.crds = vec![json!({
                        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                        "metadata": {"name": "xs.quay.io"},
                        "spec": {"group": "quay.io", "names": {"plural": "xs"}},
                    })];
                    Ok(Fake::new(manifest))
                }
                Some(&"bad") => refuse(RetryPolicy::Never),
                Some(_) => refuse(RetryPolicy::Later),
                None => Ok(Fake::new(manifest("good"))),
            };
            return Some(Input::Loaded { digest, result });
        }
        if !self.installing.is_empty() {
            let digest = self.installing.remove(0);
            let result = if self.generation % 2 == 0 {
                Ok(())
            } else {
                Err(Rejection::new("Refused", "refused", RetryPolicy::Later))
            };
            return Some(Event::Crds { digest, result }.into());
        }
        if !self.rehearsing.is_empty() {
            let digest = self.rehearsing.remove(0);
            let mut rehearsal = Preview { primaries: 1, previewed: 1, ..Preview::default() };
            if self.generation % 3 == 0 {
                rehearsal.add(PlannedChange::Delete, "ConfigMap web/a".into(), Vec::new());
            }
            return Some(Input::Previewed { digest, result: Ok(rehearsal) });
        }
        if !self.committing.is_empty() {
            let digest = self.committing.remove(0);
            let refused = Rejection::new("NotCommitted", "not committed", RetryPolicy::Later);
            let result = if self.generation % 5 == 0 { Err(refused) } else { Ok(()) };
            return Some(Event::Committed { digest, result }.into());
        }
        std::mem::take(&mut self.retry).then_some(Event::Retry.into())
    }

    /// Gives it to the driver, notes what is asked for, and checks what must always hold.
    fn feed(&mut self, driver: &mut Driver<Fake>, input: Input<Fake>, seed: u64) {
        for action in driver.handle("m", input) {
            match action {
                Action::Load(job) => {
                    assert!(self.loading.is_empty(), "seed {seed}: two loads at once");
                    let present = self.source.map(|name| component(name).digest);
                    assert_eq!(Some(job.component.digest), present, "seed {seed}");
                    self.loading.push(job.component);
                }
                Action::InstallCrds(one) => self.installing.push(one.digest),
                Action::Preview { digest, .. } => self.rehearsing.push(digest),
                Action::Commit { digest, component } => {
                    let held = component.map(|component| component.digest);
                    assert_eq!(held, Some(digest), "seed {seed}: nothing to copy");
                    self.committing.push(digest);
                }
                Action::FetchSnapshot(_) => panic!("seed {seed}: nothing served before the start"),
                Action::Serve(revision) => {
                    assert_eq!(revision.version, self.version + 1, "seed {seed}");
                    assert_eq!(revision.guest.limits, revision.settings.limits, "seed {seed}");
                    if let Some(before) = driver.active_revision("m") {
                        assert_eq!(before.version, revision.version, "seed {seed}: not in force");
                    }
                    self.version = revision.version;
                }
                Action::RetryLater => self.retry = true,
                Action::Stop | Action::Teardown(_) | Action::RemoveFinalizer => {
                    panic!("seed {seed}: nobody deleted it")
                }
                Action::Fetch(_)
                | Action::Report(_)
                | Action::Notify(_)
                | Action::BeginRollbackWindow { .. }
                | Action::EndRollbackWindow
                | Action::CheckParameters(_)
                | Action::SaveSnapshot(_) => {}
            }
        }
        let module_state = &driver.states.get("m");
        assert!(
            module_state
                .is_none_or(|module_state| module_state.active().is_some() || self.version == 0),
            "seed {seed}: something served, and nothing does now"
        );
        let lost = driver.report("m").is_some_and(|report| {
            report.conditions.iter().any(|condition| condition.reason == "SourceGone")
        });
        assert!(!lost, "seed {seed}: bytes were dropped that had to be loaded");
    }
}

fn handle_as(driver: &mut Driver<Fake>, name: &str, input: Input<Fake>) -> Vec<Action<Fake>> {
    let mut actions = driver.handle(name, input);
    for action in std::mem::take(&mut actions) {
        if let Action::Commit { digest, .. } = action {
            actions.extend(driver.handle(name, Event::Committed { digest, result: Ok(()) }));
        } else {
            actions.push(action);
        }
    }
    actions
}

fn reason_of(driver: &Driver<Fake>, name: &str) -> String {
    let conditions = driver.report(name).unwrap().conditions;
    conditions.into_iter().find(|condition| condition.type_ == "Ready").unwrap().reason
}

fn named(name: &str, generation: i64, spec: &Value, status: &Value) -> Input<Fake> {
    let document = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
        "metadata": {"name": name, "generation": generation}, "spec": spec, "status": status,
    });
    Input::Module(Box::new(Module::from_value(&document).unwrap()))
}

#[test]
fn of_two_overlapping_modules_the_active_one_stays_active() {
    let mut driver = driver();
    for name in ["b", "a"] {
        handle_as(&mut driver, name, named(name, 1, &spec(), &json!({})));
        handle_as(&mut driver, name, source("x"));
        handle_as(&mut driver, name, loaded("x", |_| {}));
    }
    assert_eq!(reason_of(&driver, "b"), "RevisionActive");
    assert_eq!(reason_of(&driver, "a"), "PrimaryOverlap");
    // Apart they serve both.
    let here = with(json!({"namespaces": ["here"]}));
    let there = with(json!({"namespaces": ["there"]}));
    handle_as(&mut driver, "b", named("b", 2, &here, &json!({})));
    handle_as(&mut driver, "a", named("a", 2, &there, &json!({})));
    handle_as(&mut driver, "a", loaded("x", |_| {}));
    assert_eq!(
        (reason_of(&driver, "a"), reason_of(&driver, "b")),
        ("RevisionActive".into(), "RevisionActive".into())
    );
    // Neither can be moved over the other, and both go on as they are.
    handle_as(&mut driver, "a", named("a", 3, &spec(), &json!({})));
    assert_eq!(
        (reason_of(&driver, "a"), reason_of(&driver, "b")),
        ("PrimaryOverlap".into(), "RevisionActive".into())
    );
    assert_eq!(
        driver.active_revision("a").unwrap().settings.namespaces,
        ["there".to_owned()].into()
    );
    // When the other is gone, it may: the Module is looked at again.
    handle_as(&mut driver, "b", Input::Gone);
    handle_as(&mut driver, "a", named("a", 3, &spec(), &json!({})));
    assert_eq!(reason_of(&driver, "a"), "RevisionActive");
}

#[test]
fn after_a_restart_the_active_module_wins_an_overlap_in_any_load_order() {
    let mut driver = driver();
    let digest = component("x").digest.to_string();
    let revision = json!({"digest": digest, "primary": {"apiVersion": "quay.io/v1alpha1", "kind": "Podroute"}});
    handle_as(&mut driver, "b", named("b", 1, &spec(), &revision));
    handle_as(&mut driver, "a", named("a", 1, &spec(), &json!({})));
    for name in ["a", "b"] {
        handle_as(&mut driver, name, source("x"));
        handle_as(&mut driver, name, loaded("x", |_| {}));
    }
    assert_eq!(
        (reason_of(&driver, "a"), reason_of(&driver, "b")),
        ("PrimaryOverlap".into(), "RevisionActive".into())
    );
}

#[test]
fn a_copy_that_somebody_changed_is_refused() {
    let mut driver = driver();
    let revision = json!({"digest": component("x").digest.to_string()});
    driver.handle("m", named("m", 1, &spec(), &revision));
    let actions = driver.handle("m", source("y"));
    assert!(actions.iter().any(|action| show(action).starts_with("fetch copy")));
    let digest = component("x").digest;
    let actions = driver.handle("m", Input::Snapshot { digest, result: Ok(component("z")) });
    assert!(actions.iter().any(|action| show(action) == "notify SnapshotChanged"));
    // What the source has is not taken for what served: it is rehearsed.
    let actions = driver.handle("m", loaded("y", |_| {}));
    assert!(actions.iter().any(|action| show(action) == "rehearse y #1"));
}

/// A Module whose account does not allow it.
fn not_allowed(module: Input<Fake>) -> Input<Fake> {
    let Input::Module(module) = module else { panic!("no Module") };
    let rejection = Rejection::new("AccountNotAllowed", "no", RetryPolicy::Later);
    Input::NotAllowed { module, rejection }
}

#[test]
fn module_that_is_not_allowed_is_not_fetched_and_keeps_what_its_status_knows() {
    let mut driver = driver();
    let digest = component("x").digest.to_string();
    let previous = component("w").digest.to_string();
    let rejected = component("v").digest.to_string();
    let status = json!({"digest": digest, "previous": {"digest": previous, "configMap": "m-copy"},
        "rejected": [{"digest": rejected, "reason": "Rejected", "message": "no"}]});
    let actions = driver.handle("m", not_allowed(named("m", 1, &spec(), &status)));
    let shown: Vec<_> = actions.iter().map(show).collect();
    assert_eq!(shown, ["notify AccountNotAllowed", "report 1 AccountNotAllowed"]);
    let report = driver.report("m").unwrap();
    assert_eq!(report.members["digest"], json!(digest), "a restart finds what served");
    assert_eq!(report.members["previous"]["digest"], json!(previous));
    assert_eq!(report.members["rejected"][0]["digest"], json!(rejected));
    // Once it is allowed it goes on from there: what served is not rehearsed.
    let actions = driver.handle("m", named("m", 1, &spec(), &status));
    assert!(actions.iter().any(|action| show(action).starts_with("fetch ")));
    driver.handle("m", source("x"));
    let actions = driver.handle("m", loaded("x", |_| {}));
    assert!(actions.iter().any(|action| show(action).starts_with("serve x")));
    assert_eq!(reason_of(&driver, "m"), "RevisionActive");
}

#[test]
fn module_that_is_allowed_again_has_its_old_spec_back() {
    let mut driver = driver();
    driver.handle("m", module(1, &spec()));
    driver.handle("m", source("x"));
    driver.handle("m", loaded("x", |_| {}));
    handle(&mut driver, Event::Committed { digest: component("x").digest, result: Ok(()) });
    assert_eq!(reason_of(&driver, "m"), "RevisionActive");
    driver.handle("m", not_allowed(module(1, &spec())));
    assert_eq!(reason_of(&driver, "m"), "AccountNotAllowed");
    driver.handle("m", module(1, &spec()));
    assert_eq!(reason_of(&driver, "m"), "RevisionActive");
}
