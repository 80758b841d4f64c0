//! The command as users call it. Needs the guests: `cargo xtask guests` builds them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use expect_test::{Expect, expect};
use serde_json::Value;

use support::{Files, component, done, failed, innkeeper, text};

const PODROUTE: &str = "\
apiVersion: quay.io/v1alpha1
kind: Podroute
metadata: {name: test-podroute, namespace: web, generation: 1}
spec: {image: quay.io/austincunningham/always200:latest, replicas: 3}
";

#[test]
fn rbac_prints_the_least_rights() {
    let guest = component("podroute");
    expect![[r##"
        # What the module pr needs to run the guest podroute 0.1.0.
        # Made by `innkeeper rbac`; run it again when the guest changes what it describes.
        # The annotation names the modules that may act as the account, separated by commas.
        # An administrator installs the definitions: `innkeeper inspect GUEST.wasm --crds | kubectl apply --server-side -f -`
        apiVersion: v1
        kind: ServiceAccount
        metadata:
          annotations:
            innkeeper.dev/allowed-modules: pr
          name: pr
          namespace: innkeeper-modules
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: Role
        metadata:
          name: innkeeper-module-pr
          namespace: web
        rules:
          # The primaries: to watch podroutes.
          - apiGroups: ["quay.io"]
            resources: ["podroutes"]
            verbs: ["get", "list", "watch"]
          # To write their status (server-side apply).
          - apiGroups: ["quay.io"]
            resources: ["podroutes/status"]
            verbs: ["patch"]
          # To own what is made for them: an owner reference that blocks deletion needs
          # this where OwnerReferencesPermissionEnforcement is on.
          - apiGroups: ["quay.io"]
            resources: ["podroutes/finalizers"]
            verbs: ["update"]
          # To make Deployment (apply needs create and patch), and to prune.
          - apiGroups: ["apps"]
            resources: ["deployments"]
            verbs: ["get", "list", "watch", "create", "patch", "delete"]
          # To make Service (apply needs create and patch), and to prune.
          - apiGroups: [""]
            resources: ["services"]
            verbs: ["get", "list", "watch", "create", "patch", "delete"]
          # To make Route where it is served (apply needs create and patch), and to prune.
          # In addition to these verbs, writes need the verbs create and update on routes/custom-host, if the guest sets spec.host.
          # These rules do not grant it.
          - apiGroups: ["route.openshift.io"]
            resources: ["routes"]
            verbs: ["get", "list", "watch", "create", "patch", "delete"]
          # To write Events about the primaries.
          - apiGroups: ["events.k8s.io"]
            resources: ["events"]
            verbs: ["create", "patch"]
        ---
        apiVersion: rbac.authorization.k8s.io/v1
        kind: RoleBinding
        metadata:
          name: innkeeper-module-pr
          namespace: web
        roleRef:
          apiGroup: rbac.authorization.k8s.io
          kind: Role
          name: innkeeper-module-pr
        subjects:
        - kind: ServiceAccount
          name: pr
          namespace: innkeeper-modules
    "##]]
    .assert_eq(&done(&["rbac", &guest, "--module", "pr", "-n", "web"]));
    let more = done(&["rbac", &guest, "--module", "pr", "-n", "web", "--with-cluster-role"]);
    let of_cluster = more.split("---\n").nth(1).unwrap_or_default();
    expect![[r##"
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRole
        metadata:
          name: innkeeper-module-pr
        rules:
          # To install the definitions that the guest describes, and no others.
          - apiGroups: ["apiextensions.k8s.io"]
            resourceNames: ["podroutes.quay.io"]
            resources: ["customresourcedefinitions"]
            verbs: ["get", "create", "patch"]
    "##]]
    .assert_eq(of_cluster);
    let own = done(&["rbac", &guest, "-n", "web", "--account-namespace", "hosts"]);
    assert_eq!(own.matches("namespace: hosts").count(), 2, "{own}");
    let labels = component("labels");
    let refused = innkeeper(&["rbac", &labels, "-n", "web"]);
    assert!(text(&refused.stderr).contains("which no Role can grant: v1 Namespace"), "{refused:?}");
    failed(
        &["rbac", &guest, "--module", "Not A Name"],
        1,
        &[],
        &expect![[r#"
            innkeeper: "Not A Name" is no valid name (lower-case letters, digits and '-'); give another with --module
        "#]],
    );
}

#[test]
fn render_shows_the_desired_objects() {
    let files = Files::new();
    let objects = files.write("objects.yaml", PODROUTE);
    expect![[r#"
        # outcome: complete
        # conditions:
        # - message: Deployment pod-route does not exist yet
        #   reason: InProgress
        #   status: 'False'
        #   type: Ready
        # status:
        #   readyReplicas: 0
        #   replicas: 0
        ---
        apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: pod-route
          namespace: web
        spec:
          replicas: 3
          selector:
            matchLabels:
              app: PodRoute
              podroute_cr: test-podroute
              tier: backend-podroute
          template:
            metadata:
              labels:
                app: PodRoute
                podroute_cr: test-podroute
                tier: backend-podroute
            spec:
              containers:
              - image: quay.io/austincunningham/always200:latest
                imagePullPolicy: Always
                name: podroute-pod
                ports:
                - containerPort: 8080
                  name: podroute
                  protocol: TCP
        ---
        apiVersion: route.openshift.io/v1
        kind: Route
        metadata:
          labels:
            app: PodRoute
            podroute_cr: test-podroute
            tier: backend-podroute
          name: podroute-route
          namespace: web
        spec:
          port:
            targetPort: 8080
          to:
            kind: Service
            name: podroute-service
        ---
        apiVersion: v1
        kind: Service
        metadata:
          name: podroute-service
          namespace: web
        spec:
          ports:
          - port: 8080
            protocol: TCP
            targetPort: 8080
          selector:
            app: PodRoute
            podroute_cr: test-podroute
            tier: backend-podroute
    "#]]
    .assert_eq(&done(&["render", &component("podroute"), "-f", &objects]));
}

#[test]
fn render_uses_the_objects_of_all_files() {
    let files = Files::new();
    let objects = files.write("objects.yaml", PODROUTE);
    let made = files.write(
        "made.yaml",
        "apiVersion: apps/v1
kind: Deployment
metadata:
  name: pod-route
  namespace: web
  generation: 1
  ownerReferences:
    - {apiVersion: quay.io/v1alpha1, kind: Podroute, name: test-podroute, uid: '', controller: true}
spec: {replicas: 3}
status:
  observedGeneration: 1
  replicas: 3
  updatedReplicas: 3
  readyReplicas: 3
  availableReplicas: 3
  conditions:
    - {type: Available, status: 'True'}
    - {type: Progressing, status: 'True', reason: NewReplicaSetAvailable}
",
    );
    let guest = component("podroute");
    let render = |extra: &[&str]| -> Value {
        let mut arguments = vec!["render", &guest, "-f", &objects, "-f", &made, "-o", "json"];
        arguments.extend(extra);
        serde_json::from_str(&done(&arguments)).unwrap()
    };
    let all = render(&[]);
    assert_eq!(all["outcome"], "complete");
    assert_eq!(all["status"]["readyReplicas"], 3, "{all:#}");
    let unserved = render(&["--unserved", "route.openshift.io/v1/Route"]);
    assert_eq!(unserved["status"]["readyReplicas"], 3);
    // The same input gives the same output.
    assert_eq!(all, render(&[]));
}

#[test]
fn render_fails_with_the_reason_when_its_input_cannot_be_used() {
    let files = Files::new();
    let guest = component("podroute");
    let objects = files.write("objects.yaml", PODROUTE);
    let two =
        files.write("two.yaml", format!("{PODROUTE}---\n{}", PODROUTE.replace("test-", "other-")));
    let none = files.write("none.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    let nameless = files.write("nameless.yaml", "apiVersion: v1\nkind: ConfigMap\n");
    let broken = files.write("broken.yaml", "a: [b\n");
    let folder = files.0.path().to_str().unwrap().to_owned();
    let hidden = [(folder.as_str(), "DIR")];
    let render = |arguments: &[&str], status: i32, expected: &Expect| {
        let mut all = vec!["render", guest.as_str()];
        all.extend(arguments);
        failed(&all, status, &hidden, expected);
    };
    render(
        &["-f", &two],
        1,
        &expect![[r#"
        innkeeper: the files have several of quay.io/v1alpha1 Podroute (web/test-podroute, web/other-podroute): choose one with --primary
    "#]],
    );
    render(
        &["-f", &two, "--primary", "third"],
        1,
        &expect![[r#"
        innkeeper: there is no quay.io/v1alpha1 Podroute third in the files; there is web/test-podroute, web/other-podroute
    "#]],
    );
    render(
        &["-f", &none],
        1,
        &expect![[r#"
        innkeeper: there is no quay.io/v1alpha1 Podroute in the files: add the object that the guest is to reconcile
    "#]],
    );
    render(
        &["-f", &nameless],
        1,
        &expect![[r#"
        innkeeper: DIR/nameless.yaml, document 1: metadata.name is missing
    "#]],
    );
    render(
        &["-f", &broken],
        1,
        &expect![[r#"
            innkeeper: DIR/broken.yaml, document 1: not a Kubernetes object in YAML: did not find expected ',' or ']' at line 2 column 1, while parsing a flow sequence at line 1 column 4
        "#]],
    );
    render(
        &["-f", &format!("{folder}/gone.yaml")],
        1,
        &expect![[r#"
            innkeeper: cannot read DIR/gone.yaml: No such file or directory (os error 2)
        "#]],
    );
    render(
        &["-f", &objects, "--parameters", "{size: 3}"],
        1,
        &expect![[r#"
            innkeeper: --parameters: spec.parameters: additionalProperties 'size' not allowed
        "#]],
    );
    render(
        &["-f", &objects, "--parameters", "3"],
        1,
        &expect![[r#"
        innkeeper: --parameters must be an object, as in '{"size": 3}'
    "#]],
    );
    render(
        &["-f", &objects, "--unserved", "v1/Pod"],
        1,
        &expect![[r#"
        innkeeper: --unserved v1/Pod: the guest declares no such kind
    "#]],
    );
}

#[test]
fn wrong_usage_exits_with_status_2() {
    for arguments in [
        &["nonsense"][..],
        &["render", "x.wasm"],
        &["new", "hello"],
        &["dev", "hello"],
        &["dev", "hello", "--module", "hello", "--modules", "a", "--context", "b"],
        &["run", "--max-concurrent-reconciles", "0"],
        &["run", "--cache-mib", "0"],
        &[],
    ] {
        let output = innkeeper(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(!output.stderr.is_empty());
    }
    assert!(done(&["--help"]).contains("Exit statuses: 0 success, 1 failure"));
}

#[test]
fn command_fails_with_the_reason_when_the_kubeconfig_cannot_be_used() {
    let files = Files::new();
    let kubeconfig = files.write(
        "kubeconfig",
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: a, user: {}}]\n",
    );
    let folder = files.0.path().to_str().unwrap().to_owned();
    let hidden = [(folder.as_str(), "DIR")];
    let gone = format!("{folder}/gone");
    let run = ["run", "--bind", "127.0.0.1:0", "--log-format", "text"];
    let with = |extra: &[&'static str], file: &str| -> Vec<String> {
        let mut all: Vec<String> = run.iter().map(|part| (*part).to_owned()).collect();
        all.extend(["--kubeconfig".to_owned(), file.to_owned()]);
        all.extend(extra.iter().map(|part| (*part).to_owned()));
        all
    };
    for (arguments, expected) in [
        (
            with(&[], &gone),
            expect![[r#"
            innkeeper: the configuration of the connection to the API server cannot be used: DIR/gone: cannot be read: No such file or directory (os error 2)
        "#]],
        ),
        (
            with(&["--context", "b"], &kubeconfig),
            expect![[r#"
            innkeeper: the configuration of the connection to the API server cannot be used: DIR/kubeconfig: there is no context b (it has a)
        "#]],
        ),
        (
            run.iter().map(|part| (*part).to_owned()).collect(),
            expect![[r#"
            innkeeper: the configuration of the connection to the API server cannot be used: there is no kubeconfig (~/.kube/config does not exist, KUBECONFIG is not set), and this is not a pod (failed to read an incluster environment variable: environment variable not found): give --kubeconfig
        "#]],
        ),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        failed(&arguments, 1, &hidden, &expected);
    }
    let guest = component("podroute");
    failed(
        &["push", &guest, "--module", "podroute", "--kubeconfig", &gone],
        1,
        &hidden,
        &expect![[r#"
            innkeeper: the configuration of the connection to the API server cannot be used: DIR/gone: cannot be read: No such file or directory (os error 2)
        "#]],
    );
}

#[test]
fn run_fails_when_others_may_write_to_the_cache_folder() {
    let files = Files::new();
    let folder = files.0.path().join("cache");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let folder = folder.to_str().unwrap();
    failed(
        &["run", "--log-format", "text", "--cache-dir", folder],
        1,
        &[(folder, "DIR")],
        &expect![[r#"
            innkeeper: the folder DIR for compiled code may be written to by others (mode 777), so others could put code there that runs as this host: give one that does not exist yet (it is made, also within that one), or `chown` it to this user and `chmod 700` it
        "#]],
    );
}

#[test]
fn crd_prints_the_committed_definition() {
    let committed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds/modules.innkeeper.dev.yaml");
    let committed = std::fs::read_to_string(committed).unwrap();
    assert!(done(&["crd"]) == committed, "run `cargo xtask crds`");
}

#[test]
fn command_succeeds_when_the_reader_of_its_output_closes_the_pipe() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_innkeeper"))
        .arg("crd")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}
