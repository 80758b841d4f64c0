//! The Module whose guest `innkeeper dev` replaces.

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
use crate::modules::describe_candidate;
use crate::out::{self, Page};
use crate::policy_consent;
use crate::push::{self, POLL_PERIOD, PushOutcome, Pushed, config_map_kind};

/// After this time without an observation, the operator may not be running.
const QUIET: Duration = Duration::from_secs(10);

/// The Module whose guest is replaced.
pub(super) enum Target {
    /// A Module of the cluster.
    Cluster(Box<InCluster>),
    /// A file that a host watches.
    File {
        /// The Module.
        module: String,
        /// The file of its component.
        path: PathBuf,
    },
}

/// How a guest was swapped in.
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
    /// The ConfigMaps that this command created. Only the last ones are in use.
    created: Vec<String>,
}

impl Target {
    /// Finds a Module in the cluster.
    ///
    /// # Errors
    /// If the API server cannot be reached or has no such Module.
    pub(super) async fn cluster(kube: &KubeArguments, module: &str) -> anyhow::Result<Self> {
        let client = kube.connect().await?.host();
        push::expect_module(&client, module).await?;
        let module = module.to_owned();
        Ok(Self::Cluster(Box::new(InCluster { client, module, created: Vec::new() })))
    }

    /// Finds a Module in a folder.
    ///
    /// # Errors
    /// If the folder has no such Module, or its source is no file.
    pub(super) fn folder(folder: &Path, module: &str) -> anyhow::Result<Self> {
        let changes = ModuleDirectory::new(folder, COMPONENT_BYTES_MAX).scan();
        let mut problems = Vec::new();
        for change in changes {
            match change {
                Change::Module(found) if found.metadata.name == module => {
                    let Some(file) = found.spec.source.file else {
                        bail!(
                            "Module {module} in {} has no spec.source.file: set it to the file for the component, as in {module}.wasm",
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
        problems.insert(0, format!("Module {module} not found in {}", folder.display()));
        bail!("{}", problems.join("; "))
    }

    /// The Module, in a few words.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Cluster(cluster) => format!("Module {} of the cluster", cluster.module),
            Self::File { module, path } => {
                format!("Module {module} with the file {}", path.display())
            }
        }
    }

    /// Swaps a guest in.
    ///
    /// # Errors
    /// If the ConfigMaps, the Module or the file cannot be written.
    pub(super) async fn swap(&mut self, opened: &Opened) -> anyhow::Result<Updated> {
        match self {
            Self::Cluster(cluster) => cluster.push(opened).await.map(Updated::Pushed),
            Self::File { path, .. } => {
                policy_consent::print_unasked(opened);
                componentize::write(path, &opened.component.bytes)?;
                Ok(Updated::Written)
            }
        }
    }

    /// Prints the progress of the rollout until the caller drops it.
    ///
    /// # Errors
    /// If standard output is closed.
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
            "{digest} is written; the log of the host that watches the folder shows the rollout"
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
            self.created.extend(pushed.config_maps.iter().cloned());
        }
        Ok(pushed)
    }

    async fn follow(&mut self, digest: &str, pushed: &Pushed) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut printed = PushOutcome::NotObserved;
        let mut printed_problem = String::new();
        loop {
            let problem = match push::outcome(&self.client, &self.module, pushed).await {
                Ok(outcome) => {
                    if outcome != printed {
                        print_status(&self.module, digest, &outcome)?;
                        if let PushOutcome::Active(_) = outcome {
                            self.delete_unused(pushed).await;
                        }
                        printed = outcome;
                    }
                    if printed == PushOutcome::NotObserved && begun.elapsed() > QUIET {
                        push::NOT_OBSERVED.to_owned()
                    } else {
                        String::new()
                    }
                }
                Err(error) => out::error_chain(&error),
            };
            if problem != printed_problem {
                if !problem.is_empty() {
                    out::eprint(&problem);
                }
                printed_problem = problem;
            }
            self.client.env().sleep(POLL_PERIOD).await;
        }
    }

    /// Deletes the ConfigMaps that this command created for previous builds. The host has snapshots
    /// of the revisions that it needs.
    async fn delete_unused(&mut self, pushed: &Pushed) {
        let kind = config_map_kind();
        for name in std::mem::take(&mut self.created) {
            if pushed.config_maps.contains(&name) {
                self.created.push(name);
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
                    "cannot delete the unused ConfigMap {NAMESPACE}/{name}: {error}; delete it with kubectl"
                )),
            }
        }
    }
}

fn print_status(module: &str, digest: &str, outcome: &PushOutcome) -> anyhow::Result<()> {
    match outcome {
        PushOutcome::NotObserved => Ok(()),
        PushOutcome::InProgress(state) => out::line(format_args!("{digest} {state}")),
        PushOutcome::Held(candidate) => {
            let mut page = Page::default();
            describe_candidate(&mut page, candidate);
            page.line(format_args!(
                "the active revision stays; to activate the candidate, run `innkeeper modules approve {module}`"
            ));
            out::page(&page)
        }
        PushOutcome::Rejected(reason) => {
            out::line(format_args!("{digest} is rejected and the active revision stays: {reason}"))
        }
        PushOutcome::Active(preview) => {
            let mut page = Page::default();
            page.line(format_args!("{digest} is active"));
            if let Some(preview) = preview {
                preview.add_to(&mut page, true);
            }
            out::page(&page)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_of_a_folder_names_the_file_of_its_component() {
        let folder = tempfile::tempdir().unwrap();
        let name = |module: &str| Target::folder(folder.path(), module).map(|target| target.name());
        assert!(name("hello").unwrap_err().to_string().contains("Module hello not found in"));
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
        assert_eq!(
            name("hello").unwrap(),
            format!("Module hello with the file {}", path.display())
        );
        let error = name("other").unwrap_err().to_string();
        assert!(error.contains("spec.source.file") || error.contains("not found"), "{error}");
    }
}
