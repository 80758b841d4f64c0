//! Tests of `backup`.

use std::fs;

use crate::cluster::{Cluster, succeeds};

/// The sequence numbers of the backups.
fn numbers(cluster: &Cluster) -> Vec<String> {
    cluster.dumps().iter().map(|name| name[..10].to_owned()).collect()
}

#[test]
fn backup_writes_a_dump_and_its_roles_and_no_other_file() {
    let (cluster, _server) = Cluster::with_rows();
    cluster.backs_up();
    let files = cluster.files("backups");
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files[0].starts_with("0000000001-2") && files[0].ends_with("Z.dump"), "{files:?}");
    assert!(files[1].ends_with("Z.roles.sql"), "{files:?}");
    assert_eq!(files[2], "lock");
}

#[test]
fn dump_converts_to_the_plain_sql_of_the_original() {
    let (cluster, _server) = Cluster::with_rows();
    cluster.backs_up();
    let dump = cluster.path("backups").join(&cluster.dumps()[0]);
    let sql = cluster.path("sockets").join("foodb.sql");
    succeeds(&cluster.program("pg_restore").arg("-f").arg(&sql).arg(dump).output().unwrap());
    let sql = fs::read_to_string(sql).unwrap();
    assert!(sql.contains("COPY public.hoge"), "{sql}");
    assert!(sql.contains("-- PostgreSQL database dump complete"), "{sql}");
}

#[test]
fn database_without_tables_is_backed_up_unless_a_backup_has_tables() {
    let cluster = Cluster::new();
    cluster.prepares();
    let _server = cluster.serve();
    cluster.backs_up();
    cluster.backs_up();
    assert_eq!(numbers(&cluster), ["0000000001", "0000000002"]);
}

#[test]
fn a_dump_without_tables_does_not_displace_one_that_has_some() {
    let (cluster, _server) = Cluster::with_rows();
    cluster.backs_up();
    cluster.sql("DROP TABLE hoge");
    let output = cluster.does_not_back_up();
    assert!(output.contains("the database has no tables"), "{output}");
    assert_eq!(numbers(&cluster), ["0000000001"]);

    cluster.sql("CREATE TABLE other ()");
    cluster.backs_up();
    assert_eq!(numbers(&cluster), ["0000000001", "0000000002"]);
}

#[test]
fn a_dump_that_is_empty_or_unreadable_or_fails_does_not_displace_a_good_one() {
    let (cluster, _server) = Cluster::with_rows();
    cluster.backs_up();
    // `-f` is the last but one argument; the file is the last.
    let to_file = "for file; do :; done";
    for (fake, why) in [
        (format!("{to_file}\n: >\"$file\""), "the dump is empty"),
        (format!("{to_file}\necho no dump >\"$file\""), "the dump cannot be read"),
        (format!("{to_file}\necho half >\"$file\"\nexit 1"), "the dump failed"),
    ] {
        cluster.fake("pg_dump", &fake);
        let output = cluster.does_not_back_up();
        assert!(output.contains(why), "{output}");
        assert_eq!(numbers(&cluster), ["0000000001"]);
        assert_eq!(cluster.files("backups").len(), 3, "no file of the dump is left");
    }
}

#[test]
fn a_crash_during_a_dump_leaves_nothing_that_would_be_restored() {
    let (cluster, server) = Cluster::with_rows();
    cluster.backs_up();
    cluster.fake("pg_dump", "\"$REAL\" \"$@\"\nkill -9 $PPID");
    cluster.is_killed("backup");
    let left = || cluster.files_with("backups", "tmp").len();
    assert_eq!(left(), 1);
    assert_eq!(numbers(&cluster), ["0000000001"]);

    server.stop();
    cluster.lose_data();
    assert!(cluster.prepares().contains("restored from 0000000001-"));

    cluster.unfake("pg_dump");
    let _server = cluster.serve();
    cluster.backs_up();
    assert_eq!(left(), 0, "the next backup removes it");
    assert_eq!(numbers(&cluster), ["0000000001", "0000000002"]);
}

#[test]
fn backup_fails_and_changes_nothing_when_the_password_is_wrong() {
    let (mut cluster, _server) = Cluster::with_rows();
    cluster.backs_up();
    cluster.password = "wrong".to_owned();
    let output = cluster.does_not_back_up();
    assert!(output.contains("password authentication failed"), "{output}");
    assert_eq!(numbers(&cluster), ["0000000001"]);
}

#[test]
fn backup_fails_when_the_server_does_not_run() {
    let (cluster, server) = Cluster::with_rows();
    cluster.backs_up();
    server.stop();
    assert!(cluster.does_not_back_up().contains("the dump failed"));
    assert_eq!(numbers(&cluster), ["0000000001"]);
}

#[test]
fn two_concurrent_backups_run_one_after_the_other() {
    let (cluster, _server) = Cluster::with_rows();
    let both = [cluster.start("backup"), cluster.start("backup")];
    for one in both {
        succeeds(&one.wait_with_output().unwrap());
    }
    assert_eq!(numbers(&cluster), ["0000000001", "0000000002"]);
    assert_eq!(cluster.files("backups").len(), 5);
}

#[test]
fn kept_are_the_newest_one_an_hour_for_a_day_and_one_a_day_for_a_week() {
    let (mut cluster, _server) = Cluster::with_rows();
    cluster.keep = 2;
    // Ten days with a backup every half hour, all copies of a good one.
    cluster.backs_up();
    let good = cluster.path("backups").join(&cluster.dumps()[0]);
    let mut number = 0;
    for day in 1..=10 {
        for hour in 0..24 {
            for minute in [0, 30] {
                number += 1;
                let name = format!("{number:010}-202601{day:02}T{hour:02}{minute:02}00Z.dump");
                fs::copy(&good, cluster.path("backups").join(&name)).unwrap();
                let roles = name.replace(".dump", ".roles.sql");
                fs::write(cluster.path("backups").join(roles), "").unwrap();
            }
        }
    }
    fs::remove_file(&good).unwrap();
    cluster.backs_up();

    let kept = cluster.dumps();
    let of = |part: &str| kept.iter().filter(|name| name[11..].starts_with(part)).count();
    // The new backup is the newest of its hour and day. The 23 other hours are those of the tenth
    // day from 01 on; the 6 other days are 10, 9, 8, 7, 6 and 5.
    assert_eq!(kept.len(), 1 + 23 + 5, "{kept:#?}");
    assert_eq!(of("20260110T"), 23);
    assert_eq!(of("20260110T2330"), 1);
    assert_eq!(of("20260110T2300"), 0, "neither one of the two newest nor the newest of its hour");
    assert_eq!(of("20260110T00"), 0);
    for day in ["20260109T2330", "20260108T2330", "20260107T2330", "20260106T2330", "20260105T2330"]
    {
        assert_eq!(of(day), 1, "{day}");
    }
    assert_eq!(of("20260104"), 0);
    let roles = cluster.files_with("backups", "sql");
    assert_eq!(roles.len(), kept.len(), "each backup has its roles");
}

#[test]
fn a_clock_that_is_set_back_does_not_make_an_older_backup_the_newest() {
    let (cluster, server) = Cluster::with_rows();
    cluster.backs_up();
    let first = &cluster.dumps()[0];
    // Rename the first as if it had been made in the future.
    let later = format!("{}-29990101T000000Z", &first[..10]);
    for end in [".dump", ".roles.sql"] {
        let from = first.replace(".dump", end);
        fs::rename(
            cluster.path("backups").join(from),
            cluster.path("backups").join(format!("{later}{end}")),
        )
        .unwrap();
    }
    cluster.sql("INSERT INTO hoge VALUES ('later')");
    cluster.backs_up();
    server.stop();
    cluster.lose_data();
    cluster.prepares();
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "later foo bar");
}
