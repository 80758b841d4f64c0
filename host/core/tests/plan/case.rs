//! One case of the planner: the desired and the observed state of a primary.

use std::sync::Arc;

use expect_test::Expect;
use innkeeper_contract::{Desired, Kind, Manifest, UpdateGroup};
use innkeeper_core::desired::{DesiredObject, DesiredState};
use innkeeper_core::host_names::Grants;
use innkeeper_core::ownership::PrimaryOwner;
use innkeeper_core::plan::{self, Input, Lookup, Plan, PlannerState, RejectedApply};
use innkeeper_core::{Object, ObjectKey, ObjectRef};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// A primary of a module that makes Deployments, Services, ConfigMaps, claims and optional Routes.
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact")]
pub(crate) struct Case {
    pub(crate) manifest: Manifest,
    pub(crate) primary: PrimaryOwner,
    pub(crate) desired_state: DesiredState,
    pub(crate) live: Vec<(ObjectRef, Arc<Object>)>,
    /// Kinds, or their groups and versions.
    pub(crate) unserved: Vec<&'static str>,
    pub(crate) unknown: Vec<&'static str>,
    pub(crate) state: PlannerState,
    pub(crate) complete: bool,
    pub(crate) readable: bool,
    pub(crate) adopt: bool,
    pub(crate) deleting: bool,
    pub(crate) now: i64,
}

pub(crate) const NOW: i64 = 1_800_000_000;

/// A primary that desires these objects; none exists yet, and the round before was clean.
pub(crate) fn case(objects: &Value) -> Case {
    let kind = Kind::namespaced("quay.io/v1alpha1", "Podroute", "podroutes");
    case_of(ObjectRef::new(Arc::new(kind), ObjectKey::new("web", "first")), "u1", objects)
}

/// The same of a cluster-scoped primary, which makes objects in any namespace.
pub(crate) fn cluster_case(objects: &Value) -> Case {
    named_cluster_case("first", "u1", objects)
}

/// The same of a primary with this name and uid.
pub(crate) fn named_cluster_case(name: &str, uid: &str, objects: &Value) -> Case {
    let kind = Kind::cluster("quay.io/v1alpha1", "GlobalRoute", "globalroutes");
    case_of(ObjectRef::new(Arc::new(kind), ObjectKey::new("", name)), uid, objects)
}

/// The same of any primary.
pub(crate) fn case_of(primary: ObjectRef, uid: &str, objects: &Value) -> Case {
    let manifest: Manifest = serde_json::from_value(json!({
        "name": "podroute",
        "primary": &*primary.kind,
        "owned": [
            {"kind": {"apiVersion": "apps/v1", "kind": "Deployment", "plural": "deployments"}},
            {"kind": {"apiVersion": "v1", "kind": "Service", "plural": "services"}},
            {"kind": {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}},
            {"kind": {"apiVersion": "v1", "kind": "Pod", "plural": "pods"}},
            {"kind": {"apiVersion": "v1", "kind": "Namespace", "plural": "namespaces", "scope": "Cluster"}},
            {"kind": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "plural": "clusterroles", "scope": "Cluster"}},
            {"kind": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "plural": "persistentvolumeclaims"}},
            {"kind": {"apiVersion": "route.openshift.io/v1", "kind": "Route", "plural": "routes"}, "optional": true},
            {"kind": {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "plural": "horizontalpodautoscalers"}, "optional": true},
            {"kind": {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "plural": "horizontalpodautoscalers"}, "optional": true},
            {"kind": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "plural": "ingresses"}},
            {"kind": {"apiVersion": "extensions/v1beta1", "kind": "Ingress", "plural": "ingresses"}}
        ]
    }))
    .unwrap();
    let primary = PrimaryOwner::new("podroute", primary, uid);
    let desired: Desired = serde_json::from_value(json!({ "objects": objects })).unwrap();
    let desired_state =
        DesiredState::read(&desired, &manifest, &primary, Grants::default()).unwrap();
    Case {
        manifest,
        primary,
        desired_state,
        live: Vec::new(),
        unserved: Vec::new(),
        unknown: Vec::new(),
        state: PlannerState { clean: true, ..PlannerState::default() },
        complete: true,
        readable: true,
        adopt: false,
        deleting: false,
        now: NOW,
    }
}

pub(crate) fn desired_object(kind: &str, name: &str, spec: &Value) -> Value {
    let version = match kind {
        "Deployment" => "apps/v1",
        "Route" => "route.openshift.io/v1",
        "ClusterRole" => "rbac.authorization.k8s.io/v1",
        _ => "v1",
    };
    json!({"object": {"apiVersion": version, "kind": kind,
        "metadata": {"name": name, "labels": {"app": "x"}}, "spec": spec}})
}

pub(crate) fn deployment(replicas: u32) -> Value {
    desired_object("Deployment", "a", &json!({ "replicas": replicas }))
}

pub(crate) fn service() -> Value {
    desired_object("Service", "b", &json!({"selector": {"app": "x"}}))
}

/// The entry of `managedFields` that applying a body gives, for bodies without lists.
pub(crate) fn entry(body: &Value) -> Value {
    fn fields(value: &Value) -> Value {
        match value {
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| (format!("f:{name}"), fields(value)))
                .collect::<Map<_, _>>()
                .into(),
            _ => json!({}),
        }
    }
    let mut set = fields(body);
    let root = set.as_object_mut().unwrap();
    root.retain(|name, _| !matches!(name.as_str(), "f:apiVersion" | "f:kind"));
    let metadata = root["f:metadata"].as_object_mut().unwrap();
    metadata.retain(|name, _| !matches!(name.as_str(), "f:name" | "f:namespace"));
    set
}

impl Case {
    pub(crate) fn kind(&self, kind: &str) -> Arc<Kind> {
        Arc::new(
            self.manifest.owned.iter().find(|owned| owned.kind.kind == kind).unwrap().kind.clone(),
        )
    }

    /// Puts all desired objects into an update group.
    pub(crate) fn group(mut self, group: &Value) -> Self {
        let group: UpdateGroup = serde_json::from_value(group.clone()).unwrap();
        for object in &mut self.desired_state.objects {
            object.update_group = Some(group.name.clone());
        }
        self.desired_state.update_groups = vec![group];
        self
    }

    /// Adds a live object.
    pub(crate) fn put(&mut self, kind: &str, value: &Value) {
        self.put_as(&self.kind(kind), value);
    }

    /// Adds a live object, as this version of its kind shows it.
    pub(crate) fn put_as(&mut self, kind: &Arc<Kind>, value: &Value) {
        let object = Object::decode(kind, &value.to_string(), None).unwrap();
        self.live.push((ObjectRef::new(kind.clone(), object.key.clone()), Arc::new(object)));
    }

    /// Adds objects as the module applied them, changed by `edit`.
    pub(crate) fn applied(&mut self, objects: &Value, edit: impl Fn(&mut Value)) {
        let desired_state = case(objects).desired_state;
        for one in desired_state.objects {
            let mut value = one.body.clone();
            value["metadata"]["uid"] = format!("uid-{}", one.object_ref.key.name()).into();
            value["metadata"]["resourceVersion"] = "5".into();
            value["metadata"]["managedFields"] = json!([{
                "manager": "innkeeper/podroute/u1", "operation": "Apply", "fieldsV1": entry(&one.body)}]);
            edit(&mut value);
            self.put(&one.object_ref.kind.kind.clone(), &value);
        }
    }

    /// Lets the server have rejected the body of the first desired object for an immutable field.
    pub(crate) fn rejected_as_immutable(&mut self, message: &str) {
        let object = &self.desired_state.objects[0];
        let rejected = RejectedApply {
            digest: object.digest().to_owned(),
            reason: "Immutable".into(),
            message: message.into(),
            immutable: true,
        };
        self.state.rejected.insert(object.object_ref.clone(), rejected);
    }

    /// Adds a live object as this desired one was applied, with a uid.
    pub(crate) fn shown(&mut self, desired: &DesiredObject, uid: &str) {
        let DesiredObject { object_ref, body, .. } = desired;
        let mut value = body.clone();
        value["apiVersion"] = object_ref.kind.api_version.as_str().into();
        value["metadata"]["uid"] = uid.into();
        value["metadata"]["resourceVersion"] = "5".into();
        value["metadata"]["managedFields"] = json!([{
            "manager": "innkeeper/podroute/u1", "operation": "Apply", "fieldsV1": entry(body)}]);
        self.put_as(&object_ref.kind, &value);
    }

    /// Adds an object that the module did not make.
    pub(crate) fn foreign(&mut self, kind: &str, name: &str, owners: &Value) {
        self.put(
            kind,
            &json!({"metadata": {"name": name, "namespace": "web", "uid": "theirs", "resourceVersion": "3",
            "labels": {"app": "x"}, "ownerReferences": owners}}),
        );
    }

    /// The lookups of the desired objects.
    pub(crate) fn lookups(&self) -> Vec<Lookup> {
        self.desired_state
            .objects
            .iter()
            .map(|desired_object| {
                let kind = desired_object.object_ref.kind.kind.as_str();
                let version = desired_object.object_ref.kind.api_version.as_str();
                if self.unserved.contains(&kind) || self.unserved.contains(&version) {
                    return Lookup::NotServed;
                }
                if self.unknown.contains(&kind) {
                    return Lookup::Unknown;
                }
                self.live
                    .iter()
                    .find(|(object_ref, _)| *object_ref == desired_object.object_ref)
                    .map_or(Lookup::Absent, |(_, object)| Lookup::Found(object.clone()))
            })
            .collect()
    }

    pub(crate) fn plan(&self) -> Plan {
        plan::plan(&Input {
            primary: &self.primary,
            desired: &self.desired_state,
            complete: self.complete,
            lookups: &self.lookups(),
            owned: &self.live,
            state: &self.state,
            readable: self.readable,
            adopt: self.adopt,
            deleting: self.deleting,
            now: Timestamp::from_second(self.now).unwrap(),
        })
    }

    /// Plans, and compares the steps with the expected lines.
    pub(crate) fn check(&self, expected: &Expect) {
        let lines: Vec<String> = self.plan().steps.iter().map(ToString::to_string).collect();
        expected.assert_eq(&lines.join("\n"));
    }
}
