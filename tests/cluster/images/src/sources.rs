//! Where the programs of this machine lie.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::Tree;

/// Folders of programs, in addition to those of `PATH`: an ordinary user's `PATH` lacks some.
const FOLDERS: [&str; 9] = [
    "usr/local/sbin",
    "usr/local/bin",
    "usr/sbin",
    "usr/bin",
    "sbin",
    "bin",
    "usr/lib/cni",
    "opt/cni/bin",
    "usr/lib/postgresql/15/bin",
];

/// Where programs are looked for: first on the machine as it is, then in a folder with the files
/// of packages that were unpacked and not installed.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    unpacked: Option<PathBuf>,
}

impl Sources {
    /// The machine, and the folder that stands for its root in what was unpacked.
    pub fn new(unpacked: Option<PathBuf>) -> Self {
        Self { unpacked }
    }

    /// The program `name`, if it is there.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        let path = env::var_os("PATH").unwrap_or_default();
        let mut places: Vec<PathBuf> = env::split_paths(&path).collect();
        for root in [Some(Path::new("/")), self.unpacked.as_deref()].into_iter().flatten() {
            places.extend(FOLDERS.iter().map(|folder| root.join(folder)));
        }
        places.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
    }

    /// The program `name`.
    ///
    /// # Errors
    /// If it is nowhere.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        self.find(name).with_context(|| format!("the program {name} is missing: install it"))
    }

    /// A file or folder by its usual path, as `/usr/share/postgresql`; if it is there.
    pub fn path(&self, usual: &str) -> Option<PathBuf> {
        let inside = usual.trim_start_matches('/');
        let roots = [Some(Path::new("/")), self.unpacked.as_deref()];
        roots.into_iter().flatten().map(|root| root.join(inside)).find(|path| path.exists())
    }

    /// Where what was unpacked lies, if something was.
    pub fn unpacked(&self) -> Option<&Path> {
        self.unpacked.as_deref()
    }

    /// Where the loader looks for libraries in addition to its usual folders.
    pub fn library_path(&self) -> Option<String> {
        let root = self.unpacked.as_ref()?;
        let triple = format!("{}-linux-gnu", env::consts::ARCH);
        let folder = |above: &str| root.join(above).join(&triple).display().to_string();
        Some(format!("{}:{}", folder("usr/lib"), folder("lib")))
    }

    /// Puts the program `name` into `tree`, at `/usr/bin/<name>`, with the libraries it needs.
    ///
    /// # Errors
    /// If the program or a library of it is not found.
    pub fn add(&self, tree: &mut Tree, name: &str) -> Result<()> {
        let program = self.program(name)?;
        tree.copy(Path::new("/usr/bin").join(name), &program)?;
        self.add_libraries(tree, &[program])
    }

    /// Puts into `tree` the libraries that `files` (programs or libraries) need.
    ///
    /// # Errors
    /// If `ldd` cannot be run, or a library is not found.
    pub fn add_libraries(&self, tree: &mut Tree, files: &[PathBuf]) -> Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        let mut command = Command::new("ldd");
        command.args(files);
        if let Some(path) = self.library_path() {
            command.env("LD_LIBRARY_PATH", path);
        }
        let output = command.output().context("running ldd")?;
        // It fails for a program without libraries, which is none to worry about; ldd names
        // a library that it does not find on standard output.
        for library in libraries(&String::from_utf8_lossy(&output.stdout))? {
            tree.copy(self.in_image(&library), &library)?;
        }
        Ok(())
    }

    /// Where a file of this machine lies in an image.
    fn in_image(&self, path: &Path) -> PathBuf {
        let inside = self.unpacked.as_ref().and_then(|root| path.strip_prefix(root).ok());
        inside.map_or_else(|| path.to_owned(), |inside| Path::new("/").join(inside))
    }
}

/// The libraries that `ldd` names, as in `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)`.
fn libraries(output: &str) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    for line in output.lines() {
        if line.contains("=> not found") {
            bail!("a library is missing: {}", line.trim());
        }
        let Some((path, _)) = line.trim().rsplit_once(" (0x") else { continue };
        let path = path.split_once(" => ").map_or(path, |(_, path)| path);
        if path.starts_with('/') {
            found.insert(path.into());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail by it")]

    use super::*;

    #[test]
    fn libraries_are_those_with_a_path_and_a_missing_one_is_an_error() {
        let output = "/usr/bin/a:\n\tlinux-vdso.so.1 (0x00007f)\n\tlibz.so.1 => /lib/libz.so.1 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n/usr/bin/b:\n\tnot a dynamic executable\n";
        let paths: Vec<String> =
            libraries(output).unwrap().iter().map(|path| path.display().to_string()).collect();
        assert_eq!(paths, ["/lib/libz.so.1", "/lib64/ld-linux-x86-64.so.2"]);
        let error = libraries("\tlibz.so.1 => not found\n").unwrap_err().to_string();
        assert_eq!(error, "a library is missing: libz.so.1 => not found");
    }
}
