use innkeeper_sdk::kinds::{
    Affinity, ConcurrencyPolicy, Container, CronJob, JobSpec, PodTemplate, RestartPolicy, Volume,
};
use innkeeper_sdk::labels;

use crate::password::SECRET_KEY;
use crate::server::{PORT, pod_labels};
use crate::volumes::{BACKUPS, BACKUPS_FOLDER};
use crate::{Names, PostgreSQL, scripts};

/// After so many seconds a backup has failed, so that one that hangs does not stop all others.
const DEADLINE_SECONDS: i64 = 3600;

/// The label of a backup's pods. Not the server's, or the Service would route to them.
const LABEL: &str = "postgresql-backup";

/// Dumps the database again and again, through the Service: only what is served is backed up.
pub(crate) fn cron_job(postgres: &PostgreSQL, names: &Names) -> CronJob {
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
        .mount(BACKUPS, BACKUPS_FOLDER)
        .mount_read_only(scripts::VOLUME, scripts::FOLDER);
    let template = PodTemplate::new(&labels([(LABEL, &names.server)]))
        .container(container)
        .volume(Volume::of_claim(BACKUPS, &names.backups))
        .volume(Volume::of_config_map(scripts::VOLUME, scripts::name(&names.server)))
        // The volume can be mounted on one node only, and the server's pod has it.
        .affinity(Affinity::same_node_as(&pod_labels(names)))
        .restart_policy(RestartPolicy::Never)
        .isolated();
    // The next one comes soon enough: no pod is tried again.
    let job = JobSpec::new(template).backoff_limit(0).deadline_seconds(DEADLINE_SECONDS);
    CronJob::new(&names.backup_job, &spec.backup.schedule, job)
        .concurrency(ConcurrencyPolicy::Forbid)
        .history(1, 3)
}
