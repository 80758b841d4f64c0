//! Names and times that several parts of the demo share.

use std::time::Duration;

/// The namespace of the samples.
pub(super) const NAMESPACE: &str = "demo";

/// How far in the past the clock of a simulated cluster starts. Loading the guests takes this
/// much virtual time at most.
pub(super) const HEAD_START: Duration = Duration::from_secs(10);

/// The list of all Modules.
pub(super) const MODULES: &str = "/apis/innkeeper.dev/v1alpha1/modules";

/// The kinds of the primaries: kind, apiVersion, plural.
pub(super) const PRIMARIES: [(&str, &str, &str); 6] = [
    ("MaintPage", "maintpage.example.com/v1alpha1", "maintpages"),
    ("Podroute", "quay.io/v1alpha1", "podroutes"),
    ("PostgreSQL", "exp.wheel.jp/v1", "postgresqls"),
    ("Kabocha", "kabocha.example.com/v1alpha1", "kabochas"),
    ("Imo", "imo.example.com/v1alpha1", "imos"),
    ("Kuri", "kuri.example.com/v1alpha1", "kuris"),
];

/// The key of the label on every object that the demo creates on a live cluster.
pub(super) const LABEL: &str = "app.kubernetes.io/managed-by";
/// The value of [`LABEL`].
pub(super) const LABEL_VALUE: &str = "innkeeper-demo";
