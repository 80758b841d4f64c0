use imo::ImoSpec;
use innkeeper_sdk::{Column, CustomResource, Metadata, Rule, kind};
use kuri::KuriSpec;
use serde::{Deserialize, Serialize};

/// A Kabocha, as the guest reads it and as a larger Kabocha desires it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kabocha {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    #[serde(default)]
    pub spec: KabochaSpec,
}

/// Desired state of a Kabocha: its children, each with the name `<kabocha>-<name>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct KabochaSpec {
    /// Text without effect: the only field in the manifests of the original operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dummy: Option<String>,
    /// Imos.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(max = 32),
            extend(
                "x-kubernetes-list-type" = "map",
                "x-kubernetes-list-map-keys" = ["name"]
            )
        )
    )]
    pub imos: Vec<NamedImo>,
    /// Kuris.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(max = 32),
            extend(
                "x-kubernetes-list-type" = "map",
                "x-kubernetes-list-map-keys" = ["name"]
            )
        )
    )]
    pub kuris: Vec<NamedKuri>,
    /// Smaller Kabochas with Imos and Kuris of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(max = 32),
            extend(
                "x-kubernetes-list-type" = "map",
                "x-kubernetes-list-map-keys" = ["name"]
            )
        )
    )]
    pub kabochas: Vec<NamedKabocha>,
}

/// An Imo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct NamedImo {
    /// Name of the child, without the prefix `<kabocha>-`.
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(length(max = 32), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub name: String,
    /// Spec of the child.
    #[serde(flatten)]
    pub spec: ImoSpec,
}

/// A Kuri.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct NamedKuri {
    /// Name of the child, without the prefix `<kabocha>-`.
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(length(max = 32), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub name: String,
    /// Spec of the child.
    #[serde(flatten)]
    pub spec: KuriSpec,
}

/// A smaller Kabocha. It has no Kabochas of its own, because a schema cannot contain itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct NamedKabocha {
    /// Name of the child, without the prefix `<kabocha>-`.
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(length(max = 32), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub name: String,
    /// Imos.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(max = 32),
            extend(
                "x-kubernetes-list-type" = "map",
                "x-kubernetes-list-map-keys" = ["name"]
            )
        )
    )]
    pub imos: Vec<NamedImo>,
    /// Kuris.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(max = 32),
            extend(
                "x-kubernetes-list-type" = "map",
                "x-kubernetes-list-map-keys" = ["name"]
            )
        )
    )]
    pub kuris: Vec<NamedKuri>,
}

/// Observed state of a Kabocha.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct KabochaStatus {
    /// Phase: `setup`, `ready` or `teardown`, or the one that the Module's parameter `phase` sets.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(with = "String"))]
    pub phase: KabochaPhase,
    /// Number of ready children and number of desired children: `2/3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// Children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<Vec<ChildStatus>>,
}

/// Phase of a Kabocha.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KabochaPhase {
    /// Not all children are ready.
    Setup,
    /// All children are ready.
    Ready,
    /// The Kabocha is being deleted and waits for the deletion of its children.
    Teardown,
    /// The phase that the Module's parameter sets.
    #[serde(untagged)]
    Parameter(String),
}

impl KabochaSpec {
    /// Returns whether the Kabocha has no children, like every one of the original operator.
    pub fn has_no_children(&self) -> bool {
        self.imos.is_empty() && self.kuris.is_empty() && self.kabochas.is_empty()
    }
}

impl KabochaStatus {
    /// Creates a status of children: how many of them are ready, and which.
    pub(crate) fn of_children(phase: KabochaPhase, children: Vec<ChildStatus>) -> Self {
        let ready = children.iter().filter(|child| child.ready).count();
        let ready = Some(format!("{ready}/{}", children.len()));
        Self { phase, ready, children: Some(children) }
    }

    /// Creates a status of a phase alone.
    pub(crate) fn of_phase(phase: &str) -> Self {
        Self { phase: KabochaPhase::Parameter(phase.to_owned()), ready: None, children: None }
    }
}

/// Observed state of a child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ChildStatus {
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Whether the child is ready.
    pub ready: bool,
    /// Why the child is not ready.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Kabocha {
    /// Creates a Kabocha.
    pub fn new(name: impl Into<String>, spec: KabochaSpec) -> Self {
        Self { metadata: Metadata::named(name), spec }
    }
}

kind!(Primary + Apply for Kabocha, "kabocha.example.com/v1alpha1", "kabochas");

impl CustomResource for Kabocha {
    type Spec = KabochaSpec;
    type Status = KabochaStatus;

    const COLUMNS: &'static [Column] = &[
        Column::text("Children", ".status.ready"),
        Column::text("Phase", ".status.phase"),
        Column::text("Ready", ".status.conditions[?(@.type==\"Ready\")].status"),
    ];
    // The name of a Kuri names its Job, which is also the value of a label.
    const RULES: &'static [Rule] = &[
        Rule {
            rule: "!has(self.spec.kuris) || self.spec.kuris.all(kuri, self.metadata.name.size() + kuri.name.size() < 63)",
            message: "the name of the Kabocha and that of a Kuri, joined by `-`, have at most 63 characters",
        },
        Rule {
            rule: "!has(self.spec.kabochas) || self.spec.kabochas.all(small, !has(small.kuris) || small.kuris.all(kuri, self.metadata.name.size() + small.name.size() + kuri.name.size() < 62))",
            message: "the names of the Kabocha, a smaller Kabocha and a Kuri of that, joined by `-`, have at most 63 characters",
        },
    ];
    const SPEC_MAY_BE_LEFT_OUT: bool = true;
    const SHOWS_LAST_RUN: bool = true;
    const SHOWS_RUN_RESULT: bool = true;
}
