//! The metadata of Kubewarden policies.

use innkeeper_tiny_guests::kubewarden::Kubewarden;

use crate::{component, manifest};

/// Loads a policy that runs, with the bytes as its metadata. The manifest that the host makes from
/// accepted metadata keeps the properties of manifests, and reads no more than the metadata names.
pub fn fuzz_entry(data: &[u8]) {
    let module = Kubewarden::default().metadata(data).module();
    let Some(guest) = component::load(&module) else { return };
    let metadata = guest.kubewarden().expect("the module is a Kubewarden policy");
    let made = guest.manifest();
    manifest::check(made);
    assert!(made.primary.is_none() && made.owned.is_empty(), "a policy that reconciles: {made:?}");
    for kind in &made.reads {
        let is_named = metadata.context_aware_resources.iter().any(|resource| {
            resource.api_version == kind.api_version.as_str() && resource.kind == kind.kind.as_str()
        });
        assert!(is_named, "{kind:?} is read and not named");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_the_corpus_is_accepted() {
        let metadata = include_bytes!("../corpus/kubewarden/reads");
        let module = Kubewarden::default().metadata(*metadata).module();
        let guest = component::load(&module).expect("it is loaded");
        assert_eq!(guest.manifest().reads.len(), 2);
    }
}
