//! The names of a new guest.

use std::path::Path;

use anyhow::bail;
use innkeeper_core::names::is_label;
use innkeeper_modules::is_reserved_group;
use innkeeper_simulator::builtin_kinds;

use super::language::Language;
use super::plural::plural_of;
use super::purpose::Purpose;
use super::template::{RENAMED, files};

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

/// The version of a new kind.
const VERSION: &str = "v1alpha1";

/// The names of a new guest, and what it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// The name of the guest, its crate and its Module.
    pub(super) name: String,
    kind: String,
    plural: String,
    /// The group of the kind; empty for the core group.
    group: String,
    version: String,
    is_cluster_scoped: bool,
    /// Whether this is a kind of Kubernetes whose objects have a namespace.
    is_known_to_be_namespaced: bool,
    purpose: Purpose,
    /// The language of the guest.
    pub(super) language: Language,
}

impl Names {
    /// Checks the names of a guest with a kind of its own. Without a plural, takes the English one
    /// of the kind.
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
        check_kind(kind, Purpose::Reconciles)?;
        check_group(group)?;
        let plural = plural.map_or_else(|| plural_of(kind), str::to_owned);
        if !is_label(&plural) {
            bail!(
                "{plural:?} is no plural of a kind: it must consist of at most 63 lower-case letters, digits and '-'; give another with --plural"
            );
        }
        if plural.len() + 1 + group.len() > DEFINITION_MAX {
            bail!(
                "--group: the name of the definition, {plural}.GROUP, is longer than {DEFINITION_MAX} characters; use a shorter group"
            );
        }
        Ok(Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            plural,
            group: group.to_owned(),
            version: VERSION.to_owned(),
            is_cluster_scoped: false,
            is_known_to_be_namespaced: false,
            purpose: Purpose::Reconciles,
            language: Language::Rust,
        })
    }

    /// Checks the names of a guest that decorates the kind of somebody else, given as
    /// APIVERSION/KIND. Plural and scope of Kubernetes' own kinds are known.
    ///
    /// # Errors
    /// The first name that cannot be used, and why.
    pub(super) fn decorating(
        name: &str,
        decorated: &str,
        plural: Option<&str>,
    ) -> anyhow::Result<Self> {
        check_name(name)?;
        let parts: Vec<&str> = decorated.split('/').collect();
        let (group, version, kind) = match *parts {
            [version, kind] => ("", version, kind),
            [group, version, kind] => (group, version, kind),
            _ => bail!(
                "--decorates {decorated:?} is no kind: give APIVERSION/KIND, such as apps/v1/StatefulSet or v1/Namespace"
            ),
        };
        let is_version = version.starts_with('v') && is_label(version);
        if !is_version || !(group.is_empty() || group.split('.').all(is_label)) {
            bail!(
                "--decorates {decorated:?}: {:?} is no API version, such as apps/v1 or v1",
                decorated.trim_end_matches(kind).trim_end_matches('/')
            );
        }
        check_kind(kind, Purpose::Decorates)?;
        let builtin = builtin_kinds(group).into_iter().find(|one| one.kind == kind);
        let plural = match (plural, &builtin) {
            (Some(plural), _) => plural.to_owned(),
            (None, Some(builtin)) => builtin.plural.clone(),
            (None, None) => plural_of(kind),
        };
        if !is_label(&plural) {
            bail!("{plural:?} is no plural of a kind; give another with --plural");
        }
        Ok(Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            plural,
            group: group.to_owned(),
            version: version.to_owned(),
            is_cluster_scoped: builtin.as_ref().is_some_and(|one| !one.namespaced),
            is_known_to_be_namespaced: builtin.is_some_and(|one| one.namespaced),
            purpose: Purpose::Decorates,
            language: Language::Rust,
        })
    }

    /// Checks the name of a policy. It reviews kinds of Kubernetes, and has none of its own.
    ///
    /// # Errors
    /// If the name cannot be used, and why; or if there is no template in the language.
    pub(super) fn reviewing(name: &str, language: Language) -> anyhow::Result<Self> {
        check_name(name)?;
        if language != Language::Rust {
            bail!(
                "--policy: a policy is written in Rust, since the SDK for {} does not export the interface of policies yet; leave --language out",
                language.name()
            );
        }
        Ok(Self {
            name: name.to_owned(),
            kind: String::new(),
            plural: String::new(),
            group: String::new(),
            version: String::new(),
            is_cluster_scoped: false,
            is_known_to_be_namespaced: false,
            purpose: Purpose::Reviews,
            language,
        })
    }

    /// Checks that `--cluster-scoped` may be given for the kind.
    ///
    /// # Errors
    /// If it is a kind of Kubernetes whose objects have a namespace.
    pub(super) fn check_cluster_scoped(&self) -> anyhow::Result<()> {
        if self.is_known_to_be_namespaced {
            bail!("--cluster-scoped: each {} has a namespace; leave the flag out", self.kind);
        }
        Ok(())
    }

    /// The same for a guest in this language, whose kind is cluster-scoped if asked for.
    pub(super) fn with(mut self, language: Language, is_cluster_scoped: bool) -> Self {
        self.language = language;
        self.is_cluster_scoped |= is_cluster_scoped;
        self
    }

    /// The commands that test, build and try the guest.
    pub(super) fn first_commands(&self) -> Vec<String> {
        let tries: &[&str] = match self.purpose {
            Purpose::Reviews => &[
                "innkeeper review @component@ -f module.yaml -f sample.yaml",
                "innkeeper test tests/scenarios",
            ],
            _ => &["innkeeper render @component@ -f sample.yaml"],
        };
        self.language.first_commands().iter().chain(tries).map(|line| self.fill(line)).collect()
    }

    /// The path of the component.
    pub(super) fn component(&self) -> String {
        match self.language {
            Language::Rust | Language::Go => format!("target/components/{}.wasm", self.name),
            _ => format!("{}.wasm", self.name),
        }
    }

    /// The files of the guest: paths and texts.
    pub(super) fn files(&self) -> Vec<(&'static str, String)> {
        let templates = files(self.language, self.purpose).into_iter();
        templates
            .map(|(path, template)| {
                let renamed = RENAMED.iter().filter(|(file, _, _)| *file == path);
                let text =
                    renamed.fold(template.to_owned(), |text, (_, old, new)| text.replace(old, new));
                (path, self.fill(&self.chosen(&text)))
            })
            .collect()
    }

    /// The lines of a template for guests like this one.
    fn chosen(&self, template: &str) -> String {
        let holds = |flag: &str| {
            Some(match flag {
                "cluster" => self.is_cluster_scoped,
                "namespaced" => !self.is_cluster_scoped,
                "decorator" => self.purpose == Purpose::Decorates,
                "reconciler" => self.purpose == Purpose::Reconciles,
                "policy" => self.purpose == Purpose::Reviews,
                "python" => self.language == Language::Python,
                "javascript" => self.language == Language::Javascript,
                "typescript" => self.language == Language::Typescript,
                "go" => self.language == Language::Go,
                _ => return None,
            })
        };
        let mut chosen = String::new();
        for line in template.lines() {
            let flags = line.strip_prefix('@').and_then(|rest| rest.split_once('@'));
            let flags = flags.and_then(|(flags, text)| {
                let all = flags.split('_').map(holds).collect::<Option<Vec<bool>>>()?;
                Some((all.into_iter().all(|holds| holds), text))
            });
            let (is_chosen, text) = flags.unwrap_or((true, line));
            if is_chosen {
                chosen.push_str(text);
                chosen.push('\n');
            }
        }
        chosen
    }

    /// Fills the placeholders of a template.
    fn fill(&self, template: &str) -> String {
        let api_version = match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        };
        [
            ("@api_version@", api_version.as_str()),
            ("@language@", self.language.name()),
            ("@component@", &self.component()),
            ("@scope@", if self.is_cluster_scoped { "Cluster" } else { "Namespaced" }),
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
    if !is_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
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

fn check_kind(kind: &str, purpose: Purpose) -> anyhow::Result<()> {
    let begins = kind.starts_with(|first: char| first.is_ascii_uppercase());
    if !begins || !kind.chars().all(|c| c.is_ascii_alphanumeric()) || kind.len() > 63 {
        bail!(
            "--kind {kind:?} is no kind: it must begin with a capital letter and consist of at most 63 letters and digits, such as Greeting"
        );
    }
    let spec_and_status = [kind.to_owned(), format!("{kind}Spec"), format!("{kind}Status")];
    if let Some(used) = spec_and_status.iter().find(|name| is_in_template(name, purpose)) {
        bail!("--kind {kind}: the template has another type {used}; choose another kind");
    }
    Ok(())
}

/// Whether the code of the template uses this name, in any language.
fn is_in_template(name: &str, purpose: Purpose) -> bool {
    let is_rust =
        |path: &str| Path::new(path).extension().is_some_and(|extension| extension == "rs");
    let has_name = |code: &str| {
        code.split(|c: char| !c.is_alphanumeric() && c != '@').any(|word| word == name)
    };
    let rust = files(Language::Rust, purpose);
    let sources = rust.iter().filter(|(path, _)| is_rust(path));
    let mut rust = sources
        .flat_map(|(_, text)| text.lines())
        .map(|line| line.split("//").next().unwrap_or_default());
    let others = [Language::Python, Language::Typescript].map(|other| files(other, purpose));
    let logic = others.iter().flatten().filter(|(path, _)| path.contains("logic."));
    let mut imports = logic
        .flat_map(|(_, text)| text.lines())
        .filter(|line| line.contains("import ") && line.contains("innkeeper"));
    rust.any(has_name) || imports.any(has_name)
}

fn check_group(group: &str) -> anyhow::Result<()> {
    if !group.contains('.') || !group.split('.').all(is_label) || group.len() > 253 {
        bail!(
            "--group {group:?} is no API group for a custom resource: it must be a DNS name in lower case with a dot, such as example.com"
        );
    }
    if is_reserved_group(group) {
        bail!("--group {group} belongs to Kubernetes or to Innkeeper; use a DNS name that you own");
    }
    Ok(())
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
            ("Kind", "another type Kind"),
            ("KubeObject", "another type KubeObject"),
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
        let decorated =
            |kind: &str| Names::decorating("hello", kind, None).unwrap_err().to_string();
        for (kind, why) in [
            ("StatefulSet", "give APIVERSION/KIND"),
            ("apps/StatefulSet", "is no API version"),
            ("Apps/v1/StatefulSet", "is no API version"),
            ("apps/v1/statefulset", "begin with a capital letter"),
            ("example.com/v1/Policy", "another type Policy"),
        ] {
            let error = decorated(kind);
            assert!(error.contains(why), "{kind}: {error}");
        }
        let long = format!("{}.com", ["a".repeat(60).as_str(); 4].join("."));
        assert!(refused("hello", "Hello", &long).contains("longer than 253"));
    }

    #[test]
    fn plural_and_scope_of_a_decorated_kind_are_those_of_kubernetes() {
        let names = |kind: &str| Names::decorating("hello", kind, None).unwrap();
        let set = names("apps/v1/StatefulSet");
        assert_eq!((set.plural.as_str(), set.is_cluster_scoped), ("statefulsets", false));
        let namespace = names("v1/Namespace");
        assert_eq!((namespace.plural.as_str(), namespace.is_cluster_scoped), ("namespaces", true));
        let error = set.check_cluster_scoped().unwrap_err().to_string();
        assert!(error.contains("each StatefulSet has a namespace"), "{error}");
        assert!(namespace.check_cluster_scoped().is_ok());
        let policies = names("networking.k8s.io/v1/NetworkPolicy");
        assert_eq!(policies.plural, "networkpolicies");
        assert!(names("example.com/v1/Proxy").check_cluster_scoped().is_ok());
        let custom = names("example.com/v1/Proxy").with(Language::Rust, true);
        assert_eq!((custom.plural.as_str(), custom.is_cluster_scoped), ("proxies", true));
    }

    #[test]
    fn policy_in_another_language_is_refused_with_the_reason() {
        let names = |language| Names::reviewing("hello", language);
        assert!(names(Language::Rust).is_ok());
        for (language, name) in [(Language::Go, "Go"), (Language::Typescript, "TypeScript")] {
            let error = names(language).unwrap_err().to_string();
            assert!(error.contains(&format!("since the SDK for {name} does not")), "{error}");
        }
        assert!(Names::reviewing("Hello", Language::Rust).is_err());
    }

    #[test]
    fn line_with_flags_is_only_for_guests_that_have_all_of_them() {
        let names = Names::new("hello", "Hello", "example.com", None).unwrap();
        let template =
            "@name@ a\n@cluster@b\n@namespaced@c\n@python_reconciler@d\n@python_decorator@e\n";
        assert_eq!(names.chosen(template), "@name@ a\nc\n");
        let names = names.with(Language::Python, true);
        assert_eq!(names.chosen(template), "@name@ a\nb\nd\n");
    }
}
