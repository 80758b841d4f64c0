//! Where a node runs: namespaces of the kernel, as a machine of its own in this one.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use innkeeper_controlplane::{Process, Watchdog, cache_folder, command_line, tail};

use crate::Packages;
use crate::control_group::ControlGroup;
use crate::link::Link;
use crate::packages::run;

/// How the machine's folder is seen inside.
pub(crate) const INSIDE: &str = "/run/innkeeper";
/// How the folder that all machines of a cluster share is seen inside: it stands for a network file
/// system.
pub(crate) const SHARED: &str = "/run/shared";
/// How the folder of unpacked packages and built programs is seen inside.
const PROGRAMS: &str = "/run/programs";
/// How long making the namespaces may take, and their end.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The file that names its processes.
const PIDS: &str = "machine.pids";
const POLL: Duration = Duration::from_millis(10);

/// The first process in the namespaces. All that a node writes outside of /run lies in the
/// machine's folder; the rest of the files are the host's. Ignoring CHLD lets the kernel clear away
/// the ends of processes that nobody waits for.
const INIT: &str = r#"
set -eu
folder=$1
programs=$2
shared=$3
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/innkeeper /run/programs /run/shared "$folder/lib" "$folder/log" "$folder/tmp"
chmod 1777 "$folder/tmp"
mount --bind "$folder" /run/innkeeper
mount --bind "$programs" /run/programs
mount --bind "$shared" /run/shared
mount --bind /run/innkeeper/lib /var/lib
mount --bind /run/innkeeper/log /var/log
mount --bind /run/innkeeper/tmp /tmp
mount --make-rshared /
hostname "$4"
echo 1 >/proc/sys/net/ipv4/ip_forward
trap '' CHLD
touch /run/innkeeper/made
exec sleep 2147483647
"#;

/// A machine of its own in this one, for as long as this value lives.
#[derive(Debug)]
pub struct Machine {
    init: Option<Process>,
    watchdog: Option<Watchdog>,
    folder: PathBuf,
    pid: u32,
    link: Link,
    group: ControlGroup,
}

impl Machine {
    /// Makes one with this host name, whose files lie in `folder`, which is there, and which sees
    /// the folder `shared` as other machines do. Ends with this process, also if that is killed.
    ///
    /// # Errors
    /// What the kernel refuses; all of it to whom is not root.
    pub fn start(name: &str, folder: &Path, shared: &Path, packages: &Packages) -> Result<Self> {
        let programs = cache_folder()?;
        for folder in [programs.as_path(), shared] {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let mut command = Command::new("unshare");
        packages.set(&mut command);
        command.args(["--pid", "--mount", "--net", "--uts", "--ipc", "--fork", "--kill-child"]);
        command.args(["--mount-proc", "sh", "-c", INIT, "innkeeper-node"]);
        let mut watchdog = Watchdog::start(folder)?;
        let arguments = [folder.as_os_str(), programs.as_os_str(), shared.as_os_str()];
        command.args(arguments);
        let mut init = Process::spawn("machine", &mut command, [name], folder)?;
        watchdog.guard(init.id())?;
        let pid = wait(&mut init, folder)?;
        let numbers = lock_numbers()?;
        // Written down before anything is made outside of the namespaces.
        ControlGroup::remove_left()?;
        let link = Link::lay(pid)?;
        fs::write(folder.join(PIDS), format!("{} {pid} {}\n", init.id(), link.name()))?;
        let group = ControlGroup::make(&link.name())?;
        drop(numbers);
        let machine = Self {
            init: Some(init),
            watchdog: Some(watchdog),
            folder: folder.to_owned(),
            pid,
            link,
            group,
        };
        let rules = folder.join("firewall.nft");
        fs::write(&rules, Link::firewall())?;
        let mut nft = machine.command("nft");
        packages.set(&mut nft);
        run(nft.arg("-f").arg(machine.seen(&rules)))?;
        Ok(machine)
    }

    /// Lays a cable to another machine, by which pods of both reach each other. Each is given with
    /// the addresses of its pods.
    pub(crate) fn connect(&self, pods: &str, (other, others): (&Self, &str)) -> Result<()> {
        Link::between((self.pid, &self.link, pods), (other.pid, &other.link, others))
    }

    /// Runs `program` inside, as one of its processes.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(self.enter(&["-m", "-n", "-p", "-u", "-i"])).arg(program);
        command
    }

    /// The command that runs another with the machine's files and ends with it, but with the host's
    /// network.
    pub fn with_its_files(&self) -> Vec<String> {
        let mut command = vec!["nsenter".to_owned()];
        command.extend(self.enter(&["-m", "-p"]));
        command
    }

    fn enter(&self, namespaces: &[&str]) -> Vec<String> {
        let mut arguments = vec!["-t".to_owned(), self.pid.to_string()];
        arguments.extend(namespaces.iter().map(|one| (*one).to_owned()));
        // Says to whom looks at the processes of the host whose it is.
        arguments.push(format!("--wd={}", self.folder.display()));
        arguments.push("--".to_owned());
        arguments
    }

    /// How a file in the machine's folder, or a program in the cache folder, is seen inside.
    pub fn seen(&self, path: &Path) -> PathBuf {
        if let Ok(below) = path.strip_prefix(&self.folder) {
            return Path::new(INSIDE).join(below);
        }
        match cache_folder().ok().and_then(|cache| Some(path.strip_prefix(cache).ok()?.to_owned()))
        {
            Some(below) => Path::new(PROGRAMS).join(below),
            None => path.to_owned(),
        }
    }

    /// The folder that the machine's files lie in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The address of the host that the machine reaches.
    pub fn host(&self) -> Ipv4Addr {
        self.link.host()
    }

    /// The machine's address.
    pub fn address(&self) -> Ipv4Addr {
        self.link.node()
    }

    /// The group in which its pods are counted.
    pub(crate) fn group(&self) -> &ControlGroup {
        &self.group
    }

    /// Lets it run on when this value goes. [`end_left`] ends it.
    pub(crate) fn leave(&mut self) {
        self.init = None;
        self.watchdog = None;
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(mut init) = self.init.take() {
            // With its interface a machine gives its number back. Without the lock interface and
            // groups are removed all the same.
            let _numbers = lock_numbers();
            init.kill();
            // Nobody to tell: what is left is removed by the next of the same number.
            let _ =
                gone(self.pid).and_then(|()| self.group.remove()).and_then(|()| self.link.cut());
        }
    }
}

/// Waits until no other process takes a machine's number or gives one back: the interface and the
/// control groups of a number are made and removed one after the other. Ends with the value.
fn lock_numbers() -> Result<File> {
    let path = std::env::temp_dir().join("innkeeper-machines.lock");
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    file.lock().with_context(|| format!("locking {}", path.display()))?;
    Ok(file)
}

/// Ends the machine that an earlier process has left with its files in `folder`, if there is one,
/// and removes what it has made elsewhere.
pub(crate) fn end_left(folder: &Path) -> Result<()> {
    let _numbers = lock_numbers()?;
    // Of a machine that has ended, the number may be another's by now.
    if let Some((outer, init, name)) = left(folder).filter(|left| is_ours(left.0, folder)) {
        if let Some(pid) = i32::try_from(outer).ok().and_then(rustix::process::Pid::from_raw) {
            // Its child, the first process inside, has asked to be killed with it.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        gone(init)?;
        ControlGroup::named(&name).remove()?;
        if let Some(link) = Link::named(&name) {
            link.cut()?;
        }
    }
    ControlGroup::remove_left()
}

/// Whether the machine with its files in `folder` runs.
pub(crate) fn is_up(folder: &Path) -> bool {
    left(folder).is_some_and(|(outer, ..)| is_ours(outer, folder))
}

/// The address of the machine with its files in `folder`, if it runs.
pub(crate) fn address_left(folder: &Path) -> Option<Ipv4Addr> {
    let (outer, _, name) = left(folder)?;
    is_ours(outer, folder).then(|| Link::named(&name))?.map(|link| link.node())
}

/// What was written down in `folder`: the process outside, the first inside, and the name of the
/// cable and the control groups.
fn left(folder: &Path) -> Option<(u32, u32, String)> {
    let text = fs::read_to_string(folder.join(PIDS)).ok()?;
    let mut words = text.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?.to_owned()))
}

/// Whether the process is one that made namespaces for `folder`.
fn is_ours(pid: u32, folder: &Path) -> bool {
    let folder = folder.display().to_string();
    command_line(pid).is_some_and(|line| line.starts_with("unshare ") && line.contains(&folder))
}

/// Waits for the end of the first process inside, whose parent has been killed.
fn gone(init: u32) -> Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    // The program that it is; another's number may be the same by now.
    while command_line(init).is_some_and(|line| line.starts_with("sleep ")) {
        if Instant::now() > deadline {
            bail!("the processes of the node do not end (the first of them is {init})");
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// Waits until the namespaces are made, and gives the process id of the first process inside.
fn wait(init: &mut Process, folder: &Path) -> Result<u32> {
    let deadline = Instant::now() + TIMEOUT;
    while !folder.join("made").exists() {
        init.check()?;
        if Instant::now() > deadline {
            bail!("the node's namespaces are not made:\n{}", tail(&folder.join("machine.log"), 20));
        }
        thread::sleep(POLL);
    }
    let outer = init.id();
    let path = format!("/proc/{outer}/task/{outer}/children");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    text.trim().parse().with_context(|| format!("{path} says {text:?}: one process was expected"))
}
