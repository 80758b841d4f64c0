//! CustomResourceDefinitions that a guest describes: installed as the module's ServiceAccount,
//! within the groups that its Module grants, before the guest serves.

use std::time::Duration;

use innkeeper_cluster::session::Force;
use innkeeper_cluster::{ApiError, Session, crd};
use innkeeper_contract::Kind;
use innkeeper_core::{Key, Manager, Object, additive, settled};
use innkeeper_modules::machine::reason::CRD_NOT_ADDITIVE;
use innkeeper_modules::{Again, CrdWish, Verdict};
use serde_json::Value;

/// How long a definition may take until the server serves it.
pub const ESTABLISHED_WITHIN: Duration = Duration::from_secs(30);

/// So many of the changes that would break something are told.
const BREAKS_TOLD: usize = 5;

/// Installs what is granted and checks what is not; waits until all are served.
///
/// # Errors
/// Why the guest cannot serve: the first definition that stands in the way.
pub async fn install(session: &Session, wishes: &[CrdWish]) -> Result<(), Verdict> {
    let kind = crd::kind();
    for wish in wishes {
        let key = Key::new("", &wish.name);
        let live = match session.get(&kind, &key).await {
            Ok(object) => Some(object),
            Err(ApiError::NotFound { .. }) => None,
            Err(error) => return Err(refused(wish, &error)),
        };
        match live {
            Some(live) if !is_ours(&live) => check_foreign(wish, &live)?,
            live if wish.granted => apply(session, &kind, &key, wish, live.as_ref()).await?,
            Some(live) => check_foreign(wish, &live)?,
            None => return Err(not_granted(wish)),
        }
    }
    for wish in wishes {
        crd::established(session, &wish.name, ESTABLISHED_WITHIN)
            .await
            .map_err(|error| Verdict::new("CrdNotEstablished", error.to_string(), Again::Later))?;
    }
    Ok(())
}

/// Whether the host installed it: ours are applied by the host's manager.
fn is_ours(live: &Object) -> bool {
    live.applied_by(&Manager::Host).is_some()
}

async fn apply(
    session: &Session,
    kind: &Kind,
    key: &Key,
    wish: &CrdWish,
    live: Option<&Object>,
) -> Result<(), Verdict> {
    if wish.definition.pointer("/spec/conversion/strategy").and_then(Value::as_str)
        == Some("Webhook")
    {
        return Err(Verdict::new(
            "CrdConversionWebhook",
            format!(
                "the CustomResourceDefinition {} asks for a conversion webhook; a guest cannot serve one",
                wish.name
            ),
            Again::Never,
        ));
    }
    let mut body = wish.definition.clone();
    settled::stamp(&mut body);
    let body = match live {
        Some(live) if settled::is_settled_after_restart(live, &Manager::Host, &body) => {
            return Ok(());
        }
        Some(live) => {
            if !changes_additively(wish, live)? {
                return Ok(());
            }
            with_metadata(body, "uid", &live.uid)
        }
        None => with_metadata(body, "resourceVersion", "1"),
    };
    tracing::info!(crd = %wish.name, "installing");
    match session.apply(kind, key, &Manager::Host, &body, Force::Yes).await {
        Ok(_) => Ok(()),
        Err(error) => Err(refused(wish, &error)),
    }
}

/// Whether a definition is to be written over the live one of ours: it may only add. One that the live
/// one takes all of, as when an older version of a guest serves again, is left out: definitions are
/// never taken back.
fn changes_additively(wish: &CrdWish, live: &Object) -> Result<bool, Verdict> {
    let live: Value = serde_json::from_str(&live.text).unwrap_or_default();
    let broken = additive::breaking(&live, &wish.definition);
    if broken.is_empty() {
        return Ok(true);
    }
    if additive::breaking(&wish.definition, &live).is_empty() {
        tracing::info!(crd = %wish.name, "the installed definition has all that this one has: it stays");
        return Ok(false);
    }
    let more = broken.len().saturating_sub(BREAKS_TOLD);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let told = broken.iter().take(BREAKS_TOLD).cloned().collect::<Vec<_>>().join("; ");
    // What is installed may be changed at any time, by a person, so it is looked at again.
    Err(Verdict::new(
        CRD_NOT_ADDITIVE,
        format!(
            "the CustomResourceDefinition {} would take less than the installed one: {told}{more}; add a version instead of changing one, or change the installed definition yourself",
            wish.name
        ),
        Again::Later,
    ))
}

fn with_metadata(mut body: Value, name: &str, value: &str) -> Value {
    body["metadata"][name] = value.into();
    body
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
        "CrdVersionMissing",
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
        "CrdNotGranted",
        format!(
            "the CustomResourceDefinition {} is not installed, and the Module does not let the host install it; add {} to spec.crdGroups, or install it yourself",
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
        format!("Crd{}", error.reason()),
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
        let of = |properties: Value| changes_additively(&wish(&properties), &live);
        assert_eq!(of(json!({"a": {"type": "string"}, "b": {}, "c": {}})), Ok(true));
        assert_eq!(of(json!({"a": {"type": "string"}})), Ok(false));
        let refused = of(json!({"a": {"type": "integer"}, "c": {}})).unwrap_err();
        assert_eq!(refused.reason, "CrdNotAdditive");
        assert!(refused.message.contains(".a has another type; .b is gone"), "{}", refused.message);
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
