//! The memory of children: a part of the memory of the host's control group.
//!
//! Compilers that run at once share a half of it. The one child that evaluates schemas may take a
//! sixth. The rest is for the host itself.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Two compilers run at once only if each has this much: guests that bring an interpreter take
/// about as much.
const COMPILER_BYTES_GOOD: u64 = 384 << 20;

/// The most memory of a compiler, on any machine.
const COMPILER_BYTES_MAX: u64 = 4 << 30;

/// The most compilers at once.
const COMPILERS_MAX: usize = 2;

/// The most memory of a child that evaluates schemas.
const VALIDATOR_BYTES_MAX: u64 = 256 << 20;

/// The assumed memory if neither a control group nor the kernel gives it.
const ASSUMED_BYTES: u64 = 2 << 30;

/// A limit of this size or more is none: control groups of version 1 have one if unlimited.
const UNLIMITED: u64 = 1 << 60;

/// The memory of children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Memory of the host, in bytes.
    pub(crate) total: u64,
    /// Compilers that run at once.
    pub(crate) compilers: usize,
    /// Memory of each of them, in bytes.
    pub(crate) compiler_bytes: u64,
    /// Memory of the child that evaluates schemas, in bytes.
    pub(crate) validator_bytes: u64,
}

/// The memory of children of this process.
pub(crate) fn shares() -> Shares {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| machine(&text));
    let limit = limit(&groups, Path::new("/sys/fs/cgroup"));
    Shares::of(limit.into_iter().chain(machine).min().unwrap_or(ASSUMED_BYTES))
}

impl Shares {
    /// The shares of a host that has so much memory, in bytes.
    pub(crate) fn of(total: u64) -> Self {
        let half = total / 2;
        let both = half / COMPILERS_MAX as u64;
        let compilers = if both >= COMPILER_BYTES_GOOD { COMPILERS_MAX } else { 1 };
        Self {
            total,
            compilers,
            compiler_bytes: (half / compilers as u64).min(COMPILER_BYTES_MAX),
            validator_bytes: (total / 6).min(VALIDATOR_BYTES_MAX),
        }
    }
}

/// `MemTotal` of `/proc/meminfo` (proc(5)), in bytes.
fn machine(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// The lowest memory limit of the control groups named in `/proc/self/cgroup` and of those that
/// hold them (cgroups(7), versions 1 and 2), in bytes; `None` without a limit.
fn limit(groups: &str, root: &Path) -> Option<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(hierarchy), Some(controllers), Some(path)) =
            (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (folder, file) = if hierarchy == "0" && controllers.is_empty() {
            (root.to_owned(), "memory.max")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            (root.join("memory"), "memory.limit_in_bytes")
        } else {
            continue;
        };
        // In a container the path may be one of the machine, which is not mounted: then the root of
        // the mount is the container's own group.
        let mut group = PathBuf::new();
        let steps = Path::new(path).components().filter_map(|step| match step {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        limits.extend(read(&folder.join(file)));
        for step in steps {
            group.push(step);
            limits.extend(read(&folder.join(&group).join(file)));
        }
    }
    limits.into_iter().min()
}

fn read(file: &Path) -> Option<u64> {
    // "max" is no number: there is no limit.
    fs::read_to_string(file).ok()?.trim().parse().ok().filter(|limit| *limit < UNLIMITED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn version_2_limit_is_the_lowest_of_the_group_and_those_above() {
        let root = tree(&[
            ("kube/memory.max", "2000\n"),
            ("kube/pod/memory.max", "1000\n"),
            ("kube/pod/one/memory.max", "max\n"),
        ]);
        assert_eq!(limit("0::/kube/pod/one\n", root.path()), Some(1000));
        assert_eq!(limit("0::/kube\n", root.path()), Some(2000));
        assert_eq!(limit("0::/other\n", root.path()), None);
    }

    #[test]
    fn limit_of_a_container_is_at_the_root_of_the_mount() {
        let version_2 = tree(&[("memory.max", "805306368\n")]);
        for groups in ["0::/\n", "0::/../../system.slice/x\n", "0::/kubepods/pod/one\n"] {
            assert_eq!(limit(groups, version_2.path()), Some(768 * MIB), "{groups}");
        }
        let version_1 = tree(&[("memory/memory.limit_in_bytes", "805306368\n")]);
        let groups = "5:cpu,cpuacct:/a\n4:memory:/kubepods/pod/one\n0::/a\n";
        assert_eq!(limit(groups, version_1.path()), Some(768 * MIB));
    }

    #[test]
    fn unlimited_groups_and_texts_of_another_form_are_no_limit() {
        let root = tree(&[
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory.max", "max\n"),
        ]);
        for groups in ["4:memory:/\n0::/\n", "", "nonsense\n::\n0:\n"] {
            assert_eq!(limit(groups, root.path()), None, "{groups}");
        }
    }

    #[test]
    fn children_together_take_two_thirds_at_most() {
        for mebibytes in [64, 256, 768, 1024, 4096, 1 << 20] {
            let shares = Shares::of(mebibytes * MIB);
            let together = shares.compiler_bytes * shares.compilers as u64 + shares.validator_bytes;
            assert!(together <= shares.total / 3 * 2 + 1, "{shares:?}");
        }
        assert_eq!(
            Shares::of(768 * MIB),
            Shares {
                total: 768 * MIB,
                compilers: 1,
                compiler_bytes: 384 * MIB,
                validator_bytes: 128 * MIB
            }
        );
        assert_eq!(Shares::of(1535 * MIB).compilers, 1);
        assert_eq!(Shares::of(1536 * MIB).compilers, 2);
    }

    #[test]
    fn memory_of_the_machine_is_read() {
        assert_eq!(machine("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 * MIB));
        assert_eq!(machine("MemFree: 1 kB\n"), None);
    }
}
