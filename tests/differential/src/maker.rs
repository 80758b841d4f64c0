//! The parts of random requests about one kind.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::case::Step;
use crate::shapes::{Shape, Subject, value};

/// How many managers apply and update.
pub(crate) const MANAGERS: [&str; 3] = ["ann", "bob", "cid"];

/// What is remembered of an object while a case is made.
pub(crate) struct Maker<'r> {
    pub(crate) rng: &'r mut Rng,
    pub(crate) subject: Subject,
    pub(crate) names: Vec<&'static str>,
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
            // A Pod on a node needs a grace period: see its shape.
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

    pub(crate) fn status_object(&mut self, name: &str) -> Value {
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

    pub(crate) fn guard(&mut self, name: &str, object: &mut Value) {
        match self.rng.u8(..24) {
            0 => object["metadata"]["resourceVersion"] = format!("{{rv:{name}}}").into(),
            1 => object["metadata"]["resourceVersion"] = "1".into(),
            2 => object["metadata"]["uid"] = format!("{{uid:{name}}}").into(),
            3 => object["metadata"]["uid"] = "33333333-3333-4333-8333-333333333333".into(),
            _ => {}
        }
    }
}
