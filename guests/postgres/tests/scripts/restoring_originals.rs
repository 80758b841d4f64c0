//! Tests of `prepare` with the plain SQL that the original operator wrote.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::cluster::{Cluster, USER, fails, set_mode};

/// A backup of the original operator, by `pg_dump` of PostgreSQL 11: the table `hoge` with the rows
/// foo and bar, and a table of the user postgres.
const ORIGINAL: &str = include_str!("original.sql");
/// The places where an admin may put it.
const FILE: &str = "foodb.sql";
const IN_FOLDER: &str = "backup/foodb.sql";
/// The place of the original's file if its volume is mounted at `backup`.
const IN_VOLUME: &str = "backup/backup/foodb.sql";
/// The last statement of [`ORIGINAL`].
const LAST: &str = "SELECT pg_catalog.setval(";

impl Cluster {
    /// Puts a file on the volume of the backups. Returns its path.
    fn put(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path("backups").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Asserts that `prepare` fails and leaves no database. Returns its output.
    #[track_caller]
    fn refuses(&self) -> String {
        let output = self.does_not_prepare();
        assert!(output.contains("none of the backups can be restored"), "{output}");
        assert_eq!(self.files("data"), ["lock"]);
        output
    }
}

/// Sets the time at which a file was last written to `age` before now.
fn set_age(path: &PathBuf, age: Duration) {
    set_time(path, SystemTime::now() - age);
}

fn set_time(path: &PathBuf, time: SystemTime) {
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// The original's backup with statements before its last one.
fn original_with(statements: &str) -> String {
    ORIGINAL.replace(LAST, &format!("{statements}\n{LAST}"))
}

/// A complete backup of the original without tables.
fn without_tables() -> String {
    ORIGINAL[..ORIGINAL.find("SET default_tablespace").unwrap()].to_owned()
        + "--\n-- PostgreSQL database dump complete\n--\n"
}

#[test]
fn original_backup_is_restored_from_each_place() {
    for name in [FILE, IN_FOLDER, IN_VOLUME] {
        let cluster = Cluster::new();
        let path = cluster.put(name, ORIGINAL);
        set_mode(&path, 0o600);
        let output = cluster.prepares();
        assert!(output.contains(&format!("restored from {name}")), "{output}");

        let server = cluster.serve();
        cluster.sql("INSERT INTO hoge (name) VALUES ('new')");
        assert_eq!(cluster.sql("SELECT string_agg(id || name, ' ') FROM hoge"), "1foo 2bar 3new");
        let owners = "SELECT string_agg(tableowner, ' ' ORDER BY tablename) FROM pg_tables \
            WHERE schemaname = 'public'";
        assert_eq!(cluster.sql(owners), "foo postgres");
        server.stop();
        assert!(cluster.prepares().contains("the data is there"));
        assert_eq!(fs::read_to_string(path).unwrap(), ORIGINAL, "its content stays");
    }
}

#[test]
fn plain_dump_of_this_version_is_restored() {
    let (cluster, server) = Cluster::with_rows();
    let file = cluster.path("backups").join(FILE);
    assert!(cluster.program("pg_dump").arg("-f").arg(&file).status().unwrap().success());
    server.stop();
    cluster.lose_data();
    cluster.prepares();
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar");
}

#[test]
fn truncated_original_is_refused_wherever_it_ends() {
    let cluster = Cluster::new();
    let table = ORIGINAL.find("CREATE TABLE").unwrap();
    let row = ORIGINAL.find("2\tbar").unwrap();
    let last = ORIGINAL.find(LAST).unwrap();
    let trailer = ORIGINAL.find("-- PostgreSQL database dump complete").unwrap();
    for end in [3, table, row, last, trailer, trailer + 10] {
        cluster.put(FILE, &ORIGINAL[..end]);
        assert!(cluster.refuses().contains("it is incomplete"), "the first {end} bytes");
    }
}

#[test]
fn original_whose_data_ends_like_a_complete_dump_is_refused() {
    let cluster = Cluster::new();
    let row = ORIGINAL.find("2\tbar").unwrap();
    let trailer = "-- PostgreSQL database dump complete\n";
    let one_column = ORIGINAL[..row].replace("COPY public.hoge (id, name)", "COPY public.settings");
    cluster.put(FILE, &format!("{}{trailer}", one_column.replace("1\tfoo\n", "")));
    let output = cluster.refuses();
    assert!(output.contains("psql did not reach the end of the file"), "{output}");
}

#[test]
fn original_with_a_failing_statement_is_refused_as_a_whole() {
    let cluster = Cluster::new();
    for statements in [
        "SELECT no_such_function();",
        "COMMIT; SELECT no_such_function();",
        "ROLLBACK; CREATE TABLE public.hoge ();  SELECT 1/0;",
        "INSERT INTO public.hoge VALUES (3); COPY public.settings FROM stdin;",
        "DROP DATABASE foo;",
        "SELECT pg_terminate_backend(pg_backend_pid());",
    ] {
        cluster.put(FILE, &original_with(statements));
        cluster.refuses();
    }
}

#[test]
fn commands_of_psql_in_an_original_do_not_run_and_it_is_refused() {
    let cluster = Cluster::new();
    let mark = cluster.path("sockets").join("mark");
    for command in [
        format!("\\! touch {}", mark.display()),
        "\\q".to_owned(),
        "\\connect postgres\nDROP DATABASE foo;".to_owned(),
        "\\set ON_ERROR_STOP off\nSELECT 1/0;".to_owned(),
        "\\unrestrict a\n\\q".to_owned(),
        format!("\\i {}", cluster.path("scripts").join("common.sh").display()),
    ] {
        cluster.put(FILE, &original_with(&command));
        let output = cluster.refuses();
        assert!(output.contains("restrict"), "{output}");
        assert!(!mark.exists(), "{command}");
    }
}

#[test]
fn restrict_lines_of_a_new_pg_dump_are_accepted_once_and_not_trusted() {
    let (begin, end) = ("\\restrict abc123", "\\unrestrict abc123");
    let dump = ORIGINAL.replacen("-- Dumped from", &format!("{begin}\n\n-- Dumped from"), 1);
    let cluster = Cluster::new();
    cluster.put(FILE, &format!("{}{end}\n\n", dump.replace(LAST, &format!("{end}\n\\q\n{LAST}"))));
    cluster.refuses();

    cluster.put(FILE, &format!("{dump}{end}\n\n"));
    cluster.prepares();
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar");
}

#[test]
fn psql_that_does_not_know_restrict_gets_no_such_line_and_restores_all_or_nothing() {
    let cluster = Cluster::new();
    let input = cluster.path("sockets").join("input");
    let old = format!(
        "case \"$*\" in\n*restrict*) exit 1;;\n\
         *'-f - '*) tee '{}' | \"$REAL\" \"$@\";;\n*) exec \"$REAL\" \"$@\";;\nesac",
        input.display()
    );
    cluster.fake("psql", &old);
    let end = "-- PostgreSQL database dump complete";
    let elsewhere = format!("COMMIT;\n\\connect postgres\nDROP DATABASE foo;\n{end}");
    for hostile in [original_with("\\q"), ORIGINAL.replace(end, &elsewhere)] {
        cluster.put(FILE, &hostile);
        let output = cluster.refuses();
        assert!(output.contains("psql did not reach the end"), "{output}");
    }

    let dump = ORIGINAL.replacen("-- Dumped from", "\\restrict abc\n\n-- Dumped from", 1);
    cluster.put(FILE, &format!("{dump}\\unrestrict abc\n\n"));
    cluster.prepares();
    assert!(!fs::read_to_string(input).unwrap().contains("restrict"));
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar");
}

#[test]
fn roles_that_an_original_refers_to_are_created_without_login() {
    let cluster = Cluster::new();
    let statements = "ALTER TABLE public.settings OWNER TO \"o'neil x\";\n\
        GRANT SELECT ON TABLE public.hoge TO reader;";
    cluster.put(FILE, &original_with(statements));
    let output = cluster.prepares();
    assert!(output.contains("refers to the role reader"), "{output}");
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar");
    let owner = "SELECT tableowner FROM pg_tables WHERE tablename = 'settings'";
    assert_eq!(cluster.sql(owner), "o'neil x");
    assert_eq!(cluster.sql("SELECT has_table_privilege('reader', 'hoge', 'SELECT')"), "t");
    assert_eq!(cluster.sql("SELECT count(*) FROM pg_roles WHERE rolcanlogin"), "2");
}

#[test]
fn password_of_the_secret_wins_over_one_in_an_original() {
    let cluster = Cluster::new();
    cluster.put(FILE, &original_with(&format!("ALTER ROLE {USER} PASSWORD 'old';")));
    cluster.prepares();
    let _server = cluster.serve();
    assert_eq!(cluster.rows(), "foo bar");
    let output = fails(&cluster.psql("SELECT 1").env("PGPASSWORD", "old").output().unwrap());
    assert!(output.contains("password authentication failed"), "{output}");
}

#[test]
fn original_of_a_newer_version_is_refused_with_the_version_to_set() {
    let cluster = Cluster::new();
    let newer = ORIGINAL
        .replace("database version 11.22", "database version 99.1")
        .replace("SET row_security", "SET setting_of_99 = 0;\nSET row_security");
    cluster.put(FILE, &newer);
    let output = cluster.refuses();
    assert!(output.contains("set spec.image to version 99"), "{output}");
}

#[test]
fn dump_made_after_the_original_goes_first_and_the_original_when_it_is_broken() {
    let (cluster, server) = Cluster::with_rows();
    let file = cluster.put(FILE, ORIGINAL);
    set_age(&file, Duration::from_hours(1));
    cluster.sql("INSERT INTO hoge VALUES ('later')");
    cluster.backs_up();
    server.stop();
    cluster.lose_data();
    assert!(cluster.prepares().contains("restored from 0000000001-"));
    let server = cluster.serve();
    assert_eq!(cluster.rows(), "later foo bar");
    server.stop();

    cluster.lose_data();
    let dump = cluster.put(&cluster.dumps()[0], "broken");
    let output = cluster.prepares();
    assert!(output.contains("0000000001-"), "{output}");
    assert!(output.contains("restored from foodb.sql"), "{output}");
    assert_eq!(fs::read_to_string(dump).unwrap(), "broken");
}

#[test]
fn original_newer_than_all_dumps_goes_first_unless_its_time_is_in_the_future() {
    let (cluster, server) = Cluster::with_rows();
    cluster.sql("INSERT INTO hoge VALUES ('later')");
    cluster.backs_up();
    server.stop();
    let dump = cluster.path("backups").join(&cluster.dumps()[0]);
    set_age(&dump, Duration::from_hours(1));

    let file = cluster.put(IN_FOLDER, ORIGINAL);
    set_time(&file, SystemTime::now() + Duration::from_hours(24));
    cluster.lose_data();
    assert!(cluster.prepares().contains("restored from 0000000001-"));

    set_age(&file, Duration::from_mins(1));
    cluster.lose_data();
    assert!(cluster.prepares().contains("restored from backup/foodb.sql"));

    // What is broken gives way to the one before, as among the dumps.
    cluster.put(IN_FOLDER, &ORIGINAL[..1000]);
    cluster.lose_data();
    assert!(cluster.prepares().contains("restored from 0000000001-"));
}

#[test]
fn backup_without_tables_never_goes_before_one_that_has_some() {
    let cluster = Cluster::new();
    cluster.prepares();
    let server = cluster.serve();
    let file = cluster.put(FILE, ORIGINAL);
    set_age(&file, Duration::from_hours(1));
    // The database is new: a later dump of it has no tables.
    cluster.backs_up();
    server.stop();
    cluster.lose_data();
    assert!(cluster.prepares().contains("restored from foodb.sql"));

    let server = cluster.serve();
    cluster.backs_up();
    server.stop();
    cluster.lose_data();
    cluster.put(FILE, &without_tables());
    assert!(cluster.prepares().contains("restored from 0000000002-"));
}

#[test]
fn broken_original_is_not_replaced_by_a_backup_without_tables() {
    let cluster = Cluster::with_tableless_backup();
    cluster.put(IN_VOLUME, &without_tables());
    let table = ORIGINAL.find("CREATE TABLE").unwrap();
    // Newer than the dump without tables, and older.
    for (broken, age) in [
        (&ORIGINAL[..3], 3600),
        (&ORIGINAL[..table + 20], 0),
        (&original_with("SELECT no_such_function();"), 3600),
    ] {
        cluster.lose_data();
        set_age(&cluster.put(IN_FOLDER, broken), Duration::from_secs(age));
        let output = cluster.refuses();
        assert!(output.contains("backup/foodb.sql failed first"), "{output}");
        assert!(output.contains("because they have no tables"), "{output}");
    }

    fs::remove_file(cluster.path("backups").join(IN_FOLDER)).unwrap();
    assert!(cluster.prepares().contains("restored from 0000000001-"), "it was moved away");
}

#[test]
fn damaged_dump_is_not_replaced_by_a_dump_without_tables() {
    let cluster = Cluster::with_tableless_backup();
    let damaged = "0000000002-20260101T000000Z.dump";
    cluster.put(damaged, "no dump");
    let output = cluster.refuses();
    assert!(output.contains(&format!("{damaged} failed first")), "{output}");
}

#[test]
fn half_written_original_is_not_replaced_by_a_dump_without_tables() {
    let cluster = Cluster::with_tableless_backup();
    cluster.put(IN_FOLDER, "");
    let output = cluster.does_not_prepare();
    assert!(output.contains("stop the original operator"), "{output}");
    assert_eq!(cluster.files("data"), ["lock"]);
}

#[test]
fn original_that_refers_to_new_roles_without_end_is_refused() {
    let cluster = Cluster::new();
    let endless = "DO $$ BEGIN RAISE EXCEPTION 'role \"%\" does not exist', \
        md5(random()::text); END $$;\nSELECT 1;";
    cluster
        .put(FILE, &ORIGINAL.replace("SET row_security", &format!("{endless}\nSET row_security")));
    let output = cluster.refuses();
    assert!(output.contains("more than 100 roles that do not exist"), "{output}");
}

#[test]
fn empty_original_alone_is_no_backup_and_a_new_one_may_be_half_written() {
    let cluster = Cluster::new();
    let file = cluster.put(IN_FOLDER, "");
    let output = cluster.does_not_prepare();
    assert!(output.contains("stop the original operator"), "{output}");
    assert_eq!(cluster.files("data"), ["lock"]);

    set_age(&file, Duration::from_mins(5));
    assert!(cluster.prepares().contains("a new database"));
}

#[test]
fn original_that_changes_during_the_restore_is_not_served() {
    let cluster = Cluster::new();
    let file = cluster.put(FILE, ORIGINAL);
    cluster.fake("psql", &format!("\"$REAL\" \"$@\" || exit\necho >>{}", file.display()));
    let output = cluster.does_not_prepare();
    assert!(output.contains("was changed during the restore"), "{output}");
    assert!(!cluster.files("data").contains(&"pgdata".to_owned()));

    cluster.unfake("psql");
    cluster.prepares();
}

#[test]
fn crash_while_an_original_is_restored_leaves_nothing_that_would_be_served() {
    let cluster = Cluster::new();
    cluster.put(FILE, ORIGINAL);
    // The first psql that runs in one transaction is the one that restores.
    let crash = "case \"$*\" in *--single-transaction*) \"$REAL\" \"$@\"; kill -9 $PPID;; \
        *) exec \"$REAL\" \"$@\";; esac";
    cluster.fake("psql", crash);
    cluster.is_killed("prepare");
    let left = cluster.path("data").join("pgdata.new/postmaster.pid");
    let server = fs::read_to_string(left).unwrap().lines().next().unwrap().parse().unwrap();
    crate::server::kill("KILL", server);
    assert!(!cluster.files("data").contains(&"pgdata".to_owned()));

    cluster.unfake("psql");
    assert!(cluster.prepares().contains("restored from foodb.sql"));
}

#[test]
fn folder_that_cannot_be_read_is_no_missing_backup() {
    let cluster = Cluster::new();
    cluster.put(IN_FOLDER, ORIGINAL);
    let folder = cluster.path("backups").join("backup");
    set_mode(&folder, 0o000);
    cluster.does_not_prepare();
    assert_eq!(cluster.files("data"), ["lock"]);
    set_mode(&folder, 0o755);
    cluster.prepares();
}

#[test]
fn retention_and_interrupted_backups_do_not_touch_an_original() {
    let (mut cluster, _server) = Cluster::with_rows();
    cluster.keep = 1;
    cluster.put(FILE, ORIGINAL);
    cluster.put(IN_FOLDER, ORIGINAL);
    for _ in 0..3 {
        cluster.backs_up();
    }
    assert_eq!(cluster.dumps().len(), 1);
    for name in [FILE, IN_FOLDER] {
        assert_eq!(fs::read_to_string(cluster.path("backups").join(name)).unwrap(), ORIGINAL);
    }
}
