//! `innkeeper new`: creates the crate of a guest.

mod names;
mod template;

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::out::{self, Page};
use names::Names;
use template::FILES;

/// Arguments of `innkeeper new`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of the guest, its crate and its Module: lower-case letters, digits and '-'.
    name: String,
    /// Kind that the guest reconciles, such as Greeting.
    #[arg(long)]
    kind: String,
    /// API group of the kind: a DNS name that you own, such as example.com.
    #[arg(long)]
    group: String,
    /// Plural of the kind, as in URLs [default: the English plural of the kind].
    #[arg(long)]
    plural: Option<String>,
    /// Folder to create [default: NAME in the current folder].
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// Checkout of Innkeeper whose SDK the crate uses [default: the repository at the tag of this
    /// command's version].
    #[arg(long, value_name = "PATH", env = "INNKEEPER_SDK")]
    sdk: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// If a name cannot be used, the folder is not empty, or a file cannot be written.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let names = Names::new(
        &arguments.name,
        &arguments.kind,
        &arguments.group,
        arguments.plural.as_deref(),
    )?;
    let sdk = match &arguments.sdk {
        Some(path) => sdk_at(path)?,
        None => published_sdk(),
    };
    let folder = arguments.path.clone().unwrap_or_else(|| PathBuf::from(&names.name));
    if is_used(&folder)? {
        bail!(
            "{} exists and is not empty; choose another folder with --path, or remove it",
            folder.display()
        );
    }
    for (path, template) in FILES {
        write_new(&folder.join(path), &names.fill(template).replace("@sdk@", &sdk))?;
    }
    let (name, path) = (&names.name, folder.display());
    let mut page = Page::default();
    page.line(format_args!("Created the crate {name} with {} files in {path}", FILES.len()));
    page.line("Next:");
    page.line(format_args!("  cd {path}"));
    page.line("  cargo test");
    page.line("  innkeeper build");
    page.line(format_args!("  innkeeper render target/components/{name}.wasm -f sample.yaml"));
    page.line("README.md shows how to run the guest on a cluster.");
    out::page(&page)
}

/// The dependency on the SDK of this version, as written in Cargo.toml.
fn published_sdk() -> String {
    let (repository, version) = (env!("CARGO_PKG_REPOSITORY"), env!("CARGO_PKG_VERSION"));
    format!("{{ git = \"{repository}\", tag = \"v{version}\" }}")
}

/// The dependency on the SDK of a checkout.
fn sdk_at(path: &Path) -> anyhow::Result<String> {
    let found = [path.to_owned(), path.join("guests/sdk")].into_iter().find(|folder| {
        fs::read_to_string(folder.join("Cargo.toml"))
            .is_ok_and(|manifest| manifest.contains("name = \"innkeeper-sdk\""))
    });
    let Some(found) = found else {
        bail!(
            "--sdk {}: neither the folder nor its guests/sdk has the crate innkeeper-sdk; give the root of a checkout of Innkeeper",
            path.display()
        );
    };
    let found = found.canonicalize().with_context(|| format!("cannot read {}", found.display()))?;
    let Some(text) = found.to_str() else {
        bail!(
            "--sdk {}: the path is not UTF-8, as Cargo.toml requires; move the checkout",
            found.display()
        );
    };
    // TOML's basic strings have the syntax of JSON strings.
    Ok(format!("{{ path = {} }}", serde_json::to_string(text)?))
}

/// Whether the folder has files that could be overwritten.
fn is_used(folder: &Path) -> anyhow::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) if error.kind() == ErrorKind::NotADirectory => Ok(true),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", folder.display())),
    }
}

fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    let write = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        // Another process may create the same crate.
        OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_no_placeholder_when_filled() {
        let names = Names::new("hello", "Hello", "example.com", None).unwrap();
        for (path, template) in FILES {
            let text = names.fill(template).replace("@sdk@", &published_sdk());
            assert!(!text.contains('@'), "{path}:\n{text}");
        }
    }

    #[test]
    fn sdk_is_of_this_version_unless_a_checkout_is_given() {
        let version = env!("CARGO_PKG_VERSION");
        assert!(published_sdk().contains(&format!("/innkeeper\", tag = \"v{version}\"")));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert_eq!(sdk_at(&root).unwrap(), sdk_at(&root.join("guests/sdk")).unwrap());
        let error = sdk_at(&root.join("host")).unwrap_err().to_string();
        assert!(error.contains("give the root of a checkout"), "{error}");
    }
}
