//! An original operator, as far as it disturbs the guest that takes over: it creates what is
//! missing, and updates the fields that it compares.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Admin, Kind};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// The namespace of the original operators.
const NAMESPACE: &str = "operators";
/// How often an original looks at its objects. It sees each change, as with a watch.
const PERIOD: Duration = Duration::from_millis(100);

/// What an original makes for one custom resource.
pub(crate) struct OriginalObject {
    /// As it creates the object, with namespace.
    pub(crate) object: Value,
    /// JSON pointers of the fields that it compares, and sets back.
    pub(crate) compared: &'static [&'static str],
}

impl OriginalObject {
    /// An object of which the original compares these fields.
    pub(crate) fn new(object: Value, compared: &'static [&'static str]) -> Self {
        Self { object, compared }
    }

    /// Creates the object, or updates it as a whole if a compared field differs. Gives what it did.
    async fn reconcile(&self, admin: &Admin) -> Result<Option<String>> {
        let text = |pointer| self.object.pointer(pointer).and_then(Value::as_str);
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
        let kind = self.kind();
        let Some(live) = admin.get(kind, namespace, name).await? else {
            // A deletion that goes on, or another client that is faster, is not its problem.
            let created = admin.create(&self.object.to_string()).await.is_ok();
            return Ok(created.then(|| format!("create {kind} {name}")));
        };
        let differs = |pointer: &&&str| live.pointer(pointer) != self.object.pointer(pointer);
        let Some(differs) = self.compared.iter().find(differs) else { return Ok(None) };
        let spec = json!({"spec": self.object["spec"]});
        let updated = admin.merge(kind, namespace, name, "original", &spec).await.is_ok();
        Ok(updated.then(|| format!("update {differs} of {kind} {name}")))
    }

    fn kind(&self) -> Kind {
        match self.object["kind"].as_str() {
            Some("Pod") => Kind::POD,
            Some("Deployment") => Kind::DEPLOYMENT,
            Some("Service") => Kind::SERVICE,
            Some("Job") => Kind::JOB,
            _ => Kind::ROUTE,
        }
    }
}

/// An original operator that runs until its Deployment is scaled to zero.
pub(crate) struct Original {
    objects: Arc<Mutex<Arc<[OriginalObject]>>>,
    task: JoinHandle<Result<Vec<String>>>,
}

impl Original {
    /// Starts the operator `NAME-operator`, and waits until it has made its objects.
    pub(crate) async fn start(
        admin: &Admin,
        name: &str,
        objects: Vec<OriginalObject>,
    ) -> Result<Self> {
        let name = format!("{name}-operator");
        let labels = json!({ "name": name });
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": NAMESPACE}});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "operator", "image": "operator"}]}}}});
        admin.apply(&namespace.to_string()).await?;
        admin.apply(&deployment.to_string()).await?;
        for one in &objects {
            admin.create(&one.object.to_string()).await?;
        }
        let objects = Arc::new(Mutex::new(Arc::from(objects)));
        let task = tokio::spawn(run(admin.clone(), name, objects.clone()));
        Ok(Self { objects, task })
    }

    /// From now on it wants these objects, since their custom resource has changed.
    pub(crate) fn set_objects(&self, objects: Vec<OriginalObject>) {
        *self.objects.lock().unwrap() = objects.into();
    }

    /// Waits until the operator has stopped; gives what it wrote after its start.
    pub(crate) async fn writes(self) -> Result<Vec<String>> {
        tokio::time::timeout(SOON, self.task).await??
    }
}

async fn run(
    admin: Admin,
    name: String,
    objects: Arc<Mutex<Arc<[OriginalObject]>>>,
) -> Result<Vec<String>> {
    let mut writes = Vec::new();
    let mut rounds = tokio::time::interval(PERIOD);
    loop {
        rounds.tick().await;
        let own = admin.must_get(Kind::DEPLOYMENT, NAMESPACE, &name).await?;
        if own["spec"]["replicas"] == 0 {
            return Ok(writes);
        }
        let objects = objects.lock().unwrap().clone();
        for one in objects.iter() {
            writes.extend(one.reconcile(&admin).await?);
        }
    }
}
