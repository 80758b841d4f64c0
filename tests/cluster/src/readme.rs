//! The commands that a guest's README gives to its users.

use std::fs;

use anyhow::{Context as _, Result, bail, ensure};

use crate::stage::root;

/// The heading of the section for users who come from the original operator.
pub const ORIGINAL: &str = "Coming from the original";
const BEGIN: &str = "\n```sh\n";
const END: &str = "\n```\n";

/// The blocks of commands in a section of a guest's README. A test names a block by its beginning.
#[derive(Debug)]
pub struct Readme {
    /// The file, as errors name it.
    file: String,
    blocks: Vec<String>,
}

impl Readme {
    /// Reads `guests/GUEST/README.md`, whose section under this heading must have these blocks in
    /// this order.
    ///
    /// # Errors
    /// If the section is missing, or has another block, which the error names by its first line.
    pub fn of(guest: &str, heading: &str, beginnings: &[&str]) -> Result<Self> {
        let file = format!("guests/{guest}/README.md");
        let text = fs::read_to_string(root().join(&file)).with_context(|| file.clone())?;
        Self::parse(file, &text, heading, beginnings)
    }

    fn parse(file: String, text: &str, heading: &str, beginnings: &[&str]) -> Result<Self> {
        let (_, section) = text
            .split_once(&format!("\n## {heading}\n"))
            .with_context(|| format!("{file} has no section `## {heading}`"))?;
        let section = section.split("\n## ").next().unwrap_or_default();
        let blocks = section.split(BEGIN).skip(1).filter_map(|rest| rest.split_once(END));
        let blocks: Vec<_> = blocks.map(|(block, _)| block.to_owned()).collect();
        for (index, block) in blocks.iter().enumerate() {
            let line = first_line(block);
            match beginnings.get(index) {
                Some(beginning) if block.starts_with(beginning) => {}
                Some(beginning) => bail!(
                    "{file}: the block of commands that begins with `{line}` is where the test expects `{}`: add it to the blocks that the test names, or correct their order",
                    first_line(beginning),
                ),
                None => bail!(
                    "{file}: the test does not name the block of commands that begins with `{line}`: add it to the blocks that the test names"
                ),
            }
        }
        if let Some(beginning) = beginnings.get(blocks.len()) {
            bail!(
                "{file} has no block of commands that begins with `{}`: remove it from the blocks that the test names",
                first_line(beginning),
            );
        }
        Ok(Self { file, blocks })
    }

    /// Returns the only block that begins with this text.
    ///
    /// # Errors
    /// If no block or more than one begins with it.
    pub fn block(&self, beginning: &str) -> Result<&str> {
        let mut found = self.blocks.iter().filter(|block| block.starts_with(beginning));
        let block = found.next().with_context(|| {
            format!("{} has no block of commands that begins with `{beginning}`", self.file)
        })?;
        ensure!(
            found.next().is_none(),
            "{} has several blocks of commands that begin with `{beginning}`: give more of it",
            self.file
        );
        Ok(block)
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The beginnings of the blocks in guests/postgres/README.md.
pub mod postgres {
    /// Saves the definition and the `PostgreSQL`s.
    pub const SAVE: &str = "kubectl get crd postgresqls.exp.wheel.jp -o yaml";
    /// Dumps the database of the original's pod and counts its rows.
    pub const DUMP: &str = "kubectl exec deployment/foodb -- pg_dump";
    /// Stops the original.
    pub const STOP: &str = "kubectl --namespace operators scale deployment postgres-operator";
    /// Creates a claim for the dump and a pod that has it.
    pub const CLAIM: &str =
        "kubectl apply -f - <<'EOF'\napiVersion: v1\nkind: PersistentVolumeClaim\n";
    /// Copies the dump to the claim and compares the digests.
    pub const COPY: &str = "kubectl exec -i foodb-original -- sh -c 'cat >/original/foodb.sql";
    /// Names the claim in the `PostgreSQL`.
    pub const NAME_CLAIM: &str = "kubectl delete pod foodb-original\nkubectl patch postgresql";
    /// Installs the module.
    pub const INSTALL: &str = "kubectl apply -f deploy/samples/module-postgres.yaml";
    /// Approves the definition.
    pub const APPROVE: &str = "innkeeper modules approve postgres";
    /// Adopts the original's objects.
    pub const ADOPT: &str = "kubectl annotate pg foodb innkeeper.dev/adopt=true";
    /// Waits until the dump is restored and counts the rows.
    pub const COMPARE: &str =
        "kubectl wait pg foodb --for=jsonpath='{.status.restoredFrom.backup}'";
    /// Removes the consent of [`ADOPT`].
    pub const END: &str = "kubectl annotate pg foodb innkeeper.dev/adopt-";
    /// Copies a file to the backups of a `PostgreSQL` that the guest serves.
    pub const COPY_TO_SERVED: &str = "kubectl apply -f - <<'EOF'\napiVersion: v1\nkind: Pod\n";
    /// Deletes the data of a `PostgreSQL` that the guest serves, which restores the file.
    pub const RESTORE_SERVED: &str = "kubectl delete persistentvolumeclaim foodb-data";
    /// All of them, in order.
    pub const ALL: [&str; 13] = [
        SAVE,
        DUMP,
        STOP,
        CLAIM,
        COPY,
        NAME_CLAIM,
        INSTALL,
        APPROVE,
        ADOPT,
        COMPARE,
        END,
        COPY_TO_SERVED,
        RESTORE_SERVED,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# a\n\n```sh\nother\n```\n\n## Coming from the original\n\n\
        ```sh\nstop one\nstop two\n```\n\n```yaml\na: b\n```\n\n### More\n\n```sh\nstart\n```\n\n\
        ## Development\n\n```sh\nbuild\n```\n";

    fn parsed(beginnings: &[&str]) -> Result<Readme> {
        Readme::parse("README.md".to_owned(), TEXT, ORIGINAL, beginnings)
    }

    fn refused(beginnings: &[&str]) -> String {
        format!("{:#}", parsed(beginnings).unwrap_err())
    }

    #[test]
    fn block_is_found_by_its_beginning() {
        let readme = parsed(&["stop", "start"]).unwrap();
        assert_eq!(readme.block("stop one").unwrap(), "stop one\nstop two");
        assert_eq!(readme.block("start").unwrap(), "start");
        assert!(readme.block("build").is_err(), "it is in another section");
        assert!(format!("{:#}", readme.block("st").unwrap_err()).contains("several blocks"));
    }

    #[test]
    fn block_that_the_test_does_not_name_is_refused_with_its_first_line() {
        assert!(refused(&["start"]).contains("begins with `stop one` is where"));
        assert!(
            refused(&["stop"])
                .contains("does not name the block of commands that begins with `start`")
        );
        assert!(
            refused(&["stop", "start", "end"])
                .contains("no block of commands that begins with `end`")
        );
    }
}
