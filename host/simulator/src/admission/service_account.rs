//! The admission plugin ServiceAccount: checks the ServiceAccount of new Pods.

use serde_json::{Value, json};

use crate::api::request_context::RequestContext;
use crate::state::cluster::Cluster;
use crate::types::object::meta;
use crate::types::status_error::StatusError;

/// Refuses a Pod whose ServiceAccount does not exist, except `default`, which a real controller
/// creates later.
pub(crate) fn check_service_account(
    cluster: &Cluster,
    context: &RequestContext<'_>,
    object: &Value,
) -> Result<(), StatusError> {
    let spec = &object["spec"];
    let text = |name: &str| spec[name].as_str().unwrap_or_default();
    let account = match text("serviceAccountName") {
        "" => text("serviceAccount"),
        account => account,
    };
    if !context.kind.is("", "Pod") || matches!(account, "" | "default") {
        return Ok(());
    }
    let accounts = (String::new(), "serviceaccounts".to_owned());
    if cluster.object(&accounts, &(context.namespace().to_owned(), account.to_owned())).is_some() {
        return Ok(());
    }
    let name = meta(object, "name");
    let message = format!(
        "pods {name:?} is forbidden: error looking up service account {}/{account}: serviceaccount {account:?} not found",
        context.namespace()
    );
    let details = json!({"name": name, "kind": "pods"});
    Err(StatusError::new(403, "Forbidden", message).details(details))
}
