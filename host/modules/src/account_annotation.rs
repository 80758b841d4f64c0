//! Whether a ServiceAccount allows a module to act as it.
//!
//! The creator of a Module chooses its `serviceAccountName`. That alone must not hand over the
//! rights of the account, so each account names the modules that may act as it, in an annotation:
//! the value of a label can hold neither a list nor `*`.

use innkeeper_core::names::is_label;

use crate::module::NAMESPACE;

/// The annotation of a ServiceAccount that names the modules which may act as it, separated by
/// commas; `*` is all.
pub const ALLOWED_MODULES_ANNOTATION: &str = "innkeeper.dev/allowed-modules";

/// The reason of conditions and Events when an account does not allow a module.
pub const NOT_ALLOWED: &str = "AccountNotAllowed";

/// The reason while it is not known yet whether an account allows a module.
pub const UNKNOWN: &str = "AccountUnknown";

/// The most names of other modules that the command in a message repeats.
const REPEATED_MAX: usize = 20;

/// Whether an account with this value of the annotation allows a module.
pub fn allows(annotation: Option<&str>, module: &str) -> bool {
    names(annotation).any(|name| name == "*" || name == module)
}

/// The message that an account does not allow a module, with the command that allows it.
pub fn not_allowed(account: &str, annotation: Option<&str>, module: &str) -> String {
    // Others that are allowed stay so; what is no name does not become part of a command.
    let mut allowed: Vec<&str> = names(annotation).filter(|name| is_label(name)).collect();
    let is_long = allowed.len() > REPEATED_MAX;
    allowed.push(module);
    let why = match annotation {
        None => format!("it has no annotation {ALLOWED_MODULES_ANNOTATION}"),
        Some(_) => format!("its annotation {ALLOWED_MODULES_ANNOTATION} does not name the module"),
    };
    if is_long {
        return format!(
            "ServiceAccount {NAMESPACE}/{account} does not allow module {module} to act as it: {why}; add `,{module}` to the annotation's value with `kubectl -n {NAMESPACE} edit serviceaccount {account}`"
        );
    }
    format!(
        "ServiceAccount {NAMESPACE}/{account} does not allow module {module} to act as it: {why}; allow it with `kubectl -n {NAMESPACE} annotate serviceaccount {account} --overwrite {ALLOWED_MODULES_ANNOTATION}={}`",
        allowed.join(",")
    )
}

/// The message that the account of a module does not exist, with the commands that create it.
pub fn no_account(account: &str, module: &str) -> String {
    format!(
        "ServiceAccount {NAMESPACE}/{account} does not exist: create it with `kubectl -n {NAMESPACE} create serviceaccount {account}`, and allow the module with `kubectl -n {NAMESPACE} annotate serviceaccount {account} {ALLOWED_MODULES_ANNOTATION}={module}`"
    )
}

fn names(annotation: Option<&str>) -> impl Iterator<Item = &str> {
    annotation.into_iter().flat_map(|text| text.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_is_allowed_by_its_whole_name_or_by_a_star() {
        for (annotation, allowed) in [
            (Some("web"), true),
            (Some("*"), true),
            (Some("postgres, web"), true),
            (Some("\n  postgres ,\tweb\r\n"), true),
            (Some("postgres,*"), true),
            (None, false),
            (Some(""), false),
            (Some(","), false),
            (Some("Web"), false),
            (Some("WEB"), false),
            (Some("web2"), false),
            (Some("we"), false),
            (Some("w*"), false),
            (Some("**"), false),
            (Some("web postgres"), false),
            (Some("w eb"), false),
            (Some("\"web\""), false),
            (Some("web;postgres"), false),
            (Some("ｗeb"), false),
        ] {
            assert_eq!(allows(annotation, "web"), allowed, "{annotation:?}");
        }
        // An annotation can be large; all of it counts.
        let mut large = "x,".repeat(512 << 10);
        assert!(!allows(Some(&large), "web"));
        large.push_str("web");
        assert!(allows(Some(&large), "web"));
    }

    #[test]
    fn message_shows_a_command_that_keeps_other_modules_and_quotes_nothing_else() {
        let message = not_allowed("shared", Some("postgres, $(reboot),`x`"), "web");
        assert!(
            message.ends_with("--overwrite innkeeper.dev/allowed-modules=postgres,web`"),
            "{message}"
        );
        assert!(!message.contains("reboot"), "{message}");
        let message = not_allowed("web", None, "web");
        assert!(
            message.contains("it has no annotation innkeeper.dev/allowed-modules"),
            "{message}"
        );
        let message = not_allowed("web", Some(&"a,".repeat(100_000)), "web");
        assert!(message.len() < 500, "{}", message.len());
        // A command that names this module alone would withdraw the permission of all others.
        assert!(
            !message.contains("--overwrite")
                && message.contains("kubectl -n innkeeper-modules edit")
        );
        assert!(no_account("web", "web").contains("create serviceaccount web`"));
    }
}
