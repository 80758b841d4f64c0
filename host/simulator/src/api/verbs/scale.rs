//! The subresource `scale`.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::admission::attributes::Operation;
use crate::admission::webhooks;
use crate::api::request::Response;
use crate::api::request_body::read;
use crate::api::request_context::{Outcome, RequestContext, check_options, present};
use crate::api::strict_decoding;
use crate::api::verbs::patch;
use crate::api::verbs::patch::{PatchType, document};
use crate::api::verbs::update::uid_mismatch;
use crate::api::verbs::write;
use crate::apply::fieldset::{Element, FieldSet};
use crate::apply::ledger::Ledger;
use crate::apply::managed_fields::{Managers, Owned};
use crate::apply::managed_object::ManagedObject;
use crate::state::cluster::Cluster;
use crate::types::kind::Kind;
use crate::types::object::meta;
use crate::types::status_error::{FieldError, Named, StatusError};
use crate::types::value::{at, set};

/// The paths of the desired replicas, the current replicas and the selector.
struct Paths {
    spec: Vec<String>,
    status: Vec<String>,
    selector: Option<Vec<String>>,
}

fn paths(context: &RequestContext<'_>) -> Option<Paths> {
    let split = |path: &str| path.trim_start_matches('.').split('.').map(str::to_owned).collect();
    let Some(custom) = &context.kind.custom else {
        let selector = Some(split("spec.selector"));
        return Some(Paths {
            spec: split("spec.replicas"),
            status: split("status.replicas"),
            selector,
        });
    };
    let scale = custom.version(&context.kind.version)?.scale.as_ref()?;
    Some(Paths {
        spec: split(&scale.spec),
        status: split(&scale.status),
        selector: scale.selector.as_deref().map(split),
    })
}

fn dotted(path: &[String]) -> String {
    format!(".{}", path.join("."))
}

fn find<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    at(object, &path)
}

/// The kind of scales, which cannot be listed.
fn kind() -> Arc<Kind> {
    static KIND: OnceLock<Arc<Kind>> = OnceLock::new();
    KIND.get_or_init(|| Arc::new(Kind::of_subresource("autoscaling", "v1", "Scale", TYPE))).clone()
}

fn count(object: &Value, path: &[String]) -> i64 {
    find(object, path).and_then(Value::as_i64).unwrap_or(0)
}

/// A selector of labels as a text.
fn selector_text(selector: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // Old kinds have nothing but labels.
    let plain = selector.get("matchLabels").is_none() && selector.get("matchExpressions").is_none();
    let labels = if plain { selector } else { &selector["matchLabels"] };
    let mut demands: Vec<(String, String)> = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        demands.push((key.clone(), format!("{key}={}", text(value))));
    }
    let expressions = if plain { None } else { selector["matchExpressions"].as_array() };
    for one in expressions.into_iter().flatten() {
        let key = text(&one["key"]);
        let mut values: Vec<String> =
            one["values"].as_array().into_iter().flatten().map(text).collect();
        values.sort();
        values.dedup();
        let demand = match one["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.clone(),
            _ => format!("!{key}"),
        };
        demands.push((key, demand));
    }
    demands.sort_by(|(a, _), (b, _)| a.cmp(b));
    demands.into_iter().map(|(_, demand)| demand).collect::<Vec<_>>().join(",")
}

fn scale_of(object: &Value, paths: &Paths) -> Value {
    let mut metadata = json!({});
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(name) {
            metadata[name] = value.clone();
        }
    }
    let mut spec = json!({});
    if count(object, &paths.spec) != 0 {
        spec["replicas"] = count(object, &paths.spec).into();
    }
    let mut status = json!({ "replicas": count(object, &paths.status) });
    match paths.selector.as_ref().and_then(|path| find(object, path)) {
        Some(Value::String(text)) if !text.is_empty() => status["selector"] = text.as_str().into(),
        Some(selector @ Value::Object(_)) => status["selector"] = selector_text(selector).into(),
        _ => {}
    }
    json!({"kind": "Scale", "apiVersion": SCALE, "metadata": metadata, "spec": spec, "status": status})
}

/// Reads the scale of an object.
pub(crate) fn get_scale(cluster: &mut Cluster, context: &RequestContext<'_>) -> Outcome {
    let paths = paths(context).ok_or_else(StatusError::no_resource)?;
    let Some(object) = present(cluster, context) else {
        return Err(StatusError::not_found(context.named(&context.target.name)));
    };
    if find(&object, &paths.spec).is_none_or(Value::is_null) {
        let text = format!("the spec replicas field {:?} does not exist", dotted(&paths.spec));
        let details = json!({"causes": [{"message": text}]});
        return Err(StatusError::new(
            500,
            "InternalError",
            format!("Internal error occurred: {text}"),
        )
        .details(details));
    }
    Ok(Response::json(200, &scale_of(&object, &paths)))
}

/// Writes the scale of an object: decodes, tracks and validates it as a scale, then copies its
/// replicas to the object.
pub(crate) fn write_scale(cluster: &mut Cluster, context: &RequestContext<'_>) -> Outcome {
    let patches = context.request.method == "PATCH";
    let way = if patches { Some(PatchType::of(context)?) } else { None };
    if !patches {
        check_options(context.query, "UpdateOptions")?;
    }
    let paths = paths(context).ok_or_else(StatusError::no_resource)?;
    let Some(old) = present(cluster, context) else {
        return Err(StatusError::not_found(context.named(&context.target.name)));
    };
    let of_scale = RequestContext::new(context.target, kind(), context.user, context.request);
    let path: Vec<Element> = paths.spec.iter().map(|name| Element::field(name)).collect();
    let parents = old.ledger().managers();
    let own = Ledger::of(of_the_scale(&parents, &path));
    let mut live = ManagedObject::of(scale_of(&old, &paths), own);
    let custom = context.kind.custom.is_some();
    if custom && find(&old, &paths.spec).is_none_or(Value::is_null) {
        live["spec"]["replicas"] = UNSAID.into();
    }
    let mut scale = match way {
        Some(PatchType::Apply) => {
            let document = document(context)?;
            let present = Arc::new(live.clone());
            let mut scale = patch::applied(cluster, &of_scale, &document, Some(&present))?;
            if custom && *scale != *live {
                return Err(not_converted(&document, &scale));
            }
            cluster.warned.extend(strict_decoding::check_applied(&of_scale)?);
            write::check_namespace(&of_scale, &mut scale)?;
            patch::check_name(&of_scale, &scale)?;
            scale
        }
        Some(PatchType::Patch(kind)) => {
            let decoded = patch::patched(&of_scale, kind, &live)?;
            cluster.warned.extend(decoded.warnings);
            rewritten(cluster, &of_scale, decoded.object, &live)?
        }
        None => {
            let decoded = write::decode(&of_scale, read(&of_scale)?)?;
            cluster.warned.extend(decoded.warnings);
            rewritten(cluster, &of_scale, decoded.object, &live)?
        }
    };
    webhooks::mutate(cluster, &of_scale, Operation::Update, &mut scale, Some(&live))?;
    let figure = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    if custom && figure == UNSAID {
        let text = format!("the spec replicas field {:?} cannot be empty", dotted(&paths.spec));
        return Err(StatusError::bad_request(text));
    }
    if !custom && figure < 0 {
        let why = "must be greater than or equal to 0";
        let error = FieldError::invalid("spec.replicas", figure, why);
        let named = Named { group: "autoscaling", what: "Scale", name: &context.target.name };
        return Err(StatusError::invalid(named, &[error]));
    }
    let (sent, present) = (meta(&scale, "uid"), meta(&old, "uid"));
    if !sent.is_empty() && sent != present {
        let why = uid_mismatch(context, sent, present);
        return Err(StatusError::conflict(context.named(&context.target.name), &why));
    }
    let scales = scale.ledger().managers();
    let managers = of_the_object(context, parents, &scales, &path);
    let mut new = ManagedObject::of(Value::clone(&old), Ledger::of(managers).as_read());
    let names: Vec<&str> = paths.spec.iter().map(String::as_str).collect();
    set(&mut new, &names, figure.into());
    let sent = meta(&scale, "resourceVersion");
    if !sent.is_empty() {
        new["metadata"]["resourceVersion"] = sent.into();
    }
    let shown = ManagedObject::new(scale_of(&new, &paths));
    webhooks::validate(cluster, &of_scale, Operation::Update, Some(&shown), Some(&live))?;
    let stored = write::store_change(cluster, context, &old, new)?;
    Ok(Response::json(200, &scale_of(&stored, &paths)))
}

/// A replaced or patched scale, with its managers.
fn rewritten(
    cluster: &Cluster,
    of_scale: &RequestContext<'_>,
    mut scale: Value,
    live: &ManagedObject,
) -> Result<ManagedObject, StatusError> {
    write::check_namespace(of_scale, &mut scale)?;
    patch::check_name(of_scale, &scale)?;
    Ok(write::track(cluster, of_scale, Some(live), scale))
}

/// The server's error for an apply to the scale of a custom kind: it decodes the scale as that
/// kind.
fn not_converted(scale_object: &Value, scale: &Value) -> StatusError {
    StatusError::unforeseen(format!(
        "failed to convert new object ({}/{}; {SCALE}, Kind=Scale) to proper version: request to convert CR to an invalid group/version: {}",
        meta(scale_object, "namespace"),
        meta(scale_object, "name"),
        scale["apiVersion"].as_str().unwrap_or_default(),
    ))
}

/// The version of scales.
const SCALE: &str = "autoscaling/v1";
const TYPE: &str = "io.k8s.api.autoscaling.v1.Scale";
/// The replicas of a scale whose object has none: Go's minimum.
const UNSAID: i64 = i32::MIN as i64;

/// The path of the replicas in a scale.
fn in_scale() -> FieldSet {
    FieldSet::of(&[&["spec", "replicas"]])
}

/// The managers of an object's replicas, as managers of the scale. The version of an update is part
/// of its manager.
fn of_the_scale(parents: &Managers, path: &[Element]) -> Managers {
    let owners = parents.iter().filter(|(_, owned)| owned.set().has_path(path));
    owners
        .map(|(manager, owned)| {
            let owned = Owned::new(in_scale(), SCALE, owned.time.clone());
            (manager.in_version(SCALE), owned)
        })
        .collect()
}

/// The managers of a scale's replicas, as managers of the object.
fn of_the_object(
    context: &RequestContext<'_>,
    parents: Managers,
    scales: &Managers,
    path: &[Element],
) -> Managers {
    let mut only = FieldSet::default();
    only.insert(path);
    let figure = [Element::field("spec"), Element::field("replicas")];
    let mut left: Managers = scales
        .iter()
        .filter(|(_, owned)| owned.set().has_path(&figure))
        .map(|(manager, _)| {
            let owned = Owned::new(only.clone(), &context.kind.api_version(), None);
            (manager.clone(), owned)
        })
        .collect();
    let mut result = Managers::new();
    for (manager, mut owned) in parents {
        if owned.set().has_path(path) && left.remove(&manager).is_none() {
            owned.subtract(&only);
            if owned.set().is_empty() {
                continue;
            }
        }
        result.insert(manager, owned);
    }
    result.extend(left);
    result
}
