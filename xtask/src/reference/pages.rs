//! The pages: which documents each has, and what stands above them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::markdown::{self, Style};
use super::sections;
use crate::command::root;

/// The first line of each page.
const MARK: &str = "<!-- Made by `cargo xtask reference` from the schemas; do not edit. -->";

/// The definition of the Module.
const CRD: &str = "deploy/crds/modules.innkeeper.dev.yaml";

/// A page.
struct Page {
    /// Its name, without the extension.
    name: &'static str,
    title: &'static str,
    intro: &'static str,
    documents: &'static [Document],
}

/// A document that a page describes.
pub(super) struct Document {
    /// The title of its first section.
    pub(super) title: &'static str,
    pub(super) schema: Schema,
    /// The file with the example, in xtask/src/reference/examples.
    pub(super) example: &'static str,
    /// Whether the host writes it.
    written_by_host: bool,
}

/// Where the schema of a document is.
pub(super) enum Schema {
    /// A field of the Module's definition, and of the example.
    Crd,
    /// A file in wit/schema.
    Contract(&'static str),
}

const PAGES: [Page; 6] = [
    Page {
        name: "module",
        title: "Module: spec",
        intro: "\
For platform engineers who configure a module: all fields of `spec` of a Module
(`innkeeper.dev/v1alpha1`, cluster-scoped). `kubectl explain module.spec` prints the same
descriptions. [modules.md](../modules.md) describes the lifecycle of a module,
[policies.md](../policies.md) its policy, and [module-status.md](module-status.md) what the host
writes into `status`.

The name of a Module has at most 63 characters: lower case letters, digits and `-`, beginning and
ending with a letter or a digit. A quantity is a number of bytes, or one with `k`, `M`, `G`, `Ki`,
`Mi` or `Gi`. A duration has numbers with `h`, `m`, `s` or `ms`, largest first.

In a file of `innkeeper run --modules DIR`, `source` has the field `file` instead of `configMap`,
with the path of the component, and `serviceAccountName` may be left out.",
        documents: &[Document {
            title: "spec",
            schema: Schema::Crd,
            example: "module.yaml",
            written_by_host: false,
        }],
    },
    Page {
        name: "module-status",
        title: "Module: status",
        intro: "\
For platform engineers who read what a module does: all fields of `status` of a Module. The host
writes them, and leaves out empty ones. `kubectl explain module.status` prints the same
descriptions; `innkeeper modules describe NAME` shows most of the fields.
[module.md](module.md) has the fields of `spec`.",
        documents: &[Document {
            title: "status",
            schema: Schema::Crd,
            example: "module-status.yaml",
            written_by_host: true,
        }],
    },
    Page {
        name: "manifest",
        title: "The manifest of a guest",
        intro: "\
For guest authors: all fields of the document that `describe` returns. The host reads it once, when
it loads the component, and refuses a document with unknown fields. `innkeeper inspect guest.wasm`
shows it. The schema is [wit/schema/manifest.json](../../wit/schema/manifest.json); the SDK builds
the document for guests in Rust.",
        documents: &[Document {
            title: "manifest",
            schema: Schema::Contract("manifest"),
            example: "manifest.json",
            written_by_host: false,
        }],
    },
    Page {
        name: "desired",
        title: "What a guest returns",
        intro: "\
For guest authors: all fields of the documents that `reconcile` returns. `desired` belongs to the
outcomes `complete` and `partial`, `failure` to the outcome `failed`
([wit/guest.wit](../../wit/guest.wit)). The host refuses a document with unknown fields as a whole.
The schemas are [desired.json](../../wit/schema/desired.json) and
[failure.json](../../wit/schema/failure.json).",
        documents: &[
            Document {
                title: "desired",
                schema: Schema::Contract("desired"),
                example: "desired.json",
                written_by_host: false,
            },
            Document {
                title: "failure",
                schema: Schema::Contract("failure"),
                example: "failure.json",
                written_by_host: false,
            },
        ],
    },
    Page {
        name: "observed",
        title: "What a guest is given",
        intro: "\
For guest authors: all fields of the documents from the host. `observed` is the argument of
`reconcile`, `observed-list` the answer of `cluster.list`; `cluster.get` answers with one
[ObservedObject](#observedobject) ([wit/guest.wit](../../wit/guest.wit)). A guest ignores fields
that it does not know, since a later host may send more. The schemas are
[observed.json](../../wit/schema/observed.json),
[observed-list.json](../../wit/schema/observed-list.json) and
[observed-object.json](../../wit/schema/observed-object.json).",
        documents: &[
            Document {
                title: "observed",
                schema: Schema::Contract("observed"),
                example: "observed.json",
                written_by_host: true,
            },
            Document {
                title: "observed-list",
                schema: Schema::Contract("observed-list"),
                example: "observed-list.json",
                written_by_host: true,
            },
        ],
    },
    Page {
        name: "review",
        title: "What a policy is given and returns",
        intro: "\
For authors of policies ([policies.md](../policies.md)): all fields of the documents of `review`.
`review-request` is the argument of `review`, and `verdict` belongs to the outcome `decided`
([wit/guest.wit](../../wit/guest.wit)). A guest ignores fields that it does not know; the host
refuses a verdict with unknown fields as a whole. The schemas are
[review-request.json](../../wit/schema/review-request.json) and
[verdict.json](../../wit/schema/verdict.json). The example of a verdict shows all fields: one that
denies a request has no `object`.",
        documents: &[
            Document {
                title: "review-request",
                schema: Schema::Contract("review-request"),
                example: "review-request.json",
                written_by_host: true,
            },
            Document {
                title: "verdict",
                schema: Schema::Contract("verdict"),
                example: "verdict.json",
                written_by_host: false,
            },
        ],
    },
];

/// Name and text of every page.
///
/// # Errors
/// If a schema or an example cannot be read, or they do not agree.
pub(super) fn all() -> Result<BTreeMap<String, String>> {
    PAGES.iter().map(|page| Ok((format!("{}.md", page.name), page.text()?))).collect()
}

/// All documents of all pages.
#[cfg(test)]
pub(super) fn documents() -> impl Iterator<Item = &'static Document> {
    PAGES.iter().flat_map(|page| page.documents)
}

impl Page {
    fn text(&self) -> Result<String> {
        let mut text = format!("{MARK}\n# {}\n\n{}\n", self.title, self.intro);
        // Documents share types: the first one describes them.
        let mut described = BTreeSet::new();
        for document in self.documents {
            let (schema, example) = (document.schema()?, document.example()?);
            let of_schema = schema.pointer(document.pointer()).unwrap_or(&Value::Null);
            let place = || format!("{}: {}", self.name, document.example);
            let sections = sections::of(document.title, &schema, of_schema, &example.value)
                .with_context(place)?;
            let heading = format!("Example of {}", document.title);
            let style = Style {
                written_by_host: document.written_by_host,
                yaml: example.is_yaml,
                example_heading: &heading,
            };
            let language = if example.is_yaml { "yaml" } else { "json" };
            let _ = write!(text, "\n## {heading}\n\n```{language}\n{}```\n", example.text);
            for section in &sections {
                if described.insert(section.title.clone()) {
                    let _ = write!(text, "\n{}", markdown::section(section, style));
                }
            }
        }
        Ok(text)
    }
}

/// An example.
pub(super) struct Example {
    /// The file.
    text: String,
    /// The part of the file that the page describes.
    pub(super) value: Value,
    is_yaml: bool,
}

impl Document {
    /// The schema, with what it refers to.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn schema(&self) -> Result<Value> {
        match self.schema {
            Schema::Crd => Ok(serde_yaml_ng::from_str(&read(CRD)?).context(CRD)?),
            Schema::Contract(name) => {
                let path = format!("wit/schema/{name}.json");
                Ok(serde_json::from_str(&read(&path)?).context(path)?)
            }
        }
    }

    /// Where in [`Self::schema`] the schema of the document is.
    pub(super) fn pointer(&self) -> &'static str {
        match (&self.schema, self.title) {
            (Schema::Contract(_), _) => "",
            (Schema::Crd, "spec") => "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
            (Schema::Crd, _) => "/spec/versions/0/schema/openAPIV3Schema/properties/status",
        }
    }

    /// The example.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn example(&self) -> Result<Example> {
        let path = format!("xtask/src/reference/examples/{}", self.example);
        let text = read(&path)?;
        let is_yaml = matches!(self.schema, Schema::Crd);
        let value: Value = if is_yaml {
            let whole: Value = serde_yaml_ng::from_str(&text).context(path)?;
            whole.get(self.title).cloned().unwrap_or_else(|| json!({}))
        } else {
            serde_json::from_str(&text).context(path)?
        };
        Ok(Example { text, value, is_yaml })
    }
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use boon::{Compiler, Schemas};
    use innkeeper_contract::{Desired, Failure, Manifest, Observed, ObservedList};
    use serde::de::DeserializeOwned;

    use super::*;

    #[test]
    fn examples_are_valid_by_their_schemas() {
        for document in documents() {
            let mut schema = document.schema().unwrap();
            let example = document.example().unwrap();
            let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
            if let Some(members) = schema.as_object_mut() {
                members.remove("$id");
            }
            let place = "file:///schema.json";
            compiler.add_resource(place, schema).unwrap();
            let index =
                compiler.compile(&format!("{place}#{}", document.pointer()), &mut schemas).unwrap();
            let result = schemas.validate(&example.value, index);
            assert!(result.is_ok(), "{}: {}", document.example, result.unwrap_err());
        }
    }

    #[test]
    fn examples_deserialize_as_documents_of_the_contract() {
        fn read<T: DeserializeOwned>(name: &str) {
            let document = documents().find(|document| document.title == name).unwrap();
            let value = document.example().unwrap().value;
            T::deserialize(value).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        read::<Manifest>("manifest");
        read::<Desired>("desired");
        read::<Failure>("failure");
        read::<Observed>("observed");
        read::<ObservedList>("observed-list");
    }

    #[test]
    fn optional_scalars_of_a_module_have_a_default() {
        let document = documents().find(|document| document.title == "spec").unwrap();
        let (schema, example) = (document.schema().unwrap(), document.example().unwrap());
        let spec = schema.pointer(document.pointer()).unwrap();
        for section in sections::of("spec", &schema, spec, &example.value).unwrap() {
            for field in &section.fields {
                let is_known = field.required || field.default.is_some() || field.section.is_some();
                let place = format!("{}.{}", section.title, field.name);
                let is_free =
                    field.type_name.starts_with("object") || field.type_name.starts_with("map");
                assert!(is_known || is_free, "{place}: say `Default: ...` in its doc comment");
            }
        }
    }
}
