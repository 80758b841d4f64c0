/// The container of the maintenance Pod.
pub(crate) const PAGE: &str = "maintpage";

/// Returns the name of the maintenance Pod of a `MaintPage`.
pub fn page_name(maintpage: &str) -> String {
    format!("{maintpage}-maintpage-pod")
}
