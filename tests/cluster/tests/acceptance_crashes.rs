//! What may go wrong with the backups of postgres, with real containers: a crash while one is made,
//! a crash while one is restored, and a table that is dropped and that no newer backup has. Needs
//! root; `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::database::{Database, LONG, NAMESPACE, Writer};
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{eventually, kubelet, name_of};

/// Enough to be written down in more than one piece.
const LARGE: &str = "CREATE TABLE large AS SELECT n, sha512(n::text::bytea) AS t \
    FROM generate_series(1, 100000) n";

/// A table of which each row takes `pg_restore` a second, and nobody else any time.
const SLOW: &str = "CREATE FUNCTION checked(n bigint) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN \
    IF current_setting('application_name') = 'pg_restore' THEN PERFORM pg_sleep(1); END IF; \
    RETURN true; END $$; \
    CREATE TABLE slow (n bigint CHECK (checked(n))); \
    INSERT INTO slow SELECT generate_series(1, 15)";

/// The container that makes a backup.
const CONTAINER: &str = "backup";

/// Stops `pg_dump` when it has written some of a dump, for ever.
const HALFWAY: &str = "until [ $(cat /backups/*.dump.tmp 2>/dev/null | wc -c) -gt 200000 ]; do :; done; \
    for process in /proc/[0-9]*; do \
    if [ \"$(cat $process/comm)\" = pg_dump ]; then \
    kill -STOP ${process#/proc/}; echo stopped; fi; done";

/// A backup whose container is killed when half of the dump is written.
async fn crashed_backup(database: &Database) -> Result<()> {
    let admin = &database.stage.admin;
    // Somebody holds the table until the test is ready to stop the dump.
    let hold = "BEGIN; LOCK TABLE large; SELECT pg_sleep(3600)";
    let mut holder = database.client.command(&["psql", "-X", "-c", hold, &database.url]);
    let mut holder = tokio::process::Command::from({
        holder.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        holder
    })
    .kill_on_drop(true)
    .spawn()?;
    let waits = |what: &str| {
        format!("SELECT count(*) FROM pg_locks WHERE relation = 'large'::regclass AND {what}")
    };
    let until = async |what: &str, asked: String| {
        eventually(what, LONG, async || {
            let count = database.sql(&asked).await?;
            Ok(if count == ["1"] { Ok(()) } else { Err(format!("{count:?}")) })
        })
        .await
    };
    until("the table is held", waits("granted")).await?;
    database.begin_backup("crashed").await?;
    until("the dump waits for the table", waits("NOT granted")).await?;
    let pods = kubelet::pods(admin, NAMESPACE, ("job-name", "crashed")).await?;
    let [pod] = &pods[..] else { anyhow::bail!("not one pod: {pods:?}") };
    let pod = name_of(pod);
    let free =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN; LOCK%'";
    let stop = async {
        let stopped = database.exec(pod, CONTAINER, HALFWAY).await?;
        anyhow::ensure!(stopped.contains("stopped"), "pg_dump was not found");
        Ok(())
    };
    let let_go = async {
        // Not before the watcher is there: it needs a moment to be started, and says nothing.
        until_watched(database, pod).await?;
        database.sql(free).await.map(drop)
    };
    tokio::try_join!(stop, let_go)?;
    holder.wait().await?;
    database.delete_by_force(pod).await?;
    // It is not tried again: the next one comes by the schedule.
    assert!(!database.ended_backup("crashed").await?);
    Ok(())
}

/// Waits until the script [`HALFWAY`] runs in a pod.
async fn until_watched(database: &Database, pod: &str) -> Result<()> {
    // Not found by what asks for it.
    let ask = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'gt 20[0]000' || true";
    eventually("somebody waits for half of the dump", SOON, async || {
        let count = database.exec(pod, CONTAINER, ask).await?;
        Ok(if count.trim() == "0" { Err("nobody does".to_owned()) } else { Ok(()) })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn crashes_of_a_backup_and_of_a_restore_lose_nothing_that_was_backed_up() -> Result<()> {
    let database = Database::new().await?;
    database.seldom(10).await?;
    database.sql("CREATE TABLE log (n bigint PRIMARY KEY)").await?;
    database.sql(LARGE).await?;
    database.sql(SLOW).await?;
    let writer = Writer::start(&database).await?;
    writer.goes_on(&database).await?;
    let backed_up = writer.seen(&database).await?.acknowledged;
    assert!(database.back_up("whole").await?);
    let before = database.backups("before").await?;

    crashed_backup(&database).await?;
    let left = database.backups("after").await?;
    assert_eq!(left.complete, before.complete, "neither more nor less than before");
    assert_eq!(left.pieces.len(), 1, "what was written so far lies there: {left:?}");
    database.is_undamaged().await?;

    // The volume is lost, and what restores it is killed in the middle, as is its pod.
    writer.goes_on(&database).await?;
    database.lose_volume().await?;
    let pod = eventually("the restore has begun with the slow table", LONG, async || {
        let Some(pod) = database.any_pod().await? else { return Ok(Err("no pod".to_owned())) };
        let ask = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/comm 2>/dev/null | tr '\\0' ' '; ls /data";
        Ok(match database.exec(&pod, "prepare", ask).await {
            Ok(log) if log.contains("COPY") && log.contains("pgdata.new") => Ok(pod),
            Ok(log) => Err(log),
            Err(error) => Err(format!("{error:#}")),
        })
    })
    .await?;
    database.delete_by_force(&pod).await?;
    let next = database.pod().await?;
    assert_ne!(name_of(&next), pod);
    writer.goes_on(&database).await?;
    let seen = writer.end(&database).await?;
    let least = u64::try_from(backed_up.len())?;
    seen.never_less_than(least)?;
    let found = database.sql("SELECT n FROM log").await?;
    let missing: Vec<_> = backed_up.iter().filter(|n| !found.contains(&n.to_string())).collect();
    assert!(missing.is_empty(), "{missing:?} had been backed up");
    assert_eq!(database.sql("SELECT count(*) FROM large").await?, ["100000"]);
    assert_eq!(database.sql("SELECT count(*) FROM slow").await?, ["15"]);
    database.is_undamaged().await?;

    // The next backup is whole again, and takes away what the crash has left.
    assert!(database.back_up("next").await?);
    let now = database.backups("now").await?;
    assert_eq!(now.complete.len(), before.complete.len() + 1, "{now:?}");
    assert!(now.pieces.is_empty(), "{now:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn a_dropped_table_comes_back_from_a_backup_that_newer_ones_have_not_pushed_out() -> Result<()>
{
    let database = Database::new().await?;
    database.seldom(2).await?;
    database.sql("CREATE TABLE other (n bigint); CREATE TABLE hoge (name text)").await?;
    database.sql("INSERT INTO hoge VALUES ('foo')").await?;
    // What the schedule has made before.
    database.in_backups("cleared", "rm -f /backups/*.dump /backups/*.sql").await?;
    assert!(database.back_up("yesterday").await?);
    // As if it had been made a day ago, which is what its name says.
    let aged = "cd /backups; for file in *.dump *.roles.sql; do \
        number=${file%%-*}; suffix=${file#*Z}; \
        mv $file $number-$(date -u -d yesterday +%Y%m%dT%H%M%SZ)$suffix; done; ls";
    database.in_backups("aged", aged).await?;
    let [old] = &database.backups("old").await?.complete[..] else {
        anyhow::bail!("not one backup")
    };

    database.sql("DROP TABLE hoge").await?;
    for name in ["one", "two", "three", "four"] {
        assert!(database.back_up(name).await?, "{name}");
    }
    let kept = database.backups("kept").await?.complete;
    assert!(kept.contains(old), "the last of its day is kept: {kept:?}");
    assert_eq!(kept.len(), 3, "and the newest two: {kept:?}");

    // As guests/postgres/README.md says it.
    let url = &database.url;
    let restore = format!("pg_restore --dbname '{url}' --table hoge /backups/{old}");
    database.in_backups("restore", &restore).await?;
    database.until_has(&["foo"]).await?;
    database.is_undamaged().await
}
