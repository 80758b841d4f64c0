//! One process of the control plane: its log, its end.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use crate::Error;

/// Lines of a log shown in an error.
const TAIL_LINES: usize = 20;
/// How long a process may take to end after SIGTERM, before SIGKILL.
const TERM_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a process is asked whether it has ended.
const POLL: Duration = Duration::from_millis(20);

/// A running process that writes to a log file. It is not ended by being dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    child: Child,
    /// To run it again.
    command: Command,
}

impl Process {
    /// Runs `program` with `args`; standard output and error go to `<folder>/<name>.log`.
    ///
    /// The process gets a process group of its own, so that Ctrl-C in a terminal
    /// reaches the one who started it only, who then ends it in the right order.
    ///
    /// # Errors
    /// If the log cannot be made, or the program cannot be run.
    pub fn spawn(
        name: &str,
        program: &mut Command,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        folder: &Path,
    ) -> Result<Self, Error> {
        let log = folder.join(format!("{name}.log"));
        File::create(&log).map_err(Error::file(&log))?;
        let mut command = again(program);
        command.args(args);
        let child = run(&mut command, &log)?;
        Ok(Self { name: name.to_owned(), log, child, command })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends it as [`Self::end`] does, and runs it again.
    ///
    /// # Errors
    /// If the program cannot be run again.
    pub fn restart(&mut self, bound: Duration) -> Result<(), Error> {
        self.end(bound);
        self.start_again()
    }

    /// Runs it again with the same arguments after [`Self::end`]; it goes on in its log.
    ///
    /// # Errors
    /// If the program cannot be run again.
    pub fn start_again(&mut self) -> Result<(), Error> {
        self.child = run(&mut self.command, &self.log)?;
        Ok(())
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Checks that the process runs.
    ///
    /// # Errors
    /// If it has ended: with its exit status and the tail of its log.
    pub fn check(&mut self) -> Result<(), Error> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.error(format!("ended by itself ({status})"))),
            Err(error) => Err(self.error(format!("cannot be waited for ({error})"))),
        }
    }

    /// An error about this process, with the tail of its log.
    pub fn error(&self, what: impl Into<String>) -> Error {
        Error::Process {
            name: self.name.clone(),
            what: what.into(),
            log: self.log.clone(),
            tail: tail(&self.log, TAIL_LINES),
        }
    }

    /// Whether the log says that a port was taken by somebody else meanwhile.
    pub(crate) fn lost_its_port(&self) -> bool {
        tail(&self.log, TAIL_LINES).contains("address already in use")
    }

    /// SIGTERM, then SIGKILL if it has not ended after `bound`. Waits for its end, and for that of
    /// what it runs itself, as `nsenter` does: all of its group. Says whether it ended by itself
    /// with success.
    pub fn end(&mut self, bound: Duration) -> bool {
        let Some(group) = i32::try_from(self.id()).ok().and_then(Pid::from_raw) else {
            return false;
        };
        // Each fails only if all have ended already.
        let _ = kill_process_group(group, Signal::TERM);
        if !self.is_gone(group, bound) {
            let _ = kill_process_group(group, Signal::KILL);
            self.is_gone(group, TERM_TIMEOUT);
        }
        self.kill();
        self.child.try_wait().is_ok_and(|status| status.is_some_and(|status| status.success()))
    }

    /// Waits until none of the group is left, at most for `bound`; whether it is so.
    fn is_gone(&mut self, group: Pid, bound: Duration) -> bool {
        let deadline = Instant::now() + bound;
        loop {
            // Before it has been waited for it counts as one of them.
            let _ = self.child.try_wait();
            if test_kill_process_group(group).is_err() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(POLL);
        }
    }

    /// Ends the process at once, and waits for its end.
    pub fn kill(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command in a process group of its own, with its output behind what is in the log.
fn run(command: &mut Command, log: &Path) -> Result<Child, Error> {
    let out = File::options().append(true).open(log).map_err(Error::file(log))?;
    let err = out.try_clone().map_err(Error::file(log))?;
    command
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .process_group(0)
        .spawn()
        .map_err(Error::system(format!("running {}", command.get_program().display())))
}

/// A command with the same program, arguments, variables and folder.
fn again(command: &Command) -> Command {
    let mut other = Command::new(command.get_program());
    other.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        other.current_dir(folder);
    }
    other
}

/// `command` as the command `inside` runs it, given what to run after its own arguments.
/// Nothing changes if that is empty.
pub fn by(inside: &[String], command: Command) -> Command {
    let Some((program, arguments)) = inside.split_first() else { return command };
    let mut outer = Command::new(program);
    outer.args(arguments).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

/// Sends SIGTERM to the process `pid`, then SIGKILL if it has not ended in 5 s, as
/// `runs` tells. For processes that need not be children of this one.
pub(crate) fn end(pid: u32, runs: impl Fn() -> bool) {
    let Some(target) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    let _ = kill_process(target, Signal::TERM);
    let deadline = Instant::now() + TERM_TIMEOUT;
    while runs() {
        if Instant::now() > deadline {
            let _ = kill_process(target, Signal::KILL);
            return;
        }
        thread::sleep(POLL);
    }
}

/// The command line of the process `pid`, or `None` if there is no such process.
pub fn command_line(pid: u32) -> Option<String> {
    if let Ok(bytes) = fs::read(format!("/proc/{pid}/cmdline")) {
        return Some(String::from_utf8_lossy(&bytes).replace('\0', " "));
    }
    if Path::new("/proc/self").exists() {
        return None;
    }
    let output = Command::new("ps").args(["-o", "args=", "-p", &pid.to_string()]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The last `lines` lines of the file at `path`; says so if it cannot be read.
pub fn tail(path: &Path, lines: usize) -> String {
    match fs::read(path) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let all: Vec<&str> = text.lines().collect();
            all[all.len().saturating_sub(lines)..].join("\n")
        }
        Err(error) => format!("(the log cannot be read: {error})"),
    }
}
