//! One misbehaviour, and what the host is to answer.

use std::io::Read as _;

use flate2::Compression;
use flate2::read::GzEncoder;
use innkeeper_cluster_tests::stage::MODULES;
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

/// Status, reason and a part of the message of a condition.
pub(crate) type Expected = (&'static str, &'static str, &'static str);

/// Where the host says what it makes of a guest.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// In the Module's condition `Loaded`: the guest never runs.
    Module(Expected),
    /// In the Module's condition `Ready`: its spec is refused.
    Spec(Expected),
    /// In the primary's condition `Synced`.
    Primary(Expected),
}

/// One misbehaviour: a module of its own with an account, a namespace and a primary of its own.
#[derive(Clone)]
pub(crate) struct Case {
    /// What it does; the name of the module, of its account and of its primary.
    pub(crate) name: &'static str,
    /// The guest; gzip if it is large.
    pub(crate) component: Vec<u8>,
    /// What the Module's spec says in addition to source, account and namespace.
    pub(crate) spec: Value,
    /// Where its primary is, if not in a namespace of its own.
    pub(crate) namespace: Option<&'static str>,
    /// The rules of its account in that namespace, in addition to [`rights`].
    pub(crate) rules: Vec<Value>,
    /// What is in the namespace before.
    pub(crate) before: Vec<Value>,
    /// What the host answers.
    pub(crate) answer: Answer,
    /// What its account may have written with success in addition to status and Events: resource
    /// and name.
    pub(crate) writes: &'static [(&'static str, &'static str)],
}

impl Case {
    /// A guest whose answer the host must give in the primary's status.
    pub(crate) fn runs(name: &'static str, guest: &Tiny, expected: Expected) -> Self {
        Self::new(name, guest.component(), Answer::Primary(expected))
    }

    /// A component that never becomes a guest.
    pub(crate) fn is_refused(name: &'static str, component: Vec<u8>, expected: Expected) -> Self {
        Self::new(name, component, Answer::Module(expected))
    }

    /// A Module that is refused before its guest is read.
    pub(crate) fn is_misplaced(name: &'static str, guest: &Tiny, expected: Expected) -> Self {
        Self::new(name, guest.component(), Answer::Spec(expected))
    }

    fn new(name: &'static str, component: Vec<u8>, answer: Answer) -> Self {
        // A ConfigMap holds 1 MiB.
        let large = component.len() > 512 << 10;
        Self {
            name,
            component: if large { gzip(&component) } else { component },
            spec: json!({}),
            namespace: None,
            rules: Vec::new(),
            before: Vec::new(),
            answer,
            writes: &[],
        }
    }

    /// With these limits in its Module.
    pub(crate) fn limits(self, limits: &Value) -> Self {
        self.spec(json!({ "limits": limits }))
    }

    /// With this in its Module's spec.
    pub(crate) fn spec(mut self, spec: Value) -> Self {
        self.spec = spec;
        self
    }

    /// With this right in its namespace.
    pub(crate) fn may(mut self, verbs: &[&str], group: &str, resource: &str) -> Self {
        self.rules.push(json!({"apiGroups": [group], "resources": [resource], "verbs": verbs}));
        self
    }

    /// With this object in the namespace before.
    pub(crate) fn given(mut self, object: Value) -> Self {
        self.before.push(object);
        self
    }

    /// With its primary in this namespace.
    pub(crate) fn within(mut self, namespace: &'static str) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// These are its to write: resource and name.
    pub(crate) fn writes(mut self, writes: &'static [(&'static str, &'static str)]) -> Self {
        self.writes = writes;
        self
    }

    /// The namespace of its primary.
    pub(crate) fn home(&self) -> String {
        self.namespace.map_or_else(|| format!("hostile-{}", self.name), str::to_owned)
    }

    /// Its namespace, its account's rights there, what is there before, and its primary.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let (name, home) = (self.name, self.home());
        let mut rules = rights();
        rules.extend(self.rules.iter().cloned());
        let rbac = "rbac.authorization.k8s.io";
        let meta = json!({"name": format!("guest-{name}"), "namespace": home});
        let mut all = Vec::new();
        if self.namespace.is_none() {
            all.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}}));
        }
        all.extend([
            json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": meta, "rules": rules}),
            json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": meta,
                "roleRef": {"apiGroup": rbac, "kind": "Role", "name": format!("guest-{name}")},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": MODULES}]}),
        ]);
        all.extend(self.before.iter().cloned().map(|mut object| {
            object["metadata"]["namespace"] = home.clone().into();
            object
        }));
        all.push(json!({"apiVersion": "hostile.example.dev/v1", "kind": "Hostile",
            "metadata": {"name": name, "namespace": home}}));
        all
    }

    /// Its Module's spec: only primaries of its own namespace are its.
    pub(crate) fn module_spec(&self) -> Value {
        let mut spec = self.spec.clone();
        spec["namespaces"] = json!([self.home()]);
        spec
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    GzEncoder::new(bytes, Compression::best()).read_to_end(&mut out).unwrap();
    out
}

/// What an honest guest of this kind would be granted: its primaries, and ConfigMaps.
fn rights() -> Vec<Value> {
    let rule = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    vec![
        rule("hostile.example.dev", "hostiles", &["get", "list", "watch"]),
        rule("hostile.example.dev", "hostiles/status", &["patch"]),
        rule("hostile.example.dev", "hostiles/finalizers", &["update"]),
        rule("events.k8s.io", "events", &["create", "patch"]),
        rule("", "configmaps", &["get", "list", "watch", "create", "patch", "delete"]),
    ]
}
