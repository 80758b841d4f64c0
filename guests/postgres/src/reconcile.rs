use innkeeper_sdk::kinds::{
    ConfigMap, CronJob, Deployment, DeploymentStrategy, PersistentVolumeClaim, Pod, Service,
};
use innkeeper_sdk::{
    Context, Describe, Desired, Manifest, Observed, Outcome, Reconciler, condition, event, read,
};

use crate::password::Password;
use crate::ready_pods::Pods;
use crate::{Names, PostgreSQL, backup, deployed, report, scripts, server, volumes};

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
            // Those that the Deployment makes.
            .merges_into::<Pod>()
            .reads::<read::Secret>()
            .installs(include_str!("../crd.json"))
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<PostgreSQL>) -> Outcome {
        if !innkeeper_sdk::names::is_service_name(observed.name()) {
            return Outcome::refused(
                "UnusableName",
                "the name of a PostgreSQL is its Service's: at most 63 lower-case letters, digits and `-`, beginning with a letter and not ending with `-`",
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
        let mut said = Desired::new()
            .status(&report::status(observed, &names, &pods))
            .condition(password.condition());
        if backed_up.reason == report::LAST_FAILED {
            said = said.event(event::warning("BackupFailed", backed_up.message.clone()));
        }
        let said = said.condition(backed_up);

        match &password {
            Password::Found(digest) => {
                let desired =
                    works(said, observed, &names, strategy, digest).ready_condition(observed);
                rest(desired, observed, &names, &pods).complete()
            }
            Password::Missing(reason, message) => {
                let said = said.condition(condition::not_ready(reason, message));
                // Nothing half-made at first. Nothing taken away later, and what changes by hand is
                // set back: what was rolled out last stays what is wanted.
                match deployed::password_digest(observed) {
                    None => said,
                    Some(digest) => {
                        let desired = works(said, observed, &names, strategy, &digest);
                        rest(desired, observed, &names, &pods)
                    }
                }
                .partial()
            }
        }
    }
}

/// What `Ready` is about.
fn works(
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

/// What `Ready` is not about: the volumes, which are ready when the server is that has mounted
/// them, and the pods that only get a label.
fn rest(desired: Desired, observed: &Observed<PostgreSQL>, names: &Names, pods: &Pods) -> Desired {
    pods.label(volumes::desire(desired, observed.primary(), names))
}
