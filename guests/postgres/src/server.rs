use innkeeper_sdk::kinds::{
    Container, Deployment, DeploymentStrategy, PodTemplate, Probe, Service, ServiceType, Volume,
};
use innkeeper_sdk::{Labels, labels};

use crate::password::{DIGEST_ANNOTATION, SECRET_KEY};
use crate::volumes::{BACKUPS, BACKUPS_FOLDER, DATA, DATA_FOLDER};
use crate::{Names, PostgreSQL, scripts};

/// The init container, which sees to it that there is data before it is served.
pub(crate) const PREPARE: &str = "prepare";

/// The server's port.
pub(crate) const PORT: u16 = 5432;

/// How long a server may take to write everything down when it is told to stop.
const GRACE_SECONDS: i64 = 60;

/// The labels of the server's pods.
pub(crate) fn pod_labels(names: &Names) -> Labels {
    labels([("name", &names.server)])
}

/// The Service, which is reachable from outside of the cluster.
pub(crate) fn service(names: &Names) -> Service {
    Service::new(&names.server, &pod_labels(names)).port(PORT, PORT).type_(ServiceType::NodePort)
}

/// How the server's pod is replaced: never by one that comes first, which would wait for the
/// lock of the volume, while the old one would wait for it to be ready.
pub(crate) fn strategy(is_rolling: bool) -> DeploymentStrategy {
    if is_rolling { DeploymentStrategy::InPlace } else { DeploymentStrategy::Recreate }
}

/// The server: one pod.
pub(crate) fn deployment(
    postgres: &PostgreSQL,
    names: &Names,
    strategy: DeploymentStrategy,
    password_digest: &str,
) -> Deployment {
    let labels = pod_labels(names);
    let template = PodTemplate::new(&labels)
        .annotation(DIGEST_ANNOTATION, password_digest)
        .init_container(prepare(postgres))
        .container(serve(postgres))
        .volume(Volume::of_claim(DATA, &names.data))
        .volume(Volume::of_claim(BACKUPS, &names.backups))
        .volume(Volume::of_config_map(scripts::VOLUME, scripts::name(&names.server)))
        .grace_seconds(GRACE_SECONDS)
        .isolated();
    Deployment::new(&names.server, &labels, template).replicas(1).strategy(strategy)
}

/// The only container that needs the password: the server has it in its data.
fn prepare(postgres: &PostgreSQL) -> Container {
    let spec = &postgres.spec;
    Container::new(PREPARE, &spec.image)
        .command(scripts::command("prepare"))
        .env("DATA", DATA_FOLDER)
        .env("BACKUPS", BACKUPS_FOLDER)
        .env("POSTGRES_DB", &spec.db)
        .env("POSTGRES_USER", &spec.user)
        .env_from_secret("POSTGRES_PASSWORD", &spec.password, SECRET_KEY)
        .mount(DATA, DATA_FOLDER)
        .mount(BACKUPS, BACKUPS_FOLDER)
        .mount_read_only(scripts::VOLUME, scripts::FOLDER)
}

fn serve(postgres: &PostgreSQL) -> Container {
    Container::new("postgres", &postgres.spec.image)
        .command(scripts::command("serve"))
        .env("DATA", DATA_FOLDER)
        .port("postgres", PORT)
        .mount(DATA, DATA_FOLDER)
        .mount_read_only(scripts::VOLUME, scripts::FOLDER)
        .readiness_probe(
            Probe::exec(["pg_isready", "-q", "-h", "127.0.0.1", "-p", &PORT.to_string()])
                .period_seconds(5)
                .timeout_seconds(5),
        )
}
