//! Random requests about many objects: lists, what they select, and deletions of all that is
//! selected.

use serde_json::{Value, json};

use crate::case::Step;
use crate::maker::Maker;
use crate::query::{encoded, in_query};

/// Labels that are asked for in addition to the run's own.
const LABELS: [&str; 7] =
    ["", ",app=a", ",app!=a", ",tier", ",!tier", ",app in (a,b)", ",app notin (a)"];
/// Fields that every kind can be selected by, and how they may be asked for.
const FIELDS: [&str; 7] = [
    "metadata.name=one{s}",
    "metadata.name!=one{s}",
    "metadata.name==two{s}",
    "metadata.namespace={n}",
    "metadata.namespace!={n}",
    "metadata.name=",
    "metadata.name=one{s},metadata.namespace={n}",
];
/// What no kind is selected by, or nobody can read.
const WRONG: [&str; 7] = [
    "metadata.uid=1",
    "metadata.labels.app=a",
    "spec.nothing=1",
    "metadata.name",
    "=one",
    "metadata.name=one,metadata.uid!=1",
    "metadata.name in (one,two)",
];
/// Fields of single kinds. What one kind knows is unknown to another.
const OWN: [(&str, &[&str]); 10] = [
    (
        "Pod",
        &[
            "status.phase=Pending",
            "status.phase=Running",
            "status.phase!=Running",
            "spec.nodeName=",
            "spec.nodeName=node-a",
            "spec.nodeName!=node-a",
            "spec.restartPolicy=Always",
            "spec.restartPolicy!=Always",
            "spec.schedulerName=default-scheduler",
            "spec.serviceAccountName=default",
            "spec.hostNetwork=false",
            "status.podIP=10.0.0.1",
            "status.podIPs=10.0.0.1",
            "status.nominatedNodeName=",
        ],
    ),
    (
        "Event",
        &[
            "involvedObject.name=a",
            "involvedObject.kind=ConfigMap",
            "involvedObject.kind!=ConfigMap",
            "involvedObject.namespace={n}",
            "involvedObject.apiVersion=v1",
            "involvedObject.uid=",
            "involvedObject.fieldPath=",
            "involvedObject.resourceVersion=",
            "reason=Made",
            "reason!=Made",
            "type=Warning",
            "type=Normal,reason=Gone",
            "source=c",
            "reportingComponent=",
        ],
    ),
    ("Secret", &["type=Opaque", "type!=Opaque", "type=other/type"]),
    ("Service", &["spec.type=ClusterIP", "spec.type!=ClusterIP", "spec.clusterIP!=None"]),
    ("Job", &["status.successful=0", "status.successful=1", "status.successful!=0"]),
    ("ReplicaSet", &["status.replicas=0", "status.replicas!=0"]),
    ("StatefulSet", &["status.successful=0"]),
    ("Deployment", &["status.replicas=0"]),
    ("CronJob", &["spec.suspend=true"]),
    ("Gadget", &["spec.name=a", "status.phase=a"]),
];

impl Maker<'_> {
    /// Labels to select by: of the run, and more.
    pub(crate) fn label_selector(&mut self) -> String {
        encoded(&format!("labelSelector=run={{s}}{}", LABELS[self.rng.usize(..LABELS.len())]))
    }

    /// Fields to select by.
    pub(crate) fn field_selector(&mut self) -> String {
        let own = OWN.iter().find(|(kind, _)| *kind == self.subject.kind).map(|(_, own)| *own);
        let fields = match (self.rng.u8(..12), own) {
            (0, _) => WRONG[self.rng.usize(..WRONG.len())],
            // What another kind knows.
            (1, _) => {
                let (_, other) = OWN[self.rng.usize(..OWN.len())];
                other[self.rng.usize(..other.len())]
            }
            (2..8, Some(own)) => own[self.rng.usize(..own.len())],
            _ => FIELDS[self.rng.usize(..FIELDS.len())],
        };
        encoded(&format!("fieldSelector={fields}"))
    }

    /// Both, or labels only. Those of the run are always among them: of a kind of the cluster, and
    /// where cases come one after the other, there is what others made.
    pub(crate) fn selectors(&mut self) -> String {
        let labels = self.label_selector();
        if self.one_in(3) { format!("{labels}&{}", self.field_selector()) } else { labels }
    }

    /// A list.
    pub(crate) fn list(&mut self) -> Step {
        let selectors = self.selectors();
        // Where everybody's objects are, a page may end before somebody else's.
        let limit = if self.one_in(3) && self.is_namespaced() { "&limit=1" } else { "" };
        let version = match self.rng.u8(..16) {
            0 => "&resourceVersion=0",
            1 => "&resourceVersion={rv:list}",
            2 => "&resourceVersion={rv:list}&resourceVersionMatch=NotOlderThan",
            3 => "&resourceVersion={rv:list}&resourceVersionMatch=Exact",
            4 if self.one_in(4) => "&resourceVersionMatch=Exact",
            5 if self.one_in(4) => "&resourceVersion={rv:list}&resourceVersionMatch=Other",
            _ => "",
        };
        let path = format!("{}?{selectors}{limit}{version}", self.subject.path);
        self.make("GET", path, "", Value::Null, "list")
    }

    /// How something is to be deleted, of an object of this name.
    pub(crate) fn delete_options(&mut self, name: &str) -> Value {
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        match self.rng.u8(..10) {
            0 => body["preconditions"] = json!({"uid": "33333333-3333-4333-8333-333333333333"}),
            1 | 2 => body["preconditions"] = json!({"uid": format!("{{uid:{name}}}")}),
            3 => body["preconditions"] = json!({"resourceVersion": format!("{{rv:{name}}}")}),
            4 => body["preconditions"] = json!({"resourceVersion": "1"}),
            5 => body["dryRun"] = json!(["All"]),
            _ => {}
        }
        // A dry run that would take the last finalizer off is not compared: see docs/simulator.md.
        if self.rng.bool() && body["dryRun"].is_null() {
            let policy = ["Background", "Foreground", "Orphan"][self.rng.usize(..3)];
            body["propagationPolicy"] = policy.into();
        }
        if self.one_in(6) {
            body["gracePeriodSeconds"] = [0, 600, 700, 900][self.rng.usize(..4)].into();
        }
        body
    }

    /// Deletes all that is selected, with options in the body or the query.
    pub(crate) fn delete_collection(&mut self) -> Step {
        let (name, selectors) = (self.name(), self.selectors());
        let mut options = self.delete_options(name);
        let mut path = format!("{}?{selectors}", self.subject.path);
        match self.rng.u8(..12) {
            0 if self.is_namespaced() => path += "&limit=1",
            1 => path += "&resourceVersion={rv:list}",
            2 => path += "&resourceVersion={rv:list}&resourceVersionMatch=NotOlderThan",
            3 => options["propagationPolicy"] = "Other".into(),
            4 => options["orphanDependents"] = self.rng.bool().into(),
            _ => {}
        }
        let bare = self.rng.bool();
        // A list's version would be a precondition too, and whether an object has it depends on who
        // else writes.
        if bare && !path.contains("resourceVersion=") {
            // The other way round, the list would take a precondition's version for its own, and
            // what is known of then is chance.
            if let Some(conditions) = options["preconditions"].as_object_mut() {
                conditions.remove("resourceVersion");
            }
            path += &in_query(&options);
            options = Value::Null;
        }
        self.make("DELETE", path, "", options, "delete all of")
    }
}
