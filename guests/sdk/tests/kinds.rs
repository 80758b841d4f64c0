//! The JSON of the builders.

use expect_test::{Expect, expect};
use innkeeper_sdk::kinds::{
    AccessMode, Affinity, ConcurrencyPolicy, Container, CronJob, DeploymentStrategy, Job, JobSpec,
    PersistentVolumeClaim, Pod, PodTemplate, Probe, RestartPolicy, Volume,
};
use innkeeper_sdk::{Apply as _, labels};
use serde::Serialize;
use serde_json::json;

#[track_caller]
fn check(object: &impl Serialize, expected: &Expect) {
    expected.assert_eq(&serde_json::to_string(object).unwrap_or_default());
}

fn template() -> PodTemplate {
    PodTemplate::new(&labels([("app", "web")])).container(Container::new("web", "web:1"))
}

#[test]
fn pod_has_its_own_name_and_the_labels_of_its_template() {
    check(
        &Pod::new("web", template()),
        &expect![[
            r#"{"metadata":{"name":"web","labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}]}}"#
        ]],
    );
}

#[test]
fn pod_of_others_has_no_spec() {
    check(
        &Pod::of_others("web-1").label("seen", "yes"),
        &expect![[r#"{"metadata":{"name":"web-1","labels":{"seen":"yes"}}}"#]],
    );
}

#[test]
fn container_has_each_field_once_when_a_method_and_json_set_it() {
    let container = Container::new("web", "web:1")
        .args(["-v"])
        .field("args", json!(["-q"]))
        .field("image", "web:2")
        .field("env", json!([{ "name": "A", "value": "b" }]))
        .env("C", "d")
        .field("stdin", true);
    check(
        &container,
        &expect![[
            r#"{"name":"web","image":"web:1","args":["-v"],"env":[{"name":"A","value":"b"},{"name":"C","value":"d"}],"stdin":true}"#
        ]],
    );
}

#[test]
fn pod_serializes_probes_variables_mounts_and_affinity() {
    let container = Container::new("web", "web:1")
        .env("MODE", "fast")
        .env_from_secret("PASSWORD", "web-password", "value")
        .port("", 80)
        .mount("data", "/data")
        .mount_read_only("scripts", "/scripts")
        .readiness_probe(Probe::tcp(80).period_seconds(2));
    let template = PodTemplate::new(&labels([]))
        .container(container)
        .volume(Volume::of_claim("data", "web-data"))
        .volume(Volume::of_config_map("scripts", "web-scripts"))
        .volume(Volume::empty("run"))
        .affinity(Affinity::same_node_as(&labels([("app", "web")])))
        .grace_seconds(60)
        .isolated();
    check(
        &Pod::new("web", template),
        &expect![[
            r#"{"metadata":{"name":"web"},"spec":{"containers":[{"name":"web","image":"web:1","env":[{"name":"MODE","value":"fast"},{"name":"PASSWORD","valueFrom":{"secretKeyRef":{"name":"web-password","key":"value"}}}],"ports":[{"containerPort":80,"protocol":"TCP"}],"volumeMounts":[{"name":"data","mountPath":"/data"},{"name":"scripts","mountPath":"/scripts","readOnly":true}],"readinessProbe":{"tcpSocket":{"port":80},"periodSeconds":2}}],"terminationGracePeriodSeconds":60,"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":{"matchLabels":{"app":"web"}},"topologyKey":"kubernetes.io/hostname"}]}},"enableServiceLinks":false,"automountServiceAccountToken":false,"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"web-data"}},{"name":"scripts","configMap":{"name":"web-scripts"}},{"name":"run","emptyDir":{}}]}}"#
        ]],
    );
}

#[test]
fn probe_serializes_a_program_with_its_timeout() {
    let probe = Probe::exec(["test", "-f", "/ready"]).timeout_seconds(5);
    check(&probe, &expect![[r#"{"exec":{"command":["test","-f","/ready"]},"timeoutSeconds":5}"#]]);
}

#[test]
fn deployment_strategy_has_parameters_only_when_in_place() {
    for (strategy, expected) in [
        (DeploymentStrategy::RollingUpdate, json!({ "type": "RollingUpdate" })),
        (DeploymentStrategy::Recreate, json!({ "type": "Recreate" })),
        (
            DeploymentStrategy::InPlace,
            json!({
                "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 1 },
            }),
        ),
    ] {
        assert_eq!(serde_json::to_value(strategy).unwrap(), expected);
    }
}

#[test]
fn job_and_cron_job_serialize_only_the_fields_that_were_set() {
    let spec = || JobSpec::new(template().restart_policy(RestartPolicy::Never)).backoff_limit(0);
    check(
        &Job::new("once", spec()),
        &expect![[
            r#"{"metadata":{"name":"once"},"spec":{"backoffLimit":0,"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}],"restartPolicy":"Never"}}}}"#
        ]],
    );
    let often = CronJob::new("often", "* * * * *", spec().deadline_seconds(600))
        .concurrency(ConcurrencyPolicy::Forbid)
        .history(1, 3);
    check(
        &often,
        &expect![[
            r#"{"metadata":{"name":"often"},"spec":{"schedule":"* * * * *","concurrencyPolicy":"Forbid","successfulJobsHistoryLimit":1,"failedJobsHistoryLimit":3,"jobTemplate":{"spec":{"backoffLimit":0,"activeDeadlineSeconds":600,"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}],"restartPolicy":"Never"}}}}}}"#
        ]],
    );
}

#[test]
fn claim_is_read_write_once_unless_an_access_mode_is_set() {
    check(
        &PersistentVolumeClaim::new("data", "1Gi"),
        &expect![[
            r#"{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}"#
        ]],
    );
    check(
        &PersistentVolumeClaim::new("data", "1Gi")
            .access_mode(AccessMode::ReadWriteMany)
            .storage_class("shared"),
        &expect![[
            r#"{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteMany"],"resources":{"requests":{"storage":"1Gi"}},"storageClassName":"shared"}}"#
        ]],
    );
}
