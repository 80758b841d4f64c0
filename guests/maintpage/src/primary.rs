use innkeeper_sdk::{Column, ColumnType, CustomResource, Metadata, Rule, kind};
use serde::{Deserialize, Serialize};

/// A `MaintPage`, as the guest reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct MaintPage {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: MaintPageSpec,
}

/// Desired state of a `MaintPage`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct MaintPageSpec {
    /// Maintenance page.
    pub maintpageconfig: MaintpageConfig,
    /// Application.
    pub appconfig: AppConfig,
}

/// The maintenance page.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct MaintpageConfig {
    /// Whether the Service routes to the maintenance page instead of the application.
    #[serde(default)]
    pub maintpagetoggle: bool,
    /// Image of the maintenance page, which listens on port 8080.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(min = 1)))]
    pub maintpageimage: String,
    /// When the Service switches after a change of the toggle; the Module's parameter `switch` if
    /// left out.
    #[serde(default)]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(with = "Switch"))]
    pub switch: Option<Switch>,
}

/// When the Service switches to the other side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub enum Switch {
    /// When the other side is ready, so that the switch loses no requests.
    #[default]
    WhenReady,
    /// At once, as the original operator did, whether or not the other side is ready.
    Immediately,
}

/// The application.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct AppConfig {
    /// Name of the Deployment and of the Service. It must differ from the `MaintPage`'s name.
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(length(max = 63), regex(pattern = "^[a-z]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub appname: String,
    /// Image of the application, which listens on port 8080.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(min = 1)))]
    pub appimage: String,
}

/// Observed state of a `MaintPage`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct MaintPageStatus {
    /// `Published` while the Service routes to the maintenance page.
    pub maintpublishstatus: PublishStatus,
}

/// Whether users see the maintenance page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub enum PublishStatus {
    /// The Service routes to the maintenance page.
    Published,
    /// The Service routes to the application, or does not exist.
    #[serde(rename = "Not Published")]
    NotPublished,
}

kind!(Primary for MaintPage, "maintpage.example.com/v1alpha1", "maintpages");

impl CustomResource for MaintPage {
    type Spec = MaintPageSpec;
    type Status = MaintPageStatus;

    const SHORT_NAMES: &'static [&'static str] = &["mp"];
    const COLUMNS: &'static [Column] = &[
        Column::text("App", ".spec.appconfig.appname"),
        Column {
            name: "Toggle",
            type_: ColumnType::Boolean,
            json_path: ".spec.maintpageconfig.maintpagetoggle",
        },
        Column::text("Maintpublishstatus", ".status.maintpublishstatus"),
        Column::text("Ready", ".status.conditions[?(@.type==\"Ready\")].status"),
    ];
    const RULES: &'static [Rule] = &[
        Rule {
            rule: "self.metadata.name != self.spec.appconfig.appname",
            message: "spec.appconfig.appname must differ from the MaintPage's name: otherwise the Service would select both the application and the maintenance page",
        },
        Rule {
            rule: "self.metadata.name.size() <= 63",
            message: "the name of a MaintPage is the value of a label: use at most 63 characters",
        },
    ];
}
