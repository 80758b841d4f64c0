use innkeeper_sdk::kinds::{
    Container, Deployment, DeploymentStrategy, PodTemplate, Probe, Service, ServiceType, Volume,
};
use innkeeper_sdk::{Labels, labels};

use crate::password::{DIGEST_ANNOTATION, SECRET_KEY};
use crate::volume_source::VolumeSource;
use crate::volumes::{BACKUPS_FOLDER, DATA, DATA_FOLDER, Volumes};
use crate::{Names, PostgreSQL, scripts};

/// The init container, which creates or restores the data before the server starts.
pub(crate) const PREPARE: &str = "prepare";

/// The server's port.
pub(crate) const PORT: u16 = 5432;

/// Seconds that the server has to write its data when the pod is deleted.
const GRACE_SECONDS: i64 = 60;

/// Returns the labels of the server's pods.
pub(crate) fn pod_labels(names: &Names) -> Labels {
    labels([("name", &names.server)])
}

/// Returns the Service, which clients outside of the cluster can reach.
pub(crate) fn service(names: &Names) -> Service {
    Service::new(&names.server, &pod_labels(names)).port(PORT, PORT).type_(ServiceType::NodePort)
}

/// Returns a strategy that deletes the old pod first: a new pod waits for the lock of the volume,
/// and a Deployment that starts it first would wait for it to become ready.
pub(crate) fn strategy(is_rolling: bool) -> DeploymentStrategy {
    if is_rolling { DeploymentStrategy::InPlace } else { DeploymentStrategy::Recreate }
}

/// Returns the Deployment of the server, with one pod.
pub(crate) fn deployment(
    postgres: &PostgreSQL,
    names: &Names,
    volumes: &Volumes,
    strategy: DeploymentStrategy,
    password_digest: &str,
) -> Deployment {
    let labels = pod_labels(names);
    let template = PodTemplate::new(&labels)
        .annotation(DIGEST_ANNOTATION, password_digest)
        .init_container(prepare(postgres, names, volumes))
        .container(serve(postgres, names, volumes))
        .volume(volumes.data())
        .volume(volumes.backups())
        .volume(Volume::of_config_map(scripts::VOLUME, scripts::name(&names.server)))
        .grace_seconds(GRACE_SECONDS)
        .isolated();
    Deployment::new(&names.server, &labels, template).replicas(1).strategy(strategy)
}

/// Returns the init container, the only one that needs the password: it writes it to the data.
fn prepare(postgres: &PostgreSQL, names: &Names, volumes: &Volumes) -> Container {
    let container = Container::new(PREPARE, &postgres.spec.image)
        .command(scripts::command("prepare"))
        .env("DATA", DATA_FOLDER)
        .env("BACKUPS", BACKUPS_FOLDER);
    let container = preparing(container, postgres, names, volumes);
    let container = match &volumes.data {
        VolumeSource::Existing(_) => container.env("EXISTING", "yes"),
        _ => container,
    };
    with_backups(container.mount(DATA, DATA_FOLDER), names, volumes, false)
        .mount_read_only(scripts::VOLUME, scripts::FOLDER)
}

/// Adds the variables of the script `prepare`.
fn preparing(
    container: Container,
    postgres: &PostgreSQL,
    names: &Names,
    volumes: &Volumes,
) -> Container {
    let spec = &postgres.spec;
    let container = container
        .env("POSTGRES_DB", &spec.db)
        .env("POSTGRES_USER", &spec.user)
        .env_from_secret("POSTGRES_PASSWORD", &spec.password, SECRET_KEY)
        // The original operator named its backup after the primary.
        .env("NAME", &names.server)
        .env("OWNER", names.identity.as_str());
    if volumes.is_ephemeral() { container.env("EPHEMERAL", "yes") } else { container }
}

/// Mounts the backups, and those of the original operator.
fn with_backups(
    container: Container,
    names: &Names,
    volumes: &Volumes,
    read_only: bool,
) -> Container {
    let container = container.volume_mount(volumes.backups_mount(names));
    volumes.originals_mount(read_only).into_iter().fold(container, Container::volume_mount)
}

fn serve(postgres: &PostgreSQL, names: &Names, volumes: &Volumes) -> Container {
    let mut container = Container::new("postgres", &postgres.spec.image)
        .command(scripts::command("serve"))
        .env("DATA", DATA_FOLDER)
        .port("postgres", PORT)
        .mount(DATA, DATA_FOLDER)
        .mount_read_only(scripts::VOLUME, scripts::FOLDER)
        .readiness_probe(
            Probe::exec(["pg_isready", "-q", "-h", "127.0.0.1", "-p", &PORT.to_string()])
                .period_seconds(5)
                .timeout_seconds(5),
        );
    if volumes.is_ephemeral() {
        // The lock is on the volume of the backups, and old data is restored again.
        container = preparing(container.env("BACKUPS", BACKUPS_FOLDER), postgres, names, volumes);
        container = with_backups(container, names, volumes, true);
    }
    container
}
