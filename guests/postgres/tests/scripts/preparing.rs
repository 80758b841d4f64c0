//! Tests of `prepare`.

use std::fs;

use crate::cluster::Cluster;
use crate::server::kill;

#[test]
fn new_database_is_created_without_data_and_backups() {
    let cluster = Cluster::new();
    assert!(cluster.prepares().contains("neither data nor a backup"));
    let _server = cluster.serve();
    assert_eq!(cluster.sql("SELECT current_database() || ' ' || current_user"), "foo foo");
}

#[test]
fn existing_data_is_kept() {
    let (cluster, server) = Cluster::with_rows();
    cluster.backs_up();
    cluster.sql("INSERT INTO hoge VALUES ('later')");
    server.stop();

    assert!(cluster.prepares().contains("the data is there"));
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "later foo bar");
}

#[test]
fn a_lost_volume_is_restored_from_the_newest_backup() {
    let (cluster, server) = Cluster::with_rows();
    cluster.backs_up();
    cluster.sql("INSERT INTO hoge VALUES ('later')");
    cluster.backs_up();
    server.stop();
    cluster.lose_data();

    assert!(cluster.prepares().contains("restored from 0000000002-"));
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "later foo bar");
}

#[test]
fn restored_data_names_its_backup_in_the_termination_message_of_each_later_pod() {
    let (cluster, server) = Cluster::with_rows();
    cluster.backs_up();
    server.stop();
    assert_eq!(cluster.termination_message(), "", "new data names none");
    cluster.lose_data();

    // The time in 0000000001-20260101T000100Z.dump.
    let dump = cluster.dumps().swap_remove(0);
    let part = |from: usize, to: usize| &dump[11 + from..11 + to];
    let time = format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4),
        part(4, 6),
        part(6, 8),
        part(9, 11),
        part(11, 13),
        part(13, 15)
    );
    let expected = format!("restored from {dump} of {time}\n");
    cluster.prepares();
    assert_eq!(cluster.termination_message(), expected);
    cluster.clear_termination_message();
    assert!(cluster.prepares().contains("the data is there"));
    assert_eq!(cluster.termination_message(), expected);
}

#[test]
fn roles_and_grants_come_back_too() {
    let (cluster, server) = Cluster::with_rows();
    cluster.sql("CREATE ROLE reader LOGIN PASSWORD 'secret'; GRANT SELECT ON hoge TO reader");
    cluster.sql("CREATE ROLE owner; ALTER TABLE hoge OWNER TO owner");
    cluster.backs_up();
    server.stop();
    cluster.lose_data();
    cluster.prepares();

    let _server = cluster.serve();
    let mut psql = cluster.psql("SELECT count(*) FROM hoge");
    let output = psql.env("PGUSER", "reader").env("PGPASSWORD", "secret").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "2");
    assert_eq!(cluster.sql("SELECT tableowner FROM pg_tables WHERE tablename = 'hoge'"), "owner");
}

#[test]
fn a_broken_newest_backup_gives_way_to_the_one_before() {
    let (cluster, server) = Cluster::with_rows();
    cluster.backs_up();
    cluster.backs_up();
    server.stop();
    cluster.lose_data();
    let newest = cluster.path("backups").join(&cluster.dumps()[1]);
    let half = fs::read(&newest).unwrap();
    fs::write(&newest, &half[..half.len() / 2]).unwrap();

    let output = cluster.prepares();
    assert!(output.contains("cannot be restored"), "{output}");
    assert!(output.contains("restored from 0000000001-"), "{output}");
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar");
}

#[test]
fn when_no_backup_can_be_restored_there_is_no_database_instead_of_an_empty_one() {
    let cluster = Cluster::new();
    for name in ["0000000001-20260101T000000Z.dump", "0000000002-20260101T000100Z.dump"] {
        fs::write(cluster.path("backups").join(name), "no dump").unwrap();
    }
    // Twice, as the kubelet restarts the container.
    for _ in 0..2 {
        let output = cluster.does_not_prepare();
        assert!(output.contains("none of the backups can be restored"), "{output}");
        assert_eq!(cluster.files("data"), ["lock"]);
    }
    assert_eq!(cluster.dumps().len(), 2, "the backups stay");
}

#[test]
fn prepare_fails_when_the_only_backup_is_an_empty_file() {
    let cluster = Cluster::new();
    fs::write(cluster.path("backups").join("0000000001-20260101T000000Z.dump"), "").unwrap();
    cluster.does_not_prepare();
}

#[test]
fn a_crash_during_a_restore_leaves_nothing_that_would_be_served() {
    let (cluster, server) = Cluster::with_rows();
    cluster.backs_up();
    server.stop();
    cluster.lose_data();

    // Kill the container in the middle of the restore, not while it looks for tables.
    let crash = "case \"$*\" in --list*) exec \"$REAL\" \"$@\";; esac\n\
        \"$REAL\" \"$@\"\nkill -9 $PPID";
    cluster.fake("pg_restore", crash);
    cluster.is_killed("prepare");
    let left = cluster.path("data").join("pgdata.new/postmaster.pid");
    let left = fs::read_to_string(left).unwrap();
    // The end of a container ends all its processes. Here the server is left, which holds the lock.
    kill("KILL", left.lines().next().unwrap().parse().unwrap());
    assert!(!cluster.files("data").contains(&"pgdata".to_owned()));
    let output = cluster.container("serve").output().unwrap();
    assert!(!output.status.success(), "serve must fail without a database");

    cluster.unfake("pg_restore");
    assert!(cluster.prepares().contains("restored from"));
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar");
}

#[test]
fn a_changed_password_is_set_and_the_old_one_is_no_longer_taken() {
    let (mut cluster, server) = Cluster::with_rows();
    server.stop();
    cluster.password = "another".to_owned();
    cluster.prepares();

    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar");
    let mut old = cluster.psql("SELECT 1");
    let output = old.env("PGPASSWORD", crate::cluster::PASSWORD).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("password authentication failed"), "{stderr}");
}

#[test]
fn restored_database_has_the_current_password() {
    let (mut cluster, server) = Cluster::with_rows();
    cluster.backs_up();
    server.stop();
    cluster.lose_data();
    cluster.password = "another".to_owned();
    cluster.prepares();
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar");
}

#[test]
fn password_is_not_logged_when_the_server_logs_all_statements() {
    let (mut cluster, server) = Cluster::with_rows();
    cluster.sql("ALTER SYSTEM SET log_statement = 'all'");
    cluster.sql("ALTER SYSTEM SET log_min_duration_statement = 0");
    server.stop();
    cluster.password = "quite-unmistakable".to_owned();
    let output = cluster.prepares();
    assert!(output.contains("statement: "), "the server logs statements:\n{output}");
    assert!(!output.contains("quite-unmistakable"), "{output}");
}

#[test]
fn prepare_fails_when_the_password_is_empty() {
    let mut cluster = Cluster::new();
    cluster.password = String::new();
    assert!(cluster.does_not_prepare().contains("the password is empty"));
}

#[test]
fn names_and_passwords_may_have_any_characters() {
    let mut cluster = Cluster::new();
    cluster.db = "my \"data\"-base; $(true)".to_owned();
    cluster.user = "o'neil \\ \"x\"".to_owned();
    cluster.password = "p'a\"ss\\ w$ord `x` %20 \u{e4}".to_owned();
    cluster.prepares();
    let server = cluster.serve();
    cluster.sql("CREATE TABLE hoge (name text); INSERT INTO hoge VALUES ('foo')");
    cluster.backs_up();
    server.stop();
    cluster.lose_data();
    cluster.prepares();
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo");
}

#[test]
fn the_data_of_another_major_version_is_refused_by_name() {
    let cluster = Cluster::new();
    cluster.prepares();
    fs::write(cluster.path("data").join("pgdata/PG_VERSION"), "9\n").unwrap();
    let output = cluster.does_not_prepare();
    assert!(output.contains("the data is of PostgreSQL 9 and the image is of 1"), "{output}");
}

#[test]
fn prepare_fails_and_changes_nothing_when_the_directory_is_not_a_database() {
    let cluster = Cluster::new();
    fs::create_dir(cluster.path("data").join("pgdata")).unwrap();
    fs::write(cluster.path("data").join("pgdata/precious"), "").unwrap();
    assert!(cluster.does_not_prepare().contains("is not a database"));
    assert!(cluster.path("data").join("pgdata/precious").exists());
}
