//! Reviews: who one is, and what one may do.

use serde_json::{Map, Value, json};

use super::{Ask, Outcome};
use crate::cluster::Cluster;
use crate::rbac::Attributes;
use crate::request::Answer;
use crate::status_error::StatusError;
use crate::user::User;

impl Cluster {
    /// Answers who somebody is, or whether he may do something.
    pub(super) fn review(&mut self, ask: &Ask<'_>) -> Outcome {
        let mut object = Self::decode(ask, super::write::read(ask)?)?.object;
        self.track(ask, None, &mut object);
        let spec = object["spec"].clone();
        object["status"] = match ask.kind.name.as_str() {
            "SelfSubjectAccessReview" => self.access(&ask.user.clone(), &spec),
            "SubjectAccessReview" | "LocalSubjectAccessReview" => {
                let groups = spec["groups"].as_array().into_iter().flatten();
                let groups = groups.filter_map(Value::as_str).map(str::to_owned).collect();
                let name = spec["user"].as_str().unwrap_or_default();
                self.access(&User::new(name, groups), &spec)
            }
            "SelfSubjectRulesReview" => {
                let namespace = spec["namespace"].as_str().unwrap_or_default();
                if namespace.is_empty() {
                    return Err(StatusError::bad_request("no namespace on request"));
                }
                let (objects, paths) = self.rules(ask.user, namespace);
                json!({"resourceRules": objects, "nonResourceRules": paths, "incomplete": false})
            }
            "TokenReview" => self.review_token(&spec)?,
            "SelfSubjectReview" => {
                object["metadata"]["creationTimestamp"] = self.time().into();
                let mut user = Map::new();
                user.insert("username".to_owned(), ask.user.name.as_str().into());
                if !ask.user.uid.is_empty() {
                    user.insert("uid".to_owned(), ask.user.uid.as_str().into());
                }
                if !ask.user.extra.is_empty() {
                    user.insert("extra".to_owned(), json!(ask.user.extra));
                }
                if !ask.user.groups.is_empty() {
                    user.insert("groups".to_owned(), ask.user.groups.clone().into());
                }
                json!({ "userInfo": user })
            }
            _ => return Err(StatusError::no_resource()),
        };
        Ok(Answer::json(201, &object))
    }

    /// Whether somebody may do something.
    fn access(&self, user: &User, spec: &Value) -> Value {
        let of = |attributes: &'static str| {
            move |name: &str| spec[attributes][name].as_str().unwrap_or_default()
        };
        let reason = if spec["nonResourceAttributes"].is_object() {
            let text = of("nonResourceAttributes");
            self.granted_path(user, text("verb"), text("path"))
        } else if spec["resourceAttributes"].is_object() {
            let text = of("resourceAttributes");
            let wanted = Attributes {
                verb: text("verb"),
                group: text("group"),
                resource: text("resource"),
                subresource: text("subresource"),
                namespace: text("namespace"),
                name: text("name"),
            };
            self.granted(user, &wanted)
        } else {
            None
        };
        let mut status = json!({ "allowed": reason.is_some() });
        if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            status["reason"] = reason.into();
        }
        status
    }
}
