//! The status of a Module.

use innkeeper_core::{Finalizer, control, foreign};
use serde_json::{Map, Value, json};

use super::{ModuleState, Report, snapshot_name};
use crate::machine::{Candidate, DecidedDigests, REJECTED, Rejection};
use crate::module::{CandidateStatus, ExampleStatus, KindStatus, RehearsalStatus};
use crate::registry::Loaded;
use crate::rollout::Preview;
use crate::source::Digest;

/// The longest message in a status beside conditions, in bytes: its schema takes three more, which
/// are the dots of one that is cut.
const MESSAGE_BYTES_MAX: usize = 4_093;

impl<G: Loaded> ModuleState<G> {
    fn candidate(&self) -> Option<Value> {
        let candidate = self.machine.candidate();
        let mut status = CandidateStatus {
            digest: candidate.digest()?.to_string(),
            state: candidate.state().to_owned(),
            ..CandidateStatus::default()
        };
        if let Some((_, rejection)) = self.machine.refused() {
            // What is tried again goes through the same states each time: that is no news.
            if !matches!(candidate, Candidate::Committing(_)) {
                REJECTED.clone_into(&mut status.state);
            }
            (status.reason, status.message) =
                (Some(rejection.reason.clone()), Some(bounded_message(rejection)));
        }
        if let Candidate::Held(_, held) = candidate {
            let (rehearsal, rejection) = &**held;
            (status.reason, status.message) =
                (Some(rejection.reason.clone()), Some(bounded_message(rejection)));
            let told = RehearsalStatus::of(candidate.digest()?, rehearsal);
            status.primaries = Some(told.primaries);
            status.previewed = Some(told.previewed);
            status.creates = Some(told.creates);
            status.changes = Some(told.changes);
            status.deletes = Some(told.deletes);
            status.failures = Some(told.failures);
            status.examples = told.examples;
        }
        serde_json::to_value(status).ok()
    }

    pub(super) fn report(&self, name: &str) -> Report {
        self.report_with(name, self.machine.persistent_digests())
    }

    /// The report that writes a decision down.
    pub(super) fn decision(&self, name: &str) -> Report {
        self.report_with(name, self.machine.decision())
    }

    fn report_with(
        &self,
        name: &str,
        DecidedDigests { active: serves, previous }: DecidedDigests,
    ) -> Report {
        let mut members = Map::new();
        if let Some(digest) = serves {
            members.insert("digest".into(), digest.to_string().into());
        }
        if let Some(previous) = previous {
            members.insert(
                "previous".into(),
                json!({ "digest": previous.to_string(), "configMap": snapshot_name(name, previous) }),
            );
        }
        let serves = serves.map(|digest| digest.to_string());
        let its = |told: &&RehearsalStatus| Some(&told.digest) == serves.as_ref();
        if let Some(rehearsal) = self.previews.iter().find(its) {
            members.insert("preview".into(), json!(rehearsal));
        }
        if let Some(candidate) = self.candidate() {
            members.insert("candidate".into(), candidate);
        }
        let rejected: Vec<_> = self.machine.rejected().map(rejected).collect();
        if !rejected.is_empty() {
            members.insert("rejected".into(), rejected.into());
        }
        if let Some(finalizer) = self.finalizer() {
            let finalizer = Finalizer::new(name, Some(&finalizer));
            members.insert("finalizer".into(), finalizer.name().into());
        }
        if let Some(revision) = &self.active {
            let manifest = revision.guest.manifest();
            let mut guest = json!({ "name": manifest.name });
            if !manifest.version.is_empty() {
                guest["version"] = manifest.version.clone().into();
            }
            members.insert("guest".into(), guest);
            members.insert("primary".into(), json!(KindStatus::of(&manifest.primary)));
            if control::decorates(manifest) {
                members.insert("decorates".into(), true.into());
            }
            members.insert("contract".into(), innkeeper_contract::VERSION.into());
        }
        if !self.owned_kinds.is_empty() {
            let kinds: Vec<_> = self.owned_kinds.values().map(|kind| json!(kind)).collect();
            members.insert("ownedKinds".into(), kinds.into());
        }
        Report {
            generation: self.machine.generation(),
            members,
            conditions: self.machine.conditions(),
        }
    }
}

impl RehearsalStatus {
    fn of(digest: Digest, rehearsal: &Preview) -> Self {
        let Preview {
            primaries,
            previewed: rehearsed,
            objects: _,
            creates,
            changes,
            deletes,
            failures,
            examples,
        } = rehearsal;
        // Names of members of an object are the guest's.
        let visible = |text: &String| foreign::one_line(text, MESSAGE_BYTES_MAX);
        let examples = examples.iter().map(|example| ExampleStatus {
            action: example.change.as_str().to_owned(),
            object: visible(&example.object),
            fields: example.fields.iter().map(visible).collect(),
        });
        Self {
            digest: digest.to_string(),
            primaries: *primaries,
            previewed: *rehearsed,
            creates: *creates,
            changes: *changes,
            deletes: *deletes,
            failures: *failures,
            examples: examples.collect(),
        }
    }
}

impl<G: Loaded> ModuleState<G> {
    /// Keeps what a rehearsal found until it is known whether the version serves.
    pub(super) fn record_preview(&mut self, digest: Digest, rehearsal: &Preview) {
        let revision = self.machine.persistent_digests().active.map(|digest| digest.to_string());
        self.previews.retain(|told| Some(&told.digest) == revision.as_ref());
        self.previews.push(RehearsalStatus::of(digest, rehearsal));
    }
}

fn rejected((digest, rejection): &(Digest, Rejection)) -> Value {
    json!({ "digest": digest.to_string(), "reason": rejection.reason, "message": bounded_message(rejection) })
}

/// A verdict's message, no longer than the schema takes: one that is would make the whole status
/// unwritable, and what a guest says of itself may be of any length.
fn bounded_message(rejection: &Rejection) -> String {
    foreign::message(&rejection.message, MESSAGE_BYTES_MAX)
}
