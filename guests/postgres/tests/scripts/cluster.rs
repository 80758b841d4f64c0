//! The volumes of one `PostgreSQL`, and its containers.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::programs;

/// The name of the sample.
pub(crate) const NAME: &str = "foodb";
/// Values of the sample's `spec` and Secret.
pub(crate) const DB: &str = "foo";
pub(crate) const USER: &str = "foo";
pub(crate) const PASSWORD: &str = "mypassword";

/// The volumes of one `PostgreSQL`.
pub(crate) struct Cluster {
    folder: TempDir,
    programs: PathBuf,
    pub(crate) db: String,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) keep: u32,
    /// The server's port.
    pub(crate) port: u16,
    /// More variables of the containers.
    pub(crate) variables: BTreeMap<&'static str, OsString>,
    /// The first directory of the search path, with programs that replace those of PostgreSQL.
    fakes: PathBuf,
}

impl Cluster {
    /// Empty volumes.
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("innkeeper-postgres-").tempdir().unwrap();
        // Readable by the user postgres, as the volumes of a pod.
        set_mode(folder.path(), 0o755);
        for name in ["data", "backups", "scripts", "sockets", "fakes"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            set_mode(&folder.path().join(name), 0o755);
        }
        set_mode(&folder.path().join("sockets"), 0o777);
        // As the kubelet makes it, for any user.
        fs::write(folder.path().join("termination-log"), "").unwrap();
        set_mode(&folder.path().join("termination-log"), 0o666);
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
        for entry in fs::read_dir(scripts).unwrap() {
            let entry = entry.unwrap();
            let copy = folder.path().join("scripts").join(entry.file_name());
            fs::copy(entry.path(), &copy).unwrap();
            set_mode(&copy, 0o644);
        }
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        Self {
            fakes: folder.path().join("fakes"),
            folder,
            programs: programs::folder(),
            db: DB.to_owned(),
            user: USER.to_owned(),
            password: PASSWORD.to_owned(),
            keep: 10,
            port,
            variables: BTreeMap::new(),
        }
    }

    /// A folder of a volume: `data`, `backups`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A container's process: `sh <script>` with the environment of the container only.
    pub(crate) fn container(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .arg(self.path("scripts").join(format!("{script}.sh")))
            .env_clear()
            .env("PATH", self.search_path())
            .env("DATA", self.path("data"))
            .env("BACKUPS", self.path("backups"))
            .env("NAME", NAME)
            .env("POSTGRES_DB", &self.db)
            .env("POSTGRES_USER", &self.user)
            .env("POSTGRES_PASSWORD", &self.password)
            .env("SOCKETS", self.path("sockets"))
            .env("PORT", self.port.to_string())
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", &self.user)
            .env("PGPASSWORD", &self.password)
            .env("PGDATABASE", &self.db)
            .env("KEEP", self.keep.to_string())
            .env("TERMINATION_LOG", self.folder.path().join("termination-log"))
            .envs(&self.variables)
            .current_dir("/")
            .stdin(Stdio::null());
        command
    }

    /// The container of a script in the background, with its output.
    pub(crate) fn start(&self, script: &str) -> Child {
        let mut command = self.container(script);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Asserts that `prepare` ends with 0. Returns its output.
    #[track_caller]
    pub(crate) fn prepares(&self) -> String {
        succeeds(&self.container("prepare").output().unwrap())
    }

    /// Returns the termination message of the last container that wrote one.
    pub(crate) fn termination_message(&self) -> String {
        fs::read_to_string(self.folder.path().join("termination-log")).unwrap()
    }

    /// Empties the termination message, as the kubelet does for the next container.
    pub(crate) fn clear_termination_message(&self) {
        fs::write(self.folder.path().join("termination-log"), "").unwrap();
    }

    /// Asserts that `prepare` fails. Returns its output.
    #[track_caller]
    pub(crate) fn does_not_prepare(&self) -> String {
        fails(&self.container("prepare").output().unwrap())
    }

    /// Asserts that `backup` ends with 0. Returns its output.
    #[track_caller]
    pub(crate) fn backs_up(&self) -> String {
        succeeds(&self.container("backup").output().unwrap())
    }

    /// Asserts that `backup` fails. Returns its output.
    #[track_caller]
    pub(crate) fn does_not_back_up(&self) -> String {
        fails(&self.container("backup").output().unwrap())
    }

    /// Asserts that the container of a script is killed. Does not read its output, because
    /// processes that it started may live on.
    #[track_caller]
    pub(crate) fn is_killed(&self, script: &str) {
        let mut command = self.container(script);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.signal(), Some(9), "the process ended with {status}");
    }

    /// Returns the output of psql, as the database's user over TCP with the password.
    #[track_caller]
    pub(crate) fn sql(&self, sql: &str) -> String {
        succeeds(&self.psql(sql).output().unwrap()).trim().to_owned()
    }

    /// psql, as the database's user over TCP with the password.
    pub(crate) fn psql(&self, sql: &str) -> Command {
        let mut command = self.program("psql");
        command.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql]);
        command
    }

    /// The rows of the sample's table.
    #[track_caller]
    pub(crate) fn rows(&self) -> String {
        self.sql("SELECT string_agg(name, ' ' ORDER BY name DESC) FROM hoge")
    }

    /// A program of PostgreSQL, as a client of the server.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command
            .env("PGHOST", "127.0.0.1")
            .env("PGPORT", self.port.to_string())
            .env("PGUSER", &self.user)
            .env("PGPASSWORD", &self.password)
            .env("PGDATABASE", &self.db)
            .stdin(Stdio::null());
        command
    }

    /// Replaces the volume of the data by an empty one.
    pub(crate) fn lose_data(&self) {
        fs::remove_dir_all(self.path("data")).unwrap();
        fs::create_dir(self.path("data")).unwrap();
    }

    /// The names of the complete backups, oldest first.
    pub(crate) fn dumps(&self) -> Vec<String> {
        self.files_with("backups", "dump")
    }

    /// The names of a volume's files with this extension, in order.
    pub(crate) fn files_with(&self, volume: &str, extension: &str) -> Vec<String> {
        let mut files = self.files(volume);
        files.retain(|name| Path::new(name).extension().is_some_and(|has| has == extension));
        files
    }

    /// The names of a volume's files, in order.
    pub(crate) fn files(&self, volume: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(volume)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Replaces a program of PostgreSQL by a shell script, in which `$REAL` is the path of the
    /// original program.
    pub(crate) fn fake(&self, program: &str, script: &str) {
        let real = self.programs.join(program);
        let fake = self.fakes.join(program);
        fs::write(&fake, format!("#!/bin/sh\nREAL='{}'\n{script}\n", real.display())).unwrap();
        set_mode(&fake, 0o755);
    }

    /// Removes the replacement of a program of PostgreSQL.
    pub(crate) fn unfake(&self, program: &str) {
        fs::remove_file(self.fakes.join(program)).unwrap();
    }

    fn search_path(&self) -> OsString {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.fakes.clone(), self.programs.clone()];
        std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&path))).unwrap()
    }
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Asserts that a process ended with 0. Returns its output.
#[track_caller]
pub(crate) fn succeeds(output: &Output) -> String {
    let text = text(output);
    assert!(output.status.success(), "the process ended with {}:\n{text}", output.status);
    text
}

/// Asserts that a process failed. Returns its output.
#[track_caller]
pub(crate) fn fails(output: &Output) -> String {
    let text = text(output);
    assert!(!output.status.success(), "the process ended with 0:\n{text}");
    text
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}
