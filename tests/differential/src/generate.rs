//! Random cases.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::case::{Case, Step};
use crate::maker::{MANAGERS, Maker};
use crate::query::in_query;
use crate::subjects::subjects;

/// Requests in a case.
const STEPS: usize = 14;
/// One in so many cases is watched.
const WATCHED: u32 = 8;
/// The namespace of all requests, as [`crate::place::fill`] finds it.
const NAMESPACE: &str = "{n}";

/// A case of requests about one kind.
pub fn case(rng: &mut Rng) -> Case {
    let all = subjects(NAMESPACE);
    // The kind that has everything comes most often.
    let subject =
        if rng.u8(..5) < 2 { all[0].clone() } else { all[rng.usize(..all.len())].clone() };
    let names = if rng.u8(..4) == 0 { vec!["one", "two"] } else { vec!["one"] };
    let mut maker = Maker { rng, subject, names };
    let mut steps = Vec::new();
    if maker.one_in(40) {
        steps.extend(maker.crowd());
    }
    if steps.is_empty() && maker.rng.u8(..4) > 0 {
        // Something to work on.
        steps.extend(maker.beginning());
    }
    for _ in 0..STEPS {
        steps.push(maker.step());
    }
    if maker.one_in(WATCHED) {
        maker.watch(&mut steps);
    }
    steps.push(maker.list());
    if maker.one_in(3) && maker.is_namespaced() {
        let first = format!("{}?labelSelector=run={{s}}&limit=1", maker.subject.path);
        let rest = format!("{first}&continue={{uid:continue}}");
        for path in [first, rest] {
            steps.push(maker.make("GET", path, "", Value::Null, "pages of"));
        }
    }
    Case { steps, ..Case::default() }
}

impl Maker<'_> {
    fn step(&mut self) -> Step {
        match self.rng.u8(..36) {
            0..12 => self.apply(),
            12..15 => self.create(),
            15..18 => self.update(),
            18..21 => self.patch("application/merge-patch+json"),
            21 => self.json_patch(),
            22 => self.pointers(),
            23 => self.patch("application/strategic-merge-patch+json"),
            24 => self.strategic_patch(),
            25..29 => self.status(),
            29..31 => self.delete(),
            31 | 32 => self.list(),
            33 => self.scale(),
            34 => self.delete_collection(),
            _ => self.get(),
        }
    }

    /// An object of two managers, in which there is no mistake.
    fn beginning(&mut self) -> Vec<Step> {
        let name = self.name();
        let apply = |maker: &mut Self, manager: &str, force: &str| {
            let object = maker.right_object(name);
            let path = maker.path(name, &format!("?fieldManager={manager}{force}"));
            maker.make("PATCH", path, "application/apply-patch+yaml", object, "apply")
        };
        let force = if self.one_in(4) { "" } else { "&force=true" };
        vec![apply(self, MANAGERS[0], ""), apply(self, MANAGERS[1], force)]
    }

    /// More managers than are kept apart.
    fn crowd(&mut self) -> Vec<Step> {
        let mut steps = vec![self.create()];
        for number in 10..23 {
            let body = json!({"metadata": {"labels": {format!("l{number}"): "x"}}});
            let path = self.path("one", &format!("?fieldManager=m{number}"));
            steps.push(self.make("PATCH", path, "application/merge-patch+json", body, "crowd of"));
        }
        steps
    }

    fn apply(&mut self) -> Step {
        let (name, manager, extra) = (self.name(), self.manager(), self.extra());
        let mut object = self.object(name);
        self.guard(name, &mut object);
        let force = if self.rng.u8(..3) > 0 { "&force=true" } else { "" };
        let path = self.path(name, &format!("?fieldManager={manager}{force}{extra}"));
        self.make("PATCH", path, "application/apply-patch+yaml", object, "apply")
    }

    fn create(&mut self) -> Step {
        let (name, manager, extra) = (self.name(), self.manager(), self.extra());
        let object = self.object(name);
        let path = format!("{}?fieldManager={manager}{extra}", self.subject.path);
        self.make("POST", path, "", object, "create")
    }

    fn update(&mut self) -> Step {
        let (name, manager, extra) = (self.name(), self.manager(), self.extra());
        let mut object = self.object(name);
        match self.rng.u8(..8) {
            0..5 => object["metadata"]["resourceVersion"] = format!("{{rv:{name}}}").into(),
            5 => object["metadata"]["managedFields"] = json!([{}]),
            _ => self.guard(name, &mut object),
        }
        let path = self.path(name, &format!("?fieldManager={manager}{extra}"));
        self.make("PUT", path, "", object, "update")
    }

    fn patch(&mut self, kind: &str) -> Step {
        let kind = if self.subject.strategic { kind } else { "application/merge-patch+json" };
        let (name, manager, extra) = (self.name(), self.manager(), self.extra());
        let mut object = self.object(name);
        self.guard(name, &mut object);
        if self.one_in(2) {
            self.erase(&mut object);
        }
        let path = self.path(name, &format!("?fieldManager={manager}{extra}"));
        let what = if kind.contains("strategic") { "strategic patch" } else { "merge patch" };
        self.make("PATCH", path, kind, object, what)
    }

    /// Puts a null in place of a member.
    fn erase(&mut self, object: &mut Value) {
        let names: Vec<String> = object
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .filter(|name| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata"))
            .collect();
        let Some(name) = names.get(self.rng.usize(..names.len().max(1))) else { return };
        let inner: Vec<String> =
            object[name].as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default();
        match inner.get(self.rng.usize(..inner.len().max(1))) {
            Some(member) => object[name][member] = Value::Null,
            None => object[name] = Value::Null,
        }
    }

    fn json_patch(&mut self) -> Step {
        let (name, manager) = (self.name(), self.manager());
        let object = self.object(name);
        let mut operations = Vec::new();
        for (member, value) in object.as_object().into_iter().flatten() {
            if matches!(member.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let members: Map<String, Value> = value.as_object().cloned().unwrap_or_default();
            match self.rng.u8(..6) {
                0 => operations.push(json!({"op": "remove", "path": format!("/{member}")})),
                1 => operations
                    .push(json!({"op": "test", "path": format!("/{member}"), "value": value})),
                2 => {
                    for (name, value) in members {
                        operations.push(json!({"op": "replace", "path": format!("/{member}/{name}"), "value": value}));
                    }
                }
                3 => {
                    for (name, value) in members {
                        operations.push(json!({"op": "add", "path": format!("/{member}/{name}"), "value": value}));
                    }
                }
                _ => operations
                    .push(json!({"op": "add", "path": format!("/{member}"), "value": value})),
            }
        }
        if self.one_in(3) {
            operations
                .push(json!({"op": "add", "path": "/metadata/labels", "value": self.labels()}));
        }
        let path = self.path(name, &format!("?fieldManager={manager}"));
        self.make("PATCH", path, "application/json-patch+json", operations.into(), "json patch")
    }

    fn status(&mut self) -> Step {
        if self.subject.status.is_none() {
            return self.apply();
        }
        let (name, manager) = (self.name(), self.manager());
        let mut object = self.status_object(name);
        self.guard(name, &mut object);
        match self.rng.u8(..4) {
            0 | 1 => {
                let force = if self.rng.bool() { "&force=true" } else { "" };
                let path = self.path(name, &format!("/status?fieldManager={manager}{force}"));
                self.make("PATCH", path, "application/apply-patch+yaml", object, "apply status")
            }
            2 => {
                let path = self.path(name, &format!("/status?fieldManager={manager}"));
                self.make(
                    "PATCH",
                    path,
                    "application/merge-patch+json",
                    object,
                    "merge patch status",
                )
            }
            _ => {
                object["metadata"]["resourceVersion"] = format!("{{rv:{name}}}").into();
                let path = self.path(name, &format!("/status?fieldManager={manager}"));
                self.make("PUT", path, "", object, "update status")
            }
        }
    }

    fn delete(&mut self) -> Step {
        let name = self.name();
        let mut body = self.delete_options(name);
        let mut query = String::new();
        if self.one_in(3) {
            query = in_query(&body).replacen('&', "?", 1);
            body = Value::Null;
        }
        let path = self.path(name, &query);
        self.make("DELETE", path, "", body, "delete")
    }

    fn scale(&mut self) -> Step {
        if self.subject.kind != "Gadget" && self.subject.kind != "Deployment" {
            return self.get();
        }
        let (name, manager) = (self.name(), self.manager());
        if self.rng.bool() {
            let path = self.path(name, "/scale");
            return self.make("GET", path, "", Value::Null, "get scale");
        }
        let path = self.path(name, &format!("/scale?fieldManager={manager}"));
        let body = json!({"spec": {"replicas": self.rng.u8(..4)}});
        self.make("PATCH", path, "application/merge-patch+json", body, "patch scale")
    }

    fn get(&mut self) -> Step {
        let name = self.name();
        let path = self.path(name, "");
        self.make("GET", path, "", Value::Null, "get")
    }
}
