//! A Vitess cluster: one `VitessCell` per cell, updated one after the other.

use innkeeper_sdk::IntoObject as _;
use innkeeper_sdk::kinds::LabelSelector;
use innkeeper_sdk::prelude::*;
use metacontroller_examples::vitess::cell::{Cell, VitessCell, VitessCellSpec};
use metacontroller_examples::vitess::children;
use metacontroller_examples::vitess::flags::Flags;
use metacontroller_examples::vitess::inherited::{ChildTemplate, Inherited};
use metacontroller_examples::vitess::keyspace::Keyspace;
use serde::{Deserialize, Serialize};

/// A `VitessCluster`, as the guest reads it.
#[derive(Deserialize)]
pub struct VitessCluster {
    metadata: Metadata,
    spec: VitessClusterSpec,
}

/// Desired state of a `VitessCluster`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct VitessClusterSpec {
    /// Labels of the pods.
    selector: LabelSelector,
    /// Labels of all objects.
    template: ChildTemplate,
    /// Flags of the programs that read or write backups.
    #[serde(default)]
    backup_flags: Flags,
    /// Cells.
    cells: Vec<Cell>,
    /// Keyspaces.
    #[serde(default)]
    keyspaces: Vec<Keyspace>,
}

/// Observed state of a `VitessCluster`.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct VitessClusterStatus {
    /// Names of the cells.
    cells: Vec<String>,
    /// Names of those that are ready.
    ready_cells: Vec<String>,
}

kind!(Primary for VitessCluster, "vitess.io/v1alpha1", "vitessclusters");

impl CustomResource for VitessCluster {
    type Spec = VitessClusterSpec;
    type Status = VitessClusterStatus;
    const SHORT_NAMES: &'static [&'static str] = &["vt"];
}

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = VitessCluster;

    fn describe() -> Manifest {
        Describe::reconciler_of::<VitessCluster>("vitess-cluster", "1.0.0")
            .owns::<VitessCell>()
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<VitessCluster>) -> Outcome {
        let cluster = observed.primary();
        let (cells, ready_cells) = children::names::<VitessCell>(observed);
        let names = cluster.spec.cells.iter().map(|cell| cell.name.clone());
        let unready = children::missing("cell", names, &ready_cells);
        let cells_desired = cluster.spec.cells.iter().map(|cell| cluster.cell(cell));
        Desired::new()
            .update_group(children::one_by_one("cells"))
            .objects(cells_desired.map(|cell| cell.in_update_group("cells")))
            .status(&VitessClusterStatus { cells, ready_cells })
            .condition(children::ready_unless(&unready))
            .complete()
    }
}

impl VitessCluster {
    /// Returns the child for a cell, with the keyspaces that have shards in it.
    fn cell(&self, cell: &Cell) -> VitessCell {
        let VitessClusterSpec { selector, template, backup_flags, cells: _, keyspaces } =
            &self.spec;
        let inherited = Inherited {
            cluster: self.metadata.name.clone(),
            backup_flags: backup_flags.clone(),
            selector: selector.clone(),
            template: template.clone(),
        };
        let metadata = Metadata::named(format!("{}-{}", self.metadata.name, cell.name));
        let here = keyspaces.iter().filter(|keyspace| keyspace.cells.contains(&cell.name));
        let spec = VitessCellSpec {
            cell: cell.clone(),
            inherited: inherited.with_label("vitess.io/cell", &cell.name),
            keyspaces: here.cloned().collect(),
        };
        VitessCell { metadata, spec }.labels(inherited.labels())
    }
}

innkeeper_sdk::export!(Guest);
