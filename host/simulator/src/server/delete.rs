//! Deleting objects.

use std::sync::Arc;

use serde_json::{Value, json};

use super::write::parse;
use super::{Ask, Outcome};
use crate::admission::Operation;
use crate::cluster::Cluster;
use crate::crd::reading;
use crate::http::route::Target;
use crate::kinds;
use crate::object::{finalizers, generation, is_terminating, meta, set_finalizers};
use crate::request::Answer;
use crate::status_error::{FieldError, Named, StatusError};
use crate::switch::{Bug, planted};

/// Holds an object until what it owns has been let go.
pub(crate) const ORPHAN: &str = "orphan";
/// Holds an object until what it owns is gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// How a delete is to be done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    uid: Option<String>,
    version: Option<String>,
    policy: Option<String>,
    orphan: Option<bool>,
    grace: Option<i64>,
    dry_run: bool,
}

impl Options {
    fn read(ask: &Ask<'_>) -> Result<Self, StatusError> {
        if ask.request.body.is_empty() {
            return Self::of(ask, &json!({}));
        }
        Self::of(ask, &parse(&ask.request.body).map_err(StatusError::bad_request)?)
    }

    fn of(ask: &Ask<'_>, body: &Value) -> Result<Self, StatusError> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let query =
            |name: &str| Some(ask.query.get(name).to_owned()).filter(|text| !text.is_empty());
        let conditions = &body["preconditions"];
        let options = Self {
            uid: text(&conditions["uid"]),
            version: text(&conditions["resourceVersion"]),
            policy: text(&body["propagationPolicy"]).or_else(|| query("propagationPolicy")),
            orphan: body["orphanDependents"].as_bool(),
            grace: body["gracePeriodSeconds"]
                .as_i64()
                .or_else(|| query("gracePeriodSeconds")?.parse().ok()),
            dry_run: ask.query.dry_run()
                || body["dryRun"]
                    .as_array()
                    .is_some_and(|list| list.iter().any(|one| one == "All")),
        };
        let named = || Named { group: "meta.k8s.io", what: "DeleteOptions", name: "" };
        if let (Some(policy), Some(_)) = (&options.policy, options.orphan) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            let error = FieldError::invalid("propagationPolicy", policy.as_str(), why);
            return Err(StatusError::invalid(named(), &[error]));
        }
        let known: Vec<String> = ["Background", "Foreground", "Orphan"].map(str::to_owned).into();
        if let Some(policy) = &options.policy
            && !known.contains(policy)
        {
            // The server quotes its list without spaces being sorted by text.
            let known: Vec<String> =
                ["Foreground", "Background", "Orphan", "nil"].map(str::to_owned).into();
            let error = FieldError::unsupported("propagationPolicy", policy.as_str(), &known);
            return Err(StatusError::invalid(named(), &[error]));
        }
        Ok(options)
    }
}

impl Cluster {
    /// `delete`.
    pub(super) fn delete(&mut self, ask: &Ask<'_>) -> Outcome {
        let options = Options::read(ask)?;
        Ok(Answer::json(200, &self.delete_by(ask, &options)?))
    }

    /// Deletes an object as the options say. Gives what is answered.
    pub(crate) fn delete_object(
        &mut self,
        ask: &Ask<'_>,
        options: &Value,
    ) -> Result<Value, StatusError> {
        let options = Options::of(ask, options)?;
        self.delete_by(ask, &options)
    }

    fn delete_by(&mut self, ask: &Ask<'_>, options: &Options) -> Result<Value, StatusError> {
        let Some(object) = self.present(ask) else {
            return Err(StatusError::not_found(ask.named(&ask.target.name)));
        };
        let last = self.delete_one(ask, Arc::unwrap_or_clone(object), options)?;
        let (object, gone) = last;
        if !gone || kinds::returns_deleted(&ask.kind) {
            return Ok(object);
        }
        let mut details =
            json!({"name": ask.target.name, "kind": ask.kind.plural, "uid": meta(&object, "uid")});
        if !ask.kind.group.is_empty() {
            details["group"] = ask.kind.group.as_str().into();
        }
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
        Ok(status)
    }

    /// Deletes an object, or begins to. Gives it as it is now, and whether it is gone.
    fn delete_one(
        &mut self,
        ask: &Ask<'_>,
        mut object: Value,
        options: &Options,
    ) -> Result<(Value, bool), StatusError> {
        Self::check_conditions(ask, &object, options)?;
        let mut none = Value::Null;
        self.mutate(ask, Operation::Delete, &mut none, Some(&object))?;
        self.confirm(ask, Operation::Delete, None, Some(&object))?;
        if let Some(answer) = self.delete_specially(ask, &object, options.dry_run)? {
            return Ok(answer);
        }
        let before = object.clone();
        // Pods are given time, unless they are not running anywhere.
        let grace = kinds::grace(&ask.kind, &object, options.grace);
        if is_terminating(&object) && grace.is_some() {
            let pending = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
            if grace.is_some_and(|grace| grace >= pending) && pending > 0 {
                return Ok((object, false));
            }
        }
        let kept = collected(ask, &object, options);
        set_finalizers(&mut object, &kept);
        if kept.is_empty() && !finalizers(&before).is_empty() && options.version.is_some() {
            // The server asks for the version of the change that it has not made.
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ResourceVersion in precondition: , ResourceVersion in object meta: {}",
                ask.storage_key(),
                meta(&before, "resourceVersion")
            );
            return Err(StatusError::conflict(ask.named(&ask.target.name), &why));
        }
        let held = !kept.is_empty() && !planted(Bug::FinalizersAreIgnored);
        let graceful = grace.is_some_and(|grace| grace > 0);
        if held || graceful {
            let seconds = grace.unwrap_or(0);
            if is_terminating(&object) {
                object["metadata"]["deletionGracePeriodSeconds"] = seconds.into();
            } else {
                self.begin_deletion(&mut object, seconds);
            }
            // What is stored in another form is written even if nothing changes.
            let raw = self.is_raw(ask.kind_key(), ask.key());
            if !options.dry_run && (object != before || raw) {
                object = Arc::unwrap_or_clone(self.keep(ask, ask.key(), object));
                self.after_write(ask, &object);
            }
            return Ok((object, false));
        }
        if options.dry_run && !finalizers(&before).is_empty() {
            // Nothing is written and nothing gone: the server answers with an object of nothing.
            return Ok((Value::clone(&super::write::blank(ask)), false));
        }
        // What was to be changed before it goes is not.
        let mut last = before;
        let pending = last["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        if grace.is_some() && (!is_terminating(&last) || pending > 0) {
            if is_terminating(&last) {
                shorten(&mut last, pending);
            } else {
                self.begin_deletion(&mut last, 0);
            }
            if !options.dry_run {
                // Who watches is told of both.
                last = Arc::unwrap_or_clone(self.put(ask.kind_key(), ask.key(), last));
            }
        }
        if !options.dry_run {
            self.remove(ask.kind_key(), ask.key(), &mut last);
            self.after_removal(ask, &last);
        }
        Ok((last, true))
    }

    fn check_conditions(
        ask: &Ask<'_>,
        object: &Value,
        options: &Options,
    ) -> Result<(), StatusError> {
        if planted(Bug::DeleteIgnoresPreconditions) {
            return Ok(());
        }
        let present = meta(object, "uid");
        if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != present) {
            let why = format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({present}). The object might have been deleted and then recreated"
            );
            return Err(StatusError::conflict(ask.named_kind(&ask.target.name), &why));
        }
        let present = meta(object, "resourceVersion");
        if let Some(version) = options.version.as_deref().filter(|version| *version != present) {
            let why = format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({present}). The object might have been modified"
            );
            return Err(StatusError::conflict(ask.named_kind(&ask.target.name), &why));
        }
        Ok(())
    }

    /// Says of an object when it goes.
    fn begin_deletion(&self, object: &mut Value, seconds: i64) {
        if generation(object) > 0 && !planted(Bug::DeletionGrowsNoGeneration) {
            object["metadata"]["generation"] = (generation(object) + 1).into();
        }
        object["metadata"]["deletionTimestamp"] = self.after(seconds).into();
        object["metadata"]["deletionGracePeriodSeconds"] = seconds.into();
    }

    fn after(&self, seconds: i64) -> String {
        let time = self.now().checked_add(jiff::SignedDuration::from_secs(seconds));
        time.unwrap_or(jiff::Timestamp::MAX).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// `deletecollection`.
    pub(super) fn delete_collection(&mut self, ask: &Ask<'_>) -> Outcome {
        let options = Options::read(ask)?;
        let page = self.page(ask)?;
        let mut items = Vec::new();
        for stored in page.items {
            let mut object = Arc::unwrap_or_clone(stored.object());
            if reading::has_versions(&ask.kind) {
                reading::convert(&ask.kind, &mut object);
            }
            let target = Target {
                namespace: meta(&object, "namespace").to_owned(),
                name: meta(&object, "name").to_owned(),
                ..ask.target.clone()
            };
            let one = Ask::new(&target, ask.kind.clone(), ask.user, ask.request);
            let (mut object, _) = self.delete_one(&one, object, &options)?;
            if ask.kind.custom.is_none()
                && let Some(map) = object.as_object_mut()
            {
                map.remove("kind");
                map.remove("apiVersion");
            }
            items.push(object);
        }
        let list = json!({
            "kind": super::collection::list_kind(ask),
            "apiVersion": ask.kind.api_version(),
            "metadata": {"resourceVersion": self.store.version().to_string()},
            "items": items,
        });
        Ok(Answer::json(200, &list))
    }
}

/// No time is left of what an object was given.
fn shorten(object: &mut Value, pending: i64) {
    let ends = meta(object, "deletionTimestamp").parse::<jiff::Timestamp>().ok();
    let now = ends.and_then(|ends| ends.checked_sub(jiff::SignedDuration::from_secs(pending)).ok());
    if let Some(now) = now {
        object["metadata"]["deletionTimestamp"] =
            now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
    }
    object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
}

/// The finalizers that an object has when it is deleted so.
fn collected(ask: &Ask<'_>, object: &Value, options: &Options) -> Vec<String> {
    let present = finalizers(object);
    let policy = options.policy.as_deref();
    let has = |name: &str| present.iter().any(|one| one == name);
    let orphan = match (options.orphan, policy) {
        (Some(orphan), _) => orphan,
        (None, Some(policy)) => policy == "Orphan",
        (None, None) if has(ORPHAN) => true,
        (None, None) if has(FOREGROUND) => false,
        (None, None) => kinds::orphans_by_default(&ask.kind),
    };
    let foreground = match (options.orphan, policy) {
        (Some(_), _) => false,
        (None, Some(policy)) => policy == "Foreground",
        (None, None) => has(FOREGROUND),
    };
    let mut kept: Vec<String> =
        present.iter().filter(|one| *one != ORPHAN && *one != FOREGROUND).cloned().collect();
    if !kinds::is_collected(&ask.kind) {
        return kept;
    }
    if orphan {
        kept.push(ORPHAN.to_owned());
    }
    if foreground {
        kept.push(FOREGROUND.to_owned());
    }
    kept
}
