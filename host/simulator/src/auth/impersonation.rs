//! Acting as another user, as the Impersonate headers of a request ask for it.

use crate::api::request::Request;
use crate::auth::rbac;
use crate::auth::rbac::{Attributes, forbidden};
use crate::auth::user::User;
use crate::state::cluster::Cluster;
use crate::types::status_error::StatusError;

/// The user of a request after impersonation, if its sender may impersonate that user and each
/// group.
pub(crate) fn effective_user(cluster: &Cluster, request: &Request) -> Result<User, StatusError> {
    let Some(acting) = &request.acting else { return Ok(request.user.clone()) };
    if acting.name.is_empty() {
        let message = format!("requested {} without impersonating a user", acting.printed());
        return Err(StatusError::bad_request(message));
    }
    for [group, resource, subresource, namespace, name] in acting.parts() {
        let verb = "impersonate";
        let wanted = Attributes { verb, group, resource, subresource, namespace, name };
        if rbac::granted(cluster, &request.user, &wanted).is_none() {
            return Err(forbidden(&request.user, &wanted));
        }
    }
    Ok(acting.user())
}
