//! The controllers of workloads, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod cluster;

use cluster::Cluster;
use innkeeper_simulator::{Controllers, PodRule, PodScript, Workload};
use jiff::SignedDuration;
use serde_json::{Value, json};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/web";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn deployment(image: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image}]},
            },
        },
    })
}

fn condition<'a>(object: &'a Value, name: &str) -> &'a Value {
    let list = object["status"]["conditions"].as_array().unwrap();
    list.iter().find(|one| one["type"] == name).unwrap_or(&Value::Null)
}

/// The messages of the Events about a kind, in the order of time.
fn event_reasons(cluster: &Cluster, kind: &str) -> Vec<String> {
    let events = cluster.list("/api/v1/namespaces/default/events");
    let mut events: Vec<&Value> =
        events.iter().filter(|event| event["involvedObject"]["kind"] == kind).collect();
    let version = |event: &Value| -> u64 {
        event["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    };
    events.sort_by_key(|event| version(event));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    events
        .iter()
        .map(|one| format!("{}: {}", text(&one["reason"]), text(&one["message"])))
        .collect()
}

#[test]
fn deployment_becomes_available_through_its_replica_set_and_pods() {
    let cluster = Cluster::new();
    cluster.apply(&deployment("nginx:1", 3));
    cluster.pass(3);
    let found = cluster.get(DEPLOYMENT).unwrap();
    assert_eq!(found["status"]["readyReplicas"], 3, "{found:#}");
    assert_eq!(found["status"]["availableReplicas"], 3);
    assert_eq!(found["status"]["observedGeneration"], 1);
    assert_eq!(condition(&found, "Available")["reason"], "MinimumReplicasAvailable");
    let sets = cluster.list(SETS);
    assert_eq!(sets.len(), 1);
    let name = sets[0]["metadata"]["name"].as_str().unwrap();
    let progress = condition(&found, "Progressing");
    assert_eq!(progress["reason"], "NewReplicaSetAvailable");
    assert_eq!(progress["message"], format!("ReplicaSet {name:?} has successfully progressed."));
    assert_eq!(found["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    let pods = cluster.list(PODS);
    assert_eq!(pods.len(), 3);
    assert_eq!(pods[0]["status"]["phase"], "Running");
    assert_eq!(pods[0]["metadata"]["ownerReferences"][0]["name"], name);
    let events = event_reasons(&cluster, "Deployment");
    assert_eq!(events, [format!("ScalingReplicaSet: Scaled up replica set {name} from 0 to 3")]);
    cluster.is_quiet();
}

#[test]
fn new_template_is_rolled_out_within_max_surge_and_max_unavailable() {
    let cluster = Cluster::new();
    cluster.apply(&deployment("nginx:1", 4));
    cluster.pass(5);
    let mut next = deployment("nginx:2", 4);
    next["spec"]["strategy"] = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    cluster.apply(&next);
    let mut most = 0;
    for _ in 0..30 {
        cluster.pass(1);
        let running = cluster
            .list(PODS)
            .iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
            .count();
        most = most.max(running);
        let available = cluster.get(DEPLOYMENT).unwrap()["status"]["availableReplicas"].clone();
        assert!(available.as_i64().unwrap() >= 4, "{available} are available");
    }
    assert_eq!(most, 5, "four and a surge of one");
    let found = cluster.get(DEPLOYMENT).unwrap();
    assert_eq!(found["status"]["updatedReplicas"], 4, "{found:#}");
    assert_eq!(found["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
    let replicas: Vec<i64> =
        cluster.list(SETS).iter().map(|set| set["spec"]["replicas"].as_i64().unwrap()).collect();
    assert_eq!(replicas.iter().sum::<i64>(), 4);
    assert_eq!(replicas.len(), 2, "the old set is kept for going back");
    assert!(
        cluster.list(PODS).iter().all(|pod| pod["spec"]["containers"][0]["image"] == "nginx:2")
    );

    // Rollback: the first set is used again, as revision 3.
    cluster.apply(&deployment("nginx:1", 4));
    cluster.pass(30);
    assert_eq!(cluster.list(SETS).len(), 2);
    let found = cluster.get(DEPLOYMENT).unwrap();
    assert_eq!(found["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
    cluster.is_quiet();
}

#[test]
fn image_pull_error_is_reported_until_the_progress_deadline_ends_the_rollout() {
    let cluster = Cluster::new();
    let mut broken = PodRule::new("missing:*");
    broken.pulls = false;
    cluster.simulator.script_pods(PodScript { rules: vec![broken], ..PodScript::default() });
    let mut object = deployment("missing:1", 1);
    object["spec"]["progressDeadlineSeconds"] = 60.into();
    cluster.apply(&object);
    cluster.pass(30);
    let pod = cluster.list(PODS).remove(0);
    let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "ImagePullBackOff", "{pod:#}");
    cluster.pass(60);
    let found = cluster.get(DEPLOYMENT).unwrap();
    assert_eq!(condition(&found, "Progressing")["reason"], "ProgressDeadlineExceeded");
    assert_eq!(found["status"]["unavailableReplicas"], 1);

    // It is there now.
    cluster.simulator.script_pods(PodScript::default());
    cluster.pass(5);
    let found = cluster.get(DEPLOYMENT).unwrap();
    assert_eq!(found["status"]["readyReplicas"], 1, "{found:#}");
    assert_eq!(condition(&found, "Progressing")["reason"], "NewReplicaSetAvailable");
}

#[test]
fn deleted_pod_gets_its_grace_period_and_is_replaced() {
    let cluster = Cluster::new();
    cluster.apply(&deployment("nginx:1", 1));
    cluster.pass(3);
    let name = cluster.list(PODS)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.send("DELETE", &format!("{PODS}/{name}"), &Value::Null);
    let going = cluster.get(&format!("{PODS}/{name}")).unwrap();
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    cluster.pass(1);
    assert!(cluster.get(&format!("{PODS}/{name}")).is_none());
    cluster.pass(2);
    assert_eq!(cluster.get(DEPLOYMENT).unwrap()["status"]["readyReplicas"], 1);
    assert_eq!(cluster.list(PODS).len(), 1);

    // With the Deployment all goes.
    cluster.send("DELETE", DEPLOYMENT, &Value::Null);
    cluster.pass(3);
    assert!(cluster.list(PODS).is_empty() && cluster.list(SETS).is_empty());
}

fn job(name: &str, completions: i64) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {
            "completions": completions, "backoffLimit": 1, "ttlSecondsAfterFinished": 60,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "busybox"}]}},
        },
    })
}

#[test]
fn job_completes_and_is_deleted_after_its_ttl() {
    let cluster = Cluster::new();
    let path = "/apis/batch/v1/namespaces/default/jobs/work";
    cluster.apply(&job("work", 2));
    cluster.pass(30);
    let found = cluster.get(path).unwrap();
    assert_eq!(found["status"]["succeeded"], 2, "{found:#}");
    let types: Vec<&Value> =
        found["status"]["conditions"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(types, ["SuccessCriteriaMet", "Complete"]);
    assert_eq!(condition(&found, "Complete")["reason"], "CompletionsReached");
    assert!(found["status"]["completionTime"].is_string());
    let pods = cluster.list(PODS);
    assert!(pods.iter().all(|pod| pod["metadata"]["finalizers"].is_null()), "they are counted");
    cluster.pass(60);
    assert!(cluster.get(path).is_none());
    cluster.pass(1);
    assert!(cluster.list(PODS).is_empty());
}

#[test]
fn job_fails_when_its_pods_fail_beyond_the_backoff_limit() {
    let cluster = Cluster::new();
    let path = "/apis/batch/v1/namespaces/default/jobs/work";
    let mut object = job("work", 1);
    object["spec"]["template"]["metadata"]["annotations"] =
        json!({"simulator.innkeeper.dev/exit-code": "3"});
    cluster.apply(&object);
    cluster.pass(40);
    let found = cluster.get(path).unwrap();
    assert_eq!(found["status"]["failed"], 2, "the first and one more: {found:#}");
    assert_eq!(condition(&found, "FailureTarget")["reason"], "BackoffLimitExceeded");
    assert_eq!(
        condition(&found, "Failed")["message"],
        "Job has reached the specified backoff limit"
    );
    let code =
        &cluster.list(PODS)[0]["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"];
    assert_eq!(code, 3);
}

#[test]
fn cron_job_creates_jobs_on_schedule_and_keeps_the_last_ones() {
    let cluster = Cluster::new();
    let template = job("", 1)["spec"].clone();
    cluster.apply(&json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"},
        "spec": {"schedule": "*/5 * * * *", "successfulJobsHistoryLimit": 2,
            "jobTemplate": {"spec": {"template": template["template"]}}},
    }));
    cluster.pass(60 * 17);
    let jobs = cluster.list("/apis/batch/v1/namespaces/default/jobs");
    let names: Vec<&str> =
        jobs.iter().map(|job| job["metadata"]["name"].as_str().unwrap()).collect();
    let at = |minutes: i64| format!("tick-{}", Cluster::start().as_second() / 60 + minutes);
    assert_eq!(names, [at(10), at(15)], "of three the last two are kept");
    let cron = cluster.get("/apis/batch/v1/namespaces/default/cronjobs/tick").unwrap();
    assert_eq!(cron["status"]["lastScheduleTime"], "2026-11-22T00:15:00Z");
    assert!(
        event_reasons(&cluster, "CronJob").contains(&format!(
            "SawCompletedJob: Saw completed job: {}, condition: Complete",
            at(5)
        ))
    );
}

#[test]
fn endpoints_of_a_service_list_its_ready_pods() {
    let cluster = Cluster::new();
    let mut object = deployment("nginx:1", 2);
    object["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] =
        json!({"tcpSocket": {"port": 80}, "initialDelaySeconds": 10});
    cluster.apply(&object);
    cluster.apply(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}}));
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let ready = || {
        let slice = cluster.list(slices).remove(0);
        let list = slice["endpoints"].as_array().cloned().unwrap_or_default();
        list.iter().map(|one| one["conditions"]["ready"] == true).collect::<Vec<_>>()
    };
    cluster.pass(2);
    assert_eq!(ready(), [false, false], "their probes have not answered yet");
    let path = "/api/v1/namespaces/default/endpoints/web";
    assert!(cluster.get(path).unwrap()["subsets"][0]["notReadyAddresses"].is_array());
    cluster.pass(15);
    assert_eq!(ready(), [true, true]);
    assert_eq!(cluster.get(path).unwrap()["subsets"][0]["ports"][0]["port"], 8080);
    cluster.send("DELETE", "/api/v1/namespaces/default/services/web", &Value::Null);
    cluster.pass(1);
    assert!(cluster.list(slices).is_empty() && cluster.get(path).is_none());
}

#[test]
fn stateful_set_creates_its_pods_in_order_each_with_its_claim() {
    let cluster = Cluster::new();
    let mut object = deployment("postgres:1", 2);
    object["kind"] = "StatefulSet".into();
    object["metadata"]["name"] = "db".into();
    object["spec"]["serviceName"] = "db".into();
    object["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec":
        {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
    object["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/data"}]);
    cluster.apply(&object);
    cluster.simulator.settle();
    assert_eq!(cluster.list(PODS).len(), 1, "the second waits for the first");
    cluster.pass(5);
    let names: Vec<Value> =
        cluster.list(PODS).iter().map(|pod| pod["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["db-0", "db-1"]);
    let claim = cluster.get("/api/v1/namespaces/default/persistentvolumeclaims/data-db-0").unwrap();
    assert_eq!(claim["status"]["phase"], "Bound");
    let set = cluster.get("/apis/apps/v1/namespaces/default/statefulsets/db").unwrap();
    assert_eq!(set["status"]["readyReplicas"], 2, "{set:#}");

    // A new template: the last is replaced first.
    object["spec"]["template"]["spec"]["containers"][0]["image"] = "postgres:2".into();
    cluster.apply(&object);
    cluster.pass(20);
    let set = cluster.get("/apis/apps/v1/namespaces/default/statefulsets/db").unwrap();
    assert_eq!(set["status"]["currentRevision"], set["status"]["updateRevision"]);
    assert_eq!(set["status"]["updatedReplicas"], 2, "{set:#}");
    cluster.is_quiet();
}

#[test]
fn stateful_set_takes_over_the_pods_that_an_earlier_one_left() {
    let cluster = Cluster::new();
    let mut object = deployment("postgres:1", 1);
    object["kind"] = "StatefulSet".into();
    object["metadata"]["name"] = "db".into();
    object["spec"]["serviceName"] = "db".into();
    cluster.apply(&object);
    cluster.pass(5);
    let uid = |pods: &[Value]| pods[0]["metadata"]["uid"].clone();
    let before = uid(&cluster.list(PODS));
    let path = "/apis/apps/v1/namespaces/default/statefulsets/db";
    cluster.send("DELETE", path, &json!({"propagationPolicy": "Orphan"}));
    cluster.pass(5);
    assert!(cluster.get(path).is_none());
    assert_eq!(cluster.list(PODS)[0]["metadata"]["ownerReferences"], Value::Null);
    cluster.apply(&object);
    cluster.pass(5);
    assert_eq!(uid(&cluster.list(PODS)), before);
    let set = cluster.get(path).unwrap();
    assert_eq!(set["status"]["readyReplicas"], 1, "{set:#}");
    let owner = &cluster.list(PODS)[0]["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], set["metadata"]["uid"]);
    cluster.is_quiet();
}

#[test]
fn pod_waits_for_its_claim_and_a_claim_in_use_is_not_deleted() {
    let cluster = Cluster::new();
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db"}, "spec": {
        "containers": [{"name": "db", "image": "postgres"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}});
    cluster.apply(&pod);
    cluster.pass(2);
    let found = cluster.get(&format!("{PODS}/db")).unwrap();
    assert_eq!(condition(&found, "PodScheduled")["reason"], "Unschedulable");
    cluster.apply(
        &json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    cluster.pass(15);
    assert_eq!(cluster.get(&format!("{PODS}/db")).unwrap()["status"]["phase"], "Running");
    cluster.send("DELETE", &format!("{claims}/data"), &Value::Null);
    cluster.pass(5);
    assert!(cluster.get(&format!("{claims}/data")).is_some(), "a Pod uses it");
    cluster.send("DELETE", &format!("{PODS}/db"), &Value::Null);
    cluster.pass(5);
    assert!(cluster.get(&format!("{claims}/data")).is_none());
    assert!(cluster.list("/api/v1/persistentvolumes").is_empty(), "its volume is deleted");
}

#[test]
fn each_controller_can_be_turned_off() {
    let mut controllers = Controllers::all();
    controllers.workloads = controllers.workloads.without(Workload::Pods);
    let cluster = Cluster::with(controllers);
    cluster.apply(&deployment("nginx:1", 2));
    cluster.pass(30);
    let pods = cluster.list(PODS);
    assert_eq!(pods.len(), 2);
    assert_eq!(pods[0]["status"]["phase"], "Pending", "nobody runs them");
    controllers.workloads = controllers.workloads.without(Workload::Deployments);
    let cluster = Cluster::with(controllers);
    cluster.apply(&deployment("nginx:1", 2));
    cluster.pass(30);
    assert!(cluster.list(SETS).is_empty());
}

#[test]
fn workload_log_is_the_same_for_the_same_seed_and_differs_for_another() {
    let play = |seed| {
        let cluster = Cluster::seeded(seed, Controllers::all());
        cluster.simulator.keep_log();
        cluster.apply(&deployment("nginx:1", 3));
        cluster.simulator.advance(SignedDuration::from_secs(10));
        cluster.apply(&deployment("nginx:2", 5));
        cluster.apply(&job("work", 3));
        cluster.simulator.advance(SignedDuration::from_secs(60));
        cluster.simulator.log()
    };
    assert_eq!(play(7), play(7));
    assert_ne!(play(7), play(8));
}

const CONTROLLER: &str = "/api/v1/namespaces/default/replicationcontrollers/old";

/// A cluster with two ready Pods of a ReplicationController.
fn replicated() -> Cluster {
    let cluster = Cluster::new();
    let template = json!({"metadata": {"labels": {"app": "old"}},
        "spec": {"containers": [{"name": "a", "image": "x:1"}]}});
    cluster.apply(&json!({"apiVersion": "v1", "kind": "ReplicationController",
        "metadata": {"name": "old"}, "spec": {"replicas": 2, "template": template}}));
    cluster.pass(5);
    cluster
}

#[test]
fn replication_controller_keeps_its_number_of_pods() {
    let cluster = replicated();
    let found = cluster.get(CONTROLLER).unwrap();
    assert_eq!(found["spec"]["selector"], json!({"app": "old"}), "{found}");
    assert_eq!(found["status"]["readyReplicas"], 2, "{found}");
    assert_eq!(found["status"].get("terminatingReplicas"), None, "{found}");
    let pods = cluster.list(PODS);
    assert_eq!(pods.len(), 2);
    assert_eq!(pods[0]["metadata"]["ownerReferences"][0]["kind"], "ReplicationController");
    let name = pods[0]["metadata"]["name"].as_str().unwrap();
    cluster.send("DELETE", &format!("{PODS}/{name}"), &json!({}));
    cluster.pass(5);
    assert_eq!(cluster.get(CONTROLLER).unwrap()["status"]["readyReplicas"], 2);
    cluster.is_quiet();
    cluster.send("DELETE", CONTROLLER, &json!({"propagationPolicy": "Foreground"}));
    cluster.pass(5);
    assert_eq!(cluster.get(CONTROLLER), None);
    assert_eq!(cluster.list(PODS).len(), 0);
}

#[test]
fn pods_of_a_replication_controller_remain_unless_the_delete_says_otherwise() {
    for options in [json!({"propagationPolicy": "Orphan"}), json!({}), Value::Null] {
        let cluster = replicated();
        cluster.send("DELETE", CONTROLLER, &options);
        cluster.pass(5);
        assert_eq!(cluster.get(CONTROLLER), None);
        let pods = cluster.list(PODS);
        assert_eq!(pods.len(), 2, "{options}");
        assert!(pods.iter().all(|pod| pod["metadata"].get("ownerReferences").is_none()));
    }
}
