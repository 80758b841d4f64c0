//! Ends processes when the one who started them is gone.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::Error;

/// A shell that waits on a pipe from this process. When the pipe closes without a
/// word of farewell, because this process was killed, it ends the processes that were
/// entrusted to it, each by its pid, and removes the folder.
///
/// Not `PR_SET_PDEATHSIG`: that fires when the *thread* that started a process ends,
/// and test threads end early.
#[derive(Debug)]
pub struct Watchdog {
    shell: Child,
    pipe: Option<ChildStdin>,
}

/// Reads one pid a line until the pipe closes; "-pid" takes one back. "done" means that all have
/// ended.
const SCRIPT: &str = r#"
folder=$1
pids=
while read -r line; do
    case $line in
    done) exit 0 ;;
    -*)
        kept=
        for pid in $pids; do [ "-$pid" = "$line" ] || kept="$kept $pid"; done
        pids=$kept
        ;;
    *) pids="$pids $line" ;;
    esac
done
[ -z "$pids" ] || kill -9 $pids 2>/dev/null
# What was killed may still be writing there.
tries=0
until rm -rf "$folder" 2>/dev/null || [ "$tries" -ge 100 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
"#;

impl Watchdog {
    /// Starts a watchdog that removes `folder` if this process dies.
    ///
    /// # Errors
    /// If `sh` cannot be run.
    pub fn start(folder: &Path) -> Result<Self, Error> {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "innkeeper-watchdog"])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(Error::system("running sh"))?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe })
    }

    /// Entrusts the process `pid` to the watchdog. It must be a child of this process
    /// that is waited for only when the watchdog is dropped or afterwards, so that the
    /// pid cannot be another's.
    ///
    /// # Errors
    /// If the watchdog has ended.
    pub fn guard(&mut self, pid: u32) -> Result<(), Error> {
        match &mut self.pipe {
            Some(pipe) => writeln!(pipe, "{pid}").map_err(Error::system("writing to the watchdog")),
            None => Ok(()),
        }
    }

    /// Takes the process `pid` back, before it is waited for.
    ///
    /// # Errors
    /// If the watchdog has ended.
    pub fn release(&mut self, pid: u32) -> Result<(), Error> {
        match &mut self.pipe {
            Some(pipe) => {
                writeln!(pipe, "-{pid}").map_err(Error::system("writing to the watchdog"))
            }
            None => Ok(()),
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // Fails only if the shell is gone, and then there is nobody to tell.
            let _ = writeln!(pipe, "done");
        }
        let _ = self.shell.wait();
    }
}
