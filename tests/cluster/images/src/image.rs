//! An image: its files, and how to run them.

use anyhow::Result;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::Tree;

/// Media types of the OCI image format.
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// How a container of the image runs, if its pod does not say otherwise.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The program and its first arguments.
    pub entrypoint: Vec<String>,
    /// The arguments after these.
    pub command: Vec<String>,
    /// Variables, as `NAME=value`.
    pub environment: Vec<String>,
    /// The user by its number and group, as `65532:65532`; root if empty.
    pub user: String,
    /// The folder in which the program starts; `/` if empty.
    pub folder: String,
}

/// An image, ready to be pushed.
#[derive(Clone, Debug)]
pub struct Image {
    /// By their digests: the one layer and the configuration.
    pub(crate) blobs: Vec<(String, Vec<u8>)>,
    /// The manifest, which names both.
    pub(crate) manifest: Vec<u8>,
}

impl Image {
    /// Makes an image of these files. The layer is not compressed: it goes to a registry on the
    /// same machine.
    ///
    /// # Errors
    /// If a file of the tree cannot be read.
    pub fn new(tree: &Tree, run: &Run) -> Result<Self> {
        let mut layer = Vec::new();
        tree.write(&mut layer)?;
        let layer_digest = digest(&layer);
        let config = serde_json::to_vec(&json!({
            "architecture": architecture(),
            "os": "linux",
            "config": config(run),
            "rootfs": { "type": "layers", "diff_ids": [layer_digest] },
        }))?;
        let config_digest = digest(&config);
        let manifest = serde_json::to_vec(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": { "mediaType": CONFIG, "digest": config_digest, "size": config.len() },
            "layers": [{ "mediaType": LAYER, "digest": layer_digest, "size": layer.len() }],
        }))?;
        Ok(Self { blobs: vec![(layer_digest, layer), (config_digest, config)], manifest })
    }

    /// The digest under which a registry knows it, as `sha256:...`.
    pub fn digest(&self) -> String {
        digest(&self.manifest)
    }

    /// The size of its files, in bytes.
    pub fn size(&self) -> usize {
        self.blobs.iter().map(|(_, blob)| blob.len()).sum()
    }

    /// The media type of its manifest.
    pub(crate) fn media_type() -> &'static str {
        MANIFEST
    }
}

fn config(run: &Run) -> Value {
    let mut config = json!({});
    for (member, value) in
        [("Entrypoint", &run.entrypoint), ("Cmd", &run.command), ("Env", &run.environment)]
    {
        if !value.is_empty() {
            config[member] = value.as_slice().into();
        }
    }
    for (member, value) in [("User", &run.user), ("WorkingDir", &run.folder)] {
        if !value.is_empty() {
            config[member] = value.as_str().into();
        }
    }
    config
}

/// This machine's, as the format names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail by it")]

    use super::*;

    #[test]
    fn image_digest_is_equal_when_files_and_run_are_equal() {
        let mut tree = Tree::new();
        tree.text("/a", 0o644, "a");
        let run = Run { command: vec!["/a".to_owned()], ..Run::default() };
        let image = Image::new(&tree, &run).unwrap();
        assert_eq!(image.digest(), Image::new(&tree.clone(), &run).unwrap().digest());
        let other = Image::new(&tree, &Run::default()).unwrap();
        assert_ne!(image.digest(), other.digest());
        assert_eq!(image.blobs[0].0, other.blobs[0].0, "the files are the same");
    }
}
