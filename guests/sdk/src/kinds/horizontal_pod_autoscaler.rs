use serde::Serialize;

use crate::{Metadata, Resource};

/// A `HorizontalPodAutoscaler`: sets the replicas of a workload by load. The guest must then leave
/// the workload's `replicas` out.
///
/// ```
/// use innkeeper_sdk::kinds::{Deployment, HorizontalPodAutoscaler};
///
/// let scaler = HorizontalPodAutoscaler::of::<Deployment>("web", 5).min_replicas(2).cpu(80);
/// assert_eq!(scaler.spec.scale_target_ref.kind, "Deployment");
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct HorizontalPodAutoscaler {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: HorizontalPodAutoscalerSpec,
}

/// The spec of a `HorizontalPodAutoscaler`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerSpec {
    /// The workload.
    pub scale_target_ref: ScaleTarget,
    /// Minimum number of pods; the API server's default is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Maximum number of pods.
    pub max_replicas: i32,
    /// Metrics; the API server's default is 80 percent of the requested CPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<ResourceMetric>,
}

/// A workload with the subresource `scale`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScaleTarget {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// A metric of a compute resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResourceMetric {
    /// `Resource`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Resource and target.
    pub resource: ResourceTarget,
}

/// The target of a compute resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResourceTarget {
    /// `cpu` or `memory`.
    pub name: String,
    /// Target.
    pub target: UtilizationTarget,
}

/// A target as a percentage of what the pods request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UtilizationTarget {
    /// `Utilization`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Percentage.
    pub average_utilization: i32,
}

impl HorizontalPodAutoscaler {
    /// Creates an autoscaler for a workload of the kind `K`, with the workload's name and a maximum
    /// number of pods.
    pub fn of<K: Resource>(workload: impl Into<String>, max_replicas: i32) -> Self {
        let name = workload.into();
        let spec = HorizontalPodAutoscalerSpec {
            scale_target_ref: ScaleTarget {
                api_version: K::API_VERSION.to_owned(),
                kind: K::KIND.to_owned(),
                name: name.clone(),
            },
            min_replicas: None,
            max_replicas,
            metrics: Vec::new(),
        };
        Self { metadata: Metadata::named(name), spec }
    }

    /// Targets a percentage of the CPU that the pods request.
    pub fn cpu(self, percent: i32) -> Self {
        self.utilization("cpu", percent)
    }

    /// Targets a percentage of the memory that the pods request.
    pub fn memory(self, percent: i32) -> Self {
        self.utilization("memory", percent)
    }

    fn utilization(mut self, resource: &str, percent: i32) -> Self {
        let target =
            UtilizationTarget { type_: "Utilization".to_owned(), average_utilization: percent };
        self.spec.metrics.push(ResourceMetric {
            type_: "Resource".to_owned(),
            resource: ResourceTarget { name: resource.to_owned(), target },
        });
        self
    }

    setters! {
        /// Sets the minimum number of pods.
        min_replicas(spec.min_replicas: i32);
    }
}

crate::kind!(
    Apply for HorizontalPodAutoscaler,
    "autoscaling/v2",
    "horizontalpodautoscalers"
);
