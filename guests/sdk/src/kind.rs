/// Declares a kind in one line.
///
/// The first form makes a type that names the kind, for [`Raw`](crate::Raw) objects and for the
/// manifest. The name of the type is the kind:
///
/// ```
/// use innkeeper_sdk::serde_json::json;
/// use innkeeper_sdk::{Desired, Raw, Resource, kind};
///
/// kind!(pub Certificate, "cert-manager.io/v1", "certificates");
/// kind!(
///     /// Cluster-scoped.
///     ClusterIssuer, "cert-manager.io/v1", "clusterissuers", Cluster
/// );
///
/// let certificate = Raw::<Certificate>::new("web", json!({ "spec": { "secretName": "web-tls" } }));
/// Desired::new().object(certificate);
/// assert_eq!(ClusterIssuer::kind().resource(), "clusterissuers.cert-manager.io");
/// ```
///
/// The second form implements traits for a struct of your own: [`Resource`](crate::Resource), and
/// any of [`Primary`](crate::Primary) and [`Apply`](crate::Apply) for a struct with a field
/// `metadata`. The name of the struct is the kind, unless another follows it:
///
/// ```
/// use innkeeper_sdk::{Metadata, Resource, kind};
///
/// #[derive(serde::Deserialize, serde::Serialize)]
/// struct Namespace {
///     metadata: Metadata,
/// }
///
/// kind!(Primary + Apply for Namespace, "v1", "namespaces", Cluster);
///
/// #[derive(serde::Deserialize)]
/// struct ObservedPod {}
///
/// kind!(Resource for ObservedPod = "Pod", "v1", "pods");
/// assert_eq!(ObservedPod::KIND, "Pod");
/// ```
#[macro_export]
macro_rules! kind {
    (@Resource $type:ty) => {};
    (@Primary $type:ty) => {
        impl $crate::Primary for $type {
            fn metadata(&self) -> &$crate::Metadata {
                &self.metadata
            }
        }
    };
    (@Apply $type:ty) => {
        impl $crate::Apply for $type {
            fn metadata(&self) -> &$crate::Metadata {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut $crate::Metadata {
                &mut self.metadata
            }
        }
    };
    (@name $type:ident) => {
        ::std::stringify!($type)
    };
    (@name $type:ident $kind:expr) => {
        $kind
    };
    ($trait:ident $(+ $more:ident)* for $type:ident $(= $kind:expr)?, $api_version:expr, $plural:expr $(, $scope:ident)? $(,)?) => {
        impl $crate::Resource for $type {
            const API_VERSION: &'static str = $api_version;
            const KIND: &'static str = $crate::kind!(@name $type $($kind)?);
            const PLURAL: &'static str = $plural;
            $(const SCOPE: $crate::Scope = $crate::Scope::$scope;)?
        }
        $crate::kind!(@$trait $type);
        $($crate::kind!(@$more $type);)*
    };
    ($(#[$meta:meta])* $vis:vis $name:ident, $api_version:expr, $plural:expr $(, $scope:ident)? $(,)?) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name {}

        $crate::kind!(Resource for $name, $api_version, $plural $(, $scope)?);
    };
}
