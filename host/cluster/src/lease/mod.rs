//! Leader election by a Lease (`coordination.k8s.io/v1`): the leader is the host that holds it.
//!
//! The rules are those of Kubernetes' own components: a candidate acquires a Lease without a
//! holder, or one whose record has not changed for its duration by the candidate's own clock, so
//! clocks need not agree. The leader renews the Lease. It stops well before another host may
//! acquire it: two thirds of the duration after the beginning of its last renewal, by a clock that
//! runs through suspends ([`Env::uptime`]). The [`Fence`] compares each request with that time.
//!
//! Each write names the version that the candidate read, so only one of two candidates succeeds.

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
use crate::watch_pace::WatchPace;
use crate::{ApiClient, ApiError, Backoff, Cluster, Env, Fence, Settings};
use record::{ObservedRecord, Record};

/// Default of [`LeaseConfig::duration`].
pub const DURATION_DEFAULT: Duration = Duration::from_secs(15);

/// The shortest duration: a Lease has whole seconds, and a renewal takes time.
pub const DURATION_MIN: Duration = Duration::from_secs(3);

/// The times of a leader election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    /// After this time without a renewal another candidate may acquire the Lease.
    pub duration: Duration,
}

impl Default for LeaseConfig {
    fn default() -> Self {
        Self { duration: DURATION_DEFAULT }
    }
}

impl LeaseConfig {
    /// The time between two renewals.
    pub fn renewal(self) -> Duration {
        self.duration / 6
    }

    /// After this time without a renewal the leader stops.
    pub fn deadline(self) -> Duration {
        self.duration * 2 / 3
    }

    /// The limits of the requests for the Lease: a later response is useless, and the election
    /// itself repeats requests.
    pub fn settings(self) -> Settings {
        Settings { unary_timeout: self.deadline() / 2, retries: 0, ..Settings::default() }
    }
}

/// The reason why a host does not hold the Lease any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseLost {
    /// Another host holds it.
    #[error("{0} has taken it")]
    Taken(String),
    /// The host did not renew it in time.
    #[error("it was not renewed for {} s: {why}", .after.as_secs_f64())]
    Late {
        /// The time after which the host stopped.
        after: Duration,
        /// The reason of the last failure.
        why: String,
    },
}

/// A candidate in the leader election.
pub struct LeaderElector {
    client: ApiClient,
    key: ObjectKey,
    identity: String,
    config: LeaseConfig,
    fence: Fence,
    /// The last observed record.
    observed: Option<ObservedRecord>,
    /// The beginning of the last renewal, by [`Env::uptime`].
    renewed: Duration,
}

/// The result of a write of the Lease.
enum WriteOutcome {
    Applied,
    /// The Lease has another version than the observed one.
    Conflict,
    Failed(ApiError),
}

impl LeaderElector {
    /// Makes a candidate for the Lease `namespace/name` with an `identity` that no other candidate
    /// has. `cluster` must have the limits of [`LeaseConfig::settings`].
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

    /// Waits until this candidate is the leader; gives the fence for the requests of this term,
    /// which never opens again after the Lease is lost. The caller may drop the wait at any time;
    /// then [`LeaderElector::release`] releases a Lease that may have been acquired.
    pub async fn acquire(&mut self) -> Fence {
        let env = self.env().clone();
        self.fence = Fence::closed(&env);
        let api: Api<Lease> = {
            let paced = WatchPace::new(&env, |_| ()).client(self.client.transport());
            Api::namespaced(paced, self.key.namespace())
        };
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
                // A read finds the current Lease sooner than the watch does.
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

    /// Renews the Lease until it is lost; gives the reason. The fence is closed then.
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
                    // A user edited or deleted the Lease, or its holder released it.
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

    /// Closes the fence, and releases the Lease if this candidate holds it, so that another one
    /// need not wait. It logs a failure: the Lease then expires.
    pub async fn release(&mut self) {
        self.fence.close();
        // The server may have received a request that the caller dropped.
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

    /// Writes this candidate into the observed Lease, and opens the fence.
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
                // For example, the response to an earlier attempt was lost.
                | ApiError::OutcomeUnknown { .. },
            ) => WriteOutcome::Conflict,
            Err(error) => WriteOutcome::Failed(error),
        }
    }

    /// Reads the Lease; gives its holder.
    async fn read(&mut self) -> Result<Option<String>, ApiError> {
        let lease: Option<Lease> = match self.client.get_as(&kind(), &self.key).await {
            Ok(lease) => Some(lease),
            Err(ApiError::NotFound { .. }) => None,
            Err(error) => return Err(error),
        };
        self.observe(lease.as_ref());
        Ok(self.observed.as_ref().and_then(|seen| seen.record.holder.clone()))
    }

    /// Observes the Lease. An unchanged one keeps the time of its first observation.
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

/// The kind Lease.
fn kind() -> Kind {
    Kind::namespaced("coordination.k8s.io/v1", "Lease", "leases")
}

/// The log of failures of an election, which logs each text once.
struct FailureLog {
    backoff: Backoff,
    env: Env,
    logged: Option<String>,
}

impl FailureLog {
    fn new(env: &Env) -> Self {
        let backoff = Backoff::new(env, WATCH_RETRY_MIN, WATCH_RETRY_MAX);
        Self { backoff, env: env.clone(), logged: None }
    }

    async fn wait(&mut self, text: &str) {
        if self.logged.as_deref() != Some(text) {
            tracing::warn!("leader election failed: {text}; trying again until it works");
            self.logged = Some(text.to_owned());
        }
        self.env.sleep(self.backoff.advance()).await;
    }

    fn over(&mut self) {
        self.backoff.reset();
        self.logged = None;
    }
}

/// The Lease, now and after each change; `None` while it does not exist. The server ends each watch
/// after `seconds`, before this host would end it. The watcher then opens the next one, so the
/// stream never ends.
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
