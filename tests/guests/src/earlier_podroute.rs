//! The guest podroute with the definition of an earlier version.

/// Descriptions in the guest's definition, and what an earlier version had there: that `image` is
/// not empty, and a default of `replicas`.
const DESCRIPTIONS: [(&str, &str); 2] = [
    (
        r#""description": "The image of the pods. It serves HTTP on port 8080. Without it the guest creates nothing.""#,
        r#""minLength": 1, "description": "The image of the pods. It serves HTTP on port 8080.""#,
    ),
    (
        r#""description": "Number of pods; 0 if left out, unless the Module's parameter `replicasWhenLeftOut` says\notherwise.""#,
        r#""default": 1, "description": "Number of pods.""#,
    ),
];

/// Returns podroute's component of today with the definition of the earlier version in its data.
/// The definition is as long as before, so that the component stays valid.
pub fn earlier_podroute(component: &[u8]) -> Vec<u8> {
    let mut earlier = component.to_vec();
    for (today, before) in DESCRIPTIONS {
        let width = today.len();
        let at = component.windows(width).position(|part| part == today.as_bytes());
        let at = at.unwrap();
        earlier[at..at + width].copy_from_slice(format!("{before:<width$}").as_bytes());
    }
    earlier
}
