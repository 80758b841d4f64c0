//! CustomResourceDefinitions that a guest describes: installed as the module's ServiceAccount,
//! within the groups that its Module grants, before the guest serves.
//!
//! The label [`MODULE_LABEL`] names the module that installed a definition: only that module
//! changes it.

mod objects;

use std::collections::BTreeSet;
use std::time::Duration;

use innkeeper_cluster::client::Force;
use innkeeper_cluster::{ApiClient, ApiError, crd};
use innkeeper_contract::Kind;
use innkeeper_core::{Manager, Object, ObjectKey, crd_compat, foreign, in_sync};
use innkeeper_modules::definitions::MODULE_LABEL;
use innkeeper_modules::machine::reason::CRD_NOT_ADDITIVE;
use innkeeper_modules::rollout::Example;
use innkeeper_modules::{CrdRequest, PlannedChange, Rejection, RetryPolicy};
use serde_json::Value;
use tokio::sync::Mutex;

/// How long a definition may take until the server serves it.
pub const ESTABLISHED_WITHIN: Duration = Duration::from_secs(30);

/// The most incompatible changes that a message names.
const BREAKS_MAX: usize = 5;

/// So many changed fields of one definition are named.
const FIELDS_MAX: usize = 5;

/// The longest refusal in a preview, in bytes.
const REFUSAL_BYTES_MAX: usize = 512;

/// Installs definitions for one module.
#[derive(Clone, Copy, Debug)]
pub struct Installer<'a> {
    /// Requests as the module's ServiceAccount.
    pub client: &'a ApiClient,
    /// The module's name.
    pub module: &'a str,
    /// The namespaces of its primaries; empty for all.
    pub namespaces: &'a BTreeSet<String>,
    /// Held while stored objects are checked, over all modules.
    pub object_checks: &'a Mutex<()>,
}

/// What is done about one definition.
enum Decision {
    /// The installed one is used as it is.
    Keep,
    /// It is applied; the fields that change are none if it is not there yet.
    Apply {
        /// What is sent.
        body: Value,
        /// Whether it is there.
        exists: bool,
        /// Fields of its spec that change.
        fields: Vec<String>,
    },
}

impl Installer<'_> {
    /// Installs what is granted and checks what is not; waits until all are served.
    ///
    /// # Errors
    /// Why the guest cannot serve: the first definition that stands in the way.
    pub async fn install(&self, wishes: &[CrdRequest]) -> Result<(), Rejection> {
        // All are decided before one is written: a candidate that is held changes nothing.
        let mut decisions = Vec::new();
        for desired_state in wishes {
            decisions.push((desired_state, self.decide(desired_state).await?));
        }
        for (desired_state, decision) in decisions {
            let Decision::Apply { body, exists, fields } = decision else { continue };
            match self.apply(desired_state, &body).await {
                // Only labels or texts would change: an account without that right may still serve.
                Err(rejection)
                    if exists && fields.is_empty() && rejection.reason == "CRDForbidden" =>
                {
                    tracing::warn!(crd = %desired_state.name, module = self.module, "{}", rejection.message);
                }
                result => result?,
            }
        }
        for desired_state in wishes {
            crd::established(self.client, &desired_state.name, ESTABLISHED_WITHIN).await.map_err(
                |error| Rejection::new("CRDNotEstablished", error.to_string(), RetryPolicy::Later),
            )?;
        }
        Ok(())
    }

    /// What installing would change, and what would be refused. Nothing is written.
    pub async fn preview(&self, wishes: &[CrdRequest]) -> Vec<Example> {
        let mut changes = Vec::new();
        for desired_state in wishes {
            let (change, fields) = match self.decide(desired_state).await {
                Ok(Decision::Apply { exists: false, .. }) => (PlannedChange::Create, Vec::new()),
                Ok(Decision::Apply { fields, .. }) if fields.is_empty() => continue,
                Ok(Decision::Apply { fields, .. }) => (PlannedChange::Change, fields),
                Err(refused) if refused.reason == CRD_NOT_ADDITIVE => (
                    PlannedChange::Change,
                    vec![foreign::one_line(&refused.message, REFUSAL_BYTES_MAX)],
                ),
                // Installing reports the other errors.
                Ok(Decision::Keep) | Err(_) => continue,
            };
            let object = format!(
                "{} {}",
                crd::kind().kind,
                foreign::one_line(&desired_state.name, REFUSAL_BYTES_MAX)
            );
            changes.push(Example { change, object, fields });
        }
        changes
    }

    async fn decide(&self, desired_state: &CrdRequest) -> Result<Decision, Rejection> {
        let Some(live) = self.live(desired_state).await? else {
            if !desired_state.granted {
                return Err(not_granted(desired_state));
            }
            let body = with_metadata(self.body(desired_state), "resourceVersion", "1");
            return Ok(Decision::Apply { body, exists: false, fields: Vec::new() });
        };
        if !is_ours(&live) || !desired_state.granted {
            check_foreign(desired_state, &live)?;
            return Ok(Decision::Keep);
        }
        let definition: Value = serde_json::from_str(&live.text).unwrap_or_default();
        if let Some(owner) = live.labels.get(MODULE_LABEL).filter(|owner| *owner != self.module) {
            check_shared(desired_state, owner, &definition)?;
            return Ok(Decision::Keep);
        }
        refuse_webhook(desired_state)?;
        let body = self.body(desired_state);
        if in_sync::is_in_sync_after_restart(&live, &Manager::Host, &body)
            || !changes_additively(desired_state, &definition)?
        {
            return Ok(Decision::Keep);
        }
        let fields = crd_compat::changed_fields(&definition, &desired_state.definition, FIELDS_MAX);
        if !fields.is_empty() {
            objects::check(self, desired_state, &definition).await?;
        }
        // What somebody changed since it was read has not been compared.
        let body = with_metadata(body, "uid", &live.uid);
        let body = with_metadata(body, "resourceVersion", &live.resource_version);
        Ok(Decision::Apply { body, exists: true, fields })
    }

    async fn live(&self, desired_state: &CrdRequest) -> Result<Option<Object>, Rejection> {
        match self.client.get(&crd::kind(), &ObjectKey::new("", &desired_state.name)).await {
            Ok(object) => Ok(Some(object)),
            Err(ApiError::NotFound { .. }) => Ok(None),
            Err(error) => Err(refused(desired_state, &error)),
        }
    }

    /// What is sent: the definition with the module that it belongs to.
    fn body(&self, desired_state: &CrdRequest) -> Value {
        let mut body = desired_state.definition.clone();
        body["metadata"]["labels"][MODULE_LABEL] = self.module.into();
        in_sync::set_digest(&mut body);
        body
    }

    async fn apply(&self, desired_state: &CrdRequest, body: &Value) -> Result<(), Rejection> {
        refuse_webhook(desired_state)?;
        tracing::info!(crd = %desired_state.name, module = self.module, "definition installation started");
        if !desired_state.dropped.is_empty() {
            tracing::warn!(
                crd = %desired_state.name, module = self.module,
                "of the definition only name, descriptive labels and spec are installed, not {}",
                desired_state.dropped.join(", ")
            );
        }
        let key = ObjectKey::new("", &desired_state.name);
        match self.client.apply(&crd::kind(), &key, &Manager::Host, body, Force::Yes).await {
            Ok(_) => Ok(()),
            Err(error) => Err(refused(desired_state, &error)),
        }
    }
}

/// Whether the host installed it: ours are applied by the host's manager.
fn is_ours(live: &Object) -> bool {
    live.applied_by(&Manager::Host).is_some()
}

fn refuse_webhook(desired_state: &CrdRequest) -> Result<(), Rejection> {
    let strategy =
        desired_state.definition.pointer("/spec/conversion/strategy").and_then(Value::as_str);
    if strategy != Some("Webhook") {
        return Ok(());
    }
    Err(Rejection::new(
        "CRDConversionWebhook",
        format!(
            "the CustomResourceDefinition {} asks for a conversion webhook; a guest cannot serve one",
            desired_state.name
        ),
        RetryPolicy::Never,
    ))
}

/// Whether a definition is to be written over the live one of ours: it may only add. One that the
/// live one takes all of, as when an older version of a guest serves again, is left out:
/// definitions are never taken back.
fn changes_additively(desired_state: &CrdRequest, live: &Value) -> Result<bool, Rejection> {
    let broken = crd_compat::incompatible_changes(live, &desired_state.definition);
    if broken.is_empty() {
        return Ok(true);
    }
    if crd_compat::incompatible_changes(&desired_state.definition, live).is_empty() {
        tracing::info!(crd = %desired_state.name, "the installed definition has all that this one has: it stays");
        return Ok(false);
    }
    Err(incompatible(
        desired_state,
        &format!(
            "would take less than the installed one: {}; add fields instead of changing some",
            first(&broken)
        ),
    ))
}

/// The first of some changes, and how many more there are.
fn first(broken: &[String]) -> String {
    let more = broken.len().saturating_sub(BREAKS_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = broken.iter().take(BREAKS_MAX).cloned().collect::<Vec<_>>().join("; ");
    format!("{named}{more}")
}

/// A definition that must not replace the installed one.
fn incompatible(desired_state: &CrdRequest, why: &str) -> Rejection {
    // What is installed may be changed at any time, by a person, so it is looked at again.
    Rejection::new(
        CRD_NOT_ADDITIVE,
        format!(
            "the CustomResourceDefinition {} {why}, or change the installed definition yourself",
            desired_state.name
        ),
        RetryPolicy::Later,
    )
}

fn with_metadata(mut body: Value, name: &str, value: &str) -> Value {
    body["metadata"][name] = value.into();
    body
}

/// A definition that another module installed is used if it takes all that this one takes.
fn check_shared(desired_state: &CrdRequest, owner: &str, live: &Value) -> Result<(), Rejection> {
    let missing = crd_compat::incompatible_changes(&desired_state.definition, live);
    if missing.is_empty() {
        return Ok(());
    }
    Err(Rejection::new(
        "CRDOwnedByModule",
        format!(
            "the CustomResourceDefinition {} belongs to the module {owner}, and the installed one takes less than this module needs: {}; let {owner} install it, or set the label {MODULE_LABEL} of the definition to this module's name",
            desired_state.name,
            first(&missing)
        ),
        RetryPolicy::Later,
    ))
}

/// A definition of somebody else is used as it is, if it serves the versions.
fn check_foreign(desired_state: &CrdRequest, live: &Object) -> Result<(), Rejection> {
    let served = |definition: &Value| -> Vec<String> {
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        versions
            .into_iter()
            .flatten()
            .filter(|version| version["served"] == true)
            .filter_map(|version| version["name"].as_str().map(str::to_owned))
            .collect()
    };
    let live: Value = serde_json::from_str(&live.text).unwrap_or_default();
    let (wanted, has) = (served(&desired_state.definition), served(&live));
    let missing: Vec<&String> = wanted.iter().filter(|version| !has.contains(version)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing: Vec<&str> = missing.into_iter().map(String::as_str).collect();
    Err(Rejection::new(
        "CRDVersionMissing",
        format!(
            "the CustomResourceDefinition {} was installed by somebody else and does not serve {}",
            desired_state.name,
            missing.join(", ")
        ),
        RetryPolicy::Later,
    ))
}

fn not_granted(desired_state: &CrdRequest) -> Rejection {
    Rejection::new(
        "CRDGroupNotAllowed",
        format!(
            "the CustomResourceDefinition {} is not installed, and the Module does not let the host install it; add {} to spec.allowedCRDGroups, or install it yourself",
            desired_state.name, desired_state.group
        ),
        RetryPolicy::Later,
    )
}

fn refused(desired_state: &CrdRequest, error: &ApiError) -> Rejection {
    let again = match error {
        ApiError::Invalid { .. } | ApiError::Malformed { .. } | ApiError::Immutable { .. } => {
            RetryPolicy::WhenSpecChanges
        }
        _ => RetryPolicy::Later,
    };
    Rejection::new(
        format!("CRD{}", error.reason()),
        format!("the CustomResourceDefinition {}: {error}", desired_state.name),
        again,
    )
}

/// What a CustomResourceDefinition says of the statuses of a kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StatusSchema {
    /// Nothing would be pruned, or nothing is known.
    #[default]
    Whole,
    /// What this schema does not name is pruned.
    Pruned(Value),
    /// There is no status subresource.
    Absent,
}

impl StatusSchema {
    /// Reads a definition; `Whole` if it has no such version or schema.
    pub fn of(definition: &Value, kind: &Kind) -> Self {
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        let is_version = |version: &&Value| version["name"] == kind.version();
        let Some(version) = versions.and_then(|versions| versions.iter().find(is_version)) else {
            return Self::Whole;
        };
        if version.pointer("/subresources/status").is_none() {
            return Self::Absent;
        }
        let Some(schema) = version.pointer("/schema/openAPIV3Schema") else { return Self::Whole };
        match schema.pointer("/properties/status") {
            Some(status) => Self::Pruned(status.clone()),
            // Without a schema of its own the status is pruned, unless unknown fields are kept.
            None if schema["x-kubernetes-preserve-unknown-fields"] == true => Self::Whole,
            None => Self::Pruned(serde_json::json!({"type": "object"})),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn desired_state(granted: bool) -> CrdRequest {
        CrdRequest {
            name: "podroutes.quay.io".into(),
            group: "quay.io".into(),
            granted,
            dropped: Vec::new(),
            definition: json!({"spec": {"versions": [{"name": "v1alpha1", "served": true}]}}),
        }
    }

    fn live(versions: &Value) -> Object {
        let text =
            json!({"metadata": {"name": "podroutes.quay.io"}, "spec": {"versions": versions}});
        Object::decode(&crd::kind(), &text.to_string(), None).unwrap()
    }

    #[test]
    fn a_definition_of_somebody_else_is_used_if_it_serves_the_version() {
        assert_eq!(
            check_foreign(
                &desired_state(true),
                &live(&json!([{"name": "v1alpha1", "served": true}]))
            ),
            Ok(())
        );
        let refused = check_foreign(
            &desired_state(true),
            &live(&json!([{"name": "v1alpha1", "served": false}])),
        );
        assert_eq!(
            refused.unwrap_err().message,
            "the CustomResourceDefinition podroutes.quay.io was installed by somebody else and does not serve v1alpha1"
        );
    }

    #[test]
    fn a_definition_of_ours_may_only_grow_and_never_shrinks() {
        let versions = |properties: &Value| {
            json!([{"name": "v1alpha1", "served": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}}])
        };
        let desired_state = |properties: &Value| CrdRequest {
            definition: json!({"spec": {"versions": versions(properties)}}),
            ..desired_state(true)
        };
        let live = live(&versions(&json!({"a": {"type": "string"}, "b": {}})));
        let live: Value = serde_json::from_str(&live.text).unwrap();
        let of = |properties: Value| changes_additively(&desired_state(&properties), &live);
        assert_eq!(of(json!({"a": {"type": "string"}, "b": {}, "c": {}})), Ok(true));
        assert_eq!(of(json!({"a": {"type": "string"}})), Ok(false));
        let refused = of(json!({"a": {"type": "integer"}, "c": {}})).unwrap_err();
        assert_eq!(refused.reason, "CRDIncompatible");
        assert!(refused.message.contains(".a has another type; .b is gone"), "{}", refused.message);
    }

    #[test]
    fn a_definition_of_another_module_is_used_only_if_it_takes_as_much() {
        let versions = |properties: &Value| {
            json!([{"name": "v1alpha1", "served": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}}])
        };
        let desired_state = CrdRequest {
            definition: json!({"spec": {"versions": versions(&json!({"a": {"type": "string"}}))}}),
            ..desired_state(true)
        };
        let live = |properties: Value| json!({"spec": {"versions": versions(&properties)}});
        let more = live(json!({"a": {"type": "string"}, "b": {}}));
        assert_eq!(check_shared(&desired_state, "first", &more), Ok(()));
        let refused = check_shared(&desired_state, "first", &live(json!({"b": {}}))).unwrap_err();
        assert_eq!(refused.reason, "CRDOwnedByModule");
        assert!(refused.message.contains("belongs to the module first"), "{}", refused.message);
        assert!(refused.message.contains(".a is gone"), "{}", refused.message);
    }

    #[test]
    fn the_schema_of_the_status_is_found_by_version() {
        let kind = Kind::namespaced("quay.io/v1alpha1", "Podroute", "podroutes");
        let with = |schema: Value| {
            json!({"spec": {"versions": [
                {"name": "v1", "schema": {}},
                {"name": "v1alpha1", "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
            ]}})
        };
        let of = |definition: &Value| StatusSchema::of(definition, &kind);
        assert_eq!(
            of(&with(json!({"properties": {"status": {"type": "object", "properties": {}}}}))),
            StatusSchema::Pruned(json!({"type": "object", "properties": {}}))
        );
        assert_eq!(
            of(&with(json!({"type": "object"}))),
            StatusSchema::Pruned(json!({"type": "object"}))
        );
        assert_eq!(
            of(&with(json!({"x-kubernetes-preserve-unknown-fields": true}))),
            StatusSchema::Whole
        );
        assert_eq!(of(&json!({})), StatusSchema::Whole);
        let v1 = Kind::namespaced("quay.io/v1", "Podroute", "podroutes");
        assert_eq!(StatusSchema::of(&with(json!({})), &v1), StatusSchema::Absent);
    }
}
