//! The images that Innkeeper and its tests need.

mod postgres;
mod web;

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::{Image, Run, Sources, Tree};

pub use postgres::postgres;
pub use web::{always200, nginx, page};

/// The user of images that need no other: nobody in particular.
const USER: &str = "65532:65532";

/// The container that holds a pod's namespaces and does nothing.
pub const PAUSE: &str = "innkeeper.test/pause:1";

/// An image that a test may ask for, with the name by which manifests of the sources ask for it.
type Recipe = (&'static str, fn(&Sources) -> Result<Image>);

/// All that a node of the tests can pull, in addition to [`PAUSE`] and [`innkeeper`].
pub const RECIPES: [Recipe; 6] = [
    ("busybox:latest", busybox),
    ("nginx:latest", nginx),
    ("postgres:15", postgres),
    ("quay.io/austincunningham/always200:latest", always200),
    ("quay.io/example/maintenance:latest", |sources| page(sources, "Maintenance Page !")),
    ("quay.io/example/production:latest", |sources| page(sources, "Production Page !")),
];

/// The image of the container that holds a pod together.
///
/// # Errors
/// If busybox or a library of it is not found.
pub fn pause(sources: &Sources) -> Result<Image> {
    let mut tree = Tree::new();
    sources.add(&mut tree, "busybox")?;
    let command = strings(&["/bin/busybox", "sleep", "2147483647"]);
    Image::new(&tree, &Run { command, ..Run::default() })
}

/// busybox with its programs, as the well-known image has them.
///
/// # Errors
/// If busybox or a library of it is not found.
pub fn busybox(sources: &Sources) -> Result<Image> {
    Image::new(&busybox_tree(sources)?, &Run { command: strings(&["sh"]), ..Run::default() })
}

/// Innkeeper itself: the program, the libraries it needs, and the certificates of public
/// authorities. `program` is the one of `cargo build --profile image --bin innkeeper-operator`.
///
/// # Errors
/// If the program, a library of it or the certificates are not found.
pub fn innkeeper(sources: &Sources, program: &Path) -> Result<Image> {
    Image::new(&innkeeper_tree(sources, program)?, &innkeeper_run())
}

/// The files of [`innkeeper`].
///
/// # Errors
/// If the program, a library of it or the certificates are not found.
pub fn innkeeper_tree(sources: &Sources, program: &Path) -> Result<Tree> {
    let mut tree = Tree::new();
    tree.copy("/usr/bin/innkeeper", program)?;
    sources.add_libraries(&mut tree, &[program.to_owned()])?;
    let certificates = "/etc/ssl/certs/ca-certificates.crt";
    let found = sources
        .path(certificates)
        .with_context(|| format!("{certificates} is missing: install ca-certificates"))?;
    tree.copy(certificates, &found)?;
    tree.users(&[("innkeeper", 65532, "/")]);
    Ok(tree)
}

fn innkeeper_run() -> Run {
    Run {
        entrypoint: strings(&["/usr/bin/innkeeper"]),
        command: strings(&["run"]),
        environment: strings(&["SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"]),
        user: USER.to_owned(),
        ..Run::default()
    }
}

/// Only busybox, with a link for each of its programs.
fn busybox_tree(sources: &Sources) -> Result<Tree> {
    let mut tree = Tree::new();
    sources.add(&mut tree, "busybox")?;
    let program = sources.program("busybox")?;
    let output = std::process::Command::new(&program).arg("--list").output();
    let output = output.with_context(|| format!("running {} --list", program.display()))?;
    for name in String::from_utf8_lossy(&output.stdout).lines().filter(|name| *name != "busybox") {
        tree.link(Path::new("/usr/bin").join(name), "busybox");
    }
    tree.users(&[("www-data", 33, "/var/www"), ("nobody", 65534, "/")]);
    Ok(tree)
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail by it")]

    use super::*;

    const CONTAINERFILE: &str = include_str!("../../../../deploy/Containerfile");

    #[test]
    fn the_containerfile_runs_innkeeper_as_the_image_does() {
        let run = innkeeper_run();
        let list = |list: &[String]| serde_json::to_string(list).unwrap();
        for line in [
            format!("ENV {}", run.environment[0]),
            format!("USER {}", run.user),
            format!("ENTRYPOINT {}", list(&run.entrypoint)),
            format!("CMD {}", list(&run.command)),
        ] {
            assert!(CONTAINERFILE.lines().any(|one| one == line), "{line}");
        }
        assert_eq!(run.environment.len(), 1);
    }

    #[test]
    fn innkeepers_image_holds_the_program_its_libraries_and_certificates_and_no_other_program() {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        // Any program with libraries will do.
        let program = std::env::current_exe().unwrap();
        innkeeper_tree(&Sources::default(), &program).unwrap().unfold(&image).unwrap();
        let names = |inside: &str| -> Vec<String> {
            let entries = std::fs::read_dir(image.join(inside)).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        assert_eq!(names("usr/bin"), ["innkeeper"]);
        assert_eq!(names("usr/sbin"), Vec::<String>::new());
        assert!(image.join("etc/ssl/certs/ca-certificates.crt").is_file());
        // It runs with nothing but these files.
        let mut listed = names("lib64");
        listed.extend(names("lib"));
        assert!(listed.iter().any(|name| name.starts_with("ld-linux")), "{listed:?}");
    }
}
