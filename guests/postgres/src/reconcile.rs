use innkeeper_sdk::kinds::{
    ConfigMap, CronJob, Deployment, DeploymentStrategy, PersistentVolumeClaim, Pod, Service,
};
use innkeeper_sdk::{
    Apply as _, Context, Describe, Desired, Manifest, Observed, Outcome, ReadError, Reconciler,
    condition, event, read,
};

use crate::consent::LEFT_ANNOTATION;
use crate::deployed::Deployed;
use crate::password::Password;
use crate::ready_pods::Pods;
use crate::storage::Storage;
use crate::volumes::Volumes;
use crate::{Names, Parameters, PostgreSQL, backup, deployed, report, restored, scripts, server};

/// The reconcile logic of postgres.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = PostgreSQL;

    fn describe() -> Manifest {
        Describe::reconciler_of::<PostgreSQL>("postgres", env!("CARGO_PKG_VERSION"))
            .owns::<PersistentVolumeClaim>()
            .owns::<ConfigMap>()
            .owns::<Deployment>()
            .owns::<Service>()
            .owns::<CronJob>()
            // The pods of the Deployment.
            .merges_into::<Pod>()
            .reads::<read::Secret>()
            .installs(include_str!("../crd.json"))
            .parameters(Parameters::schema())
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<PostgreSQL>) -> Outcome {
        if !innkeeper_sdk::names::is_service_name(observed.name()) {
            return Outcome::refused(
                "UnusableName",
                "the name of a PostgreSQL names its Service: use at most 63 lower-case letters, digits and `-`, beginning with a letter and not ending with `-`",
            );
        }
        let parameters: Parameters = match observed.parameters() {
            Ok(parameters) => parameters,
            Err(error) => {
                let message = format!("the Module's spec.parameters are invalid: {error}");
                return Outcome::refused("BadParameters", message);
            }
        };
        let pods = match Pods::read(context, observed) {
            Ok(pods) => pods,
            Err(error) => return unreadable("pods", &error),
        };
        let names = Names::of(observed.primary());
        let deployed = Deployed::of(observed);
        let resolved = Storage::resolve(context, observed, &names, &parameters, deployed.as_ref());
        let storage = match resolved {
            Ok(storage) => storage,
            Err(error) => return unreadable("PersistentVolumeClaims", &error),
        };
        let password = Password::read(context, observed);
        let desired = with_report(observed, &names, &pods, &password, &storage);
        let Some(volumes) = &storage.volumes else {
            let desired = match (&password, storage.stopped()) {
                (Password::Missing(reason, message), _) => {
                    desired.condition(condition::not_ready(reason, message))
                }
                (_, Some(problem)) => desired.condition(problem.condition("Ready")),
                (_, None) => desired,
            };
            return desired.partial();
        };
        let workload = Workload {
            observed,
            names: &names,
            volumes,
            left: storage.consent.left(),
            strategy: server::strategy(deployed::is_rolling(context, observed)),
        };
        match &password {
            Password::Found(digest) => {
                let desired = workload.add(desired, digest);
                let desired = match (storage.stopped(), pods.failure()) {
                    (Some(problem), _) => desired.condition(problem.condition("Ready")),
                    (None, Some(message)) => {
                        desired.condition(condition::not_ready("PrepareFailed", message))
                    }
                    (None, None) => desired.ready_condition(observed),
                };
                let desired = workload.add_rest(desired, &pods);
                // On the volumes of the pods that run, because the spec's cannot be used.
                if storage.stopped().is_some_and(|problem| !problem.has_volumes) {
                    desired.partial()
                } else {
                    desired.complete()
                }
            }
            Password::Missing(reason, message) => {
                let desired = desired.condition(condition::not_ready(reason, message));
                // Before the first rollout, create nothing. Later, keep desiring the objects with
                // the last password, so that the host repairs them and deletes nothing.
                match deployed.as_ref().and_then(Deployed::password_digest) {
                    None => desired,
                    Some(digest) => workload.add_rest(workload.add(desired, digest), &pods),
                }
                .partial()
            }
        }
    }
}

fn unreadable(what: &str, error: &ReadError) -> Outcome {
    let message = format!("the {what} cannot be read: {error}");
    Outcome::failed("Unreadable", message.clone())
        .condition(condition::not_ready("Unreadable", message))
}

/// The status, and the conditions and Events that do not depend on the desired objects.
fn with_report(
    observed: &Observed<PostgreSQL>,
    names: &Names,
    pods: &Pods,
    password: &Password,
    storage: &Storage,
) -> Desired {
    let backed_up = report::backed_up(observed, names);
    let status = report::status(observed, names, pods);
    let mut desired = Desired::new().status(&status).condition(password.condition());
    desired = restored::report(desired, observed, status.restored_from.as_ref());
    if backed_up.reason == report::LAST_FAILED {
        desired = desired.event(event::warning("BackupFailed", backed_up.message.clone()));
    }
    let conditions = storage.conditions().into_iter().chain([backed_up]);
    conditions.fold(desired, Desired::condition)
}

/// What the desired objects are made from.
struct Workload<'a> {
    observed: &'a Observed<'a, PostgreSQL>,
    names: &'a Names,
    volumes: &'a Volumes,
    /// The claims that the volumes have left by the consent of the user.
    left: Option<String>,
    strategy: DeploymentStrategy,
}

impl Workload<'_> {
    /// Adds the objects that the condition `Ready` is about.
    fn add(&self, desired: Desired, password_digest: &str) -> Desired {
        let (postgres, names, volumes) = (self.observed.primary(), self.names, self.volumes);
        let strategy = self.strategy;
        let server = server::deployment(postgres, names, volumes, strategy, password_digest);
        // On the Deployment and not on its pods, so that it rolls out no new pod.
        let server = match &self.left {
            Some(left) => server.annotation(LEFT_ANNOTATION, left),
            None => server,
        };
        desired
            .object(scripts::config_map(&names.server))
            .object(server)
            .object(server::service(names))
            .object(backup::cron_job(postgres, names, volumes))
    }

    /// Adds the objects that the condition `Ready` is not about: the volumes, which are bound when
    /// the server is ready, and the labels of pods.
    fn add_rest(&self, desired: Desired, pods: &Pods) -> Desired {
        pods.label(self.volumes.desire(desired, self.observed, self.names))
    }
}
