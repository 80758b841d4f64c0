use innkeeper_sdk::kinds::{
    Affinity, ConcurrencyPolicy, Container, CronJob, JobSpec, PodTemplate, RestartPolicy, Volume,
};
use innkeeper_sdk::labels;

use crate::password::SECRET_KEY;
use crate::server::{PORT, pod_labels};
use crate::volumes::{BACKUPS_FOLDER, Volumes};
use crate::{Names, PostgreSQL, scripts};

/// Deadline of a backup in seconds, so that one that hangs does not prevent later ones.
const DEADLINE_SECONDS: i64 = 3600;

/// The label of a backup's pods. It differs from the server's, which the Service selects.
const LABEL: &str = "postgresql-backup";

/// Returns the `CronJob` that dumps the database through the Service.
pub(crate) fn cron_job(postgres: &PostgreSQL, names: &Names, volumes: &Volumes) -> CronJob {
    let spec = &postgres.spec;
    let container = Container::new("backup", &spec.image)
        .command(scripts::command("backup"))
        .env("BACKUPS", BACKUPS_FOLDER)
        .env("KEEP", spec.backup.keep.to_string())
        .env("PGHOST", &names.server)
        .env("PGPORT", PORT.to_string())
        .env("PGUSER", &spec.user)
        .env("PGDATABASE", &spec.db)
        .env_from_secret("PGPASSWORD", &spec.password, SECRET_KEY)
        .env("OWNER", names.identity.as_str())
        .volume_mount(volumes.backups_mount(names))
        .mount_read_only(scripts::VOLUME, scripts::FOLDER);
    let template = PodTemplate::new(&labels([(LABEL, &names.server)]))
        .container(container)
        .volume(volumes.backups())
        .volume(Volume::of_config_map(scripts::VOLUME, scripts::name(&names.server)))
        // The volume may be ReadWriteOnce, and the pod of the server has mounted it.
        .affinity(Affinity::same_node_as(&pod_labels(names)))
        .restart_policy(RestartPolicy::Never)
        .isolated();
    // No retry: the schedule starts the next backup.
    let job = JobSpec::new(template).backoff_limit(0).deadline_seconds(DEADLINE_SECONDS);
    CronJob::new(&names.backup_job, &spec.backup.schedule, job)
        .concurrency(ConcurrencyPolicy::Forbid)
        .history(1, 3)
}
