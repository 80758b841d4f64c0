//! The subresource `scale`.

use serde_json::{Value, json};

use super::write::parse;
use super::{Ask, Outcome};
use crate::apply::fieldset::{Element, FieldSet};
use crate::apply::managed_fields::{Manager, Managers, Operation, Owned, decode, encode};
use crate::apply::node::Node;
use crate::apply::updater::{Write, apply, update};
use crate::apply::{conflict, shape};
use crate::builtin::table;
use crate::cluster::Cluster;
use crate::object::{meta, unset};
use crate::request::Answer;
use crate::status_error::{FieldError, Named, StatusError};
use crate::value::{at, set};

/// Where figures are: the wanted one, the present one, the selector.
struct Paths {
    spec: Vec<String>,
    status: Vec<String>,
    selector: Option<Vec<String>>,
}

fn paths(ask: &Ask<'_>) -> Option<Paths> {
    let split = |path: &str| path.trim_start_matches('.').split('.').map(str::to_owned).collect();
    let Some(custom) = &ask.kind.custom else {
        let selector = Some(split("spec.selector"));
        return Some(Paths {
            spec: split("spec.replicas"),
            status: split("status.replicas"),
            selector,
        });
    };
    let scale = custom.version(&ask.kind.version)?.scale.as_ref()?;
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

fn scale_of(object: &Value, paths: &Paths) -> Value {
    let mut metadata = json!({});
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(name) {
            metadata[name] = value.clone();
        }
    }
    let count = |path: &[String]| find(object, path).and_then(Value::as_i64).unwrap_or(0);
    let mut spec = json!({});
    if count(&paths.spec) != 0 {
        spec["replicas"] = count(&paths.spec).into();
    }
    let mut status = json!({ "replicas": count(&paths.status) });
    match paths.selector.as_ref().and_then(|path| find(object, path)) {
        Some(Value::String(text)) if !text.is_empty() => status["selector"] = text.as_str().into(),
        Some(selector @ Value::Object(_)) => {
            let pairs: Vec<String> = selector["matchLabels"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                .collect();
            status["selector"] = pairs.join(",").into();
        }
        _ => {}
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

impl Cluster {
    /// Reads the scale of an object.
    pub(super) fn get_scale(&mut self, ask: &Ask<'_>) -> Outcome {
        let paths = paths(ask).ok_or_else(StatusError::no_resource)?;
        let Some(object) = self.present(ask) else {
            return Err(StatusError::not_found(ask.named(&ask.target.name)));
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
        Ok(Answer::json(200, &scale_of(&object, &paths)))
    }

    /// Writes it.
    pub(super) fn write_scale(&mut self, ask: &Ask<'_>) -> Outcome {
        let paths = paths(ask).ok_or_else(StatusError::no_resource)?;
        let Some(old) = self.present(ask) else {
            return Err(StatusError::not_found(ask.named(&ask.target.name)));
        };
        let mut scale = scale_of(&old, &paths);
        let content = ask.request.content_type.as_str();
        if ask.request.method == "PATCH" && content.starts_with("application/apply-patch") {
            return self.apply_scale(ask, &paths, &old, &scale);
        }
        let body = parse(&ask.request.body).map_err(StatusError::bad_request)?;
        if ask.request.method == "PATCH" {
            let kind = if content.starts_with("application/json-patch") {
                crate::patch::Kind::Json
            } else {
                crate::patch::Kind::Merge
            };
            scale = crate::patch::apply(kind, ask.kind.schema(), &scale, &ask.request.body)?;
        } else {
            scale = body;
        }
        let absent = find(&old, &paths.spec).is_none_or(Value::is_null);
        if absent && scale["spec"]["replicas"].is_null() && ask.kind.custom.is_some() {
            let text = format!("the spec replicas field {:?} cannot be empty", dotted(&paths.spec));
            return Err(StatusError::bad_request(text));
        }
        let mut new = Value::clone(&old);
        let path: Vec<&str> = paths.spec.iter().map(String::as_str).collect();
        set(&mut new, &path, scale["spec"]["replicas"].as_i64().unwrap_or(0).into());
        let said = meta(&scale, "resourceVersion");
        if !said.is_empty() {
            new["metadata"]["resourceVersion"] = said.into();
        }
        let changed = find(&old, &paths.spec) != find(&new, &paths.spec);
        let count = find(&new, &paths.spec).and_then(Value::as_i64).unwrap_or(0);
        share(ask, &mut new, &paths.spec, changed, count);
        let stored = self.store_change(ask, &old, new)?;
        Ok(Answer::json(200, &scale_of(&stored, &paths)))
    }
}

/// The version of scales.
const SCALE: &str = "autoscaling/v1";
/// Their type.
const TYPE: &str = "io.k8s.api.autoscaling.v1.Scale";

impl Cluster {
    /// Server-side apply of the scale: of who owns the figure, as if it were an object of its own.
    fn apply_scale(&mut self, ask: &Ask<'_>, paths: &Paths, old: &Value, live: &Value) -> Outcome {
        super::check_options(ask.query, "PatchOptions")?;
        if ask.query.get("fieldManager").is_empty() {
            let named = Named { group: "meta.k8s.io", what: "PatchOptions", name: "" };
            let error = FieldError::required("fieldManager", "is required for apply patch");
            return Err(StatusError::invalid(named, &[error]));
        }
        let body = parse(&ask.request.body)
            .map_err(|error| StatusError::bad_request(format!("error decoding YAML: {error}")))?;
        let said = |name: &str| body[name].as_str().unwrap_or_default();
        if said("apiVersion") != SCALE || said("kind") != "Scale" {
            let (group, of) =
                said("apiVersion").split_once('/').unwrap_or(("", said("apiVersion")));
            let text = format!("invalid object type: {group}/{of}, Kind={}", said("kind"));
            return Err(StatusError::bad_request(text));
        }
        let node = table().types.get(TYPE).map_or_else(Node::none, Node::root);
        let problems = shape::problems(node, &body, false);
        if !problems.is_empty() {
            return Err(StatusError::unforeseen(format!(
                "failed to create typed patch object ({}/{}; {SCALE}, Kind=Scale): {}",
                meta(&body, "namespace"),
                meta(&body, "name"),
                shape::describe(&problems)
            )));
        }
        let (ignored, now) = (FieldSet::default(), self.time());
        let write = Write { node, version: SCALE, ignored: &ignored, now: &now };
        let parents = decode(old["metadata"].get("managedFields")).unwrap_or_default();
        let path = elements(&paths.spec);
        let mut scales = owners(&parents, &path, &FieldSet::of(&[&["spec", "replicas"]]), SCALE);
        if scales.is_empty() {
            // What nobody owns belongs to somebody who was there before.
            let before = Manager::new("before-first-apply", Operation::Update, SCALE, "scale");
            scales = update(&write, &json!({}), live, scales, &before);
        }
        let manager = Manager::new(&ask.manager(), Operation::Apply, SCALE, "scale");
        let applied = apply(&write, live, &body, scales, &manager, ask.query.is("force"))
            .map_err(|conflicts| conflict::error(&conflicts))?;
        let scale = applied.object.unwrap_or_else(|| live.clone());
        let mut new = old.clone();
        let names: Vec<&str> = paths.spec.iter().map(String::as_str).collect();
        set(&mut new, &names, scale["spec"]["replicas"].as_i64().unwrap_or(0).into());
        let only = only(&path);
        let version = ask.kind.api_version();
        // An entry of the scale is one of the figure.
        let figure = FieldSet::of(&[&["spec", "replicas"]]);
        let scales = applied.managers.into_iter().filter(|(_, owned)| figure.is_within(&owned.set));
        let scales = scales.map(|(manager, _)| {
            (manager, Owned { set: only.clone(), version: version.clone(), time: None })
        });
        note(&mut new, &back(parents, scales.collect(), &path));
        let stored = self.store_change(ask, old, new)?;
        Ok(Answer::json(200, &scale_of(&stored, paths)))
    }
}

fn elements(path: &[String]) -> Vec<Element> {
    path.iter().map(|name| Element::field(name)).collect()
}

fn only(path: &[Element]) -> FieldSet {
    let mut only = FieldSet::default();
    only.insert(path);
    only
}

/// Those who own the figure, as managers of a scale.
fn owners(parents: &Managers, path: &[Element], set: &FieldSet, version: &str) -> Managers {
    parents
        .iter()
        .filter(|(_, owned)| owned.set.has_path(path))
        .map(|(manager, _)| {
            let owned = Owned { set: set.clone(), version: version.to_owned(), time: None };
            (manager.in_version(SCALE), owned)
        })
        .collect()
}

/// The managers of the object, after those of its scale have become these.
fn back(parents: Managers, mut scales: Managers, path: &[Element]) -> Managers {
    let only = only(path);
    let mut result = Managers::new();
    for (manager, mut owned) in parents {
        if owned.set.has_path(path) && scales.remove(&manager).is_none() {
            owned.set = owned.set.difference(&only);
            if owned.set.is_empty() {
                continue;
            }
        }
        result.insert(manager, owned);
    }
    result.extend(scales);
    result
}

fn note(object: &mut Value, managers: &Managers) {
    unset(object, "managedFields");
    if let Some(list) = encode(managers) {
        object["metadata"]["managedFields"] = list;
    }
}

/// Who owns the figure after a write of the scale: the owners are carried over to the scale and back, in
/// which those that update are told apart by the version in which they did.
fn share(ask: &Ask<'_>, object: &mut Value, path: &[String], changed: bool, count: i64) {
    let parents = decode(object["metadata"].get("managedFields")).unwrap_or_default();
    let path = elements(path);
    let only = only(&path);
    let version = ask.kind.api_version();
    let mut scales = owners(&parents, &path, &only, &version);
    // What nobody owned is nobody's afterwards.
    if changed && !scales.is_empty() && count == 0 {
        // No replicas are none in a scale.
        scales.clear();
    } else if changed && !scales.is_empty() {
        let manager = Manager::new(&ask.manager(), Operation::Update, SCALE, "scale");
        let owned = Owned { set: only, version, time: None };
        scales = Managers::from([(manager, owned)]);
    }
    note(object, &back(parents, scales, &path));
}
