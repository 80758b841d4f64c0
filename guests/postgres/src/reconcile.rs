use innkeeper_sdk::kinds::{
    ConfigMap, CronJob, Deployment, DeploymentStrategy, PersistentVolumeClaim, Pod, Service,
};
use innkeeper_sdk::{
    Context, Describe, Desired, Manifest, Observed, Outcome, Reconciler, condition, event, read,
};

use crate::password::Password;
use crate::ready_pods::Pods;
use crate::{Names, PostgreSQL, backup, deployed, report, restored, scripts, server, volumes};

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
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<PostgreSQL>) -> Outcome {
        if !innkeeper_sdk::names::is_service_name(observed.name()) {
            return Outcome::refused(
                "UnusableName",
                "the name of a PostgreSQL names its Service: use at most 63 lower-case letters, digits and `-`, beginning with a letter and not ending with `-`",
            );
        }
        let pods = match Pods::read(context, observed) {
            Ok(pods) => pods,
            Err(error) => {
                let message = format!("the pods cannot be read: {error}");
                return Outcome::failed("Unreadable", message.clone())
                    .condition(condition::not_ready("Unreadable", message));
            }
        };
        let names = Names::of(observed.primary());
        let strategy = server::strategy(deployed::is_rolling(context, observed));
        let password = Password::read(context, observed);
        let backed_up = report::backed_up(observed, &names);
        let status = report::status(observed, &names, &pods);
        let mut desired = Desired::new().status(&status).condition(password.condition());
        desired = restored::report(desired, observed, status.restored_from.as_ref());
        if backed_up.reason == report::LAST_FAILED {
            desired = desired.event(event::warning("BackupFailed", backed_up.message.clone()));
        }
        let desired = desired.condition(backed_up);

        match &password {
            Password::Found(digest) => {
                let desired = add_workload(desired, observed, &names, strategy, digest)
                    .ready_condition(observed);
                add_rest(desired, observed, &names, &pods).complete()
            }
            Password::Missing(reason, message) => {
                let desired = desired.condition(condition::not_ready(reason, message));
                // Before the first rollout, create nothing. Later, keep desiring the objects with
                // the last password, so that the host repairs them and deletes nothing.
                match deployed::password_digest(observed) {
                    None => desired,
                    Some(digest) => {
                        let desired = add_workload(desired, observed, &names, strategy, &digest);
                        add_rest(desired, observed, &names, &pods)
                    }
                }
                .partial()
            }
        }
    }
}

/// Adds the objects that the condition `Ready` is about.
fn add_workload(
    desired: Desired,
    observed: &Observed<PostgreSQL>,
    names: &Names,
    strategy: DeploymentStrategy,
    password_digest: &str,
) -> Desired {
    let postgres = observed.primary();
    desired
        .object(scripts::config_map(&names.server))
        .object(server::deployment(postgres, names, strategy, password_digest))
        .object(server::service(names))
        .object(backup::cron_job(postgres, names))
}

/// Adds the objects that the condition `Ready` is not about: the volumes, which are bound when the
/// server is ready, and the labels of pods.
fn add_rest(
    desired: Desired,
    observed: &Observed<PostgreSQL>,
    names: &Names,
    pods: &Pods,
) -> Desired {
    pods.label(volumes::desire(desired, observed.primary(), names))
}
