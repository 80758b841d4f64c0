//! Access reviews.

use serde_json::{Value, json};

use super::{Ask, Outcome};
use crate::cluster::Cluster;
use crate::rbac::Attributes;
use crate::request::{Answer, User};
use crate::status_error::StatusError;

impl Cluster {
    /// Answers whether somebody may do something.
    pub(super) fn review(&mut self, ask: &Ask<'_>) -> Outcome {
        let mut object = Self::decode(ask)?.object;
        self.track(ask, None, &mut object);
        let spec = object["spec"].clone();
        let user = match ask.kind.name.as_str() {
            "SelfSubjectAccessReview" => ask.user.clone(),
            "SubjectAccessReview" | "LocalSubjectAccessReview" => User {
                name: spec["user"].as_str().unwrap_or_default().to_owned(),
                groups: spec["groups"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
            },
            _ => return Err(StatusError::no_resource()),
        };
        let attributes = &spec["resourceAttributes"];
        let text = |name: &str| attributes[name].as_str().unwrap_or_default();
        let wanted = Attributes {
            verb: text("verb"),
            group: text("group"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
        };
        let reason = if attributes.is_object() { self.granted(&user, &wanted) } else { None };
        let mut status = json!({ "allowed": reason.is_some() });
        if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            status["reason"] = reason.into();
        }
        object["status"] = status;
        Ok(Answer::json(201, &object))
    }
}
