//! What a write costs the API server, by the way in which a client writes: the CPU time of its
//! process for the same Deployment.

use std::fmt;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use innkeeper_cluster_tests::{Options, Stage};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::figures::{say, usage};
use crate::workload::Size;

/// How often each way is measured, by turns.
const ROUNDS: usize = 3;
/// The writes at the same time.
const TOGETHER: usize = 8;
/// The client, as `managedFields` has it.
const MANAGER: &str = "bench";

/// A way to write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Create,
    ApplyNew,
    Replace,
    MergePatch,
    Apply,
    ApplyAgain,
}

impl Way {
    /// In an order in which each has the objects that it needs.
    const ALL: [Self; 6] = [
        Self::Create,
        Self::ApplyNew,
        Self::Replace,
        Self::Apply,
        Self::MergePatch,
        Self::ApplyAgain,
    ];

    /// The beginning of the names of its objects: some were created, the others applied.
    fn prefix(self) -> &'static str {
        match self {
            Self::Create | Self::Replace | Self::MergePatch => "created",
            Self::ApplyNew | Self::Apply | Self::ApplyAgain => "applied",
        }
    }

    /// The replicas that it writes: another number than before, unless it changes nothing.
    fn replicas(self) -> u32 {
        match self {
            Self::Create | Self::ApplyNew => 1,
            Self::Replace | Self::Apply | Self::ApplyAgain => 2,
            Self::MergePatch => 3,
        }
    }

    /// The request's body.
    fn body(self, namespace: &str, name: &str) -> Value {
        if self == Self::MergePatch {
            return json!({"spec": {"replicas": self.replicas()}});
        }
        deployment(namespace, name, self.replicas())
    }

    async fn send(self, api: &Api<DynamicObject>, name: &str, body: &Value) -> Result<()> {
        let params = PatchParams::apply(MANAGER).force();
        let post =
            || PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let object = || serde_json::from_value::<DynamicObject>(body.clone());
        match self {
            Self::Create => api.create(&post(), &object()?).await?,
            Self::Replace => api.replace(name, &post(), &object()?).await?,
            Self::MergePatch => {
                let params =
                    PatchParams { field_manager: post().field_manager, ..PatchParams::default() };
                api.patch(name, &params, &Patch::Merge(body)).await?
            }
            Self::ApplyNew | Self::Apply | Self::ApplyAgain => {
                api.patch(name, &params, &Patch::Apply(body)).await?
            }
        };
        Ok(())
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "POST that creates",
            Self::ApplyNew => "server-side apply that creates",
            Self::Replace => "PUT that changes",
            Self::MergePatch => "merge patch that changes",
            Self::Apply => "server-side apply that changes",
            Self::ApplyAgain => "server-side apply that changes nothing",
        })
    }
}

/// A Deployment as a guest desires it.
fn deployment(namespace: &str, name: &str, replicas: u32) -> Value {
    let labels = json!({"app": name, "app.kubernetes.io/managed-by": "bench"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{
                    "name": "app", "image": "registry.example.com/app:1.4.2",
                    "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
                }]},
            },
        },
    })
}

/// Measures each way with as many Deployments as there are resources, on a control plane without a
/// controller manager, and prints a table.
///
/// # Errors
/// If the control plane does not start, or refuses a write.
pub(crate) async fn run(size: Size) -> Result<()> {
    let stage = Stage::with(Options { controller_manager: false, ..Options::default() }).await?;
    let pid = stage.plane.pid("kube-apiserver").context("the API server has no pid")?;
    let resource = kube::api::ApiResource::from_gvk(&kube::api::GroupVersionKind::gvk(
        "apps",
        "v1",
        "Deployment",
    ));
    let mut costs = Way::ALL.map(|_| Vec::new());
    for round in 0..=ROUNDS {
        let namespace = stage.admin.namespace("bench").await?;
        let api = Api::namespaced_with(stage.admin.client().clone(), &namespace, &resource);
        for (way, costs) in Way::ALL.into_iter().zip(&mut costs) {
            let before = usage(pid)?.cpu_s;
            stream::iter(0..size.resources)
                .map(|index| {
                    let (api, namespace) = (&api, &namespace);
                    async move {
                        let name = format!("{}-{index:05}", way.prefix());
                        way.send(api, &name, &way.body(namespace, &name)).await
                    }
                })
                .buffer_unordered(TOGETHER)
                .try_collect::<Vec<_>>()
                .await?;
            #[expect(clippy::cast_precision_loss, reason = "small counts")]
            let each = (usage(pid)?.cpu_s - before) * 1e3 / size.resources as f64;
            // The server is slower until it has seen each kind of request.
            if round > 0 {
                costs.push(each);
            }
        }
    }
    say("CPU of the API server for a write, ms: median (lowest to highest); bytes of the body");
    for (way, mut costs) in Way::ALL.into_iter().zip(costs) {
        costs.sort_by(f64::total_cmp);
        let [lowest, median, highest] = [0, ROUNDS / 2, ROUNDS - 1].map(|at| costs[at]);
        let bytes = way.body("bench-00000", "applied-00000").to_string().len();
        say(&format!("{way}: {median:.2} ({lowest:.2} to {highest:.2}); {bytes} bytes"));
    }
    Ok(())
}
