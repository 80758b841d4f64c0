//! Built-in kinds that random requests are about.

use serde_json::{Value, json};

use crate::shapes::{Shape, Subject};

fn one(values: &[&str]) -> Shape {
    Shape::One(values.iter().map(|value| Value::from(*value)).collect())
}

fn of(values: &[Value]) -> Shape {
    Shape::One(values.to_vec())
}

fn some(members: Vec<(&'static str, Shape)>) -> Shape {
    Shape::Some(members)
}

fn must(must: Vec<(&'static str, Shape)>, rest: Vec<(&'static str, Shape)>) -> Shape {
    Shape::Must(must, rest)
}

fn subject(api_version: &'static str, kind: &'static str, path: String, content: Shape) -> Subject {
    Subject { api_version, kind, path, content, status: None, strategic: true }
}

fn labels() -> Shape {
    of(&[json!({"app": "a"})])
}

fn resources() -> Shape {
    let amounts =
        || Shape::Map(vec!["cpu", "memory"], Box::new(one(&["1000m", "0.5", "128Mi", "1Gi", "2"])));
    some(vec![("limits", amounts()), ("requests", amounts())])
}

fn probe() -> Shape {
    must(
        vec![(
            "httpGet",
            must(
                vec![("port", of(&[json!(80), json!("http")]))],
                vec![("path", one(&["/a", "/b"]))],
            ),
        )],
        vec![("periodSeconds", of(&[json!(5), json!(10)])), ("failureThreshold", of(&[json!(2)]))],
    )
}

fn container() -> Shape {
    let env =
        Shape::Keyed(vec![("name", one(&["A", "B", "C"]))], vec![("value", one(&["1", "2", ""]))]);
    let ports = Shape::Keyed(
        vec![("containerPort", of(&[json!(80), json!(81)])), ("protocol", one(&["TCP", "UDP"]))],
        vec![],
    );
    Shape::Keyed(
        vec![("name", one(&["a", "b"]))],
        vec![
            ("image", one(&["x:1", "x", "y:latest", "r.io/x:2"])),
            ("image", one(&["x:1"])),
            ("image", one(&["x:1"])),
            ("env", env),
            ("ports", ports),
            ("args", Shape::List(Box::new(one(&["-a", "-b"])))),
            ("resources", resources()),
            ("readinessProbe", probe()),
            ("imagePullPolicy", one(&["Always", "IfNotPresent"])),
            (
                "volumeMounts",
                Shape::Keyed(
                    vec![("mountPath", one(&["/m", "/n"]))],
                    vec![
                        ("name", one(&["v"])),
                        ("name", one(&["v"])),
                        ("readOnly", of(&[json!(true), json!(false)])),
                    ],
                ),
            ),
        ],
    )
}

fn pod_spec(restart: &'static [&'static str]) -> Shape {
    let volumes = of(&[
        json!([{"name": "v", "emptyDir": {}}]),
        json!([{"name": "v", "configMap": {"name": "c"}}]),
        json!([{"name": "v"}]),
        json!([{"name": "v", "secret": {"secretName": "s"}}, {"name": "w", "emptyDir": {"sizeLimit": "1024Mi"}}]),
    ]);
    must(
        vec![("containers", container()), ("volumes", volumes)],
        vec![
            ("serviceAccountName", one(&["default"])),
            ("terminationGracePeriodSeconds", of(&[json!(0), json!(30), json!(5)])),
            ("nodeSelector", Shape::Map(vec!["k", "l"], Box::new(one(&["1", "2"])))),
            ("restartPolicy", one(restart)),
            ("hostNetwork", of(&[json!(false)])),
            (
                "securityContext",
                of(&[json!({}), json!({"runAsNonRoot": true}), json!({"fsGroup": 5})]),
            ),
            ("imagePullSecrets", of(&[json!([{"name": "p"}]), json!([])])),
        ],
    )
}

fn template(restart: &'static [&'static str]) -> Shape {
    must(
        vec![
            (
                "metadata",
                must(
                    vec![("labels", labels())],
                    vec![("annotations", Shape::Map(vec!["n"], Box::new(one(&["1", "2"]))))],
                ),
            ),
            ("spec", pod_spec(restart)),
        ],
        vec![],
    )
}

fn workloads(namespace: &str) -> Vec<Subject> {
    let path = |group: &str, plural: &str| format!("/apis/{group}/namespaces/{namespace}/{plural}");
    let with_spec = |spec: Shape| must(vec![("spec", spec)], vec![]);
    let mut deployments = subject(
        "apps/v1",
        "Deployment",
        path("apps/v1", "deployments"),
        with_spec(deployment_spec()),
    );
    deployments.status = Some(deployment_status());
    vec![
        deployments,
        subject(
            "apps/v1",
            "StatefulSet",
            path("apps/v1", "statefulsets"),
            with_spec(stateful_set_spec()),
        ),
        subject(
            "apps/v1",
            "ReplicaSet",
            path("apps/v1", "replicasets"),
            with_spec(replica_set_spec()),
        ),
        subject("batch/v1", "CronJob", path("batch/v1", "cronjobs"), with_spec(cron_job_spec())),
    ]
}

fn numbers() -> Shape {
    of(&[json!(0), json!(1), json!(3)])
}

fn selector() -> Shape {
    of(&[json!({"matchLabels": {"app": "a"}})])
}

fn deployment_spec() -> Shape {
    let strategy = of(&[
        json!({"type": "Recreate"}),
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}),
        json!({"type": "RollingUpdate"}),
        json!({}),
    ]);
    must(
        vec![("selector", selector()), ("template", template(&["Always"]))],
        vec![
            ("replicas", numbers()),
            ("minReadySeconds", numbers()),
            ("paused", of(&[json!(true), json!(false)])),
            ("strategy", strategy),
        ],
    )
}

fn deployment_status() -> Shape {
    let condition = Shape::Keyed(
        vec![("type", one(&["Available", "Progressing"]))],
        vec![("reason", one(&["a", "b"]))],
    );
    some(vec![("replicas", numbers()), ("readyReplicas", numbers()), ("conditions", condition)])
}

fn stateful_set_spec() -> Shape {
    must(
        vec![
            ("selector", selector()),
            ("template", template(&["Always"])),
            ("serviceName", one(&["s"])),
        ],
        vec![("replicas", numbers()), ("podManagementPolicy", one(&["OrderedReady"]))],
    )
}

fn replica_set_spec() -> Shape {
    must(
        vec![("selector", selector()), ("template", template(&["Always"]))],
        vec![("replicas", numbers())],
    )
}

fn cron_job_spec() -> Shape {
    let job = must(
        vec![("template", template(&["Never", "OnFailure"]))],
        vec![("backoffLimit", numbers())],
    );
    must(
        vec![
            ("schedule", one(&["* * * * *", "@hourly"])),
            ("jobTemplate", must(vec![("spec", job)], vec![])),
        ],
        vec![
            ("suspend", of(&[json!(true), json!(false)])),
            ("concurrencyPolicy", one(&["Allow", "Forbid"])),
        ],
    )
}

/// What runs once, and the Events about it.
fn lives(namespace: &str) -> Vec<Subject> {
    let path = |group: &str, plural: &str| format!("{group}/namespaces/{namespace}/{plural}");
    let numbers = || of(&[json!(1), json!(2), json!(3)]);
    let job = must(
        vec![("template", template(&["Never", "OnFailure"]))],
        vec![
            ("parallelism", numbers()),
            ("completions", numbers()),
            ("backoffLimit", numbers()),
            ("suspend", of(&[json!(true), json!(false)])),
            ("ttlSecondsAfterFinished", numbers()),
        ],
    );
    let event = must(
        vec![(
            "involvedObject",
            of(&[
                json!({"kind": "ConfigMap", "name": "a", "namespace": "{n}"}),
                json!({"kind": "ConfigMap", "name": "a", "namespace": "{n}", "apiVersion": "v1"}),
            ]),
        )],
        vec![
            ("reason", one(&["Made", "Gone"])),
            ("message", one(&["It is there.", "It is not."])),
            ("type", one(&["Normal", "Warning"])),
            ("count", numbers()),
            ("source", of(&[json!({"component": "c"}), json!({})])),
            ("firstTimestamp", one(&["2026-11-22T00:00:00Z"])),
        ],
    );
    // Without a kubelet what is on a node stays as long as it is given time, which the simulator
    // lets pass.
    let mut on_a_node = pod_spec(&["Always", "Never"]);
    if let Shape::Must(must, rest) = &mut on_a_node {
        must.push(("terminationGracePeriodSeconds", of(&[json!(0), json!(600), json!(900)])));
        rest.retain(|(name, _)| *name != "terminationGracePeriodSeconds");
        rest.push(("nodeName", one(&["node-a"])));
    }
    let pod = must(vec![("spec", on_a_node)], vec![]);
    let phase = some(vec![
        ("phase", one(&["Pending", "Running", "Succeeded"])),
        (
            "conditions",
            Shape::Keyed(
                vec![("type", one(&["Ready", "Initialized"]))],
                vec![("status", one(&["True", "False"]))],
            ),
        ),
        ("podIP", one(&["10.0.0.1"])),
    ]);
    let mut pod = subject("v1", "Pod", path("/api/v1", "pods"), pod);
    pod.status = Some(phase);
    vec![
        pod,
        subject(
            "batch/v1",
            "Job",
            path("/apis/batch/v1", "jobs"),
            must(vec![("spec", job)], vec![]),
        ),
        subject("v1", "Event", path("/api/v1", "events"), event),
    ]
}

/// Kinds without a namespace.
fn of_the_cluster() -> Vec<Subject> {
    let pods = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]});
    let urls = json!({"nonResourceURLs": ["/healthz"], "verbs": ["get"]});
    let rules = of(&[json!([pods]), json!([pods, urls]), json!([urls])]);
    let aggregation =
        of(&[json!({"clusterRoleSelectors": [{"matchLabels": {"into": "no-such-role"}}]})]);
    let role =
        some(vec![("rules", rules.clone()), ("rules", rules), ("aggregationRule", aggregation)]);
    let binding = must(
        vec![(
            "roleRef",
            of(&[
                json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "no-such-role"}),
            ]),
        )],
        vec![(
            "subjects",
            of(&[
                json!([{"kind": "User", "name": "nobody"}]),
                json!([{"kind": "Group", "name": "none"}]),
            ]),
        )],
    );
    let rbac = |plural: &str| format!("/apis/rbac.authorization.k8s.io/v1/{plural}");
    vec![
        subject("rbac.authorization.k8s.io/v1", "ClusterRole", rbac("clusterroles"), role),
        subject(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            rbac("clusterrolebindings"),
            binding,
        ),
    ]
}

/// The kind that comes more often than the others.
pub(crate) fn config_map(namespace: &str) -> Subject {
    let data = Shape::Map(vec!["a", "b", "c", "d.e"], Box::new(one(&["1", "2", ""])));
    Subject {
        api_version: "v1",
        kind: "ConfigMap",
        path: format!("/api/v1/namespaces/{namespace}/configmaps"),
        content: Shape::Some(vec![
            ("data", data.clone()),
            ("data", data),
            ("binaryData", Shape::Map(vec!["x", "y"], Box::new(one(&["AQI=", "Aw=="])))),
        ]),
        status: None,
        strategic: true,
    }
}

/// All others, in a namespace.
pub(crate) fn subjects(namespace: &str) -> Vec<Subject> {
    let mut all = workloads(namespace);
    all.extend(lives(namespace));
    all.extend(of_the_cluster());
    all.extend(of_core(namespace));
    all.extend(of_other_groups(namespace));
    all
}

fn of_core(namespace: &str) -> Vec<Subject> {
    let path = |plural: &str| format!("/api/v1/namespaces/{namespace}/{plural}");
    let bytes = Shape::Map(vec!["a", "b"], Box::new(one(&["AQI=", "Aw=="])));
    let texts = Shape::Map(vec!["a", "c"], Box::new(one(&["x", "y"])));
    let secret = some(vec![("data", bytes), ("stringData", texts), ("type", one(&["Opaque"]))]);
    let account = some(vec![
        ("automountServiceAccountToken", of(&[json!(true), json!(false)])),
        ("imagePullSecrets", of(&[json!([{"name": "a"}]), json!([{"name": "b"}])])),
    ]);
    let storage = |size: &str| json!({"requests": {"storage": size}});
    let claim = must(
        vec![
            ("accessModes", of(&[json!(["ReadWriteOnce"])])),
            ("resources", of(&[storage("1024Mi"), storage("1Gi")])),
        ],
        vec![],
    );
    vec![
        subject("v1", "Secret", path("secrets"), secret),
        subject("v1", "Service", path("services"), must(vec![("spec", service_spec())], vec![])),
        subject("v1", "ServiceAccount", path("serviceaccounts"), account),
        subject(
            "v1",
            "PersistentVolumeClaim",
            path("persistentvolumeclaims"),
            must(vec![("spec", claim)], vec![]),
        ),
    ]
}

fn service_spec() -> Shape {
    let ports = Shape::Keyed(
        vec![("port", of(&[json!(80), json!(81)])), ("protocol", one(&["TCP", "UDP"]))],
        vec![("targetPort", of(&[json!(8080), json!("http")]))],
    );
    must(
        vec![("selector", labels())],
        vec![
            ("ports", ports),
            ("ports", of(&[json!([{"port": 80}])])),
            ("type", one(&["ClusterIP"])),
            ("sessionAffinity", one(&["None", "ClientIP"])),
            ("publishNotReadyAddresses", of(&[json!(true), json!(false)])),
        ],
    )
}

fn of_other_groups(namespace: &str) -> Vec<Subject> {
    let rbac = "rbac.authorization.k8s.io/v1";
    let networking = "networking.k8s.io/v1";
    let path = |group: &str, plural: &str| format!("/apis/{group}/namespaces/{namespace}/{plural}");
    let lease = some(vec![
        ("holderIdentity", one(&["a", "b"])),
        ("leaseDurationSeconds", of(&[json!(10), json!(15)])),
        ("renewTime", one(&["2026-11-22T00:00:00.000000Z", "2026-11-22T00:00:01.123456Z"])),
    ]);
    let leases = some(vec![("spec", lease.clone()), ("spec", lease)]);
    let policy = must(
        vec![("podSelector", of(&[json!({}), json!({"matchLabels": {"app": "a"}})]))],
        vec![
            ("ingress", of(&[json!([{}]), json!([{"ports": [{"port": 80}]}])])),
            ("policyTypes", of(&[json!(["Ingress"]), json!(["Ingress", "Egress"])])),
        ],
    );
    vec![
        subject(rbac, "Role", path(rbac, "roles"), role()),
        subject(rbac, "RoleBinding", path(rbac, "rolebindings"), role_binding()),
        subject(
            "coordination.k8s.io/v1",
            "Lease",
            path("coordination.k8s.io/v1", "leases"),
            leases,
        ),
        subject(
            networking,
            "NetworkPolicy",
            path(networking, "networkpolicies"),
            must(vec![("spec", policy)], vec![]),
        ),
        subject(
            networking,
            "Ingress",
            path(networking, "ingresses"),
            must(vec![("spec", ingress_spec())], vec![]),
        ),
    ]
}

fn role() -> Shape {
    let pods = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]});
    let all = json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]});
    let rules = of(&[json!([pods]), json!([pods, all]), json!([all])]);
    some(vec![("rules", rules.clone()), ("rules", rules)])
}

fn role_binding() -> Shape {
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"});
    let account = json!([{"kind": "ServiceAccount", "name": "a", "namespace": "n"}]);
    let user = json!([{"kind": "User", "name": "u"}]);
    must(vec![("roleRef", of(&[role]))], vec![("subjects", of(&[account, user]))])
}

fn ingress_spec() -> Shape {
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let rules = json!([{"host": "a.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"name": "http"}}}}]}}]);
    must(vec![("defaultBackend", of(&[backend]))], vec![("rules", of(&[rules]))])
}
