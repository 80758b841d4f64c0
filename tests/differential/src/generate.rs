//! Random cases.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::case::{Case, Step};
use crate::shapes::{Shape, Subject, subjects, value};

/// Requests in a case.
const STEPS: usize = 14;
/// One in so many cases is watched.
const WATCHED: u32 = 8;
/// The namespace of all requests, as [`crate::case::fill`] finds it.
const NAMESPACE: &str = "{n}";
/// How many managers apply and update.
const MANAGERS: [&str; 3] = ["ann", "bob", "cid"];

/// What is remembered of an object while a case is made.
pub(crate) struct Maker<'r> {
    pub(crate) rng: &'r mut Rng,
    pub(crate) subject: Subject,
    pub(crate) names: Vec<&'static str>,
}

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
    pub(crate) fn one_in(&mut self, many: u32) -> bool {
        self.rng.u32(..many) == 0
    }

    pub(crate) fn is_namespaced(&self) -> bool {
        self.subject.path.contains("/namespaces/")
    }

    pub(crate) fn name(&mut self) -> &'static str {
        self.names[self.rng.usize(..self.names.len())]
    }

    pub(crate) fn manager(&mut self) -> &'static str {
        MANAGERS[self.rng.usize(..MANAGERS.len())]
    }

    pub(crate) fn labels(&mut self) -> Value {
        let shape = Shape::Map(
            vec!["app", "tier"],
            Box::new(Shape::One(vec!["a".into(), "b".into(), "c".into()])),
        );
        let mut labels = value(&shape, self.rng);
        labels["run"] = "{s}".into();
        labels
    }

    fn metadata(&mut self, name: &str) -> Value {
        let mut metadata = json!({ "name": format!("{name}{{s}}") });
        if self.rng.bool() {
            metadata["labels"] = self.labels();
        }
        if self.one_in(12) {
            metadata["generateName"] = "made-".into();
        }
        if self.one_in(4) {
            let shape = Shape::Map(
                vec!["note", "x.dev/y"],
                Box::new(Shape::One(vec!["1".into(), "2".into()])),
            );
            metadata["annotations"] = value(&shape, self.rng);
        }
        if self.one_in(8) {
            let shape = Shape::List(Box::new(Shape::One(vec!["x.dev/a".into(), "x.dev/b".into()])));
            metadata["finalizers"] = value(&shape, self.rng);
        }
        if self.one_in(10) {
            let owner = |name: &str, uid: &str| json!({"apiVersion": "v1", "kind": "Thing", "name": name, "uid": uid});
            let all = [
                owner("o", "11111111-1111-4111-8111-111111111111"),
                owner("p", "22222222-2222-4222-8222-222222222222"),
            ];
            metadata["ownerReferences"] = all[..self.rng.usize(1..3)].to_vec().into();
        }
        metadata
    }

    pub(crate) fn object(&mut self, name: &str) -> Value {
        let mut object = self.right_object(name);
        if self.one_in(14) {
            self.spoil(&mut object);
            // How long what is on a node is given must be said: see its shape.
            if let Some(spec) = object["spec"].as_object_mut()
                && !spec.get("terminationGracePeriodSeconds").is_some_and(Value::is_number)
            {
                spec.remove("nodeName");
            }
        }
        object
    }

    /// One in which there is no mistake.
    pub(crate) fn right_object(&mut self, name: &str) -> Value {
        let mut object = value(&self.subject.content.clone(), self.rng);
        object["apiVersion"] = self.subject.api_version.into();
        object["kind"] = self.subject.kind.into();
        object["metadata"] = self.metadata(name);
        if self.one_in(12)
            && let Some(status) = self.subject.status.clone()
        {
            object["status"] = value(&status, self.rng);
        }
        object
    }

    /// Makes a mistake somewhere in the content.
    fn spoil(&mut self, object: &mut Value) {
        let wrong = [json!(null), json!("text"), json!(7), json!([]), json!({}), json!(true)];
        let mut wrong = wrong[self.rng.usize(..wrong.len())].clone();
        if self.subject.kind == "NetworkPolicy" && wrong == json!([]) {
            // Empty rules are not compared: see docs/simulator.md.
            wrong = json!(7);
        }
        let unknown = self.rng.bool();
        let mut place = object;
        for _ in 0..self.rng.usize(1..4) {
            let Some(map) = place.as_object() else { return };
            let names: Vec<String> = map
                .keys()
                .filter(|name| {
                    !matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "name")
                })
                .cloned()
                .collect();
            if names.is_empty() {
                return;
            }
            let name = names[self.rng.usize(..names.len())].clone();
            if unknown {
                place["unknown"] = wrong;
                return;
            }
            if !place[&name].is_object() || self.rng.bool() {
                place[&name] = wrong;
                return;
            }
            place = &mut place[&name];
        }
    }

    fn status_object(&mut self, name: &str) -> Value {
        let status = self.subject.status.clone().map(|shape| value(&shape, self.rng));
        let mut object = json!({
            "apiVersion": self.subject.api_version,
            "kind": self.subject.kind,
            "metadata": {"name": format!("{name}{{s}}")},
            "status": status.unwrap_or_default(),
        });
        if self.one_in(6) {
            object["metadata"]["labels"] = self.labels();
        }
        object
    }

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

    pub(crate) fn make(
        &self,
        method: &str,
        path: String,
        content_type: &str,
        body: Value,
        what: &str,
    ) -> Step {
        Step {
            method: method.to_owned(),
            path,
            content_type: content_type.to_owned(),
            body,
            about: format!("{what} {}", self.subject.kind),
            of: (self.subject.api_version.to_owned(), self.subject.kind.to_owned()),
            ..Step::default()
        }
    }

    pub(crate) fn path(&self, name: &str, query: &str) -> String {
        format!("{}/{name}{{s}}{query}", self.subject.path)
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

    pub(crate) fn extra(&mut self) -> String {
        let mut text = String::new();
        if self.one_in(12) {
            text.push_str("&dryRun=All");
        }
        if self.one_in(6) {
            let kind = ["Strict", "Warn", "Ignore"][self.rng.usize(..3)];
            text = format!("{text}&fieldValidation={kind}");
        }
        text
    }

    fn guard(&mut self, name: &str, object: &mut Value) {
        match self.rng.u8(..24) {
            0 => object["metadata"]["resourceVersion"] = format!("{{rv:{name}}}").into(),
            1 => object["metadata"]["resourceVersion"] = "1".into(),
            2 => object["metadata"]["uid"] = format!("{{uid:{name}}}").into(),
            3 => object["metadata"]["uid"] = "33333333-3333-4333-8333-333333333333".into(),
            _ => {}
        }
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
            query = crate::collections::in_query(&body).replacen('&', "?", 1);
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
