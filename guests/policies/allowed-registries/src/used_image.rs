use pod_specs::PodSpecField;
use serde::Deserialize;

use innkeeper_sdk::Verdict;
use innkeeper_sdk::serde_json::Value;

/// What the policy reads of the spec of a Pod.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    containers: Option<Vec<Container>>,
    init_containers: Option<Vec<Container>>,
    ephemeral_containers: Option<Vec<Container>>,
    volumes: Option<Vec<Volume>>,
}

#[derive(Debug, Deserialize)]
struct Container {
    name: String,
    #[serde(default)]
    image: String,
}

#[derive(Debug, Deserialize)]
struct Volume {
    name: String,
    #[serde(default)]
    image: Option<ImageVolume>,
}

/// A volume with the files of an image.
#[derive(Debug, Deserialize)]
struct ImageVolume {
    #[serde(default)]
    reference: String,
}

/// An image that a Pod uses, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsedImage {
    /// For what: `container web`, for example.
    pub(crate) user: String,
    /// As it is written.
    pub(crate) image: String,
    /// Its field.
    pub(crate) field: String,
}

impl UsedImage {
    /// Returns the images of an object, in the order of its fields.
    ///
    /// # Errors
    /// A failed verdict if the spec of the Pods cannot be read.
    pub(crate) fn all(object: &Value, field: PodSpecField) -> Result<Vec<Self>, Verdict> {
        let Some(spec) = field.get(object).filter(|spec| !spec.is_null()) else {
            return Ok(Vec::new());
        };
        let path = field.path();
        let spec = PodSpec::deserialize(spec)
            .map_err(|error| Verdict::failed(format!("{path} cannot be read: {error}")))?;
        let lists = [
            ("initContainers", "init container", spec.init_containers),
            ("containers", "container", spec.containers),
            ("ephemeralContainers", "ephemeral container", spec.ephemeral_containers),
        ];
        let mut all = Vec::new();
        for (list, what, containers) in lists {
            for (index, container) in containers.into_iter().flatten().enumerate() {
                all.push(Self {
                    user: format!("{what} {}", container.name),
                    image: container.image,
                    field: format!("{path}.{list}[{index}].image"),
                });
            }
        }
        for (index, volume) in spec.volumes.into_iter().flatten().enumerate() {
            let Some(image) = volume.image else { continue };
            all.push(Self {
                user: format!("volume {}", volume.name),
                image: image.reference,
                field: format!("{path}.volumes[{index}].image.reference"),
            });
        }
        Ok(all)
    }

    /// Returns whether this is an image of the other object, for the same container or volume.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.user == other.user && self.image == other.image
    }
}
