use crate::PostgreSQL;

/// The commands that save rows that may be nowhere but in the pod, and load them again.
pub(crate) struct LastCopy {
    /// Writes the rows to a local file.
    pub(crate) save: String,
    /// Replaces the pod.
    pub(crate) replace: String,
    /// Loads the file.
    pub(crate) load: String,
}

impl LastCopy {
    /// Returns the commands for the server of a `PostgreSQL`.
    pub(crate) fn of(postgres: &PostgreSQL) -> Self {
        let name = &postgres.metadata.name;
        let to = format!("-U {} -d {}", quoted(&postgres.spec.user), quoted(&postgres.spec.db));
        let exec = format!("deployment/{name} -c postgres --");
        Self {
            save: format!("kubectl exec {exec} pg_dump -Fc {to} >{name}.dump"),
            replace: format!("kubectl rollout restart deployment {name}"),
            load: format!("kubectl exec -i {exec} pg_restore {to} <{name}.dump"),
        }
    }

    /// Returns what a person has to do whose pod cannot be replaced without a loss.
    pub(crate) fn advice(&self, before: Option<&str>) -> String {
        let Self { save, replace, load } = self;
        let before = before.map(|command| format!("`{command}`, ")).unwrap_or_default();
        format!(
            "each new pod would lack the rows, so first save them: run `{save}`; only with that file run {before}`{replace}`, wait for the new pod, and run `{load}`",
        )
    }
}

/// The text as one word of a POSIX shell.
fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_special_characters_is_one_word_of_the_shell() {
        assert_eq!(quoted("foo_1"), "foo_1");
        assert_eq!(quoted("a; rm -rf ~"), "'a; rm -rf ~'");
        assert_eq!(quoted("a'$(b)"), r"'a'\''$(b)'");
    }
}
