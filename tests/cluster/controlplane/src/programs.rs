//! Where etcd, kube-apiserver, kube-controller-manager and kubectl come from.

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::Error;

/// The version of Kubernetes that `go.mod` of our Go programs asks for.
const KUBERNETES: &str = "1.35.4";

/// The sources of a Go program, whose digest names its place in the cache.
const SOURCES: [&str; 3] = ["main.go", "go.mod", "go.sum"];

/// The programs of a control plane.
#[derive(Clone, Debug)]
pub enum Programs {
    /// A folder with one executable each, as `setup-envtest` makes it.
    Assets(PathBuf),
    /// One executable whose first argument names the program that it should be.
    One(PathBuf),
}

impl Programs {
    /// `KUBEBUILDER_ASSETS` if it is set, else the program of this repository from the
    /// user's cache, built first if it is not there yet (about 8 minutes with 2 cores,
    /// needs Go). `say` gets a line before something takes long.
    ///
    /// # Errors
    /// If `KUBEBUILDER_ASSETS` is not set and a program is missing that cannot be built.
    pub fn find(say: &mut dyn FnMut(&str)) -> Result<Self, Error> {
        match env::var_os("KUBEBUILDER_ASSETS") {
            Some(folder) if !folder.is_empty() => Ok(Self::Assets(folder.into())),
            _ => cached_or_built(say),
        }
    }

    /// How to run the program `name`; its own arguments come after those given here.
    ///
    /// # Errors
    /// [`Error::Missing`] if a folder of assets does not hold it.
    pub fn command(&self, name: &str) -> Result<Command, Error> {
        match self {
            Self::One(program) => {
                let mut command = Command::new(program);
                command.arg(name);
                Ok(command)
            }
            Self::Assets(folder) => {
                let program = folder.join(name);
                if !program.is_file() {
                    return Err(Error::Missing {
                        what: program.display().to_string(),
                        hint: format!(
                            "KUBEBUILDER_ASSETS names a folder without {name}; put it there, or unset \
                             the variable and Innkeeper builds its own control plane (needs Go)"
                        ),
                    });
                }
                Ok(Command::new(program))
            }
        }
    }
}

/// The user's cache folder for Innkeeper.
///
/// # Errors
/// If the environment has neither `HOME` nor `XDG_CACHE_HOME`.
pub fn cache_folder() -> Result<PathBuf, Error> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    match base {
        Some(base) => Ok(base.join("innkeeper")),
        None => Err(Error::Missing {
            what: "the cache folder".to_owned(),
            hint: "set HOME or XDG_CACHE_HOME".to_owned(),
        }),
    }
}

fn cached_or_built(say: &mut dyn FnMut(&str)) -> Result<Programs, Error> {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let program = GoProgram {
        name: "controlplane",
        what: "the control plane",
        source: &source,
        instead: "or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, \
                  kube-controller-manager and kubectl",
    };
    Ok(Programs::One(program.find(say)?))
}

/// A program of this repository made of the Go modules of Kubernetes.
#[derive(Clone, Copy, Debug)]
pub struct GoProgram<'a> {
    /// Its name, and that of its place in the cache.
    pub name: &'a str,
    /// What it is, for people.
    pub what: &'a str,
    /// The folder with `main.go`, `go.mod` and `go.sum`.
    pub source: &'a Path,
    /// What to do instead of installing Go if there is none; may be empty.
    pub instead: &'a str,
}

impl GoProgram<'_> {
    /// Its path in the user's cache, where it is kept by the digest of its sources; built first
    /// if it is not there yet (about 8 minutes with 2 cores, needs Go). `say` gets a line before.
    ///
    /// # Errors
    /// If its sources cannot be read, or it is missing and cannot be built.
    pub fn find(&self, say: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
        let mut digest = Sha256::new();
        for name in SOURCES {
            let path = self.source.join(name);
            let bytes = fs::read(&path).map_err(Error::file(&path))?;
            digest.update((bytes.len() as u64).to_be_bytes());
            digest.update(&bytes);
        }
        let name = hex::encode(&digest.finalize()[..8]);
        let folder = cache_folder()?.join(self.name).join(name);
        let program = folder.join(self.name);
        if !program.is_file() {
            fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
            // Two test programs may come here at once: the second waits, and finds it built.
            let lock_path = folder.join("lock");
            let lock = fs::File::create(&lock_path).map_err(Error::file(&lock_path))?;
            lock.lock().map_err(Error::file(&lock_path))?;
            if !program.is_file() {
                say(&format!(
                    "building {} (Kubernetes {KUBERNETES}) from Go modules into {}; about 8 min \
                     the first time, never again",
                    self.what,
                    folder.display()
                ));
                self.build(&program)?;
            }
        }
        Ok(program)
    }

    /// Builds to a name next to `program` and renames, so that a build that is cut short
    /// leaves nothing that looks ready.
    fn build(&self, program: &Path) -> Result<(), Error> {
        let unfinished = program.with_extension("unfinished");
        let (major, minor) = KUBERNETES
            .split_once('.')
            .and_then(|(major, rest)| Some((major, rest.split_once('.')?.0)))
            .unwrap_or(("1", "0"));
        // Without these, clients see v0.0.0 and refuse features by version.
        let package = "k8s.io/component-base/version";
        let flags = format!(
            "-s -w -X {package}.gitVersion=v{KUBERNETES} -X {package}.gitMajor={major} \
             -X {package}.gitMinor={minor} -X {package}.gitTreeState=clean"
        );
        let output = Command::new("go")
            .current_dir(self.source)
            .env("CGO_ENABLED", "0")
            .args(["build", "-trimpath", "-ldflags", &flags, "-o"])
            .arg(&unfinished)
            .arg(".")
            .output();
        let output = match output {
            Ok(output) => output,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::Missing {
                    what: "go".to_owned(),
                    hint: format!("install Go 1.25 or later {}", self.instead).trim().to_owned(),
                });
            }
            Err(source) => return Err(Error::System { what: "running go".to_owned(), source }),
        };
        if !output.status.success() {
            let mut text = output.stdout;
            let _ = text.write_all(&output.stderr);
            return Err(Error::Build(format!(
                "go build in {} ended with {}:\n{}",
                self.source.display(),
                output.status,
                String::from_utf8_lossy(&text)
            )));
        }
        fs::rename(&unfinished, program).map_err(Error::file(program))
    }
}
