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

/// All that a node of the tests can pull, besides [`PAUSE`] and [`innkeeper`].
pub const RECIPES: [Recipe; 6] = [
    ("busybox:latest", busybox),
    ("nginx:latest", nginx),
    ("postgres:15", postgres),
    ("quay.io/austincunningham/always200:latest", always200),
    ("quay.io/example/maintenance:latest", |sources| page(sources, "Maintenance Page !")),
    ("quay.io/example/production:latest", |sources| page(sources, "Production Page !")),
];

/// What holds a pod together.
pub fn pause(sources: &Sources) -> Result<Image> {
    let mut tree = Tree::new();
    sources.add(&mut tree, "busybox")?;
    let command = strings(&["/bin/busybox", "sleep", "2147483647"]);
    Image::new(&tree, &Run { command, ..Run::default() })
}

/// busybox with its programs, as the well-known image has them.
pub fn busybox(sources: &Sources) -> Result<Image> {
    Image::new(&busybox_tree(sources)?, &Run { command: strings(&["sh"]), ..Run::default() })
}

/// Innkeeper itself: the program, the libraries it needs, and the certificates of public
/// authorities. `program` is the one that `cargo build --release` has made.
pub fn innkeeper(sources: &Sources, program: &Path) -> Result<Image> {
    Image::new(&innkeeper_tree(sources, program)?, &innkeeper_run())
}

/// The files of [`innkeeper`].
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
