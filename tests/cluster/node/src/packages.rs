//! The programs of a node that are not Kubernetes' own, and those of which images are made.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use innkeeper_controlplane::cache_folder;
use innkeeper_images::Sources;
use sha2::{Digest as _, Sha256};

/// What a node runs, each with Debian's package that has it.
const NODE: [(&str, &str); 12] = [
    ("busybox", "busybox-static"),
    ("containerd", "containerd"),
    ("containerd-shim-runc-v2", "containerd"),
    ("docker-registry", "docker-registry"),
    ("host-local", "containernetworking-plugins"),
    ("ip", "iproute2"),
    ("loopback", "containernetworking-plugins"),
    ("nft", "nftables"),
    ("nsenter", "util-linux"),
    ("ptp", "containernetworking-plugins"),
    ("runc", "runc"),
    ("unshare", "util-linux"),
];

/// What images are made of, in addition to that.
const IMAGES: [(&str, &str); 5] = [
    ("find", "findutils"),
    ("flock", "util-linux"),
    ("nginx", "nginx"),
    ("postgres", "postgresql-15"),
    ("setpriv", "util-linux"),
];

/// The programs of Debian's packages: as installed, and where they are not, unpacked in the
/// user's cache folder. Nothing is installed, so no service of the machine is started.
#[derive(Clone, Debug)]
pub struct Packages {
    sources: Sources,
}

impl Packages {
    /// All that a node and its images need. Where a program is missing, Debian's packages are
    /// downloaded and unpacked into the user's cache folder, once. `say` gets a line before.
    ///
    /// # Errors
    /// The packages that are missing, if this is not root on a Debian.
    pub fn find(say: &mut dyn FnMut(&str)) -> Result<Self> {
        let needed: Vec<(&str, &str)> = NODE.into_iter().chain(IMAGES).collect();
        let missing = missing(&Sources::default(), &needed);
        if missing.is_empty() {
            return Ok(Self { sources: Sources::default() });
        }
        let folder = cache_folder()?.join("packages").join(name(&missing));
        let sources = Sources::new(Some(folder.join("root")));
        if !folder.join("complete").is_file() {
            let hint = format!(
                "the node needs Debian's packages {}: install them, or run this as root on \
                 Debian, where they are unpacked into the cache folder and not installed",
                missing.join(" ")
            );
            if !is_root() || Command::new("apt-get").arg("--version").output().is_err() {
                bail!(hint);
            }
            fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
            // Two test programs may come here at once: the second waits, and finds them there.
            let lock = fs::File::create(folder.join("lock"))?;
            lock.lock()?;
            if !folder.join("complete").is_file() {
                say(&format!(
                    "unpacking Debian's {} into {}",
                    missing.join(", "),
                    folder.display()
                ));
                unpack(&folder, &missing).context(hint)?;
                fs::write(folder.join("complete"), "")?;
            }
        }
        let still = self::missing(&sources, &needed);
        if !still.is_empty() {
            bail!(
                "{} were unpacked into {} and something is missing yet: remove that folder and try \
                 again, or install them",
                still.join(", "),
                folder.display()
            );
        }
        Ok(Self { sources })
    }

    /// Where images find their programs.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The folder in which the CNI plugins lie.
    pub(crate) fn cni(&self) -> Result<PathBuf> {
        let plugin = self.sources.program("ptp")?;
        Ok(plugin.parent().map(Path::to_owned).unwrap_or_default())
    }

    /// Lets `command` find programs and libraries, also those that were unpacked.
    pub(crate) fn set(&self, command: &mut Command) {
        let mut path = vec!["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"]
            .into_iter()
            .map(PathBuf::from)
            .collect::<Vec<_>>();
        path.extend([PathBuf::from("/sbin"), PathBuf::from("/bin")]);
        if let Some(root) = self.sources.unpacked() {
            path.extend(["usr/sbin", "usr/bin", "sbin", "bin"].map(|folder| root.join(folder)));
        }
        if let Ok(path) = env::join_paths(path) {
            command.env("PATH", path);
        }
        if let Some(libraries) = self.sources.library_path() {
            command.env("LD_LIBRARY_PATH", libraries);
        }
    }
}

/// The packages of the programs that `sources` has not, each once.
fn missing(sources: &Sources, needed: &[(&'static str, &'static str)]) -> Vec<&'static str> {
    let absent = needed.iter().filter(|(program, _)| sources.find(program).is_none());
    let mut packages: Vec<&str> = absent.map(|(_, package)| *package).collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// The name of the folder of these packages.
fn name(packages: &[&str]) -> String {
    hex::encode(&Sha256::digest(packages.join(" "))[..8])
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Downloads `packages`, with what they need and this machine has not, and unpacks them into
/// `root` in `folder`.
fn unpack(folder: &Path, packages: &[&str]) -> Result<()> {
    let archives = folder.join("archives");
    let root = folder.join("root");
    for made in [&root, &archives] {
        if made.exists() {
            fs::remove_dir_all(made)?;
        }
    }
    fs::create_dir_all(&root)?;
    fs::create_dir_all(archives.join("partial"))?;
    if download(&archives, packages).is_err() {
        // The lists of packages may be old, or absent as in a fresh container.
        run(Command::new("apt-get").args(["-q", "update"]))?;
        download(&archives, packages)?;
    }
    for entry in fs::read_dir(&archives)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            run(Command::new("dpkg-deb").arg("-x").arg(&path).arg(&root))?;
        }
    }
    fs::remove_dir_all(&archives)?;
    Ok(())
}

fn download(archives: &Path, packages: &[&str]) -> Result<()> {
    let mut apt = Command::new("apt-get");
    apt.args(["-q", "-y", "--no-install-recommends", "--download-only", "-o"]);
    apt.arg(format!("Dir::Cache::archives={}", archives.display())).arg("install").args(packages);
    run(apt.env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Runs `command`; an error has its output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = format!(
        "{} {}",
        command.get_program().display(),
        command.get_args().map(|one| one.to_string_lossy()).collect::<Vec<_>>().join(" ")
    );
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("running {line}"))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        bail!("`{line}` failed ({}): {}", output.status, String::from_utf8_lossy(&text).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_named_once_for_all_that_is_missing_of_it() {
        let needed =
            [("no-such-a", "two"), ("no-such-b", "one"), ("no-such-c", "two"), ("sh", "three")];
        assert_eq!(missing(&Sources::default(), &needed), ["one", "two"]);
    }
}
