//! A cell of Vitess: its servers, then its keyspaces, updated one after the other.

use innkeeper_sdk::kinds::{
    ConfigMap, Container, Deployment, Job, JobSpec, PodTemplate, Probe, RestartPolicy, Service,
    Volume, VolumeMount,
};
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::{ConditionStatus, IntoObject as _, UpdateGroup, read, template_hash};
use metacontroller_examples::vitess::cell::{
    Cell, Etcd, EtcdObjects, Server, ServerObjects, TabletObjects, VitessCell, VitessCellSpec,
    VitessCellStatus,
};
use metacontroller_examples::vitess::children;
use metacontroller_examples::vitess::flags::{self, GRPC_PORT, WEB_PORT};
use metacontroller_examples::vitess::inherited::Inherited;
use metacontroller_examples::vitess::keyspace::{Keyspace, VitessKeyspace, VitessKeyspaceSpec};
use serde_json::json;

kind!(
    /// The etcd of the etcd operator.
    pub EtcdCluster, "etcd.database.coreos.com/v1beta2", "etcdclusters"
);

/// The cell with the servers of the whole cluster.
const GLOBAL: &str = "global";

/// Annotation of a Deployment: hash of its spec.
const HASH: &str = "vitess.io/spec-hash";

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = VitessCell;

    fn describe() -> Manifest {
        Describe::reconciler_of::<VitessCell>("vitess-cell", "1.0.0")
            .owns_if_served::<EtcdCluster>()
            .owns::<Service>()
            .owns::<ConfigMap>()
            .owns::<Deployment>()
            .owns::<Job>()
            .owns::<VitessKeyspace>()
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<VitessCell>) -> Outcome {
        let primary = observed.primary();
        let Cell { name, etcd, vtctld, vtgate } = &primary.spec.cell;
        let labels = primary.spec.inherited.labels();
        let mut desired = Desired::new()
            .update_group(
                UpdateGroup::rolling_in_place("deployments").check("Available").check_reason(
                    "Progressing",
                    ConditionStatus::True,
                    "NewReplicaSetAvailable",
                ),
            )
            .update_group(UpdateGroup::recreate("jobs"));
        if let Some(Etcd { version, size }) = etcd {
            let spec = json!({ "spec": { "version": version, "size": size } });
            desired = desired
                .object(Raw::<EtcdCluster>::new(child(primary, "etcd"), spec).labels(labels));
        }
        if vtctld.is_some() {
            let config =
                ConfigMap::new(child(primary, "vtctld")).data("config.js", "vtconfig = {};\n");
            desired = desired.object(config.labels(labels));
        }
        let mut has_rolled_out = true;
        for (component, server) in [("vtctld", vtctld), ("vtgate", vtgate)] {
            let Some(server) = server else { continue };
            let deployment = deployment(primary, component, server);
            has_rolled_out &= is_rolled_out(observed, &deployment);
            desired = desired
                .object(service(primary, component))
                .object(deployment.in_update_group("deployments"));
        }
        if name != GLOBAL {
            desired = desired
                .object(tablet_service(primary))
                .object(registration(primary).in_update_group("jobs"));
        }
        let keyspaces = primary.spec.keyspaces.iter().map(|one| keyspace(primary, one));
        let (status, unready) = state(primary, observed);
        desired
            // They come last: an update of the servers pauses them.
            .update_group(children::one_by_one("keyspaces").paused(!has_rolled_out))
            .objects(keyspaces.map(|keyspace| keyspace.in_update_group("keyspaces")))
            .status(&status)
            .condition(children::ready_unless(&unready))
            .complete()
    }
}

/// Returns whether a Deployment is as desired and all its pods run its template.
fn is_rolled_out(observed: &Observed<VitessCell>, desired: &Deployment) -> bool {
    let name = &desired.metadata.name;
    let annotations =
        observed.owned::<read::Deployment>(name).map(|one| one.object.metadata.annotations);
    let hash = annotations.and_then(|annotations| annotations.get(HASH).cloned());
    hash.as_ref() == desired.metadata.annotations.get(HASH) && observed.is_ready::<Deployment>(name)
}

fn child(primary: &VitessCell, suffix: &str) -> String {
    format!("{}-{suffix}", primary.metadata.name)
}

/// Returns the Service of a server.
fn service(primary: &VitessCell, component: &str) -> Service {
    let inherited = &primary.spec.inherited;
    Service::new(child(primary, component), &inherited.selector_of(component))
        .named_port("web", WEB_PORT, WEB_PORT)
        .named_port("grpc", GRPC_PORT, GRPC_PORT)
        .labels(inherited.labels())
}

/// Returns the Service that gives the tablets their host names.
fn tablet_service(primary: &VitessCell) -> Raw<Service> {
    let Inherited { cluster, .. } = &primary.spec.inherited;
    let spec = json!({ "spec": {
        "clusterIP": "None",
        "publishNotReadyAddresses": true,
        "selector": primary.spec.inherited.selector_of("vttablet"),
        "ports": [
            { "name": "web", "port": WEB_PORT, "protocol": "TCP" },
            { "name": "grpc", "port": GRPC_PORT, "protocol": "TCP" },
        ],
    } });
    Raw::new(format!("{cluster}-vttablet-{}", primary.spec.cell.name), spec)
        .labels(primary.spec.inherited.labels())
}

/// Returns the Deployment of a server.
fn deployment(primary: &VitessCell, component: &str, server: &Server) -> Deployment {
    let Inherited { cluster, backup_flags, .. } = &primary.spec.inherited;
    let cell = &primary.spec.cell.name;
    let mut flags = flags::of_server(cluster);
    flags.insert("cell".to_owned(), cell.clone());
    let mut container = Container::new(component, &*server.image);
    let mut template = PodTemplate::new(&primary.spec.inherited.labels_of(component));
    if component == "vtctld" {
        flags.extend(flags::flags([
            ("service_map", "grpc-vtctl"),
            ("web_dir", "/vt/web/vtctld"),
            ("workflow_manager_init", "true"),
            ("workflow_manager_use_election", "true"),
        ]));
        flags.extend(backup_flags.clone());
        template = template.volume(Volume::of_config_map("config", child(primary, "vtctld")));
        container = container.volume_mount(VolumeMount {
            name: "config".to_owned(),
            mount_path: "/vt/web/vtctld/config.js".to_owned(),
            read_only: true,
            sub_path: Some("config.js".to_owned()),
        });
    } else {
        flags.extend(flags::flags([
            ("service_map", "grpc-vtgateservice"),
            ("cells_to_watch", cell),
            ("tablet_types_to_wait", "MASTER,REPLICA"),
            ("gateway_implementation", "discoverygateway"),
        ]));
    }
    flags.extend(server.flags.clone());
    let probe = Probe::http("/debug/vars", WEB_PORT).initial_delay_seconds(30).timeout_seconds(5);
    let mut container = container.command(flags::command(component, &flags)).liveness_probe(probe);
    if !server.resources.is_null() {
        container = container.field("resources", server.resources.clone());
    }
    let template = template
        .container(container)
        .field("securityContext", json!({ "runAsUser": 999, "fsGroup": 999 }));
    let selector = primary.spec.inherited.selector_of(component);
    let deployment = Deployment::new(child(primary, component), &selector, template)
        .replicas(server.replicas)
        .labels(primary.spec.inherited.labels());
    let hash = template_hash(&deployment.spec);
    deployment.annotation(HASH, &hash)
}

/// Returns the Job that makes the cell known to the cluster.
fn registration(primary: &VitessCell) -> Job {
    let Inherited { cluster, .. } = &primary.spec.inherited;
    let cell = &primary.spec.cell.name;
    let labels = primary.spec.inherited.labels_of("vtctlclient");
    let container = Container::new("vtctlclient", "vitess/vtctlclient").command([
        "vtctlclient",
        "-server",
        &format!("{cluster}-{GLOBAL}-vtctld:{GRPC_PORT}"),
        "UpdateCellInfo",
        "-server_address",
        &flags::topology_address(cluster),
        "-root",
        &format!("/vitess/{cell}"),
        cell,
    ]);
    let template =
        PodTemplate::new(&labels).container(container).restart_policy(RestartPolicy::OnFailure);
    let spec = JobSpec::new(template).deadline_seconds(60).backoff_limit(10);
    Job::new(child(primary, "cell-info"), spec).labels(&labels)
}

/// Returns the child for a keyspace.
fn keyspace(primary: &VitessCell, keyspace: &Keyspace) -> VitessKeyspace {
    let VitessCellSpec { cell, inherited, keyspaces: _ } = &primary.spec;
    let metadata = Metadata::named(child(primary, &keyspace.name));
    let spec = VitessKeyspaceSpec {
        keyspace: keyspace.clone(),
        inherited: inherited.with_label("vitess.io/keyspace", &keyspace.name),
        cell: cell.name.clone(),
    };
    VitessKeyspace { metadata, spec }.labels(inherited.labels())
}

/// Returns the status, and the names of what is not ready.
fn state(primary: &VitessCell, observed: &Observed<VitessCell>) -> (VitessCellStatus, Vec<String>) {
    let Cell { name, etcd, vtctld, vtgate } = &primary.spec.cell;
    let (keyspaces, ready_keyspaces) = children::names::<VitessKeyspace>(observed);
    let expected = primary.spec.keyspaces.iter().map(|one| one.name.clone());
    let mut unready = children::missing("keyspace", expected, &ready_keyspaces);

    let etcd_name = child(primary, "etcd");
    let is_etcd_available = children::is_available::<EtcdCluster>(observed, &etcd_name);
    if etcd.is_some() && !is_etcd_available {
        let is_served = observed.is_served::<EtcdCluster>();
        let why = if is_served { "" } else { " (install the etcd operator)" };
        unready.push(format!("EtcdCluster {etcd_name}{why}"));
    }
    let mut objects = |component, server: &Option<Server>| {
        let name = child(primary, component);
        let is_available = children::is_available::<Deployment>(observed, &name);
        if server.is_some() && !is_available {
            unready.push(format!("Deployment {name}"));
        }
        ServerObjects {
            services: observed.owned::<read::Service>(&name).is_some().into(),
            config_maps: observed.owned::<read::ConfigMap>(&name).is_some().into(),
            deployments: observed.owned::<read::Deployment>(&name).is_some().into(),
            available_deployments: is_available.into(),
        }
    };
    let (vtctld, vtgate) = (objects("vtctld", vtctld), objects("vtgate", vtgate));
    let job = observed.owned::<read::Job>(&child(primary, "cell-info")).map(|one| one.object);
    let cell_info_registered = name == GLOBAL || job.as_ref().is_some_and(read::Job::is_complete);
    if !cell_info_registered {
        let failure = job.as_ref().and_then(read::Job::failure);
        let failure = failure.map(|why| format!(" ({why}; delete it to try again)"));
        unready.push(format!("Job {}{}", child(primary, "cell-info"), failure.unwrap_or_default()));
    }
    let service = format!("{}-vttablet-{name}", primary.spec.inherited.cluster);
    let status = VitessCellStatus {
        keyspaces,
        ready_keyspaces,
        etcd: EtcdObjects {
            clusters: observed.count_owned::<EtcdCluster>(),
            available_clusters: is_etcd_available.into(),
        },
        vtctld,
        vtgate,
        vttablet: TabletObjects {
            services: observed.owned::<read::Service>(&service).is_some().into(),
        },
        cell_info_registered,
    };
    (status, unready)
}

innkeeper_sdk::export!(Guest);
