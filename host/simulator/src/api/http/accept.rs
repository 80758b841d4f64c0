//! The media types that a client accepts.

/// The form in which a response shows objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// The whole objects.
    Plain,
    /// A table, for people, in this API version.
    Table(&'static str),
    /// Only the metadata of one object, in this API version.
    Metadata(&'static str),
    /// Only the metadata of the objects of a list, in this API version.
    MetadataList(&'static str),
    /// The discovery document of all groups with their resources.
    Aggregated,
}

/// The negotiated media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) view: View,
    /// YAML; otherwise JSON.
    pub(crate) yaml: bool,
}

/// The first supported media type that a client accepts; `None` if it accepts none.
pub(crate) fn negotiate(accept: &str) -> Option<Accepted> {
    first(accept, |_| true)
}

/// The same for a kind that has no tables.
pub(crate) fn negotiate_without_tables(accept: &str) -> Option<Accepted> {
    first(accept, |view| !matches!(view, View::Table(_)))
}

fn first(accept: &str, is_supported: impl Fn(View) -> bool) -> Option<Accepted> {
    if accept.trim().is_empty() {
        return Some(Accepted { view: View::Plain, yaml: false });
    }
    accept.split(',').filter_map(range).find(|accepted| is_supported(accepted.view))
}

fn range(range: &str) -> Option<Accepted> {
    let mut parts = range.split(';').map(str::trim);
    let yaml = match parts.next()? {
        "application/json" | "application/*" | "*/*" => false,
        "application/yaml" => true,
        _ => return None,
    };
    let (mut kind, mut group, mut version) = ("", "", "");
    for part in parts {
        match part.split_once('=') {
            Some(("as", value)) => kind = value,
            Some(("g", value)) => group = value,
            Some(("v", value)) => version = value,
            _ => {}
        }
    }
    let meta_version = match (group, version) {
        ("meta.k8s.io", "v1") => Some("meta.k8s.io/v1"),
        ("meta.k8s.io", "v1beta1") => Some("meta.k8s.io/v1beta1"),
        _ => None,
    };
    let view = match (kind, group, version) {
        ("", ..) => View::Plain,
        ("Table", ..) => View::Table(meta_version?),
        ("PartialObjectMetadata", ..) => View::Metadata(meta_version?),
        ("PartialObjectMetadataList", ..) => View::MetadataList(meta_version?),
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => View::Aggregated,
        _ => return None,
    };
    Some(Accepted { view, yaml })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(accept: &str) -> Option<View> {
        negotiate(accept).map(|accepted| accepted.view)
    }

    #[test]
    fn first_supported_media_type_is_chosen() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        assert_eq!(view(""), Some(View::Plain));
        assert_eq!(view("*/*"), Some(View::Plain));
        assert_eq!(view(&format!("{table},application/json")), Some(View::Table("meta.k8s.io/v1")));
        assert_eq!(
            view(&format!("application/json;as=Odd;v=v1;g=x,{table}")),
            Some(View::Table("meta.k8s.io/v1"))
        );
        assert_eq!(
            view("application/vnd.kubernetes.protobuf, application/json"),
            Some(View::Plain)
        );
        let old = view("application/json;as=Table;v=v1beta1;g=meta.k8s.io");
        assert_eq!(old, Some(View::Table("meta.k8s.io/v1beta1")));
        assert_eq!(view("application/json;as=Table;v=v1beta2;g=meta.k8s.io"), None);
        assert_eq!(view("application/vnd.kubernetes.protobuf"), None);
        assert!(negotiate("application/yaml").unwrap().yaml);
    }
}
