//! Random sequences of inputs.

use super::*;
use crate::crd_installation::CrdInstallation;

/// Random sequences of inputs, with answers that come late, twice, or not at all: the invariants
/// hold, and at the end the present source is active.
#[test]
fn only_the_present_source_becomes_active_in_any_order_of_events() {
    for seed in 1..=300 {
        let mut dice = Dice(seed);
        let mut driver = driver();
        let mut world = World::default();
        for _ in 0..60 {
            let input = world.next_input(&mut dice, driver.active_digest("m"));
            world.feed(&mut driver, input, seed);
        }
        // At the end: all answers, so that no rollback follows the approval; then a spec and a
        // source that last, and all answers.
        world.generation += if world.generation % 5 == 4 { 2 } else { 1 };
        for _ in 0..20 {
            let Some(input) = world.answer() else { break };
            world.feed(&mut driver, input, seed);
        }
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
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What the owner of the driver has under way.
#[derive(Default)]
struct World {
    generation: i64,
    source: Option<&'static str>,
    loading: Vec<Component>,
    installing: Vec<CrdInstallation>,
    previewing: Vec<Digest>,
    committing: Vec<Digest>,
    rolling_back: Vec<Digest>,
    retry: bool,
    version: u64,
}

impl World {
    fn next_input(&mut self, dice: &mut Dice, active: Option<Digest>) -> Input<Fake> {
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
            6 if dice.roll(3) == 0 => {
                let rejection = Rejection::new("Trap", "trapped", RetryPolicy::Later);
                let digest = active.unwrap_or(component("good").digest);
                Event::FailureThresholdExceeded { digest, rejection }.into()
            }
            6 => Event::Retry.into(),
            _ => self.answer().unwrap_or(Event::Health(Ok(None)).into()),
        }
    }

    /// The answer to the oldest action under way.
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
                    }).into()];
                    Ok(Fake::new(manifest))
                }
                Some(&"bad") => refuse(RetryPolicy::Never),
                Some(_) => refuse(RetryPolicy::Later),
                None => Ok(Fake::new(manifest("good"))),
            };
            return Some(Input::Loaded { digest, result });
        }
        if !self.installing.is_empty() {
            let CrdInstallation { purpose, number, digest, .. } = self.installing.remove(0);
            let result = if self.generation % 2 == 0 {
                Ok(())
            } else {
                Err(Rejection::new("Refused", "refused", RetryPolicy::Later).into())
            };
            let written = InstalledCrds::default();
            let finished = FinishedInstallation { purpose, number, digest, written, result };
            return Some(Input::CrdsInstalled(Box::new(finished)));
        }
        if !self.previewing.is_empty() {
            let digest = self.previewing.remove(0);
            let mut preview = Preview { primaries: 1, previewed: 1, ..Preview::default() };
            if self.generation % 3 == 0 {
                preview.add(PlannedChange::Delete, "ConfigMap web/a".into(), Vec::new());
            }
            return Some(Input::Previewed { digest, result: Ok(preview) });
        }
        if !self.committing.is_empty() {
            let digest = self.committing.remove(0);
            let refused = Rejection::new("NotCommitted", "not committed", RetryPolicy::Later);
            let result = if self.generation % 5 == 0 { Err(refused) } else { Ok(()) };
            return Some(Event::Committed { digest, result }.into());
        }
        if !self.rolling_back.is_empty() {
            let digest = self.rolling_back.remove(0);
            let refused = Rejection::new("NotCommitted", "not committed", RetryPolicy::Later);
            let result = if self.generation % 5 == 0 { Err(refused) } else { Ok(()) };
            return Some(Event::RollbackCommitted { digest, result }.into());
        }
        std::mem::take(&mut self.retry).then_some(Event::Retry.into())
    }

    /// Hands an input to the driver, records its actions, and checks the invariants.
    fn feed(&mut self, driver: &mut Driver<Fake>, input: Input<Fake>, seed: u64) {
        let decision = match &input {
            Input::Event(Event::Committed { digest, result: Ok(()) }) => {
                driver.committed_status("m", *digest)
            }
            Input::Event(Event::RollbackCommitted { result: Ok(()), .. }) => {
                driver.rollback_status("m")
            }
            _ => None,
        };
        let actions = driver.handle("m", input);
        if let Some(decision) = decision {
            let report = driver.report("m").unwrap();
            for member in ["digest", "history", "rejected"] {
                let (written, after) = (decision.members.get(member), report.members.get(member));
                assert_eq!(written, after, "seed {seed}: {member} differs from the decision");
            }
        }
        for action in actions {
            match action {
                Action::Load(job) => {
                    assert!(self.loading.is_empty(), "seed {seed}: two loads at once");
                    let present = self.source.map(|name| component(name).digest);
                    assert_eq!(Some(job.component.digest), present, "seed {seed}");
                    self.loading.push(job.component);
                }
                Action::InstallCrds(one) => self.installing.push(one),
                Action::Preview { digest, .. } => self.previewing.push(digest),
                Action::Commit { digest, component } => {
                    let held = component.map(|component| component.digest);
                    assert_eq!(held, Some(digest), "seed {seed}: no component to save");
                    self.committing.push(digest);
                }
                Action::CommitRollback(digest) => self.rolling_back.push(digest),
                Action::Direct(DirectEffect::RestoreSnapshot(_)) => {
                    panic!("seed {seed}: no revision was active before the start")
                }
                Action::Activate(revision) => {
                    assert_eq!(revision.version, self.version + 1, "seed {seed}");
                    assert_eq!(revision.guest.limits, revision.spec.limits, "seed {seed}");
                    if let Some(before) = driver.active_revision("m") {
                        assert_eq!(before.version, revision.version, "seed {seed}: not in force");
                    }
                    self.version = revision.version;
                }
                Action::Direct(DirectEffect::RetryLater) => self.retry = true,
                Action::Teardown(_)
                | Action::Direct(DirectEffect::RemoveModule | DirectEffect::RemoveFinalizer) => {
                    panic!("seed {seed}: nobody deleted it")
                }
                Action::Fetch(_)
                | Action::CommitKinds { .. }
                | Action::Report(_)
                | Action::BeginRollbackWindow { .. }
                | Action::Direct(
                    DirectEffect::Notify(_)
                    | DirectEffect::EndRollbackWindow
                    | DirectEffect::ReinstallLater,
                )
                | Action::RetryOverlapping(_)
                | Action::CheckParameters(_)
                | Action::SaveSnapshot(_) => {}
            }
        }
        let module_state = &driver.states.get("m");
        assert!(
            module_state
                .is_none_or(|module_state| module_state.active().is_some() || self.version == 0),
            "seed {seed}: a revision was active, and none is now"
        );
        let lost = driver.report("m").is_some_and(|report| {
            report.conditions.iter().any(|condition| condition.reason == "SourceGone")
        });
        assert!(!lost, "seed {seed}: bytes were dropped that had to be loaded");
    }
}
