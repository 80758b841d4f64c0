//! The names of a new guest.

use std::path::Path;

use anyhow::bail;
use innkeeper_modules::is_reserved_group;

use super::template::FILES;
use crate::rbac::is_name;

/// The maximum length of the name of a definition, `<plural>.<group>`.
const DEFINITION_MAX: usize = 253;

/// Names with another meaning for Rust or cargo: keywords, and crates that every program has.
const TAKEN: [&str; 59] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
    "build",
    "deps",
    "examples",
];

/// The dependencies of the crate.
const DEPENDENCIES: [&str; 4] = ["innkeeper-sdk", "serde", "schemars", "expect-test"];

/// The names of a new guest.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// The name of the guest, its crate and its Module.
    pub(super) name: String,
    kind: String,
    plural: String,
    group: String,
}

impl Names {
    /// Checks the names. Without a plural, takes the English one of the kind.
    ///
    /// # Errors
    /// The first name that cannot be used, and why.
    pub(super) fn new(
        name: &str,
        kind: &str,
        group: &str,
        plural: Option<&str>,
    ) -> anyhow::Result<Self> {
        check_name(name)?;
        check_kind(kind)?;
        check_group(group)?;
        let plural = plural.map_or_else(|| plural_of(kind), str::to_owned);
        if !is_name(&plural) {
            bail!(
                "{plural:?} is no plural of a kind: it must consist of at most 63 lower-case letters, digits and '-'; give another with --plural"
            );
        }
        if plural.len() + 1 + group.len() > DEFINITION_MAX {
            bail!(
                "--group: the name of the definition, {plural}.GROUP, is longer than {DEFINITION_MAX} characters; use a shorter group"
            );
        }
        let (name, kind, group) = (name.to_owned(), kind.to_owned(), group.to_owned());
        Ok(Self { name, kind, plural, group })
    }

    /// Fills the placeholders of a template.
    pub(super) fn fill(&self, template: &str) -> String {
        [
            ("@name@", self.name.as_str()),
            ("@library@", &self.name.replace('-', "_")),
            ("@kind@", &self.kind),
            ("@singular@", &self.kind.to_lowercase()),
            ("@plural@", &self.plural),
            ("@group@", &self.group),
            ("@rust@", env!("CARGO_PKG_RUST_VERSION")),
        ]
        .iter()
        .fold(template.to_owned(), |text, (token, value)| text.replace(token, value))
    }
}

fn check_name(name: &str) -> anyhow::Result<()> {
    if !is_name(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        bail!(
            "{name:?} is no name for a guest: it must begin with a lower-case letter and consist of at most 63 lower-case letters, digits and '-', with no '-' at the end"
        );
    }
    if TAKEN.contains(&name) {
        bail!("{name:?} has another meaning for Rust or cargo; choose another name");
    }
    if DEPENDENCIES.contains(&name) {
        bail!("{name:?} is the name of a crate that the guest depends on; choose another name");
    }
    Ok(())
}

fn check_kind(kind: &str) -> anyhow::Result<()> {
    let begins = kind.starts_with(|first: char| first.is_ascii_uppercase());
    if !begins || !kind.chars().all(|c| c.is_ascii_alphanumeric()) || kind.len() > 63 {
        bail!(
            "--kind {kind:?} is no kind: it must begin with a capital letter and consist of at most 63 letters and digits, such as Greeting"
        );
    }
    let spec_and_status = [kind.to_owned(), format!("{kind}Spec"), format!("{kind}Status")];
    if let Some(used) = spec_and_status.iter().find(|name| is_in_template(name)) {
        bail!("--kind {kind}: the template has another type {used}; choose another kind");
    }
    Ok(())
}

/// Whether the code of the template uses this name.
fn is_in_template(name: &str) -> bool {
    let is_rust =
        |path: &str| Path::new(path).extension().is_some_and(|extension| extension == "rs");
    let sources = FILES.iter().filter(|(path, _)| is_rust(path));
    sources.flat_map(|(_, text)| text.lines()).any(|line| {
        let code = line.split("//").next().unwrap_or_default();
        code.split(|c: char| !c.is_alphanumeric() && c != '@').any(|word| word == name)
    })
}

fn check_group(group: &str) -> anyhow::Result<()> {
    if !group.contains('.') || !group.split('.').all(is_name) || group.len() > 253 {
        bail!(
            "--group {group:?} is no API group for a custom resource: it must be a DNS name in lower case with a dot, such as example.com"
        );
    }
    if is_reserved_group(group) {
        bail!("--group {group} belongs to Kubernetes or to Innkeeper; use a DNS name that you own");
    }
    Ok(())
}

/// The English plural of a kind, by the common rules.
fn plural_of(kind: &str) -> String {
    let name = kind.to_lowercase();
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if ends(&["s", "x", "z", "ch", "sh"]) {
        return format!("{name}es");
    }
    match name.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{name}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, kind: &str, group: &str) -> String {
        Names::new(name, kind, group, None).unwrap_err().to_string()
    }

    #[test]
    fn name_is_refused_with_the_reason_when_it_cannot_be_used() {
        for (name, why) in [
            ("", "begin with a lower-case letter"),
            ("Hello", "begin with a lower-case letter"),
            ("hello_world", "digits and '-'"),
            ("1st", "begin with a lower-case letter"),
            ("hello-", "no '-' at the end"),
            ("../hello", "digits and '-'"),
            ("match", "another meaning"),
            ("test", "another meaning"),
            ("serde", "depends on"),
        ] {
            let error = refused(name, "Hello", "example.com");
            assert!(error.contains(why), "{name}: {error}");
        }
        for (kind, why) in [
            ("hello", "begin with a capital letter"),
            ("Hello-World", "letters and digits"),
            ("", "begin with a capital letter"),
            ("ConfigMap", "another type ConfigMap"),
            ("Guest", "another type Guest"),
            ("Self", "another type Self"),
        ] {
            let error = refused("hello", kind, "example.com");
            assert!(error.contains(why), "{kind}: {error}");
        }
        for (group, why) in [
            ("example", "with a dot"),
            ("Example.com", "lower case"),
            ("example..com", "DNS name"),
            ("apps.k8s.io", "belongs to Kubernetes"),
            ("innkeeper.dev", "belongs to Kubernetes or to Innkeeper"),
        ] {
            let error = refused("hello", "Hello", group);
            assert!(error.contains(why), "{group}: {error}");
        }
        let error = Names::new("hello", "Hello", "example.com", Some("Hellos")).unwrap_err();
        assert!(error.to_string().contains("--plural"), "{error}");
        let long = format!("{}.com", ["a".repeat(60).as_str(); 4].join("."));
        assert!(refused("hello", "Hello", &long).contains("longer than 253"));
    }

    #[test]
    fn plural_follows_the_common_english_rules() {
        for (kind, plural) in [
            ("Greeting", "greetings"),
            ("Proxy", "proxies"),
            ("Gateway", "gateways"),
            ("Ingress", "ingresses"),
            ("Box", "boxes"),
            ("HTTPCheck", "httpchecks"),
            ("Branch", "branches"),
        ] {
            assert_eq!(plural_of(kind), plural);
        }
    }
}
