//! The loop of the audit: it follows the active policies and the changes of objects, and decides
//! which policy reviews next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::{ApiClient, Task};
use innkeeper_contract::Kind;
use innkeeper_sandbox::Permits;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::audit_events::AuditEvents;
use super::audit_state::AuditState;
use super::object_results::ObjectResults;
use super::opening::{self, Opened};
use super::pace::Pace;
use super::report_writer::ReportWriter;
use crate::policies::active_policy::ActivePolicy;
use crate::policies::existing_objects::ExistingObjects;
use crate::policies::replica::ReplicaPolicies;

/// How long definitions of kinds must be unchanged before the audit asks discovery for the kinds.
const DEFINITIONS_TIME: Duration = Duration::from_secs(5);

/// Called with the name of a Module and the results of its audit when they change; with `None` once
/// the Module has no audit.
pub type PublishAudit = Box<dyn Fn(&str, Option<AuditState>) + Send + Sync>;

/// One policy with its results and caches.
pub(super) struct AuditedPolicy {
    pub(super) policy: Arc<ActivePolicy>,
    pub(super) results: ObjectResults,
    /// The caches with the existing objects; `None` while they are opened for the first time, and
    /// without an account.
    pub(super) objects: Option<ExistingObjects>,
    /// Whether `objects` are those of the present settings.
    is_open: bool,
    opening: Option<Task<()>>,
    opening_number: u64,
    pub(super) pace: Pace,
    /// When the reports were written last, or the audit began.
    pub(super) reported: Instant,
    /// How often in a row the reports could not be written.
    pub(super) failures: u32,
    /// Why reports are not written.
    pub(super) report_problem: Option<String>,
    pub(super) published: Option<AuditState>,
}

impl AuditedPolicy {
    fn new(policy: Arc<ActivePolicy>, now: Instant) -> Self {
        Self {
            results: ObjectResults::new(policy.module.clone()),
            policy,
            objects: None,
            is_open: false,
            opening: None,
            opening_number: 0,
            pace: Pace::default(),
            reported: now,
            failures: 0,
            report_problem: None,
            published: None,
        }
    }

    /// Whether all objects that the policy reviews are known.
    pub(super) fn is_listed(&self) -> bool {
        self.is_open
    }

    /// How many objects can be reviewed now.
    fn waiting(&self) -> usize {
        if self.is_open { self.results.pending() } else { 0 }
    }
}

/// Reviews existing objects with the policies of this replica, while it leads.
pub struct PolicyAudit {
    pub(super) host: ApiClient,
    pub(super) policies: ReplicaPolicies,
    pub(super) permits: Permits,
    pub(super) publish: PublishAudit,
    pub(super) events: Arc<AuditEvents>,
    pub(super) writer: ReportWriter,
    pub(super) audited: BTreeMap<Arc<str>, AuditedPolicy>,
    pub(super) pace: Pace,
    /// Whether the cluster may have reports of modules without an audit.
    pub(super) needs_sweep: bool,
    /// When the audit deletes such reports again, after that failed.
    pub(super) sweep_retry: Option<Instant>,
    openings: u64,
    outbox: mpsc::UnboundedSender<Opened>,
    inbox: mpsc::UnboundedReceiver<Opened>,
    /// The module whose policy reviewed last. The turn passes to the next name.
    last: Arc<str>,
    /// When definitions of kinds have changed last.
    definitions: Option<Instant>,
}

impl PolicyAudit {
    /// An audit with the policies of this process. `host` asks discovery and writes reports, and
    /// its fence ends with the term of leadership. `permits` are those of reconciles.
    pub fn new(
        host: ApiClient,
        policies: ReplicaPolicies,
        permits: Permits,
        publish: PublishAudit,
    ) -> Self {
        let events = Arc::new(AuditEvents::default());
        policies.observers().set(&events);
        let (outbox, inbox) = mpsc::unbounded_channel();
        Self {
            writer: ReportWriter::new(host.clone()),
            host,
            policies,
            permits,
            publish,
            events,
            audited: BTreeMap::new(),
            pace: Pace::default(),
            needs_sweep: true,
            sweep_retry: None,
            openings: 0,
            outbox,
            inbox,
            last: Arc::default(),
            definitions: None,
        }
    }

    /// Reviews until `stop` is true or its sender is dropped. The reports stay, and the next leader
    /// writes the differences.
    pub async fn audit(mut self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => {}
            () = self.run() => {}
        }
        for module in self.audited.keys() {
            self.policies.audit_metrics().forget(module);
        }
    }

    /// Reviews and reports without end.
    async fn run(&mut self) {
        let env = self.host.env().clone();
        let mut policies = self.policies.active().changes();
        let writer_events = self.writer.events().clone();
        let events = self.events.clone();
        self.take_policies();
        loop {
            self.take_changes();
            self.take_writer_events();
            self.report_due().await;
            let now = env.instant();
            let (due, wait) = self.next_review(now);
            if let Some(module) = due {
                self.last = module.clone();
                self.review(&module).await;
                // Other tasks of this thread must run between two reviews.
                tokio::task::yield_now().await;
                if policies.has_changed().unwrap_or(false) {
                    policies.mark_unchanged();
                    self.take_policies();
                }
                if let Ok(opened) = self.inbox.try_recv() {
                    self.take_opened(opened);
                }
                continue;
            }
            let waits =
                [wait, self.next_report(now), self.next_definitions(now), self.next_sweep(now)];
            let wait = waits.into_iter().flatten().min();
            tokio::select! {
                biased;
                _ = policies.changed() => self.take_policies(),
                Some(opened) = self.inbox.recv() => self.take_opened(opened),
                () = events.notified() => {}
                () = writer_events.notified() => {}
                () = env.sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
    }

    /// Compares the active policies with those that the audit reviews with.
    fn take_policies(&mut self) {
        let active = self.policies.active().policies().into_iter();
        let wanted: BTreeMap<Arc<str>, Arc<ActivePolicy>> = active
            .filter(|policy| policy.settings.policy.background)
            .map(|policy| (policy.module.clone(), policy))
            .collect();
        let is_gone = |module: &&Arc<str>| !wanted.contains_key(*module);
        let gone: Vec<Arc<str>> = self.audited.keys().filter(is_gone).cloned().collect();
        for module in gone {
            self.audited.remove(&module);
            self.events.index().forget_module(&module);
            self.policies.audit_metrics().forget(&module);
            (self.publish)(&module, None);
        }
        // Also for policies that were there before this term.
        self.needs_sweep = true;
        let now = self.host.env().instant();
        for (module, policy) in wanted {
            match self.audited.get_mut(&module) {
                Some(audited) if Arc::ptr_eq(&audited.policy, &policy) => continue,
                Some(audited) => {
                    if audited.policy.id == policy.id {
                        // Its account may read again, or may not any more.
                        audited.results.wake_all();
                    } else {
                        audited.results.restart();
                    }
                    audited.policy = policy;
                    audited.is_open = false;
                }
                None => drop(self.audited.insert(module.clone(), AuditedPolicy::new(policy, now))),
            }
            self.open(&module);
        }
        self.set_kinds();
    }

    /// Begins to open the caches of a policy; those that are open stay until then.
    fn open(&mut self, module: &Arc<str>) {
        self.openings += 1;
        let number = self.openings;
        let Some(audited) = self.audited.get_mut(module) else { return };
        let (env, outbox) = (self.host.env(), self.outbox.clone());
        audited.opening_number = number;
        audited.opening = opening::open(env, &self.host, &audited.policy, number, outbox);
        if audited.opening.is_none() {
            audited.objects = None;
            audited.results.mark_changed();
        }
    }

    fn take_opened(&mut self, opened: Opened) {
        let Opened { module, number, objects } = opened;
        let Some(audited) = self.audited.get_mut(&module) else { return };
        if audited.opening_number != number {
            return;
        }
        audited.opening = None;
        audited.objects = Some(objects);
        audited.is_open = true;
        // In this order: a change after the list is noticed.
        self.set_kinds();
        self.relist(&module);
    }

    /// Tells the caches' listener the kinds whose objects are reviewed.
    fn set_kinds(&self) {
        let opened = self.audited.values().filter_map(|audited| audited.objects.as_ref());
        let kinds: BTreeSet<Arc<Kind>> =
            opened.flat_map(|one| one.kinds().iter().cloned()).collect();
        self.events.set_kinds(kinds);
    }

    /// Compares all objects of a policy with its results.
    fn relist(&mut self, module: &str) {
        let Some(audited) = self.audited.get_mut(module).filter(|one| one.is_open) else { return };
        let Some(objects) = &audited.objects else { return };
        let (listed, left_out) = objects.list();
        let listed = listed.iter().map(|one| (&one.kind, &*one.object));
        let gone = audited.results.take_list(listed, left_out);
        let mut index = self.events.index();
        for id in &gone {
            index.forget(id);
        }
    }

    /// Queues reviews for the changes in the caches of the policies.
    fn take_changes(&mut self) {
        let changes = self.events.take();
        let mut outdated: BTreeSet<Arc<str>> = BTreeSet::new();
        if changes.is_everything {
            outdated.extend(self.audited.keys().cloned());
        }
        for (module, kind) in changes.states {
            if let Some(audited) = self.audited.get_mut(&module)
                && audited.policy.kind_of(&kind.api_version, &kind.kind).is_some()
            {
                // A read that was refused may be answered now.
                audited.results.wake_all();
            }
            outdated.insert(module);
        }
        for id in &changes.woken {
            if let Some(audited) = self.audited.get_mut(&id.module) {
                audited.results.wake(id);
            }
        }
        for (kind, key) in &changes.objects {
            for audited in self.audited.values_mut() {
                let reviews = |objects: &ExistingObjects| objects.kinds().contains(kind);
                if audited.objects.as_ref().is_some_and(reviews) {
                    audited.results.queue(kind, key);
                }
            }
        }
        for module in outdated {
            self.relist(&module);
        }
    }

    /// Handles the changes in the caches of the report writer.
    fn take_writer_events(&mut self) {
        let now = self.host.env().instant();
        if self.writer.events().take_reports() {
            self.needs_sweep = true;
            self.audited.values_mut().for_each(|audited| audited.results.mark_changed());
        }
        let groups = self.writer.events().take_definitions();
        for group in &groups {
            self.host.discovery().forget(group);
        }
        if !groups.is_empty() {
            self.definitions = Some(now);
        }
        if self.next_definitions(now).is_some_and(|wait| wait.is_zero()) {
            self.definitions = None;
            let modules: Vec<Arc<str>> = self.audited.keys().cloned().collect();
            for module in modules {
                self.open(&module);
            }
        }
    }

    /// The time until the audit asks discovery for the kinds, after definitions have changed.
    fn next_definitions(&self, now: Instant) -> Option<Duration> {
        Some((self.definitions? + DEFINITIONS_TIME).saturating_duration_since(now))
    }

    /// The module whose policy reviews now, or the time until one may: the modules take turns.
    fn next_review(&self, now: Instant) -> (Option<Arc<str>>, Option<Duration>) {
        let waiting = self.audited.iter().filter(|(_, audited)| audited.waiting() > 0);
        let waits: Vec<(Duration, &Arc<str>)> = waiting
            .map(|(module, audited)| {
                let pause = if audited.results.has_given_up() {
                    Duration::ZERO
                } else {
                    audited.pace.wait(now).max(self.pace.wait(now))
                };
                (pause, module)
            })
            .collect();
        let ready = || waits.iter().filter(|(wait, _)| wait.is_zero()).map(|(_, module)| *module);
        let next = ready().find(|module| **module > self.last).or_else(|| ready().next());
        (next.cloned(), waits.iter().map(|(wait, _)| *wait).min())
    }
}
