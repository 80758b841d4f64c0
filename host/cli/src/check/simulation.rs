//! Runs the Modules of a set on a simulated cluster until nobody writes any more.

use std::time::{Duration, Instant};

use innkeeper_contract::Kind;
use innkeeper_core::foreign;
use innkeeper_lab::scenario::{Backend, of_modules};
use innkeeper_lab::{Guests, Lab, Modules, Setup};
use innkeeper_modules::module;
use serde_json::{Value, json};

use super::object_changes::{ChangeLog, RepeatedChange, name_of};
use super::policy_reviews::Given;
use super::set_member::SetMember;
use crate::objects::{DEFAULT_NAMESPACE, InputObject};
use crate::rbac;

/// Maximum time until all Modules are active, in virtual time.
const ACTIVATION_MAX: Duration = Duration::from_mins(2);

/// The virtual time after which the command looks at the wall clock.
const PART: Duration = Duration::from_secs(40);

/// Maximum virtual time until nobody writes any more, in parts: 10 minutes.
const PARTS_MAX: usize = 15;

/// The reasons of the condition `Synced` that name a fight.
const FIGHTS: [&str; 2] = ["Contested", "NotConverging"];

/// The longest message that a result repeats, in bytes.
const MESSAGE_BYTES_MAX: usize = 1_000;

/// A primary that is not synced.
pub(super) struct Unsynced {
    /// The object, for people.
    pub(super) object: String,
    /// The reason and the message of its condition `Synced`.
    pub(super) reason: String,
    pub(super) message: String,
    /// The Module that reconciles it.
    pub(super) module: String,
}

/// What happened on the simulated cluster.
pub(super) struct Played {
    /// The virtual time until nobody wrote any more; none if the writes went on.
    pub(super) quiet_after: Option<Duration>,
    /// The objects that the cluster refused, with the reasons.
    pub(super) refused: Vec<String>,
    pub(super) unsynced: Vec<Unsynced>,
    /// The fields that changed again and again, most often first.
    pub(super) changes: Vec<RepeatedChange>,
}

impl Played {
    /// Whether the writes went on, or the host stopped a fight.
    pub(super) fn is_loop(&self) -> bool {
        self.quiet_after.is_none() || self.fights().next().is_some()
    }

    /// The primaries whose condition names a fight.
    pub(super) fn fights(&self) -> impl Iterator<Item = &Unsynced> {
        self.unsynced.iter().filter(|one| FIGHTS.contains(&one.reason.as_str()))
    }
}

/// A set that is run on simulated clusters, each of which begins empty.
pub(super) struct Simulation<'a> {
    pub(super) given: Given<'a>,
    pub(super) guests: Guests,
    pub(super) seed: u64,
}

impl Simulation<'_> {
    /// Runs all Modules with policies in the mode that `mode` gives each.
    ///
    /// # Errors
    /// Why the cluster cannot run them.
    pub(super) fn play(&self, mode: impl Fn(&SetMember) -> &'static str) -> anyhow::Result<Played> {
        let mut setup = Setup::new(self.seed);
        let members = &self.given.set.members;
        let modules: Vec<Value> =
            members.iter().map(|one| one.document(mode(one))).collect::<Result<_, _>>()?;
        setup.modules = Modules::Given(modules);
        for member in members {
            setup.objects.extend(rbac::minimal_rules(
                member.manifest(),
                &member.name,
                &member.name,
            ));
        }
        setup.objects.extend(self.before_modules());
        innkeeper_lab::block_on(self.play_on(setup))?
    }

    /// The definitions among the objects, and the namespaces of all.
    fn before_modules(&self) -> Vec<Value> {
        let mut before: Vec<Value> = Vec::new();
        for object in self.given.objects.iter().filter(|one| is_before_modules(one)) {
            before.push(object.value.clone());
        }
        for object in self.given.objects {
            let name = object.text("/metadata/namespace");
            let is_it = |one: &Value| one["kind"] == "Namespace" && one["metadata"]["name"] == name;
            if !name.is_empty() && !before.iter().any(is_it) {
                before.push(json!({"apiVersion": "v1", "kind": "Namespace",
                    "metadata": {"name": name}}));
            }
        }
        before
    }

    async fn play_on(&self, setup: Setup) -> anyhow::Result<Played> {
        let lab = Lab::start(&self.guests, setup).await?;
        if let Err(timeout) = lab.serves(ACTIVATION_MAX).await {
            let details = of_modules(&Backend::Lab(Box::new(lab))).await;
            anyhow::bail!("{timeout}\n{details}");
        }
        let log = ChangeLog::begin(lab.api(), &self.kinds()).await?;
        let mut refused = Vec::new();
        for object in self.given.objects.iter().filter(|one| !is_before_modules(one)) {
            if object.is(&module::kind()) {
                continue;
            }
            if let Err(error) = lab.api().apply(&object.value, DEFAULT_NAMESPACE).await {
                let error = foreign::message(error, MESSAGE_BYTES_MAX);
                refused.push(format!("{}: {error}", name_of(&object.value)));
            }
        }
        let start = lab.simulator().now();
        let mut quiet_after = None;
        for _ in 0..PARTS_MAX {
            if Instant::now() >= self.given.end {
                anyhow::bail!("the time of --timeout is over");
            }
            if lab.settle(PART).await.is_ok() {
                let passed = lab.simulator().now().duration_since(start);
                quiet_after = Some(Duration::try_from(passed).unwrap_or_default());
                break;
            }
        }
        let unsynced = self.unsynced(&lab).await;
        let changes = log.repeated(lab.api()).await;
        lab.end().await;
        Ok(Played { quiet_after, refused, unsynced, changes })
    }

    /// The kinds of primaries and of objects that reconcilers make.
    fn kinds(&self) -> Vec<Kind> {
        let mut kinds = Vec::new();
        for manifest in self.given.set.reconcilers().map(SetMember::manifest) {
            kinds.extend(manifest.primary.clone());
            kinds.extend(manifest.owned.iter().map(|owned| owned.kind.clone()));
        }
        kinds.sort();
        kinds.dedup();
        kinds
    }

    async fn unsynced(&self, lab: &Lab) -> Vec<Unsynced> {
        let mut unsynced = Vec::new();
        for member in self.given.set.reconcilers() {
            let Some(primary) = &member.manifest().primary else { continue };
            let resource = lab.api().resource(&primary.api_version, &primary.kind).await;
            let Ok(resource) = resource else { continue };
            let objects = lab.api().list(&resource.path("", "")).await.unwrap_or_default();
            for object in objects {
                let conditions = object["status"]["conditions"].as_array();
                let mut conditions = conditions.into_iter().flatten();
                let synced = conditions.find(|one| one["type"] == "Synced");
                let Some(synced) = synced.filter(|one| one["status"] != "True") else { continue };
                let text = |value: &Value| {
                    foreign::message(value.as_str().unwrap_or_default(), MESSAGE_BYTES_MAX)
                };
                unsynced.push(Unsynced {
                    object: name_of(&object),
                    reason: text(&synced["reason"]),
                    message: text(&synced["message"]),
                    module: member.name.clone(),
                });
            }
        }
        unsynced
    }
}

/// Whether an object must be there before the Modules: a definition or a Namespace.
fn is_before_modules(object: &InputObject) -> bool {
    matches!(object.text("/kind"), "CustomResourceDefinition" | "Namespace")
}
