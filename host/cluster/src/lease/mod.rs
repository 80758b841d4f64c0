//! Which of several hosts works: the one that holds a Lease (`coordination.k8s.io/v1`).
//!
//! The rules are those of Kubernetes' own components: a candidate takes a Lease that nobody holds,
//! or whose record has not changed for its duration by the candidate's own clock, so that clocks
//! need not agree. Who holds it renews it. It stops well before others may take it: at two thirds
//! of the duration after the beginning of its last renewal, by a clock that runs through suspends
//! ([`Env::uptime`]) and that every request is held against ([`Fence`]).
//!
//! Every write is made on the version that was read, so of two candidates one gets it.

mod record;

use std::pin::pin;
use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use innkeeper_contract::Kind;
use innkeeper_core::{Manager, ObjectKey};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::runtime::watcher::{self, Event, watcher};

use crate::client::Force;
use crate::settings::{WATCH_RETRY_MAX, WATCH_RETRY_MIN};
use crate::{ApiClient, ApiError, Backoff, Cluster, Env, Fence, Settings};
use record::{ObservedRecord, Record};

/// How long a Lease is held after its last renewal, if nobody says otherwise.
pub const DURATION_DEFAULT: Duration = Duration::from_secs(15);

/// The shortest: whole seconds stand in a Lease, and a renewal takes time.
pub const DURATION_MIN: Duration = Duration::from_secs(3);

/// For how long, and how often renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    /// After so long without a renewal others may take it.
    pub duration: Duration,
}

impl Default for LeaseConfig {
    fn default() -> Self {
        Self { duration: DURATION_DEFAULT }
    }
}

impl LeaseConfig {
    /// How often it is renewed.
    pub fn renewal(self) -> Duration {
        self.duration / 6
    }

    /// After so long without a renewal its holder stops.
    pub fn deadline(self) -> Duration {
        self.duration * 2 / 3
    }

    /// Limits for the requests that concern the Lease: an answer that comes later is of no use,
    /// and repeats are the election's own.
    pub fn settings(self) -> Settings {
        Settings { unary_timeout: self.deadline() / 2, retries: 0, ..Settings::default() }
    }
}

/// Why a Lease is no longer held.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseLost {
    /// Somebody else has it.
    #[error("{0} has taken it")]
    Taken(String),
    /// It was not renewed in time.
    #[error("it was not renewed for {} s: {why}", .after.as_secs_f64())]
    Late {
        /// After this time it is given up.
        after: Duration,
        /// Why not.
        why: String,
    },
}

/// One of the hosts that want a Lease.
pub struct LeaderElector {
    client: ApiClient,
    key: ObjectKey,
    identity: String,
    config: LeaseConfig,
    fence: Fence,
    /// What was seen last, and when.
    observed: Option<ObservedRecord>,
    /// When the present renewal began, of [`Env::uptime`].
    renewed: Duration,
}

/// How an attempt to write the Lease ended.
enum WriteOutcome {
    Applied,
    /// It is another one than was thought.
    Conflict,
    Failed(ApiError),
}

impl LeaderElector {
    /// One that wants the Lease `namespace/name`, as `identity`, which no other candidate may have.
    /// [`LeaseConfig::settings`] are the limits for the requests of `cluster`.
    pub fn new(
        cluster: &Cluster,
        (namespace, name): (&str, &str),
        identity: &str,
        config: LeaseConfig,
    ) -> Self {
        Self {
            client: cluster.host(),
            key: ObjectKey::new(namespace, name),
            identity: identity.to_owned(),
            config,
            fence: Fence::closed(cluster.env()),
            observed: None,
            renewed: Duration::ZERO,
        }
    }

    fn env(&self) -> &Env {
        self.client.env()
    }

    /// Waits until the Lease is this candidate's; gives the fence for all that is sent meanwhile,
    /// which never opens again once the Lease is lost. The wait may be dropped at any time; then
    /// [`LeaderElector::release`] gives back what may have been taken.
    pub async fn acquire(&mut self) -> Fence {
        let env = self.env().clone();
        self.fence = Fence::closed(&env);
        let api: Api<Lease> = Api::namespaced(self.client.client().clone(), self.key.namespace());
        let seconds = self.client.settings().watch_seconds();
        let mut changes = pin!(watched(api, self.key.name(), seconds));
        let mut failing = FailureLog::new(&env);
        let mut known = false;
        loop {
            let wait = self.observed.as_ref().map_or(Duration::ZERO, |seen| {
                seen.wait(&self.identity, self.config.duration, env.uptime())
            });
            if known && wait.is_zero() {
                match self.take().await {
                    WriteOutcome::Applied => {
                        tracing::info!(lease = %self.key, identity = self.identity, "leadership acquired");
                        return self.fence.clone();
                    }
                    WriteOutcome::Conflict => {}
                    WriteOutcome::Failed(error) => failing.wait(&error.to_string()).await,
                }
                // The watch says what is there now, or it is looked at.
                if let Err(error) = self.read().await {
                    failing.wait(&error.to_string()).await;
                }
                continue;
            }
            tokio::select! {
                biased;
                Some(change) = changes.next() => match change {
                    Ok(lease) => {
                        failing.over();
                        known = true;
                        self.observe(lease.as_ref());
                    }
                    Err(error) => failing.wait(&format!("it cannot be watched: {error}")).await,
                },
                () = env.sleep(wait), if known => {}
            }
        }
    }

    /// Renews the Lease for as long as that works; gives why it is no longer held. The fence is
    /// closed then.
    pub async fn hold(&mut self) -> LeaseLost {
        let env = self.env().clone();
        let mut why = "this host was paused".to_owned();
        let mut wait = self.config.renewal();
        loop {
            let end = self.renewed + self.config.deadline();
            env.sleep(wait.min(end.saturating_sub(env.uptime()))).await;
            let left = end.saturating_sub(env.uptime());
            if left.is_zero() {
                self.fence.close();
                return LeaseLost::Late { after: self.config.deadline(), why };
            }
            wait = self.config.renewal();
            let attempt = match env.timeout(left, self.take()).await {
                Ok(written) => written,
                Err(elapsed) => {
                    why = elapsed.to_string();
                    continue;
                }
            };
            match attempt {
                WriteOutcome::Applied => "this host was paused".clone_into(&mut why),
                WriteOutcome::Conflict => match env.timeout(left, self.read()).await {
                    Ok(Ok(Some(holder))) if holder != self.identity => {
                        self.fence.close();
                        return LeaseLost::Taken(holder);
                    }
                    // Somebody edited or deleted it, or has given it up: at once again.
                    Ok(Ok(_)) => wait = Duration::ZERO,
                    Ok(Err(error)) => why = error.to_string(),
                    Err(elapsed) => why = elapsed.to_string(),
                },
                WriteOutcome::Failed(error) => {
                    why = error.to_string();
                    wait = self.config.renewal() / 2;
                    tracing::warn!(lease = %self.key, "lease not renewed: {error}; trying again");
                }
            }
        }
    }

    /// Gives the Lease back, if it is this candidate's, so that another one need not wait; nothing
    /// goes through the fence any more. What hinders it is logged: the Lease then ends by itself.
    pub async fn release(&mut self) {
        self.fence.close();
        // A request that was dropped on the way may have arrived.
        let released = match self.read().await {
            Ok(Some(holder)) if holder == self.identity => {
                let now = self.env().now();
                let released = self.observed.as_ref().map(|seen| seen.record.released(now));
                match released {
                    Some(record) => self.write(record).await,
                    None => return,
                }
            }
            Ok(_) => return,
            Err(error) => WriteOutcome::Failed(error),
        };
        match released {
            WriteOutcome::Applied => tracing::info!(lease = %self.key, "lease released"),
            WriteOutcome::Conflict => {}
            WriteOutcome::Failed(error) => {
                tracing::warn!(lease = %self.key, "lease not released: {error}");
            }
        }
    }

    /// Writes this candidate into the Lease as it was seen last, and opens the fence.
    async fn take(&mut self) -> WriteOutcome {
        let (begun, now) = (self.env().uptime(), self.env().now());
        let before = self.observed.as_ref().map(|seen| &seen.record);
        let record = Record::taken(before, &self.identity, self.config.duration, now);
        let written = self.write(record).await;
        if let WriteOutcome::Applied = written {
            self.renewed = begun;
            self.fence.extend(begun + self.config.deadline());
        }
        written
    }

    async fn write(&mut self, record: Record) -> WriteOutcome {
        let body = record.body(&self.key, self.observed.as_ref().map(|seen| &*seen.version));
        let kind = kind();
        match self.client.apply(&kind, &self.key, &Manager::Host, &body, Force::Yes).await {
            Ok(applied) => {
                let version = applied.object.resource_version.to_string();
                self.observed = Some(ObservedRecord { record, version, at: self.env().uptime() });
                WriteOutcome::Applied
            }
            Err(
                ApiError::Conflict { .. }
                | ApiError::AlreadyExists { .. }
                | ApiError::NotFound { .. }
                | ApiError::ObjectDeleted { .. }
                // The answer to an earlier attempt was lost, say.
                | ApiError::OutcomeUnknown { .. },
            ) => WriteOutcome::Conflict,
            Err(error) => WriteOutcome::Failed(error),
        }
    }

    /// Reads the Lease; gives who holds it.
    async fn read(&mut self) -> Result<Option<String>, ApiError> {
        let lease: Option<Lease> = match self.client.get_as(&kind(), &self.key).await {
            Ok(lease) => Some(lease),
            Err(ApiError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        self.observe(lease.as_ref());
        Ok(self.observed.as_ref().and_then(|seen| seen.record.holder.clone()))
    }

    /// Notes the Lease as it is. One that has not changed is as old as it was.
    fn observe(&mut self, lease: Option<&Lease>) {
        let now = self.env().uptime();
        let found = lease.map(|lease| ObservedRecord::of(lease, now));
        match (&self.observed, found) {
            (Some(seen), Some(found)) if seen.version == found.version => {}
            (_, found) => {
                let holder = found.as_ref().and_then(|seen| seen.record.holder.as_deref());
                let before = self.observed.as_ref().and_then(|seen| seen.record.holder.as_deref());
                if holder != before && holder.is_some_and(|holder| holder != self.identity) {
                    tracing::info!(lease = %self.key, holder, "lease held by another host");
                }
                self.observed = found;
            }
        }
    }
}

/// Leases.
fn kind() -> Kind {
    Kind::namespaced("coordination.k8s.io/v1", "Lease", "leases")
}

/// What hinders an election, told once for each text.
struct FailureLog {
    backoff: Backoff,
    env: Env,
    told: Option<String>,
}

impl FailureLog {
    fn new(env: &Env) -> Self {
        let backoff = Backoff::new(env, WATCH_RETRY_MIN, WATCH_RETRY_MAX);
        Self { backoff, env: env.clone(), told: None }
    }

    async fn wait(&mut self, text: &str) {
        if self.told.as_deref() != Some(text) {
            tracing::warn!("leader election failed: {text}; trying again until it works");
            self.told = Some(text.to_owned());
        }
        self.env.sleep(self.backoff.advance()).await;
    }

    fn over(&mut self) {
        self.backoff.reset();
        self.told = None;
    }
}

/// What a Lease is, now and after each change; `None` while there is none. Each watch is ended by
/// the server after `seconds`, before this host would cut it; a watcher begins anew after whatever
/// ends one, so this never ends.
fn watched(
    api: Api<Lease>,
    name: &str,
    seconds: u32,
) -> impl Stream<Item = Result<Option<Lease>, watcher::Error>> + use<> {
    let field = format!("metadata.name={name}");
    let config = watcher::Config::default().fields(&field).timeout(seconds);
    let mut listed = None;
    let states = watcher(api, config).filter_map(move |event| {
        let state = match event {
            Ok(Event::Init) => {
                listed = None;
                None
            }
            Ok(Event::InitApply(lease)) => {
                listed = Some(lease);
                None
            }
            Ok(Event::InitDone) => Some(Ok(listed.take())),
            Ok(Event::Apply(lease)) => Some(Ok(Some(lease))),
            Ok(Event::Delete(_)) => Some(Ok(None)),
            Err(error) => Some(Err(error)),
        };
        std::future::ready(state)
    });
    states.chain(stream::pending())
}

#[cfg(test)]
mod tests;
