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
use crate::pods::Pods;
use crate::problem::{Effect, Problem};
use crate::resolved_volumes::ResolvedVolumes;
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
        desire(context, observed).unwrap_or_else(|outcome| *outcome)
    }
}

/// Returns the outcome of a run.
///
/// # Errors
/// The outcome of a run that ends before anything is desired.
fn desire(context: &Context, observed: &Observed<PostgreSQL>) -> Result<Outcome, Box<Outcome>> {
    check_name(observed)?;
    let parameters = parameters(observed)?;
    let pods = Pods::read(context, observed).map_err(|error| unreadable("pods", &error))?;
    let names = Names::of(observed.primary());
    let deployed = Deployed::of(observed);
    let resolved = ResolvedVolumes::of(context, observed, &names, &parameters, deployed.as_ref())
        .map_err(|error| unreadable("PersistentVolumeClaims", &error))?;
    let password = Password::read(context, observed);
    let desired = with_report(observed, &names, &pods, &password, &resolved);
    let problem = resolved.problem_of_start();
    let Some(volumes) = &resolved.volumes else {
        return Ok(without_volumes(desired, &password, problem));
    };
    let workload = Workload {
        observed,
        names: &names,
        volumes,
        pods: &pods,
        left: resolved.consent.left(),
        strategy: server::strategy(deployed::is_rolling(context, observed)),
    };
    Ok(match &password {
        Password::Found(digest) => with_password(desired, &workload, digest, problem),
        Password::Missing(reason, message) => {
            let desired = desired.condition(condition::not_ready(reason, message));
            let digest = deployed.as_ref().and_then(Deployed::password_digest);
            without_password(desired, &workload, digest)
        }
    })
}

fn check_name(observed: &Observed<PostgreSQL>) -> Result<(), Box<Outcome>> {
    if innkeeper_sdk::names::is_service_name(observed.name()) {
        return Ok(());
    }
    Err(Box::new(Outcome::refused(
        "UnusableName",
        "the name of a PostgreSQL names its Service: use at most 63 lower-case letters, digits and `-`, beginning with a letter and not ending with `-`",
    )))
}

fn parameters(observed: &Observed<PostgreSQL>) -> Result<Parameters, Box<Outcome>> {
    observed.parameters().map_err(|error| {
        let message = format!("the Module's spec.parameters are invalid: {error}");
        Box::new(Outcome::refused("BadParameters", message))
    })
}

fn unreadable(what: &str, error: &ReadError) -> Box<Outcome> {
    let message = format!("the {what} cannot be read: {error}");
    let outcome = Outcome::failed("Unreadable", message.clone());
    Box::new(outcome.condition(condition::not_ready("Unreadable", message)))
}

/// Desires no objects, since there is no volume for the server.
fn without_volumes(desired: Desired, password: &Password, problem: Option<&Problem>) -> Outcome {
    let ready = match (password, problem) {
        (Password::Missing(reason, message), _) => Some(condition::not_ready(reason, message)),
        (Password::Found(_), problem) => problem.map(|problem| problem.condition("Ready")),
    };
    ready.into_iter().fold(desired, Desired::condition).partial()
}

/// Desires all objects. `problem`: why no new server can start.
fn with_password(
    desired: Desired,
    workload: &Workload,
    digest: &str,
    problem: Option<&Problem>,
) -> Outcome {
    let desired = workload.add(desired, digest);
    let desired = match (problem, workload.pods.failure()) {
        (Some(problem), _) => desired.condition(problem.condition("Ready")),
        (None, Some(message)) => desired.condition(condition::not_ready("PrepareFailed", message)),
        (None, None) => desired.ready_condition(workload.observed),
    };
    let desired = workload.add_rest(desired);
    // On the volumes of the pods that run, because the spec's cannot be used.
    if problem.is_some_and(|problem| problem.effect == Effect::NoVolume) {
        desired.partial()
    } else {
        desired.complete()
    }
}

/// Before the first rollout, desires no objects. Later, keeps desiring them with the digest of the
/// last password, so that the host repairs them and deletes nothing.
fn without_password(desired: Desired, workload: &Workload, digest: Option<&str>) -> Outcome {
    match digest {
        None => desired,
        Some(digest) => workload.add_rest(workload.add(desired, digest)),
    }
    .partial()
}

/// The status, and the conditions and Events that do not depend on the desired objects.
fn with_report(
    observed: &Observed<PostgreSQL>,
    names: &Names,
    pods: &Pods,
    password: &Password,
    resolved: &ResolvedVolumes,
) -> Desired {
    let backed_up = report::backed_up(observed, names);
    let status = report::status(observed, names, pods);
    let mut desired = Desired::new().status(&status).condition(password.condition());
    desired = restored::report(desired, observed, status.restored_from.as_ref());
    if backed_up.reason == report::LAST_FAILED {
        desired = desired.event(event::warning("BackupFailed", backed_up.message.clone()));
    }
    let conditions = resolved.conditions().into_iter().chain([backed_up]);
    conditions.fold(desired, Desired::condition)
}

/// What the desired objects are made from.
struct Workload<'a> {
    observed: &'a Observed<'a, PostgreSQL>,
    names: &'a Names,
    volumes: &'a Volumes,
    pods: &'a Pods,
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
    fn add_rest(&self, desired: Desired) -> Desired {
        self.pods.label(self.volumes.desire(desired, self.observed, self.names))
    }
}
