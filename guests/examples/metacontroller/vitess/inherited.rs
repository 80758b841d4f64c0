//! What an object of Vitess passes down to its children.

use innkeeper_sdk::Labels;
use innkeeper_sdk::kinds::LabelSelector;
use serde::{Deserialize, Serialize};

use super::flags::Flags;

/// What an object of Vitess passes down to its children.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Inherited {
    /// Name of the `VitessCluster`.
    pub cluster: String,
    /// Flags of the programs that read or write backups.
    #[serde(default)]
    pub backup_flags: Flags,
    /// Labels of the pods.
    pub selector: LabelSelector,
    /// Labels of all objects.
    pub template: ChildTemplate,
}

/// Template of all objects.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ChildTemplate {
    /// Metadata of all objects.
    pub metadata: ChildMetadata,
}

/// Metadata of all objects.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ChildMetadata {
    /// Labels of all objects.
    pub labels: Labels,
}

impl Inherited {
    /// Returns this with one more label, which selects the objects of one child.
    pub fn with_label(&self, key: &str, value: &str) -> Self {
        let mut with = self.clone();
        for labels in [&mut with.selector.match_labels, &mut with.template.metadata.labels] {
            labels.insert(key.to_owned(), value.to_owned());
        }
        with
    }

    /// Returns the labels of all objects.
    pub fn labels(&self) -> &Labels {
        &self.template.metadata.labels
    }

    /// Returns the labels that select the pods of a component.
    pub fn selector_of(&self, component: &str) -> Labels {
        let mut labels = self.selector.match_labels.clone();
        labels.insert("vitess.io/component".to_owned(), component.to_owned());
        labels
    }

    /// Returns the labels of the pods of a component.
    pub fn labels_of(&self, component: &str) -> Labels {
        let mut labels = self.labels().clone();
        labels.extend(self.selector_of(component));
        labels
    }
}
