//! Tests of volumes that belong to another `PostgreSQL`, or to nobody that the scripts know.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use crate::cluster::{Cluster, PASSWORD, set_mode};

const OWNER: &str = "exp.wheel.jp/PostgreSQL/demo/foodb";
const OTHER: &str = "exp.wheel.jp/PostgreSQL/demo/bardb";

impl Cluster {
    /// The containers of this `PostgreSQL`.
    fn of(owner: &str) -> Self {
        let mut cluster = Self::new();
        cluster.belongs_to(owner);
        cluster
    }

    fn belongs_to(&mut self, owner: &str) {
        self.variables.insert("OWNER", owner.into());
    }

    /// The volume of the data is an existing claim.
    fn on_existing_claim() -> Self {
        let mut cluster = Self::of(OWNER);
        cluster.variables.insert("EXISTING", "yes".into());
        cluster
    }
}

#[test]
fn data_of_another_postgresql_is_refused_by_name_and_unchanged() {
    let mut cluster = Cluster::of(OWNER);
    cluster.prepares();
    let server = cluster.serve();
    cluster.sql("CREATE TABLE hoge (name text); INSERT INTO hoge VALUES ('foo')");
    server.stop();
    let before = cluster.files("data");

    cluster.belongs_to(OTHER);
    let output = cluster.does_not_prepare();
    assert!(output.contains(&format!("belongs to '{OWNER}', and this is '{OTHER}'")), "{output}");
    assert_eq!(cluster.files("data"), before);

    cluster.belongs_to(OWNER);
    cluster.prepares();
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo");
}

#[test]
fn reason_of_a_failure_is_written_for_the_status_of_the_pod() {
    let mut cluster = Cluster::of(OWNER);
    cluster.prepares();
    let log = cluster.path("backups").with_file_name("termination-log");
    fs::write(&log, "").unwrap();
    set_mode(&log, 0o666);
    cluster.variables.insert("TERMINATION_LOG", log.clone().into());
    cluster.belongs_to(OTHER);
    cluster.does_not_prepare();
    let written = fs::read_to_string(&log).unwrap();
    assert!(written.starts_with("prepare: the volume at "), "{written}");
    assert!(written.contains(&format!("belongs to '{OWNER}'")), "{written}");
}

#[test]
fn another_postgresql_does_not_wait_for_the_lock_of_a_server() {
    let mut cluster = Cluster::of(OWNER);
    cluster.prepares();
    let _server = cluster.serve();
    cluster.belongs_to(OTHER);
    assert!(cluster.does_not_prepare().contains("belongs to"));
}

#[test]
fn backups_of_another_postgresql_are_neither_restored_nor_added_to() {
    let mut cluster = Cluster::of(OWNER);
    cluster.prepares();
    let server = cluster.serve();
    cluster.sql("CREATE TABLE hoge (name text)");
    cluster.backs_up();
    cluster.belongs_to(OTHER);
    assert!(cluster.does_not_back_up().contains("belongs to"));
    assert_eq!(cluster.dumps().len(), 1);
    server.stop();

    cluster.lose_data();
    assert!(cluster.does_not_prepare().contains("belongs to"));
    assert!(!cluster.files("data").contains(&"pgdata".to_owned()));
}

#[test]
fn volume_from_before_owners_is_taken() {
    let mut cluster = Cluster::new();
    cluster.prepares();
    cluster.variables.insert("EXISTING", "yes".into());
    cluster.belongs_to(OWNER);
    assert!(cluster.prepares().contains("the data is there"));
    let owner = fs::read_to_string(cluster.path("data").join("owner")).unwrap();
    assert_eq!(owner.trim(), OWNER);
}

#[test]
fn existing_claim_is_used_when_it_is_empty() {
    let cluster = Cluster::on_existing_claim();
    fs::create_dir(cluster.path("data").join("lost+found")).unwrap();
    cluster.prepares();
    // A crash before the database was complete does not lock the claim out.
    fs::remove_dir_all(cluster.path("data").join("pgdata")).unwrap();
    fs::remove_file(cluster.path("data").join("owner")).unwrap();
    assert!(cluster.prepares().contains("a new database"));
}

#[test]
fn existing_claim_with_the_files_of_others_is_refused_and_unchanged() {
    for name in ["payroll.csv", "PG_VERSION", "pgdata"] {
        let cluster = Cluster::on_existing_claim();
        // The data folder of a server that does not take the lock.
        let file = cluster.path("data").join(name);
        fs::write(&file, "precious").unwrap();
        let before = fs::metadata(&file).unwrap();
        let output = cluster.does_not_prepare();
        assert!(output.contains(&format!("has '{name}', which is not of this")), "{output}");
        let after = fs::metadata(&file).unwrap();
        assert_eq!((after.uid(), after.mode()), (before.uid(), before.mode()), "{name}");
        assert_eq!(cluster.files("data"), [name]);
    }
}

#[test]
fn owner_file_that_is_a_link_or_no_file_does_not_reveal_the_password() {
    for volume in ["data", "backups"] {
        for target in ["/proc/self/environ", "/etc/passwd", "nowhere"] {
            let cluster = Cluster::of(OWNER);
            symlink(target, cluster.path(volume).join("owner")).unwrap();
            let output = cluster.does_not_prepare();
            assert!(output.contains("is a symbolic link"), "{output}");
            assert!(!output.contains(PASSWORD), "{output}");
        }
        let cluster = Cluster::of(OWNER);
        fs::create_dir(cluster.path(volume).join("owner")).unwrap();
        assert!(cluster.does_not_prepare().contains("is not a file"));
    }
}

#[test]
fn owner_file_with_control_characters_is_shown_without_them() {
    let cluster = Cluster::of(OWNER);
    let text = format!("x\u{1b}[2J\n$(touch /tmp/x) {}", "y".repeat(100_000));
    fs::write(cluster.path("data").join("owner"), text).unwrap();
    let output = cluster.does_not_prepare();
    assert!(output.len() < 2_000 && !output.contains('\u{1b}'), "{output}");
    assert!(output.contains("belongs to 'x2Jtouch/tmp/xyyy"), "{output}");
}

#[test]
fn lock_that_is_a_link_is_not_followed() {
    let cluster = Cluster::of(OWNER);
    let target = cluster.path("precious");
    fs::write(&target, "precious").unwrap();
    symlink(&target, cluster.path("data").join("lock")).unwrap();
    assert!(cluster.does_not_prepare().contains("is a symbolic link"));
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
}
