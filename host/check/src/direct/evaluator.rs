//! Judges laws about single primaries by calls of the guest.

use std::sync::Arc;

use innkeeper_cluster::SecretDigestKey;
use innkeeper_contract::Desired;
use innkeeper_core::host_names::Grants;
use innkeeper_core::ownership::PrimaryOwner;
use innkeeper_core::plan::Action;
use innkeeper_core::{KnownMasks, Object, ObjectRef, control};
use innkeeper_operator::evaluate::{
    ClusterView as _, Evaluated, EvaluationError, EvaluationResult, REVISION_DIGEST_PURPOSE,
    Subject as EvaluationSubject, evaluate,
};
use innkeeper_sandbox::{CallError, Guest, Outcome};
use jiff::SignedDuration;
use serde_json::Value;

use super::dry_run_server::{DryRunServer, Refusal, decode};
use super::figures::DirectFigures;
use super::picture::{Picture, PictureView};
use super::status_update::StatusUpdate;
use super::suspicion::Suspicion;
use crate::findings::is_broken_call;
use crate::law::Law;
use crate::oracle::secret_texts;
use crate::run_error::RunError;
use crate::runner::ScenarioRunner;
use crate::subject::Subject;

/// The uid of all primaries, so that equal specs desire equal objects, and another one.
const UID: &str = "0d1ec700-0000-4000-8000-00000000000a";
const OTHER_UID: &str = "51b11a60-0000-4000-8000-00000000000b";

/// After so many rounds with a change each, the changes count as endless.
const ROUNDS_MAX: u32 = 16;

/// A primary, and what was made for it when nothing changed any more.
#[derive(Clone)]
pub(super) struct Settled {
    pub(super) spec: Arc<Value>,
    picture: Picture,
    answer: Desired,
    is_complete: bool,
}

/// How the rounds of one primary ended.
enum End {
    /// Nothing changed any more.
    Settled(Box<Settled>),
    /// With something that breaks a law.
    Suspicious(Suspicion),
    /// The guest reported a failure, or something stands in the way that a picture does not have.
    NotJudged,
}

/// What one round changed.
struct Changes {
    objects: usize,
    status: bool,
}

/// Judges laws about single primaries.
pub(super) struct Evaluator<'a> {
    subject: &'a Subject,
    laws: &'a [Law],
    guest: Guest,
    known_masks: KnownMasks,
    server: DryRunServer,
    status: StatusUpdate,
    parameters: String,
    /// Values of Secrets, as texts of JSON have them.
    secrets: Vec<String>,
    revision_key: SecretDigestKey,
    pub(super) figures: DirectFigures,
}

impl<'a> Evaluator<'a> {
    /// An evaluator with a server of its own.
    ///
    /// # Errors
    /// If the component cannot be loaded, or the server refuses what exists before the host starts.
    pub(super) fn new(
        runner: &'a ScenarioRunner,
        laws: &'a [Law],
        seed: u64,
    ) -> Result<Self, RunError> {
        let subject = runner.subject();
        let parameters = &subject.module["spec"]["parameters"];
        Ok(Self {
            subject,
            laws,
            guest: runner.guest()?,
            known_masks: KnownMasks::default(),
            server: DryRunServer::start(subject, seed)?,
            status: StatusUpdate::of(subject),
            parameters: if parameters.is_null() { String::new() } else { parameters.to_string() },
            secrets: secret_texts(subject),
            revision_key: SecretDigestKey::new(&[]),
            figures: DirectFigures::default(),
        })
    }

    /// Whether the API server accepts a primary.
    pub(super) fn is_accepted(&self, spec: &Value) -> bool {
        self.server.create(spec).is_some()
    }

    /// Judges the laws about one primary that users create. Returns it when nothing changes any
    /// more, and what seems to break a law.
    pub(super) fn judge(&mut self, spec: &Arc<Value>) -> (Option<Settled>, Vec<Suspicion>) {
        let Some(picture) = self.create(spec) else {
            self.figures.refused += 1;
            return (None, Vec::new());
        };
        self.figures.primaries += 1;
        let mut suspicions = Vec::new();
        let end = self.settle(spec, picture, Some(&mut suspicions));
        let mut settled = None;
        match end {
            End::Settled(end) => settled = Some(*end),
            End::Suspicious(suspicion) => suspicions.push(suspicion),
            End::NotJudged => {}
        }
        let suspicions = suspicions.into_iter().map(|one| one.of(&[spec]));
        (settled, suspicions.filter(|one| self.is_chosen(one.law)).collect())
    }

    /// Judges whether the change from one spec to another, and back, leads to the same objects as
    /// each alone.
    pub(super) fn judge_path(&mut self, first: &Settled, second: &Settled) -> Vec<Suspicion> {
        let mut suspicions = Vec::new();
        let is_of_one_name = first.picture.primary_ref == second.picture.primary_ref;
        let is_chosen = self.is_chosen(Law::PathIndependence) || self.is_chosen(Law::Rollback);
        if !is_chosen || !is_of_one_name || !first.is_complete || !second.is_complete {
            return suspicions;
        }
        let mut present = first.clone();
        for (law, goal) in [(Law::PathIndependence, second), (Law::Rollback, first)] {
            if law == Law::Rollback && !self.is_chosen(law) {
                break;
            }
            let Some(picture) = replaced(&present.picture, &goal.spec, self) else { break };
            let End::Settled(end) = self.settle(&goal.spec, picture, None) else { break };
            if !end.is_complete || has_problem(&end.answer) {
                break;
            }
            if self.is_chosen(law) {
                self.figures.count(law);
                let specs = [&first.spec, &second.spec, &first.spec];
                let specs = &specs[..if law == Law::Rollback { 3 } else { 2 }];
                let kind = differing_kind(&end.picture, &goal.picture);
                suspicions.extend(kind.map(|kind| {
                    Suspicion::new(law, format!("another {kind} than with the last spec alone"))
                        .of(specs)
                }));
            }
            present = *end;
        }
        suspicions
    }

    fn is_chosen(&self, law: Law) -> bool {
        self.laws.contains(&law)
    }

    fn count(&mut self, law: Law) {
        if self.is_chosen(law) {
            self.figures.count(law);
        }
    }

    /// The law about changes that do not end.
    fn law_of_the_end(&self) -> Law {
        if self.is_chosen(Law::Fixpoint) { Law::Fixpoint } else { Law::Convergence }
    }

    /// The picture of a primary that users have created; `None` if the API server refuses it.
    fn create(&self, spec: &Value) -> Option<Picture> {
        let kind = self.server.primary_kind()?.clone();
        let stored = decode(&kind, &self.server.create(spec)?)?;
        let primary = with_uid(&stored, UID);
        let object_ref = ObjectRef::new(kind, primary.key.clone());
        Some(Picture::new(object_ref, Arc::new(primary)))
    }

    /// Runs rounds until nothing changes any more. With `suspicions` the primary is new: then the
    /// laws about its answers are judged too.
    fn settle(
        &mut self,
        spec: &Arc<Value>,
        mut picture: Picture,
        mut suspicions: Option<&mut Vec<Suspicion>>,
    ) -> End {
        let end = self.rounds(spec, &mut picture, &mut suspicions);
        if suspicions.is_some() {
            match &end {
                End::Settled(_) => {
                    self.count(Law::Totality);
                    self.count(self.law_of_the_end());
                    if !self.secrets.is_empty() {
                        self.count(Law::NoLeak);
                    }
                }
                End::Suspicious(suspicion) => self.count(suspicion.law),
                End::NotJudged => self.count(Law::Totality),
            }
        }
        end
    }

    fn rounds(
        &mut self,
        spec: &Arc<Value>,
        picture: &mut Picture,
        suspicions: &mut Option<&mut Vec<Suspicion>>,
    ) -> End {
        let manifest = self.guest.manifest();
        let owner = PrimaryOwner::new(&self.subject.name, picture.primary_ref.clone(), UID)
            .decorating(control::decorates(manifest));
        for round in 0..ROUNDS_MAX {
            let evaluated = match self.evaluate(picture, &owner, round) {
                Ok(evaluated) => evaluated,
                Err(end) => return end,
            };
            if round == 0
                && let Some(suspicions) = suspicions.as_deref_mut()
                && self.is_chosen(Law::Determinism)
            {
                suspicions.extend(self.judge_uid(picture, &evaluated.answer));
            }
            if let Some(leak) = self.leak(&evaluated) {
                return End::Suspicious(leak);
            }
            let changes = match self.apply(picture, &owner, &evaluated) {
                Ok(changes) => changes,
                Err(end) => return end,
            };
            let are_objects_quiet = changes.objects == 0 && !evaluated.plan.prune_pending;
            let becomes_ready = are_objects_quiet && picture.make_ready(&self.server);
            if are_objects_quiet && !changes.status && !becomes_ready {
                let (spec, picture) = (spec.clone(), picture.clone());
                let (answer, is_complete) = (evaluated.answer, evaluated.complete);
                return End::Settled(Box::new(Settled { spec, picture, answer, is_complete }));
            }
        }
        End::Suspicious(Suspicion::new(self.law_of_the_end(), "each run changes something"))
    }

    /// Calls the guest and plans.
    fn evaluate(
        &mut self,
        picture: &Picture,
        owner: &PrimaryOwner,
        round: u32,
    ) -> Result<Evaluated, End> {
        self.figures.calls += 1;
        let mut view = self.view(picture, round);
        let digest = |text: &str| self.revision_key.digest_text(REVISION_DIGEST_PURPOSE, text);
        let subject = EvaluationSubject {
            guest: &self.guest,
            known_masks: &self.known_masks,
            primary: &picture.primary,
            owner,
            grants: Grants::default(),
            digest: &digest,
            unapplied: &[],
            state: &picture.state,
            now: view.now,
        };
        let error = match evaluate(&subject, &mut view).result {
            EvaluationResult::Planned(evaluated) => return Ok(*evaluated),
            EvaluationResult::NeedsRead(_) => return Err(End::NotJudged),
            EvaluationResult::Failed(error) => error,
        };
        let reason = match &error {
            EvaluationError::Failed(_) => return Err(End::NotJudged),
            EvaluationError::Call(error) => error.reason(),
            EvaluationError::Invalid(invalid) => invalid.reason(),
        };
        if !is_broken_call(reason) {
            return Err(End::NotJudged);
        }
        Err(End::Suspicious(Suspicion::new(Law::Totality, reason)))
    }

    fn view<'v>(&'v self, picture: &'v Picture, round: u32) -> PictureView<'v> {
        let now = self.server.now();
        let now = now.checked_add(SignedDuration::from_secs(round.into())).unwrap_or(now);
        PictureView { picture, server: &self.server, parameters: &self.parameters, now }
    }

    /// Whether another uid of the primary leads to other desired objects.
    fn judge_uid(&mut self, picture: &Picture, answer: &Desired) -> Option<Suspicion> {
        let mut other = picture.clone();
        other.primary = Arc::new(with_uid(&picture.primary, OTHER_UID));
        self.figures.calls += 1;
        self.count(Law::Determinism);
        let mut view = self.view(&other, 0);
        let limit = self.guest.limits().memory_bytes;
        let document = view.document(&other.primary, &[], &[], limit).ok()?;
        let objects = match self.guest.reconcile(&document, &mut view).map(|run| run.outcome) {
            Ok(Outcome::Complete(desired) | Outcome::Partial(desired)) => Some(desired.objects),
            Err(CallError::Busy { .. }) => return None,
            _ => None,
        };
        let is_same = objects.is_some_and(|objects| objects == answer.objects);
        (!is_same).then(|| Suspicion::new(Law::Determinism, "other objects with another uid"))
    }

    /// A value of a Secret in an object that is no Secret, or in the status. The host masks the
    /// texts of conditions and Events.
    fn leak(&self, evaluated: &Evaluated) -> Option<Suspicion> {
        if self.secrets.is_empty() || !self.is_chosen(Law::NoLeak) {
            return None;
        }
        let has_secret = |text: String| self.secrets.iter().any(|secret| text.contains(secret));
        let objects = evaluated.desired.objects.iter();
        let kind =
            objects.filter(|one| &*one.object_ref.kind.plural != "secrets").find_map(|one| {
                has_secret(one.body.to_string()).then(|| one.object_ref.kind.kind.clone())
            });
        let status = evaluated.answer.status.clone().map(|status| Value::from(status).to_string());
        let in_status = || status.filter(|text| has_secret(text.clone())).map(|_| "status".into());
        let place = kind.or_else(in_status)?;
        Some(Suspicion::new(Law::NoLeak, format!("a value of a Secret in a {place}")))
    }

    /// Applies a plan and the status to the picture. Returns what changed.
    fn apply(
        &mut self,
        picture: &mut Picture,
        owner: &PrimaryOwner,
        evaluated: &Evaluated,
    ) -> Result<Changes, End> {
        let mut changed = 0;
        for step in &evaluated.plan.steps {
            let manager = match &step.action {
                Action::Skip(reason) if reason.is_problem() => return Err(End::NotJudged),
                Action::Skip(_) => continue,
                Action::Delete { .. } | Action::Unmerge { .. } => {
                    picture.remove(&step.object_ref);
                    changed += 1;
                    continue;
                }
                Action::Merge { .. } => &owner.merge_manager,
                Action::Create
                | Action::Apply { .. }
                | Action::Adopt { .. }
                | Action::Recreate { .. } => &owner.manager,
            };
            let index = step.desired_index;
            let Some(desired) = index.and_then(|index| evaluated.desired.objects.get(index)) else {
                continue;
            };
            if !desired.values.is_empty() {
                return Err(End::NotJudged);
            }
            let force = *manager == owner.manager;
            let object = self.server.apply(desired, manager, force).map_err(|refusal| {
                let kind = &step.object_ref.kind.kind;
                match refusal {
                    Refusal::Invalid => End::Suspicious(Suspicion::new(
                        Law::Totality,
                        format!("the API server refuses a {kind}"),
                    )),
                    Refusal::Other => End::NotJudged,
                }
            })?;
            picture.put(&step.object_ref, object, desired.digest(), manager);
            changed += 1;
        }
        picture.state.clean = evaluated.complete;
        let status = self.status.write(picture, evaluated, changed, self.server.now());
        Ok(Changes { objects: changed, status })
    }
}

/// An object with another uid, also where its text has it.
fn with_uid(object: &Object, uid: &str) -> Object {
    let quoted = |uid: &str| format!("\"uid\":\"{uid}\"");
    let text = object.text.read().replacen(&quoted(&object.uid), &quoted(uid), 1);
    Object { uid: uid.into(), text: text.into(), ..object.clone() }
}

/// The picture after users have replaced the spec.
fn replaced(picture: &Picture, spec: &Value, evaluator: &Evaluator<'_>) -> Option<Picture> {
    let created = evaluator.create(spec)?;
    let mut text: Value = serde_json::from_str(&created.primary.text.read()).ok()?;
    let mut before: Value = serde_json::from_str(&picture.primary.text.read()).ok()?;
    text["status"] = before["status"].take();
    let generation = picture.primary.generation + 1;
    text["metadata"]["generation"] = generation.into();
    let entries = picture.primary.entries.clone();
    let text = text.to_string().into();
    let primary = Object { generation, entries, text, ..(*created.primary).clone() };
    Some(Picture { primary: Arc::new(primary), ..picture.clone() })
}

/// Whether the guest reports by a condition of its own that it cannot follow the spec.
fn has_problem(answer: &Desired) -> bool {
    let is_false = |status| status == innkeeper_contract::ConditionStatus::False;
    answer.conditions.iter().any(|one| one.type_ != "Ready" && is_false(one.status))
}

/// The kind of the first object that differs. Claims may: their specs never change.
fn differing_kind(picture: &Picture, expected: &Picture) -> Option<String> {
    let all = picture.digests.keys().chain(expected.digests.keys());
    let differs = |object_ref: &&ObjectRef| {
        picture.digests.get(*object_ref) != expected.digests.get(*object_ref)
    };
    let is_claim = |object_ref: &&ObjectRef| object_ref.kind.kind == "PersistentVolumeClaim";
    all.filter(differs).find(|one| !is_claim(one)).map(|one| one.kind.kind.clone())
}
