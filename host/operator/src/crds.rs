//! CustomResourceDefinitions that a guest describes: installed as the module's ServiceAccount,
//! within the groups that its Module grants, before the guest serves.
//!
//! The label [`MODULE_LABEL`] names the module that installed a definition: only that module changes it.

mod objects;

use std::collections::BTreeSet;
use std::time::Duration;

use innkeeper_cluster::session::Force;
use innkeeper_cluster::{ApiError, Session, crd};
use innkeeper_contract::Kind;
use innkeeper_core::{Key, Manager, Object, additive, foreign, settled};
use innkeeper_modules::definitions::MODULE_LABEL;
use innkeeper_modules::machine::reason::CRD_NOT_ADDITIVE;
use innkeeper_modules::rollout::Example;
use innkeeper_modules::{Again, CrdWish, Deed, Verdict};
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
    pub session: &'a Session,
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
    pub async fn install(&self, wishes: &[CrdWish]) -> Result<(), Verdict> {
        // All are decided before one is written: a candidate that is held changes nothing.
        let mut decisions = Vec::new();
        for wish in wishes {
            decisions.push((wish, self.decide(wish).await?));
        }
        for (wish, decision) in decisions {
            let Decision::Apply { body, exists, fields } = decision else { continue };
            match self.apply(wish, &body).await {
                // Only labels or texts would change: an account without that right may still serve.
                Err(verdict) if exists && fields.is_empty() && verdict.reason == "CRDForbidden" => {
                    tracing::warn!(crd = %wish.name, module = self.module, "{}", verdict.message);
                }
                result => result?,
            }
        }
        for wish in wishes {
            crd::established(self.session, &wish.name, ESTABLISHED_WITHIN).await.map_err(
                |error| Verdict::new("CRDNotEstablished", error.to_string(), Again::Later),
            )?;
        }
        Ok(())
    }

    /// What installing would change, and what would be refused. Nothing is written.
    pub async fn preview(&self, wishes: &[CrdWish]) -> Vec<Example> {
        let mut changes = Vec::new();
        for wish in wishes {
            let (deed, fields) = match self.decide(wish).await {
                Ok(Decision::Apply { exists: false, .. }) => (Deed::Create, Vec::new()),
                Ok(Decision::Apply { fields, .. }) if fields.is_empty() => continue,
                Ok(Decision::Apply { fields, .. }) => (Deed::Change, fields),
                Err(refused) if refused.reason == CRD_NOT_ADDITIVE => {
                    (Deed::Change, vec![foreign::one_line(&refused.message, REFUSAL_BYTES_MAX)])
                }
                // Installing reports the other errors.
                Ok(Decision::Keep) | Err(_) => continue,
            };
            let object = format!(
                "{} {}",
                crd::kind().kind,
                foreign::one_line(&wish.name, REFUSAL_BYTES_MAX)
            );
            changes.push(Example { deed, object, fields });
        }
        changes
    }

    async fn decide(&self, wish: &CrdWish) -> Result<Decision, Verdict> {
        let Some(live) = self.live(wish).await? else {
            if !wish.granted {
                return Err(not_granted(wish));
            }
            let body = with_metadata(self.body(wish), "resourceVersion", "1");
            return Ok(Decision::Apply { body, exists: false, fields: Vec::new() });
        };
        if !is_ours(&live) || !wish.granted {
            check_foreign(wish, &live)?;
            return Ok(Decision::Keep);
        }
        let definition: Value = serde_json::from_str(&live.text).unwrap_or_default();
        if let Some(owner) = live.labels.get(MODULE_LABEL).filter(|owner| *owner != self.module) {
            check_shared(wish, owner, &definition)?;
            return Ok(Decision::Keep);
        }
        refuse_webhook(wish)?;
        let body = self.body(wish);
        if settled::is_settled_after_restart(&live, &Manager::Host, &body)
            || !changes_additively(wish, &definition)?
        {
            return Ok(Decision::Keep);
        }
        let fields = additive::changed(&definition, &wish.definition, FIELDS_MAX);
        if !fields.is_empty() {
            objects::check(self, wish, &definition).await?;
        }
        // What somebody changed since it was read has not been compared.
        let body = with_metadata(body, "uid", &live.uid);
        let body = with_metadata(body, "resourceVersion", &live.resource_version);
        Ok(Decision::Apply { body, exists: true, fields })
    }

    async fn live(&self, wish: &CrdWish) -> Result<Option<Object>, Verdict> {
        match self.session.get(&crd::kind(), &Key::new("", &wish.name)).await {
            Ok(object) => Ok(Some(object)),
            Err(ApiError::NotFound { .. }) => Ok(None),
            Err(error) => Err(refused(wish, &error)),
        }
    }

    /// What is sent: the definition with the module that it belongs to.
    fn body(&self, wish: &CrdWish) -> Value {
        let mut body = wish.definition.clone();
        body["metadata"]["labels"][MODULE_LABEL] = self.module.into();
        settled::stamp(&mut body);
        body
    }

    async fn apply(&self, wish: &CrdWish, body: &Value) -> Result<(), Verdict> {
        refuse_webhook(wish)?;
        tracing::info!(crd = %wish.name, module = self.module, "definition installation started");
        if !wish.dropped.is_empty() {
            tracing::warn!(
                crd = %wish.name, module = self.module,
                "of the definition only name, descriptive labels and spec are installed, not {}",
                wish.dropped.join(", ")
            );
        }
        let key = Key::new("", &wish.name);
        match self.session.apply(&crd::kind(), &key, &Manager::Host, body, Force::Yes).await {
            Ok(_) => Ok(()),
            Err(error) => Err(refused(wish, &error)),
        }
    }
}

/// Whether the host installed it: ours are applied by the host's manager.
fn is_ours(live: &Object) -> bool {
    live.applied_by(&Manager::Host).is_some()
}

fn refuse_webhook(wish: &CrdWish) -> Result<(), Verdict> {
    let strategy = wish.definition.pointer("/spec/conversion/strategy").and_then(Value::as_str);
    if strategy != Some("Webhook") {
        return Ok(());
    }
    Err(Verdict::new(
        "CRDConversionWebhook",
        format!(
            "the CustomResourceDefinition {} asks for a conversion webhook; a guest cannot serve one",
            wish.name
        ),
        Again::Never,
    ))
}

/// Whether a definition is to be written over the live one of ours: it may only add. One that the live
/// one takes all of, as when an older version of a guest serves again, is left out: definitions are
/// never taken back.
fn changes_additively(wish: &CrdWish, live: &Value) -> Result<bool, Verdict> {
    let broken = additive::breaking(live, &wish.definition);
    if broken.is_empty() {
        return Ok(true);
    }
    if additive::breaking(&wish.definition, live).is_empty() {
        tracing::info!(crd = %wish.name, "the installed definition has all that this one has: it stays");
        return Ok(false);
    }
    Err(incompatible(
        wish,
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
fn incompatible(wish: &CrdWish, why: &str) -> Verdict {
    // What is installed may be changed at any time, by a person, so it is looked at again.
    Verdict::new(
        CRD_NOT_ADDITIVE,
        format!(
            "the CustomResourceDefinition {} {why}, or change the installed definition yourself",
            wish.name
        ),
        Again::Later,
    )
}

fn with_metadata(mut body: Value, name: &str, value: &str) -> Value {
    body["metadata"][name] = value.into();
    body
}

/// A definition that another module installed is used if it takes all that this one takes.
fn check_shared(wish: &CrdWish, owner: &str, live: &Value) -> Result<(), Verdict> {
    let missing = additive::breaking(&wish.definition, live);
    if missing.is_empty() {
        return Ok(());
    }
    Err(Verdict::new(
        "CRDOwnedByModule",
        format!(
            "the CustomResourceDefinition {} belongs to the module {owner}, and the installed one takes less than this module needs: {}; let {owner} install it, or set the label {MODULE_LABEL} of the definition to this module's name",
            wish.name,
            first(&missing)
        ),
        Again::Later,
    ))
}

/// A definition of somebody else is used as it is, if it serves the versions.
fn check_foreign(wish: &CrdWish, live: &Object) -> Result<(), Verdict> {
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
    let (wanted, has) = (served(&wish.definition), served(&live));
    let missing: Vec<&String> = wanted.iter().filter(|version| !has.contains(version)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing: Vec<&str> = missing.into_iter().map(String::as_str).collect();
    Err(Verdict::new(
        "CRDVersionMissing",
        format!(
            "the CustomResourceDefinition {} was installed by somebody else and does not serve {}",
            wish.name,
            missing.join(", ")
        ),
        Again::Later,
    ))
}

fn not_granted(wish: &CrdWish) -> Verdict {
    Verdict::new(
        "CRDGroupNotAllowed",
        format!(
            "the CustomResourceDefinition {} is not installed, and the Module does not let the host install it; add {} to spec.allowedCRDGroups, or install it yourself",
            wish.name, wish.group
        ),
        Again::Later,
    )
}

fn refused(wish: &CrdWish, error: &ApiError) -> Verdict {
    let again = match error {
        ApiError::Invalid { .. } | ApiError::Malformed { .. } | ApiError::Immutable { .. } => {
            Again::WhenSpecChanges
        }
        _ => Again::Later,
    };
    Verdict::new(
        format!("CRD{}", error.reason()),
        format!("the CustomResourceDefinition {}: {error}", wish.name),
        again,
    )
}

/// What a CustomResourceDefinition says of the statuses of a kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Statuses {
    /// Nothing would be pruned, or nothing is known.
    #[default]
    Whole,
    /// What this schema does not name is pruned.
    Pruned(Value),
    /// There is no status subresource.
    Absent,
}

impl Statuses {
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

    fn wish(granted: bool) -> CrdWish {
        CrdWish {
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
            check_foreign(&wish(true), &live(&json!([{"name": "v1alpha1", "served": true}]))),
            Ok(())
        );
        let refused =
            check_foreign(&wish(true), &live(&json!([{"name": "v1alpha1", "served": false}])));
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
        let wish = |properties: &Value| CrdWish {
            definition: json!({"spec": {"versions": versions(properties)}}),
            ..wish(true)
        };
        let live = live(&versions(&json!({"a": {"type": "string"}, "b": {}})));
        let live: Value = serde_json::from_str(&live.text).unwrap();
        let of = |properties: Value| changes_additively(&wish(&properties), &live);
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
        let wish = CrdWish {
            definition: json!({"spec": {"versions": versions(&json!({"a": {"type": "string"}}))}}),
            ..wish(true)
        };
        let live = |properties: Value| json!({"spec": {"versions": versions(&properties)}});
        let more = live(json!({"a": {"type": "string"}, "b": {}}));
        assert_eq!(check_shared(&wish, "first", &more), Ok(()));
        let refused = check_shared(&wish, "first", &live(json!({"b": {}}))).unwrap_err();
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
        let of = |definition: &Value| Statuses::of(definition, &kind);
        assert_eq!(
            of(&with(json!({"properties": {"status": {"type": "object", "properties": {}}}}))),
            Statuses::Pruned(json!({"type": "object", "properties": {}}))
        );
        assert_eq!(
            of(&with(json!({"type": "object"}))),
            Statuses::Pruned(json!({"type": "object"}))
        );
        assert_eq!(
            of(&with(json!({"x-kubernetes-preserve-unknown-fields": true}))),
            Statuses::Whole
        );
        assert_eq!(of(&json!({})), Statuses::Whole);
        let v1 = Kind::namespaced("quay.io/v1", "Podroute", "podroutes");
        assert_eq!(Statuses::of(&with(json!({})), &v1), Statuses::Absent);
    }
}
