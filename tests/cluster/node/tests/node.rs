//! A node runs pods, and leaves nothing behind. Needs root; `cargo xtask test` runs these.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by it")]
#![allow(clippy::print_stdout, reason = "the test prints what takes long")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use innkeeper_controlplane::{Background, Options, Programs};
use innkeeper_images::{Image, Run, Tree};
use innkeeper_node::{Cluster, background};

const BOUND: Duration = Duration::from_mins(4);

/// A Deployment of one of the sources' images, pulled each time, and its Service.
const WEB: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers:
        - { name: web, image: "quay.io/example/production:latest", imagePullPolicy: Always }
---
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: NodePort, selector: { app: web }, ports: [{ port: 8080 }] }
---
apiVersion: v1
kind: Pod
metadata: { name: client }
spec:
  terminationGracePeriodSeconds: 0
  containers: [{ name: client, image: busybox, command: [sleep, "100000"] }]
"#;

/// A volume that is made on demand, with what a pod writes into it.
const VOLUME: &str = r#"
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: data }
spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
---
apiVersion: v1
kind: Pod
metadata: { name: writer }
spec:
  restartPolicy: Never
  containers:
    - name: writer
      image: busybox
      command: [sh, -c, "echo kept > /data/file && cat /data/file"]
      volumeMounts: [{ name: data, mountPath: /data }]
  volumes: [{ name: data, persistentVolumeClaim: { claimName: data } }]
"#;

/// A client on the second node, which writes to the folder that nodes share.
const AWAY: &str = r#"
apiVersion: v1
kind: Pod
metadata: { name: away }
spec:
  nodeName: node-2
  terminationGracePeriodSeconds: 0
  containers:
    - name: away
      image: busybox
      command: [sh, -c, "echo kept > /shared/file; exec sleep 100000"]
      volumeMounts: [{ name: shared, mountPath: /shared }]
  volumes: [{ name: shared, hostPath: { path: /run/shared/test, type: DirectoryOrCreate } }]
"#;

fn start() -> Cluster {
    Cluster::start(&Options::default(), &mut |line| println!("{line}")).unwrap()
}

fn try_kubectl(kubeconfig: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Programs::find(&mut |_| ()).unwrap().command("kubectl").unwrap();
    let output = command.env("KUBECONFIG", kubeconfig).args(arguments).output().unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(format!("kubectl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

fn kubectl(kubeconfig: &Path, arguments: &[&str]) -> String {
    try_kubectl(kubeconfig, arguments).unwrap()
}

fn apply(kubeconfig: &Path, yaml: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("objects.yaml");
    fs::write(&path, yaml).unwrap();
    // The namespace's ServiceAccount is made a moment after the namespace.
    wait_until("the objects are taken", || {
        try_kubectl(kubeconfig, &["apply", "-f", &path.display().to_string()]).map(drop)
    });
}

fn wait_until<T>(what: &str, mut condition: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + BOUND;
    loop {
        match condition() {
            Ok(value) => return value,
            Err(why) => assert!(Instant::now() < deadline, "{what}: not so; last: {why}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn until_web_is_ready(kubeconfig: &Path) {
    let wait = ["wait", "--for=condition=Available", "deployment/web", "--timeout=120s"];
    kubectl(kubeconfig, &wait);
    let wait = ["wait", "--for=condition=Ready", "pod/client", "--timeout=120s"];
    kubectl(kubeconfig, &wait);
}

/// The user as which the API server authenticates a pod, by its account's token.
fn user_of_a_pod(cluster: &Cluster) -> String {
    let program = Programs::find(&mut |_| ()).unwrap().command("kubectl").unwrap();
    let mut tree = Tree::new();
    tree.copy("/usr/bin/asks", Path::new(program.get_program())).unwrap();
    let mut entrypoint = vec!["/usr/bin/asks".to_owned()];
    entrypoint.extend(program.get_args().map(|one| one.to_str().unwrap().to_owned()));
    entrypoint.extend(
        ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"].map(str::to_owned),
    );
    let image = Image::new(&tree, &Run { entrypoint, ..Run::default() }).unwrap();
    cluster.node().push("quay.io/example/asks:latest", &image).unwrap();
    let config = cluster.plane().kubeconfig();
    kubectl(config, &["run", "asks", "--image=quay.io/example/asks:latest", "--restart=Never"]);
    let log = wait_until("the pod ends", || {
        match &*kubectl(config, &["get", "pod", "asks", "-o", "jsonpath={.status.phase}"]) {
            "Succeeded" | "Failed" => Ok(kubectl(config, &["logs", "asks"])),
            other => Err(other.to_owned()),
        }
    });
    log.trim().to_owned()
}

/// The page that the Service gives to a pod that asks for it by name.
fn page_by_name(kubeconfig: &Path) -> String {
    wait_until("the Service answers by its name", || {
        try_kubectl(kubeconfig, &["exec", "client", "--", "wget", "-qO-", "http://web:8080/"])
    })
}

/// The name of the interface and the control groups of the cluster whose state lies in `folder`.
fn name_of(folder: &Path) -> String {
    let text = fs::read_to_string(folder.join("machine.pids")).unwrap();
    text.split_whitespace().nth(2).unwrap().to_owned()
}

/// The interface and the control groups of a machine, by path. The inode tells them from those of
/// a later machine that got the same name.
type Traces = BTreeSet<(PathBuf, u64)>;

/// Of the machine whose state lies in `folder`.
fn traces(folder: &Path) -> Traces {
    let name = name_of(folder);
    let groups = fs::read_dir("/sys/fs/cgroup").unwrap().map(|entry| entry.unwrap().path());
    let places = groups.chain(["/sys/fs/cgroup", "/sys/class/net"].map(PathBuf::from));
    let paths = places.map(|folder| folder.join(&name));
    paths.filter_map(|path| Some((path.clone(), inode(&path)?))).collect()
}

fn inode(path: &Path) -> Option<u64> {
    Some(fs::metadata(path).ok()?.ino())
}

/// What is still there of `traces`.
fn left_of(traces: &Traces) -> Vec<&PathBuf> {
    let left = traces.iter().filter(|(path, own)| inode(path) == Some(*own));
    left.map(|(path, _)| path).collect()
}

/// Nodes are counted and named: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Processes whose command line names `folder`.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&folder))
        .collect()
}

/// Waits until nothing is left of the cluster whose state lay in `folder`, and of `traces`.
fn until_nothing_is_left(folder: &Path, traces: &Traces) {
    wait_until("the processes end", || match processes_of(folder) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:#?}")),
    });
    wait_until("the folder goes", || {
        if folder.exists() { Err(folder.display().to_string()) } else { Ok(()) }
    });
    wait_until("interface and control groups go", || match left_of(traces) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:?}")),
    });
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn pods_run_and_are_reached_and_reach_the_api_server_and_nothing_is_left_at_the_end() {
    let _alone = alone();
    let cluster = start();
    let config = cluster.plane().kubeconfig().to_owned();
    apply(&config, WEB);
    apply(&config, VOLUME);
    until_web_is_ready(&config);
    assert_eq!(page_by_name(&config), "Production Page !\n");

    // From this machine, at the node's address.
    let port = ["get", "service", "web", "-o", "jsonpath={.spec.ports[0].nodePort}"];
    let url = format!("http://{}:{}/", cluster.node().address(), kubectl(&config, &port));
    let page = Command::new("curl").args(["-sS", "--max-time", "5", &url]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&page.stdout), "Production Page !\n", "{page:?}");

    let done = ["wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/writer", "--timeout=120s"];
    kubectl(&config, &done);
    assert_eq!(kubectl(&config, &["logs", "writer"]), "kept\n");
    assert!(!Path::new("/tmp/hostpath_pv").exists(), "volumes lie in the cluster's folder");

    // An image that nobody has put there is asked from nowhere else.
    kubectl(&config, &["run", "stranger", "--image=quay.io/example/stranger"]);
    wait_until("the image is not found", || {
        let reason = "jsonpath={.status.containerStatuses[0].state.waiting.reason}";
        match &*kubectl(&config, &["get", "pod", "stranger", "-o", reason]) {
            "ErrImagePull" | "ImagePullBackOff" => Ok(()),
            other => Err(other.to_owned()),
        }
    });

    assert_eq!(user_of_a_pod(&cluster), "system:serviceaccount:default:default");

    let folder = config.parent().unwrap().to_owned();
    let traces = traces(&folder);
    assert!(!processes_of(&folder).is_empty());
    assert!(traces.len() > 1, "{traces:?}");
    drop(cluster);
    until_nothing_is_left(&folder, &traces);
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn second_node_is_reached_from_the_first_and_is_not_ready_after_it_went_away() {
    let _alone = alone();
    let grace = "--node-monitor-grace-period=30s".to_owned();
    let options = Options { controller_manager_flags: vec![grace], ..Options::default() };
    let cluster = Cluster::start(&options, &mut |line| println!("{line}")).unwrap();
    let config = cluster.plane().kubeconfig().to_owned();
    apply(&config, WEB);
    until_web_is_ready(&config);
    let begun = Instant::now();
    let second = cluster.node().second().unwrap();
    println!("the second node is ready after {:?}", begun.elapsed());
    apply(&config, AWAY);
    kubectl(&config, &["wait", "--for=condition=Ready", "pod/away", "--timeout=120s"]);

    // Names, Services and pods of the first node, from the second; and the other way round.
    let ask = ["exec", "away", "--", "wget", "-qO-", "http://web:8080/"];
    let page = wait_until("the Service answers on the other node", || try_kubectl(&config, &ask));
    assert_eq!(page, "Production Page !\n");
    let address = kubectl(&config, &["get", "pod", "away", "-o", "jsonpath={.status.podIP}"]);
    assert!(address.starts_with("10.245."), "{address}");
    kubectl(&config, &["exec", "client", "--", "ping", "-c", "1", &address]);
    let folder = config.parent().unwrap().to_owned();
    assert_eq!(fs::read_to_string(folder.join("shared/test/file")).unwrap(), "kept\n");

    let away = folder.join(second.name());
    let away_traces = traces(&away);
    assert!(away_traces.len() > 1, "{away_traces:?}");
    second.lose().unwrap();
    wait_until("its processes end", || match processes_of(&away) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:#?}")),
    });
    assert_eq!(left_of(&away_traces), Vec::<&PathBuf>::new());
    kubectl(&config, &["wait", "--for=condition=Ready=Unknown", "node/node-2", "--timeout=120s"]);
    kubectl(&config, &["wait", "--for=condition=Ready", "node/node", "--timeout=120s"]);
    assert_eq!(page_by_name(&config), "Production Page !\n");
    let traces = traces(&folder);
    drop(cluster);
    until_nothing_is_left(&folder, &traces);
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn two_nodes_at_the_same_time_are_isolated() {
    let _alone = alone();
    let (one, two) = (start(), start());
    assert_ne!(one.node().address(), two.node().address());
    let [first, second] = [&one, &two].map(|cluster| cluster.plane().kubeconfig().to_owned());
    // The same names, addresses and ports in both; only one has the Service.
    for config in [&first, &second] {
        apply(config, WEB);
    }
    kubectl(&second, &["delete", "service", "web"]);
    for config in [&first, &second] {
        until_web_is_ready(config);
    }
    assert_eq!(page_by_name(&first), "Production Page !\n");
    let pods =
        |config| kubectl(config, &["get", "pods", "-o", "jsonpath={.items[*].status.podIP}"]);
    let (of_one, of_two) = (pods(&first), pods(&second));
    assert_eq!(of_one.split(' ').count(), 3);
    assert_eq!(of_two.split(' ').count(), 3);
    let ask = ["exec", "client", "--", "wget", "-qO-", "http://web:8080/"];
    let error = try_kubectl(&second, &ask).unwrap_err();
    assert!(error.contains("bad address"), "{error}");

    // The end of one is nothing to the other.
    drop(two);
    assert_eq!(page_by_name(&first), "Production Page !\n");
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn background_node_outlives_its_starter_and_leftovers_of_a_crash_are_removed() {
    let _alone = alone();
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("cluster");
    let own = Background::at(&folder);
    assert!(!background::is_up(&own));
    background::up(&own, &mut |line| println!("{line}")).unwrap();
    assert!(background::is_up(&own));
    apply(&own.kubeconfig(), WEB);
    until_web_is_ready(&own.kubeconfig());

    // Killed from outside, with no chance to clear away: the first that was written down.
    let pids = fs::read_to_string(folder.join("machine.pids")).unwrap();
    let outer = pids.split_whitespace().next().unwrap();
    assert!(Command::new("kill").args(["-9", outer]).status().unwrap().success());
    wait_until("it is down", || if background::is_up(&own) { Err("up".into()) } else { Ok(()) });
    assert!(folder.join("etcd").exists(), "a crash leaves its state");

    background::up(&own, &mut |line| println!("{line}")).unwrap();
    assert!(background::is_up(&own));
    let nodes = kubectl(&own.kubeconfig(), &["get", "deployments", "-o", "name"]);
    assert_eq!(nodes, "", "a new cluster");

    let traces = traces(&folder);
    background::down(&own).unwrap();
    until_nothing_is_left(&folder, &traces);
    background::down(&own).unwrap();
}

/// Run by the test below in a process of its own, which is then killed.
#[test]
#[ignore = "the other half of a_killed_test_leaves_nothing_behind"]
fn a_test_that_is_killed() {
    // A run of all ignored tests runs this too.
    let Some(path) = std::env::var_os("INNKEEPER_KILLED_TEST") else { return };
    let cluster = start();
    apply(cluster.plane().kubeconfig(), WEB);
    until_web_is_ready(cluster.plane().kubeconfig());
    fs::write(path, cluster.plane().kubeconfig().display().to_string()).unwrap();
    std::thread::sleep(Duration::from_mins(10));
}

#[test]
#[ignore = "needs root: cargo xtask test runs it"]
fn a_killed_test_leaves_nothing_behind() {
    let _alone = alone();
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("kubeconfig-path");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "a_test_that_is_killed"])
        .env("INNKEEPER_KILLED_TEST", &path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let kubeconfig =
        wait_until("the other half runs its pods", || match fs::read_to_string(&path) {
            Ok(text) if !text.is_empty() => Ok(text),
            _ => match child.try_wait().unwrap() {
                Some(status) => panic!("the other half ended: {status}"),
                None => Err("not yet".to_owned()),
            },
        });
    let folder = Path::new(&kubeconfig).parent().unwrap().to_owned();
    let traces = traces(&folder);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the processes end", || match processes_of(&folder) {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:#?}")),
    });
    wait_until("the interface goes", || {
        match left_of(&traces).into_iter().find(|path| path.starts_with("/sys/class/net")) {
            Some(left) => Err(left.display().to_string()),
            None => Ok(()),
        }
    });
    // Control groups only the next node can clear away; it does.
    drop(start());
    until_nothing_is_left(&folder, &traces);
}
