//! The toggle of a MaintPage, and what follows it.

use anyhow::Result;
use innkeeper_cluster_tests::stage::{SOON, says};
use innkeeper_cluster_tests::{Admin, Kind, Stage};
use serde_json::{Value, json};

pub(crate) const MAINTPAGE: Kind = Kind::new("maintpage.example.com/v1alpha1", "MaintPage");

pub(crate) fn toggled(on: bool) -> Value {
    json!({"spec": {"maintpageconfig": {"maintpagetoggle": on}}})
}

/// Waits until the Service selects the pods with this label `app`.
pub(crate) async fn until_routed(
    admin: &Admin,
    namespace: &str,
    service: &str,
    app: &str,
) -> Result<Value> {
    let what = format!("Service {service} routes to {app}");
    let wanted = json!({ "app": app });
    let at = (Kind::SERVICE, namespace, service);
    admin.until(&what, SOON, at, |one| one["spec"]["selector"] == wanted).await
}

/// Waits until `status.maintpublishstatus` is this, for this reason.
pub(crate) async fn until_published(
    stage: &Stage,
    namespace: &str,
    name: &str,
    (status, reason): (&str, &str),
) -> Result<Value> {
    let what = format!("{name} says {status}, {reason}");
    let at = (MAINTPAGE, namespace, name);
    let condition = if status == "Published" { "True" } else { "False" };
    let is_so = |one: &Value| {
        one["status"]["maintpublishstatus"] == status && says(one, "Published", condition, reason)
    };
    stage.admin.until(&what, SOON, at, is_so).await
}
