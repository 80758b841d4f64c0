//! Where a guest that was built is swapped in.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::bail;
use innkeeper_cluster::{ApiClient, ApiError, Propagation};
use innkeeper_core::ObjectKey;
use innkeeper_modules::directory::{Change, ModuleDirectory};
use innkeeper_modules::module::NAMESPACE;
use innkeeper_modules::source::COMPONENT_BYTES_MAX;
use innkeeper_toolchain::componentize;

use crate::component::Opened;
use crate::kube::KubeArguments;
use crate::modules::{describe_candidate, describe_preview};
use crate::out::{self, Page};
use crate::push::{self, POLL_PERIOD, PushOutcome, Pushed, config_map_kind};

/// An operator that has said nothing for so long may not be there.
const QUIET: Duration = Duration::from_secs(10);

/// Where a guest is swapped in.
pub(super) enum Target {
    /// A Module of the cluster.
    Cluster(Box<InCluster>),
    /// A file that a host watches.
    File {
        /// The Module.
        module: String,
        /// Where its component lies.
        path: PathBuf,
    },
}

/// A guest that was swapped in.
pub(super) enum Updated {
    /// As ConfigMaps.
    Pushed(Pushed),
    /// As a file.
    Written,
}

/// A Module of the cluster.
pub(super) struct InCluster {
    client: ApiClient,
    module: String,
    /// The ConfigMaps that were made here: none but the last ones are of use.
    made: Vec<String>,
}

impl Target {
    /// A Module of the cluster; an error if it is not there.
    pub(super) async fn cluster(kube: &KubeArguments, module: &str) -> anyhow::Result<Self> {
        let client = kube.connect().await?.host();
        push::expect_module(&client, module).await?;
        let module = module.to_owned();
        Ok(Self::Cluster(Box::new(InCluster { client, module, made: Vec::new() })))
    }

    /// A Module of a folder; an error unless it is there and has a file as its source.
    pub(super) fn folder(folder: &Path, module: &str) -> anyhow::Result<Self> {
        let changes = ModuleDirectory::new(folder, COMPONENT_BYTES_MAX).scan();
        let mut problems = Vec::new();
        for change in changes {
            match change {
                Change::Module(found) if found.metadata.name == module => {
                    let Some(file) = found.spec.source.file else {
                        bail!(
                            "Module {module} in {} has no spec.source.file: name the file that its component is to be put into, as in {module}.wasm",
                            folder.display()
                        );
                    };
                    let path = folder.join(file);
                    return Ok(Self::File { module: module.to_owned(), path });
                }
                Change::Problem(problem) => problems.push(problem),
                _ => {}
            }
        }
        problems.insert(0, format!("there is no Module {module} in {}", folder.display()));
        bail!("{}", problems.join("; "))
    }

    /// Which Module it is.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Cluster(cluster) => format!("Module {} of the cluster", cluster.module),
            Self::File { module, path } => format!("Module {module} by {}", path.display()),
        }
    }

    /// Swaps a guest in.
    pub(super) async fn swap(&mut self, opened: &Opened) -> anyhow::Result<Updated> {
        match self {
            Self::Cluster(cluster) => cluster.push(opened).await.map(Updated::Pushed),
            Self::File { path, .. } => {
                componentize::write(path, &opened.component.bytes)?;
                Ok(Updated::Written)
            }
        }
    }

    /// Tells what becomes of it, until this is dropped; an error is that nobody listens any more.
    pub(super) async fn follow(
        &mut self,
        opened: &Opened,
        swapped: &Updated,
    ) -> anyhow::Result<()> {
        let digest = opened.component.digest.short();
        if let (Self::Cluster(cluster), Updated::Pushed(pushed)) = (&mut *self, swapped) {
            return cluster.follow(&digest, pushed).await;
        }
        out::line(format_args!(
            "{digest} lies there; the log of the host that watches the folder says what becomes of it"
        ))?;
        std::future::pending().await
    }
}

impl InCluster {
    async fn push(&mut self, opened: &Opened) -> anyhow::Result<Pushed> {
        let config_map = ObjectKey::new(NAMESPACE, &push::config_map_name(&self.module, opened));
        let is_new = match self.client.get(&config_map_kind(), &config_map).await {
            Ok(_) => false,
            Err(ApiError::NotFound { .. } | ApiError::NamespaceNotFound { .. }) => true,
            Err(error) => return Err(error.into()),
        };
        let pushed = push::put(&self.client, &self.module, opened).await?;
        if is_new {
            self.made.extend(pushed.config_maps.iter().cloned());
        }
        Ok(pushed)
    }

    async fn follow(&mut self, digest: &str, pushed: &Pushed) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut told = PushOutcome::NotObserved;
        let mut complaint = String::new();
        loop {
            let trouble = match push::outcome(&self.client, &self.module, pushed).await {
                Ok(fate) => {
                    if fate != told {
                        print_status(&self.module, digest, &fate)?;
                        if let PushOutcome::Active(_) = fate {
                            self.tidy(pushed).await;
                        }
                        told = fate;
                    }
                    if told == PushOutcome::NotObserved && begun.elapsed() > QUIET {
                        "the operator has not looked at it; does it run?".to_owned()
                    } else {
                        String::new()
                    }
                }
                Err(error) => out::error_chain(&error),
            };
            if trouble != complaint {
                if !trouble.is_empty() {
                    out::eprint(&trouble);
                }
                complaint = trouble;
            }
            self.client.env().sleep(POLL_PERIOD).await;
        }
    }

    /// Deletes the ConfigMaps that were made here for versions before: the host keeps copies of
    /// what it needs.
    async fn tidy(&mut self, pushed: &Pushed) {
        let kind = config_map_kind();
        for name in std::mem::take(&mut self.made) {
            if pushed.config_maps.contains(&name) {
                self.made.push(name);
                continue;
            }
            let key = ObjectKey::new(NAMESPACE, &name);
            let deleted = match self.client.get(&kind, &key).await {
                Ok(found) => {
                    let delete =
                        self.client.delete(&kind, &key, &found.uid, Propagation::Background);
                    delete.await.map(drop)
                }
                Err(error) => Err(error),
            };
            match deleted {
                Ok(()) | Err(ApiError::NotFound { .. }) => {}
                Err(error) => out::eprint(&format!(
                    "ConfigMap {NAMESPACE}/{name} is of no use any more and cannot be deleted: {error}"
                )),
            }
        }
    }
}

fn print_status(module: &str, digest: &str, fate: &PushOutcome) -> anyhow::Result<()> {
    match fate {
        PushOutcome::NotObserved => Ok(()),
        PushOutcome::InProgress(state) => out::line(format_args!("{digest} {state}")),
        PushOutcome::Held(candidate) => {
            let mut page = Page::default();
            describe_candidate(&mut page, candidate);
            page.line(format_args!(
                "the version before goes on; `innkeeper modules approve {module}` lets this one serve"
            ));
            out::page(&page)
        }
        PushOutcome::Rejected(why) => {
            out::line(format_args!("{digest} is refused, and the version before goes on: {why}"))
        }
        PushOutcome::Active(rehearsal) => {
            let mut page = Page::default();
            page.line(format_args!("{digest} serves"));
            if let Some(rehearsal) = rehearsal {
                describe_preview(&mut page, rehearsal);
            }
            out::page(&page)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_of_a_folder_says_where_its_component_goes() {
        let folder = tempfile::tempdir().unwrap();
        let told = |module: &str| Target::folder(folder.path(), module).map(|target| target.name());
        assert!(told("hello").unwrap_err().to_string().contains("there is no Module hello in"));
        let module = |name: &str, source: &str| {
            format!(
                "apiVersion: innkeeper.dev/v1alpha1\nkind: Module\nmetadata: {{name: {name}}}\nspec: {{source: {source}}}\n"
            )
        };
        let write = |name: &str, text: String| {
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        write("hello.yaml", module("hello", "{file: hello.wasm}"));
        write("other.yaml", module("other", "{configMap: {name: other}}"));
        let path = folder.path().join("hello.wasm");
        assert_eq!(told("hello").unwrap(), format!("Module hello by {}", path.display()));
        let error = told("other").unwrap_err().to_string();
        assert!(
            error.contains("spec.source.file") || error.contains("there is no Module"),
            "{error}"
        );
    }
}
