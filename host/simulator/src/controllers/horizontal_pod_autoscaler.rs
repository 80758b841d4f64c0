//! The controller of HorizontalPodAutoscalers: scales Deployments, ReplicaSets and StatefulSets by
//! the load of processors that the script of Pods says.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client;
use crate::controllers::client::{
    AUTOSCALERS, Client, DEPLOYMENTS, PODS, REPLICA_SETS, Resource, STATEFUL_SETS,
};
use crate::controllers::event_recorder;
use crate::controllers::event_recorder::EventSpec;
use crate::controllers::replica_set::is_ready;
use crate::state::cluster::Cluster;
use crate::state::controller_set::Workload;
use crate::types::members::{condition, number, text};
use crate::types::object::{generation, is_terminating, meta};
use crate::types::object_key::Key;
use crate::types::selector::Selector;

const CLIENT: Client =
    Client::controller("system:serviceaccount:kube-system:horizontal-pod-autoscaler");
const COMPONENT: &str = "horizontal-pod-autoscaler";

/// The seconds between two looks at the load.
const PERIOD_S: i64 = 15;
/// A smaller Deployment follows only from the loads of so many seconds.
const STABILIZATION_WINDOW_S: i64 = 300;
/// The maximum of a load and of a target in percent: the type of the API has 32 bits.
const PERCENT_MAX: i64 = i32::MAX as i64;
/// The load may differ from the target by so many percent.
const TOLERANCE_PERCENT: i64 = 10;

/// What to do, and the conditions that say why: type, status, reason and message.
struct Decision {
    replicas: i64,
    percent: Option<i64>,
    why: String,
    conditions: Vec<(&'static str, bool, &'static str, String)>,
}

/// Reconciles one object.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(scaler) = client::get(cluster, &AUTOSCALERS, key) else { return };
    if is_terminating(&scaler) {
        return;
    }
    let again = client::after_seconds(cluster, PERIOD_S);
    cluster.work_queue.wake_at(again, Workload::Autoscalers, key);
    let reference = &scaler["spec"]["scaleTargetRef"];
    let place = (key.0.clone(), text(&reference["name"]).to_owned());
    let found = [&DEPLOYMENTS, &REPLICA_SETS, &STATEFUL_SETS]
        .into_iter()
        .find(|one| reference["kind"] == one.kind)
        .and_then(|one| Some((one, client::get(cluster, one, &place)?)));
    let Some((resource, target)) = found else {
        let message = format!(
            "the HPA controller was unable to get the target's current scale: {} {:?} not found",
            text(&reference["kind"]).to_lowercase() + "s.apps",
            place.1
        );
        let condition = ("AbleToScale", false, "FailedGetScale", message);
        let current = number(&scaler["status"]["currentReplicas"]);
        return update_status(cluster, &scaler, current, &[condition], None, None);
    };
    let current = target["spec"]["replicas"].as_i64().unwrap_or(1);
    let decision = decide(cluster, &scaler, &target, current);
    let mut written_at = None;
    if decision.replicas != current {
        written_at = scale(cluster, &scaler, resource, &target, &decision);
    }
    let desired = decision.replicas;
    let percent = decision.percent;
    update_status(
        cluster,
        &scaler,
        current,
        &decision.conditions,
        Some((desired, percent)),
        written_at,
    );
}

fn decide(cluster: &mut Cluster, scaler: &Value, target: &Value, current: i64) -> Decision {
    let spec = &scaler["spec"];
    let (least, most) = (spec["minReplicas"].as_i64().unwrap_or(1), number(&spec["maxReplicas"]));
    let able =
        |reason: &'static str, message: &str| ("AbleToScale", true, reason, message.to_owned());
    let ready = able("ReadyForNewScale", "recommended size matches current size");
    let stays =
        |conditions| Decision { replicas: current, percent: None, why: String::new(), conditions };
    if current == 0 && least != 0 {
        let message = "scaling is disabled since the replica count of the target is zero";
        let active = ("ScalingActive", false, "ScalingDisabled", message.to_owned());
        let able = able(
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        );
        return stays(vec![able, active]);
    }
    for (is_out, bound, why) in [
        (current > most, most, "Current number of replicas above Spec.MaxReplicas"),
        (current < least, least, "Current number of replicas below Spec.MinReplicas"),
    ] {
        if is_out {
            return Decision { replicas: bound, why: why.to_owned(), ..stays(vec![ready]) };
        }
    }
    let wanted = spec["metrics"].as_array().into_iter().flatten().find_map(|metric| {
        let resource = metric.get("resource").filter(|one| one["name"] == "cpu")?;
        resource["target"]["averageUtilization"].as_i64()
    });
    let loads = loads(cluster, target);
    let count = i64::try_from(loads.len()).unwrap_or(i64::MAX);
    let (Some(wanted), true) =
        (wanted.filter(|one| *one > 0).map(|one| one.min(PERCENT_MAX)), count > 0)
    else {
        let message = "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for resource cpu: no metrics returned from resource metrics API";
        let active = ("ScalingActive", false, "FailedGetResourceMetric", message.to_owned());
        let able = able(
            "SucceededGetScale",
            "the HPA controller was able to get the target's current scale",
        );
        return stays(vec![able, active]);
    };
    let sum: i64 = loads.iter().sum();
    let percent = sum / count;
    let is_tolerated = (percent - wanted).abs() * 100 <= wanted * TOLERANCE_PERCENT;
    let computed = if is_tolerated { current } else { (sum + wanted - 1) / wanted };
    let stable = stabilized(cluster, meta(scaler, "uid"), computed);
    // Without rules of its own it at most doubles, but reaches four at once.
    let upper = most.min(current.saturating_mul(2).max(4));
    let replicas = stable.clamp(least, upper.max(least));
    let message = "the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)";
    let active = ("ScalingActive", true, "ValidMetricFound", message.to_owned());
    let limit = |reason, message: &str| ("ScalingLimited", true, reason, message.to_owned());
    let limited = match stable {
        more if more > most => limit(
            "TooManyReplicas",
            "the desired replica count is more than the maximum replica count",
        ),
        less if less < least => limit(
            "TooFewReplicas",
            "the desired replica count is less than the minimum replica count",
        ),
        more if more > upper => limit(
            "ScaleUpLimit",
            "the desired replica count is increasing faster than the maximum scale rate",
        ),
        _ => {
            let message = "the desired count is within the acceptable range";
            ("ScalingLimited", false, "DesiredWithinRange", message.to_owned())
        }
    };
    let able = if stable > computed {
        let message = "recent recommendations were higher than current one, applying the highest recent recommendation";
        able("ScaleDownStabilized", message)
    } else {
        ready
    };
    let side = if computed > current { "above" } else { "below" };
    let why = match side {
        "above" => "cpu resource utilization (percentage of request) above target".to_owned(),
        _ => "All metrics below target".to_owned(),
    };
    Decision { replicas, percent: Some(percent), why, conditions: vec![able, active, limited] }
}

/// The loads of the ready Pods of a target, of those of which the script says one.
fn loads(cluster: &Cluster, target: &Value) -> Vec<i64> {
    let selector = Selector::of(&target["spec"]["selector"]);
    let namespace = meta(target, "namespace");
    let stored = cluster.store.collection(&PODS.key()).into_iter().flat_map(|one| &one.objects);
    let pods = stored.filter(|(key, _)| key.0 == namespace).map(|(_, one)| one.object());
    let pods = pods.filter(|pod| selector.fits(pod) && is_ready(pod) && !is_terminating(pod));
    let loads = pods.filter_map(|pod| cluster.kubelet.script.rule(&pod).cpu_utilization);
    loads.map(|load| load.clamp(0, PERCENT_MAX)).collect()
}

/// The highest recommendation of the stabilization window, with this one.
fn stabilized(cluster: &mut Cluster, uid: &str, computed: i64) -> i64 {
    let now = cluster.now();
    let recent = cluster.kubelet.recommendations.entry(uid.to_owned()).or_default();
    recent.retain(|(time, _)| now.duration_since(*time).as_secs() < STABILIZATION_WINDOW_S);
    recent.push((now, computed));
    recent.iter().map(|(_, replicas)| *replicas).max().unwrap_or(computed)
}

/// Scales the target. Returns when.
fn scale(
    cluster: &mut Cluster,
    scaler: &Value,
    resource: &Resource,
    target: &Arc<ManagedObject>,
    decision: &Decision,
) -> Option<String> {
    let mut changed = Value::clone(target);
    changed["spec"]["replicas"] = decision.replicas.into();
    client::replace(cluster, &CLIENT, resource, "", changed).ok()?;
    let message = format!("New size: {}; reason: {}", decision.replicas, decision.why);
    let event = EventSpec::normal(COMPONENT, "SuccessfulRescale", &message);
    event_recorder::record(cluster, &CLIENT, scaler, &event);
    Some(cluster.time())
}

fn update_status(
    cluster: &mut Cluster,
    scaler: &Value,
    current: i64,
    conditions: &[(&'static str, bool, &'static str, String)],
    result: Option<(i64, Option<i64>)>,
    written_at: Option<String>,
) {
    let before = &scaler["status"];
    let mut status = json!({"currentReplicas": current, "currentMetrics": null});
    let (desired, percent) = result.unwrap_or((number(&before["desiredReplicas"]), None));
    status["desiredReplicas"] = desired.into();
    if generation(scaler) > 0 {
        status["observedGeneration"] = generation(scaler).into();
    }
    if let Some(percent) = percent {
        let value = json!({"averageUtilization": percent, "averageValue": "0"});
        status["currentMetrics"] =
            json!([{"type": "Resource", "resource": {"name": "cpu", "current": value}}]);
    }
    let last = written_at.map_or_else(|| before["lastScaleTime"].clone(), Value::from);
    if !last.is_null() {
        status["lastScaleTime"] = last;
    }
    let mut all = Vec::new();
    for (type_, holds, reason, message) in conditions {
        let truth = if *holds { "True" } else { "False" };
        let known = condition(before, type_).filter(|one| one["status"] == truth);
        let since =
            known.map_or_else(|| cluster.time().into(), |one| one["lastTransitionTime"].clone());
        all.push(json!({"type": type_, "status": truth, "reason": reason, "message": message,
            "lastTransitionTime": since}));
    }
    status["conditions"] = all.into();
    if status != *before {
        let mut scaler = scaler.clone();
        scaler["status"] = status;
        let _ = client::replace(cluster, &CLIENT, &AUTOSCALERS, "status", scaler);
    }
}
