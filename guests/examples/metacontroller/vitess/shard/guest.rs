//! A shard of Vitess: one pod with a volume per tablet, recreated one after the other.

use innkeeper_sdk::kinds::{
    Container, PersistentVolumeClaim as Claim, Pod, PodTemplate, Probe, Volume,
};
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::{IntoObject as _, UpdateGroup, read};
use metacontroller_examples::vitess::children;
use metacontroller_examples::vitess::flags::{self, Flags, GRPC_PORT, WEB_PORT};
use metacontroller_examples::vitess::inherited::Inherited;
use metacontroller_examples::vitess::shard::{VitessShard, VitessShardSpec, VitessShardStatus};
use metacontroller_examples::vitess::tablet::Tablet;
use metacontroller_examples::vitess::tablets::Process;
use serde_json::json;

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = VitessShard;

    fn describe() -> Manifest {
        Describe::reconciler_of::<VitessShard>("vitess-shard", "1.0.0")
            .owns::<Pod>()
            .owns::<Claim>()
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<VitessShard>) -> Outcome {
        let spec = &observed.primary().spec;
        let desired_tablets = Tablet::all(spec);
        let pods = observed.all_owned::<read::Pod>();
        let status = VitessShardStatus {
            tablets: uids(pods.iter()),
            ready_tablets: uids(pods.iter().filter(|pod| pod.object.is_serving())),
        };
        let names = desired_tablets.iter().map(|tablet| tablet.uid_text.clone());
        let unready = children::missing("tablet", names, &status.ready_tablets);

        let mut desired = Desired::new()
            .update_group(UpdateGroup::rolling_recreate("pods").check("Ready"))
            .update_group(UpdateGroup::on_delete("claims"))
            .status(&status)
            .condition(children::ready_unless(&unready));
        for tablet in &desired_tablets {
            let (Some(image), Some(claim)) = (&tablet.pool.image, &tablet.pool.volume_claim) else {
                let message = "spec.tablets names no image or no volumeClaim for tablets of a type; set both in spec.tablets.defaults";
                return Outcome::refused("InvalidTablets", message);
            };
            let claim = Raw::<Claim>::new(&*tablet.name, json!({ "spec": claim }));
            let claim = claim.labels(&labels(&spec.inherited, tablet));
            desired = desired
                .object(claim.in_update_group("claims"))
                .object(pod(spec, tablet, image).in_update_group("pods"));
        }
        // The data of a tablet stays when the tablet goes.
        for Owned { object, .. } in observed.all_owned::<read::PersistentVolumeClaim>() {
            if desired_tablets.iter().all(|tablet| tablet.name != object.metadata.name) {
                desired = desired.keep::<Claim>("", &object.metadata.name);
            }
        }
        desired.complete()
    }
}

/// Label of pods and claims: the number of the tablet.
const UID: &str = "vitess.io/tablet-uid";

/// Returns the numbers of the tablets of pods.
fn uids<'a>(pods: impl Iterator<Item = &'a Owned<read::Pod>>) -> Vec<String> {
    let uids = pods.filter_map(|pod| pod.object.metadata.labels.get(UID).cloned());
    let mut uids: Vec<String> = uids.collect();
    uids.sort();
    uids
}

fn labels(inherited: &Inherited, tablet: &Tablet) -> Labels {
    let mut labels = inherited.labels_of("vttablet");
    labels.insert(UID.to_owned(), tablet.uid_text.clone());
    labels
}

/// Returns the pod of a tablet: the server of Vitess, and the database.
fn pod(spec: &VitessShardSpec, tablet: &Tablet, image: &str) -> Pod {
    let Inherited { cluster, backup_flags, .. } = &spec.inherited;
    let mut server = flags::of_server(cluster);
    server.extend(flags::flags([
        ("service_map", "grpc-queryservice,grpc-tabletmanager,grpc-updatestream"),
        ("tablet-path", &tablet.alias),
        ("tablet_hostname", &format!("{}.{}", tablet.alias, tablet.subdomain)),
        ("init_keyspace", &spec.keyspace),
        ("init_shard", &spec.shard.name()),
        ("init_tablet_type", tablet.type_),
        ("mysqlctl_socket", SOCKET),
        ("enable_semi_sync", "true"),
    ]));
    server.extend(backup_flags.clone());
    let database = flags::flags([
        ("logtostderr", "true"),
        ("tablet_uid", &tablet.uid.to_string()),
        ("socket_file", SOCKET),
        ("init_db_sql_file", "$VTROOT/config/init_db.sql"),
    ]);
    let probe = Probe::http("/debug/vars", WEB_PORT).initial_delay_seconds(60).timeout_seconds(10);
    let server = container("vttablet", "vttablet", image, server, tablet.pool.vttablet.as_ref())
        .port("web", WEB_PORT)
        .port("grpc", GRPC_PORT)
        .liveness_probe(probe);
    let database = container("mysql", "mysqlctld", image, database, tablet.pool.mysql.as_ref());
    let template = PodTemplate::new(&labels(&spec.inherited, tablet))
        .container(server)
        .container(database)
        .volume(Volume::of_claim("vtdataroot", &*tablet.name))
        .field("hostname", &*tablet.alias)
        .field("subdomain", &*tablet.subdomain)
        .field("securityContext", json!({ "runAsUser": 999, "fsGroup": 999 }));
    Pod::new(&*tablet.name, template)
}

/// Path at which the two containers find each other.
const SOCKET: &str = "$VTDATAROOT/mysqlctl.sock";

fn container(
    name: &str,
    program: &str,
    image: &str,
    mut flags: Flags,
    process: Option<&Process>,
) -> Container {
    let process = process.cloned().unwrap_or_default();
    flags.extend(process.flags);
    let container = Container::new(name, image)
        .command(flags::command(program, &flags))
        .mount("vtdataroot", "/vt/vtdataroot");
    if process.resources.is_null() {
        container
    } else {
        container.field("resources", process.resources)
    }
}

innkeeper_sdk::export!(Guest);
