//! The builders of the SDK against the types of `k8s-openapi`, which are generated from Kubernetes'
//! own schemas and ignore unknown fields: what they return unchanged has no wrong field.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use innkeeper_sdk::kinds::{
    Affinity, ClusterRole, ClusterRoleBinding, ConfigMap, Container, CronJob, DaemonSet,
    Deployment, DeploymentStrategy, EnvFrom, HorizontalPodAutoscaler, ImagePullPolicy, Ingress,
    IngressBackend, Job, JobSpec, LabelSelector, Namespace, NetworkPolicy, NetworkPolicyPeer,
    NetworkPolicyRule, PersistentVolumeClaim, Pod, PodDisruptionBudget, PodSecurityContext,
    PodTemplate, PolicyRule, Probe, ReplicaSet, Resources, RestartPolicy, Role, RoleBinding,
    RoleRef, Secret, SecurityContext, Service, ServiceAccount, StatefulSet, Subject, Toleration,
    Volume,
};
use innkeeper_sdk::{Apply, Labels, labels};
use k8s_openapi::api::{apps, autoscaling, batch, core, networking, policy, rbac};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Checks a builder against the struct `K` of the same kind.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "the callers end with the builder's value")]
fn check<K>(object: impl Apply)
where
    K: innkeeper_sdk::Resource + DeserializeOwned + Serialize,
{
    let mut value = with_kind(&object);
    assert_eq!(kind_of(&object), K::kind());
    let typed: K = serde_json::from_value(value.clone()).unwrap();
    value.sort_all_objects();
    let mut back = serde_json::to_value(&typed).unwrap();
    // The struct writes the kind of an embedded object, which Kubernetes knows without it.
    if let Some(claim) = back.pointer_mut("/spec/volumeClaimTemplates/0") {
        claim.as_object_mut().unwrap().retain(|key, _| key != "apiVersion" && key != "kind");
    }
    back.sort_all_objects();
    assert_eq!(back, value);
}

fn kind_of<A: Apply>(_: &A) -> innkeeper_sdk::Kind {
    A::kind()
}

fn with_kind<A: Apply>(object: &A) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    value["apiVersion"] = A::API_VERSION.into();
    value["kind"] = A::KIND.into();
    value
}

fn app() -> Labels {
    labels([("app", "web")])
}

/// A template with every field that has a method.
fn template() -> PodTemplate {
    let probe = || {
        Probe::https("/healthz", "http")
            .initial_delay_seconds(1)
            .period_seconds(2)
            .timeout_seconds(3)
            .failure_threshold(4)
            .success_threshold(1)
    };
    let container = Container::new("web", "nginx:1")
        .image_pull_policy(ImagePullPolicy::IfNotPresent)
        .command(["nginx"])
        .args(["-v"])
        .working_dir("/srv")
        .env("A", "b")
        .env_from_secret("B", "secret", "key")
        .env_from_config_map("C", "config", "key")
        .env_from_field("D", "metadata.name")
        .env_from(EnvFrom::config_map("config"))
        .env_from(EnvFrom::secret("secret"))
        .port("http", 80)
        .udp_port("dns", 53)
        .mount("data", "/data")
        .mount_read_only("tls", "/tls")
        .readiness_probe(probe())
        .liveness_probe(Probe::grpc(9000))
        .startup_probe(Probe::exec(["true"]))
        .resources(Resources::default().request("cpu", "100m").limit("memory", "1Gi"))
        .security_context(
            SecurityContext::restricted()
                .run_as_user(1)
                .run_as_group(2)
                .read_only_root_filesystem(true)
                .privileged(false)
                .add_capability("NET_BIND_SERVICE"),
        );
    PodTemplate::new(&app())
        .annotation("a", "b")
        .container(container)
        .init_container(Container::new("init", "busybox").readiness_probe(Probe::tcp(80)))
        .service_account("web")
        .grace_seconds(5)
        .affinity(Affinity::same_node_as(&app()))
        .isolated()
        .node_label("disk", "ssd")
        .toleration(Toleration::exists("a"))
        .toleration(Toleration::equal("b", "c").effect("NoSchedule"))
        .security_context(
            PodSecurityContext::default()
                .run_as_user(1)
                .run_as_group(2)
                .run_as_non_root(true)
                .fs_group(3),
        )
        .image_pull_secret("registry")
        .volume(Volume::of_claim("data", "data"))
        .volume(Volume::of_config_map("config", "config"))
        .volume(Volume::of_secret("tls", "tls"))
        .volume(Volume::of_host_path("log", "/var/log"))
        .volume(Volume::in_memory("tmp", "1Mi"))
        .volume(Volume::empty("run"))
        .volume(Volume::of_source("token", "projected", token()))
        .volume(Volume::of_source("labels", "downwardAPI", labels_file()))
        .volume(Volume::of_source("csi", "csi", json!({ "driver": "csi.example.com" })))
        .volume(Volume::of_source("optional", "secret", optional_secret()))
        .field("hostNetwork", true)
}

/// A token of the pod's ServiceAccount.
fn token() -> Value {
    json!({ "defaultMode": 256, "sources": [{ "serviceAccountToken": { "path": "token" } }] })
}

/// The labels of the pod as a file.
fn labels_file() -> Value {
    json!({ "items": [{ "path": "labels", "fieldRef": { "fieldPath": "metadata.labels" } }] })
}

/// One key of a Secret that may be missing.
fn optional_secret() -> Value {
    json!({ "secretName": "tls", "optional": true, "items": [{ "key": "tls.crt", "path": "c" }] })
}

#[test]
fn workloads_have_the_fields_of_kubernetes() {
    let selector = || LabelSelector::from(&app()).within("tier", ["a", "b"]).missing("old");
    check::<core::v1::Pod>(Pod::new("web", template()));
    check::<apps::v1::Deployment>(
        Deployment::new("web", selector(), template())
            .replicas(1)
            .strategy(DeploymentStrategy::InPlace),
    );
    check::<apps::v1::StatefulSet>(
        StatefulSet::new("web", &app(), template())
            .replicas(1)
            .service("web")
            .pod_management_policy("Parallel")
            .claim(PersistentVolumeClaim::new("data", "1Gi").storage_class("fast")),
    );
    check::<apps::v1::DaemonSet>(DaemonSet::new("web", &app(), template()));
    check::<apps::v1::ReplicaSet>(
        ReplicaSet::new("web", &app(), template()).replicas(1).min_ready_seconds(2),
    );
    let job = || {
        let template = template().restart_policy(RestartPolicy::Never);
        JobSpec::new(template).backoff_limit(1).deadline_seconds(60)
    };
    check::<batch::v1::Job>(Job::new("web", job()));
    check::<batch::v1::CronJob>(CronJob::new("web", "* * * * *", job()));
    check::<autoscaling::v2::HorizontalPodAutoscaler>(
        HorizontalPodAutoscaler::of::<Deployment>("web", 3).min_replicas(1).cpu(80).memory(70),
    );
    check::<policy::v1::PodDisruptionBudget>(PodDisruptionBudget::min_available("web", &app(), 1));
    check::<policy::v1::PodDisruptionBudget>(PodDisruptionBudget::max_unavailable(
        "web",
        &app(),
        "50%",
    ));
}

#[test]
fn configuration_has_the_fields_of_kubernetes() {
    check::<core::v1::ConfigMap>(ConfigMap::new("web").data("a", "b"));
    check::<core::v1::Secret>(Secret::new("web").type_("Opaque").value("a", "b").data("c", "ZA=="));
    check::<core::v1::Namespace>(Namespace::new("web").label("a", "b").annotation("c", "d"));
    check::<core::v1::PersistentVolumeClaim>(PersistentVolumeClaim::new("data", "1Gi"));
}

#[test]
fn network_has_the_fields_of_kubernetes() {
    check::<core::v1::Service>(Service::new("web", &app()).named_port("http", 80, "http"));
    check::<networking::v1::Ingress>(
        Ingress::new("web")
            .class("nginx")
            .default_backend(IngressBackend::new("other", 80))
            .route("example.com", "/", "web", "http")
            .route("", "/all", "web", 80)
            .tls("tls", ["example.com"]),
    );
    let rule = |peer| NetworkPolicyRule::default().peer(peer).port(80).udp_port("dns");
    check::<networking::v1::NetworkPolicy>(
        NetworkPolicy::new("web", &app())
            .ingress(rule(NetworkPolicyPeer::pods(&app())))
            .ingress(rule(NetworkPolicyPeer::namespaces(LabelSelector::default())))
            .egress(rule(NetworkPolicyPeer::addresses("10.0.0.0/8"))),
    );
}

#[test]
fn rights_have_the_fields_of_kubernetes() {
    let rule = || PolicyRule::new("apps", ["deployments"], ["get"]).named(["web"]);
    check::<core::v1::ServiceAccount>(ServiceAccount::new("web").automount_token(false));
    check::<rbac::v1::Role>(Role::new("web").rule(rule()));
    check::<rbac::v1::ClusterRole>(
        ClusterRole::new("web").rule(rule()).rule(PolicyRule::urls(["/healthz"], ["get"])),
    );
    check::<rbac::v1::RoleBinding>(
        RoleBinding::new("web", RoleRef::role("web"))
            .subject(Subject::service_account("shop", "web"))
            .subject(Subject::user("ann")),
    );
    check::<rbac::v1::ClusterRoleBinding>(
        ClusterRoleBinding::new("web", RoleRef::cluster_role("view"))
            .subject(Subject::group("ops")),
    );
}
