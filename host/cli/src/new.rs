//! `innkeeper new`: creates the crate of a guest.

pub(crate) mod language;
mod names;
mod plural;
mod purpose;
mod template;

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::out::{self, Page};
use language::Language;
use names::Names;

/// Arguments of `innkeeper new`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Name of the guest, its crate and its Module: lower-case letters, digits and '-'.
    name: String,
    /// Kind that the guest reconciles and installs, such as Greeting.
    #[arg(long, required_unless_present_any = ["decorates", "policy"])]
    kind: Option<String>,
    /// API group of the kind: a DNS name that you own, such as example.com.
    #[arg(long, required_unless_present_any = ["decorates", "policy"])]
    group: Option<String>,
    /// Kind of Kubernetes or of another controller that the guest decorates, instead of a kind of
    /// its own: apps/v1/StatefulSet, for example.
    #[arg(long, value_name = "APIVERSION/KIND", conflicts_with_all = ["kind", "group"])]
    decorates: Option<String>,
    /// Create a policy in Rust, which reviews requests, instead of a guest that reconciles a kind.
    #[arg(long, conflicts_with_all = ["kind", "group", "decorates", "cluster_scoped", "plural"])]
    policy: bool,
    /// The objects of the kind have no namespace. Known for the kinds of Kubernetes.
    #[arg(long)]
    cluster_scoped: bool,
    /// Language of the guest.
    #[arg(long, value_enum, default_value = "rust")]
    language: Language,
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
    let plural = arguments.plural.as_deref();
    let names = match &arguments.decorates {
        _ if arguments.policy => Names::reviewing(&arguments.name, arguments.language)?,
        Some(decorated) => Names::decorating(&arguments.name, decorated, plural)?,
        None => Names::new(
            &arguments.name,
            arguments.kind.as_deref().unwrap_or_default(),
            arguments.group.as_deref().unwrap_or_default(),
            plural,
        )?,
    };
    if arguments.cluster_scoped {
        names.check_cluster_scoped()?;
    }
    let names = names.with(arguments.language, arguments.cluster_scoped);
    let sdk = match &arguments.sdk {
        _ if names.language != Language::Rust => String::new(),
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
    let files = names.files();
    for (path, text) in &files {
        write_new(&folder.join(path), &text.replace("@sdk@", &sdk))?;
    }
    let (name, path) = (&names.name, folder.display());
    let mut page = Page::default();
    page.line(format_args!(
        "Created the {} {name} with {} files in {path}",
        names.language.unit(),
        files.len()
    ));
    page.line("Next:");
    page.line(format_args!("  cd {path}"));
    for line in names.first_commands() {
        page.line(format_args!("  {line}"));
    }
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
        let reconciler = || Names::new("hello", "Hello", "example.com", None).unwrap();
        let decorator = || Names::decorating("hello", "apps/v1/StatefulSet", None).unwrap();
        let policy = || Names::reviewing("hello", Language::Rust).unwrap();
        for language in [Language::Rust, Language::Python, Language::Javascript, Language::Go] {
            for is_cluster in [false, true] {
                for names in [reconciler(), decorator(), policy()] {
                    for (path, text) in names.with(language, is_cluster).files() {
                        let text = text.replace("@sdk@", &published_sdk());
                        // A placeholder is one word between two signs.
                        let mut words =
                            text.split(|c: char| !(c.is_alphanumeric() || "@_".contains(c)));
                        let left =
                            words.find(|word| word.len() > 2 && word.matches('@').count() > 1);
                        assert_eq!(left, None, "{path}:\n{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn files_of_the_examples_have_the_names_of_the_new_guest() {
        for (language, paths) in [
            (Language::Python, &["guest.py"][..]),
            (Language::Javascript, &["build.mjs", "guest.js", "package.json", "package-lock.json"]),
        ] {
            let names = Names::new("hello", "Hello", "example.com", None).unwrap();
            let files = names.with(language, false).files();
            for path in paths {
                let (_, text) = files.iter().find(|(one, _)| one == path).unwrap();
                for old in ["quota", "labels", "../"] {
                    assert!(!text.contains(old), "{path} has {old}:\n{text}");
                }
            }
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
