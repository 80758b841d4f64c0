//! The names of a new guest: what they may be, and what is made from them.

use std::path::Path;

use anyhow::bail;
use innkeeper_modules::is_reserved_group;

use super::template::FILES;
use crate::rbac::is_name;

/// The longest name of a definition, `<plural>.<group>`.
const DEFINITION_MAX: usize = 253;

/// What Rust or cargo has another use for: keywords, and crates that every program knows.
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

/// What the crate depends on.
const DEPENDENCIES: [&str; 4] = ["innkeeper-sdk", "serde", "schemars", "expect-test"];

/// The names of a new guest.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Of the guest, its crate and its Module.
    pub(super) name: String,
    kind: String,
    plural: String,
    group: String,
}

impl Names {
    /// Checks the names; the plural is made from the kind if it is not given.
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
                "the plural {plural:?} is not a name of Kubernetes (lower-case letters, digits and '-', at most 63): give one with --plural"
            );
        }
        if plural.len() + 1 + group.len() > DEFINITION_MAX {
            bail!(
                "--group: with it the definition's name, {plural}.GROUP, is longer than {DEFINITION_MAX} characters"
            );
        }
        let (name, kind, group) = (name.to_owned(), kind.to_owned(), group.to_owned());
        Ok(Self { name, kind, plural, group })
    }

    /// The text of a template with the names in it.
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
            "the name {name:?} cannot be that of a crate and a Module: it has to begin with a lower-case letter and to consist of lower-case letters, digits and '-', at most 63, with no '-' at the end"
        );
    }
    if TAKEN.contains(&name) {
        bail!("the name {name:?} has another meaning for Rust or cargo: choose another");
    }
    if DEPENDENCIES.contains(&name) {
        bail!("the name {name:?} is that of a crate which the guest depends on: choose another");
    }
    Ok(())
}

fn check_kind(kind: &str) -> anyhow::Result<()> {
    let begins = kind.starts_with(|first: char| first.is_ascii_uppercase());
    if !begins || !kind.chars().all(|c| c.is_ascii_alphanumeric()) || kind.len() > 63 {
        bail!(
            "--kind {kind:?} is not a kind's name: it has to begin with a capital and to consist of letters and digits, at most 63, as in Greeting"
        );
    }
    let spec_and_status = [kind.to_owned(), format!("{kind}Spec"), format!("{kind}Status")];
    if let Some(used) = spec_and_status.iter().find(|name| code_says(name)) {
        bail!("--kind {kind}: the guest's code has another type {used}: choose another kind");
    }
    Ok(())
}

/// Whether the code of a new crate has this name for something else.
fn code_says(name: &str) -> bool {
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
            "--group {group:?} is not a group for a kind of one's own: it has to be a DNS name with a dot, in lower case, as in example.com"
        );
    }
    if is_reserved_group(group) {
        bail!("--group {group} belongs to Kubernetes or to Innkeeper: use one of your own");
    }
    Ok(())
}

/// The plural of a kind's name, as English makes it mostly.
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
    fn names_that_cannot_be_used_are_refused_with_the_reason() {
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
            let told = refused(name, "Hello", "example.com");
            assert!(told.contains(why), "{name}: {told}");
        }
        for (kind, why) in [
            ("hello", "begin with a capital"),
            ("Hello-World", "letters and digits"),
            ("", "begin with a capital"),
            ("ConfigMap", "another type ConfigMap"),
            ("Guest", "another type Guest"),
            ("Self", "another type Self"),
        ] {
            let told = refused("hello", kind, "example.com");
            assert!(told.contains(why), "{kind}: {told}");
        }
        for (group, why) in [
            ("example", "with a dot"),
            ("Example.com", "lower case"),
            ("example..com", "DNS name"),
            ("apps.k8s.io", "belongs to Kubernetes"),
            ("innkeeper.dev", "belongs to Kubernetes or to Innkeeper"),
        ] {
            let told = refused("hello", "Hello", group);
            assert!(told.contains(why), "{group}: {told}");
        }
        let told = Names::new("hello", "Hello", "example.com", Some("Hellos")).unwrap_err();
        assert!(told.to_string().contains("--plural"), "{told}");
        let long = format!("{}.com", ["a".repeat(60).as_str(); 4].join("."));
        assert!(refused("hello", "Hello", &long).contains("longer than 253"));
    }

    #[test]
    fn plurals_are_as_in_english_mostly() {
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
