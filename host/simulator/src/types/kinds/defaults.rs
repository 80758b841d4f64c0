//! What the server fills in for built-in kinds.

use serde_json::{Map, Value, json};

use crate::types::kind::Kind;
use crate::types::kinds::job;

/// Puts `value` at `name` if nothing is there.
fn or(object: &mut Value, name: &str, value: Value) {
    if object.get(name).is_none_or(Value::is_null) {
        object[name] = value;
    }
}

fn or_text(object: &mut Value, name: &str, value: &str) {
    if object[name].as_str().unwrap_or_default().is_empty() {
        object[name] = value.into();
    }
}

fn each(object: &mut Value, name: &str, act: &mut dyn FnMut(&mut Value)) {
    if let Some(Value::Array(items)) = object.get_mut(name) {
        for item in items {
            act(item);
        }
    }
}

/// Fills in what is not said. Says whether there are defaults for the kind at all.
pub(crate) fn apply(kind: &Kind, object: &mut Value) -> bool {
    match (kind.group.as_str(), kind.name.as_str()) {
        ("apps", "Deployment") => deployment(object),
        ("apps", "ReplicaSet") => {
            or(&mut object["spec"], "replicas", 1.into());
            template(&mut object["spec"]["template"]);
        }
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => {
            daemon_set(&mut object["spec"]);
            crate::types::kinds::daemon_set::read(object);
        }
        ("", "LimitRange") => each(&mut object["spec"], "limits", &mut limits),
        ("storage.k8s.io", "StorageClass") => {
            or_text(object, "reclaimPolicy", "Delete");
            or_text(object, "volumeBindingMode", "Immediate");
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            or(&mut object["spec"], "minReplicas", 1.into());
        }
        ("batch", "Job") => {
            job(&mut object["spec"]);
            label_job(object);
        }
        ("batch", "CronJob") => cron_job(object),
        ("", "Pod") => {
            pod_spec(&mut object["spec"]);
            or(&mut object["spec"], "enableServiceLinks", true.into());
            pod_addresses(object);
            // Templates are left as they are.
            for list in ["containers", "initContainers"] {
                each(&mut object["spec"], list, &mut requests_from_limits);
            }
        }
        ("", "Service") => service(object),
        ("", "Secret") => secret(object),
        ("", "Namespace") => namespace(object),
        ("", "PersistentVolumeClaim") => or_text(&mut object["spec"], "volumeMode", "Filesystem"),
        ("", "PersistentVolume") => {
            or_text(&mut object["spec"], "persistentVolumeReclaimPolicy", "Retain");
            or_text(&mut object["spec"], "volumeMode", "Filesystem");
            if object["spec"]["hostPath"].is_object() {
                or(&mut object["spec"]["hostPath"], "type", "".into());
            }
        }
        ("networking.k8s.io", "NetworkPolicy") => network_policy(object),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => binding(object),
        ("discovery.k8s.io", "EndpointSlice") => each(object, "ports", &mut |port| {
            or(port, "name", "".into());
            or(port, "protocol", "TCP".into());
        }),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => {
            each(object, "webhooks", &mut webhook);
        }
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => {
            each(object, "webhooks", &mut |one| {
                webhook(one);
                or_text(one, "reinvocationPolicy", "Never");
            });
        }
        _ => return false,
    }
    true
}

fn webhook(one: &mut Value) {
    or_text(one, "failurePolicy", "Fail");
    or_text(one, "matchPolicy", "Equivalent");
    or(one, "namespaceSelector", json!({}));
    or(one, "objectSelector", json!({}));
    or(one, "timeoutSeconds", 10.into());
    each(one, "rules", &mut |rule| or_text(rule, "scope", "*"));
    if let Some(service) = one.pointer_mut("/clientConfig/service")
        && service.is_object()
    {
        or(service, "port", 443.into());
    }
}

/// The address of a Pod is the first of its addresses; the one that is said wins.
fn pod_addresses(object: &mut Value) {
    let Some(status) = object.get_mut("status").filter(|status| status.is_object()) else { return };
    let said = status["podIP"].as_str().unwrap_or_default().to_owned();
    let first = status["podIPs"][0]["ip"].as_str().unwrap_or_default().to_owned();
    if !said.is_empty() && said != first {
        status["podIPs"] = json!([{ "ip": said }]);
    } else if said.is_empty() && !first.is_empty() {
        status["podIP"] = first.into();
    }
}

/// What a status begins with.
pub(crate) fn status(kind: &Kind, object: &mut Value) {
    match (kind.group.as_str(), kind.name.as_str()) {
        ("", "PersistentVolumeClaim") => object["status"] = json!({"phase": "Pending"}),
        ("", "PersistentVolume") => {
            let now = object["metadata"]["creationTimestamp"].clone();
            object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
        }
        ("", "Pod") => {
            let class = crate::types::kinds::pod::quality(&object["spec"]);
            object["status"] = json!({"phase": "Pending", "qosClass": class});
        }
        ("", "Namespace") => object["status"] = json!({"phase": "Active"}),
        ("", "Service") | ("networking.k8s.io", "Ingress") => {
            object["status"] = json!({"loadBalancer": {}});
        }
        ("apps", "ReplicaSet" | "StatefulSet") => object["status"] = json!({"replicas": 0}),
        ("apps", "DaemonSet") => {
            object["status"] = json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0});
        }
        ("policy", "PodDisruptionBudget") => {
            object["status"] = json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let versions = object["spec"]["versions"].as_array().into_iter().flatten();
            let stored: Vec<Value> = versions
                .filter(|version| version["storage"] == true)
                .map(|version| version["name"].clone())
                .collect();
            let names = json!({"plural": "", "kind": ""});
            object["status"] =
                json!({"conditions": null, "acceptedNames": names, "storedVersions": stored});
        }
        _ if kind.custom.is_none() => object["status"] = json!({}),
        _ => {}
    }
    if kind.is("apps", "StatefulSet") {
        object["status"]["availableReplicas"] = 0.into();
    }
}

/// Counts the version in which a definition's objects are stored among those in which some may be.
pub(crate) fn store_version(kind: &Kind, object: &mut Value) {
    if !kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        return;
    }
    let versions = object["spec"]["versions"].as_array().into_iter().flatten();
    let storage = versions.into_iter().find(|version| version["storage"] == true);
    let Some(name) = storage.map(|version| version["name"].clone()) else { return };
    let mut stored = object["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    if !stored.contains(&name) {
        stored.push(name);
    }
    object["status"]["storedVersions"] = stored.into();
}

/// What admission gives a new object.
pub(crate) fn created(kind: &Kind, object: &mut Value, shares_labels: bool) {
    if kind.is("", "PersistentVolumeClaim") || kind.is("", "PersistentVolume") {
        let name = if kind.name == "PersistentVolume" {
            "kubernetes.io/pv-protection"
        } else {
            "kubernetes.io/pvc-protection"
        };
        let mut finalizers = crate::types::object::finalizers(object);
        if !finalizers.iter().any(|one| one == name) {
            finalizers.push(name.to_owned());
            crate::types::object::set_finalizers(object, &finalizers);
        }
    }
    if kind.is("", "Namespace") {
        let mut finalizers = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
        if !finalizers.iter().any(|one| one == "kubernetes") {
            finalizers.push("kubernetes".into());
        }
        object["spec"]["finalizers"] = finalizers.into();
    }
    if kind.is("batch", "Job") {
        job_created(object, shares_labels);
    }
    if kind.is("", "Pod") {
        pod_created(&mut object["spec"]);
    }
}

/// What admission gives a Pod: an account, a priority, and how long it bears a node that is not there.
fn pod_created(spec: &mut Value) {
    or_text(spec, "serviceAccountName", "default");
    let account = spec["serviceAccountName"].clone();
    or(spec, "serviceAccount", account);
    or(spec, "priority", 0.into());
    or_text(spec, "preemptionPolicy", "PreemptLowerPriority");
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let borne = tolerations.iter().any(|one| {
            let all = one["key"].as_str().unwrap_or_default().is_empty();
            (all || one["key"] == key)
                && matches!(one["effect"].as_str(), None | Some("" | "NoExecute"))
        });
        if !borne {
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
    spec["tolerations"] = tolerations.into();
}

/// A Job without labels has those of its Pods. Says whether it has some now that it had not.
pub(crate) fn label_job(object: &mut Value) -> bool {
    let none = object["metadata"]["labels"].as_object().is_none_or(Map::is_empty);
    let labels = &object["spec"]["template"]["metadata"]["labels"];
    let given = none && labels.is_object();
    if given {
        let labels = labels.clone();
        object["metadata"]["labels"] = labels;
    }
    given
}

fn job_created(object: &mut Value, shares_labels: bool) {
    if object["spec"]["manualSelector"] == true {
        return;
    }
    let generated: Vec<_> =
        job::generated(object).into_iter().map(|(name, value)| (name, value.to_owned())).collect();
    let uid = crate::types::object::meta(object, "uid").to_owned();
    let labels = &mut object["spec"]["template"]["metadata"]["labels"];
    // What is said already stays, and is found wrong later.
    for (name, value) in generated {
        or(labels, name, value.into());
    }
    // LabelIndex that came from the template are the same ones, and get these too.
    if shares_labels {
        let labels = labels.clone();
        object["metadata"]["labels"] = labels;
    }
    or(&mut object["spec"]["selector"]["matchLabels"], job::CONTROLLER_UID, uid.into());
}

fn deployment(object: &mut Value) {
    let spec = &mut object["spec"];
    or(spec, "replicas", 1.into());
    or(spec, "progressDeadlineSeconds", 600.into());
    or(spec, "revisionHistoryLimit", 10.into());
    let strategy = &mut spec["strategy"];
    or_text(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        or(strategy, "rollingUpdate", json!({}));
        or(&mut strategy["rollingUpdate"], "maxSurge", "25%".into());
        or(&mut strategy["rollingUpdate"], "maxUnavailable", "25%".into());
    }
    template(&mut spec["template"]);
}

fn stateful_set(object: &mut Value) {
    let spec = &mut object["spec"];
    or(spec, "replicas", 1.into());
    or(spec, "revisionHistoryLimit", 10.into());
    or_text(spec, "podManagementPolicy", "OrderedReady");
    let strategy = &mut spec["updateStrategy"];
    or_text(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        or(strategy, "rollingUpdate", json!({}));
        or(&mut strategy["rollingUpdate"], "partition", 0.into());
    }
    or(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    let policy = &mut spec["persistentVolumeClaimRetentionPolicy"];
    or_text(policy, "whenDeleted", "Retain");
    or_text(policy, "whenScaled", "Retain");
    each(spec, "volumeClaimTemplates", &mut |claim| {
        or_text(claim, "kind", "PersistentVolumeClaim");
        or_text(claim, "apiVersion", "v1");
        or_text(&mut claim["spec"], "volumeMode", "Filesystem");
        or(&mut claim["status"], "phase", "Pending".into());
    });
    template(&mut spec["template"]);
}

fn daemon_set(spec: &mut Value) {
    or(spec, "revisionHistoryLimit", 10.into());
    let strategy = &mut spec["updateStrategy"];
    or_text(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        or(strategy, "rollingUpdate", json!({}));
        or(&mut strategy["rollingUpdate"], "maxUnavailable", 1.into());
        or(&mut strategy["rollingUpdate"], "maxSurge", 0.into());
    }
    template(&mut spec["template"]);
}

/// Of containers the bounds are defaults too.
fn limits(item: &mut Value) {
    if item["type"] != "Container" {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")]
    {
        for (name, quantity) in item[from].as_object().cloned().into_iter().flatten() {
            or(&mut item[to], &name, quantity);
        }
    }
}

fn job(spec: &mut Value) {
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        spec["completions"] = 1.into();
    }
    or(spec, "parallelism", 1.into());
    or(spec, "backoffLimit", 6.into());
    or(spec, "completionMode", "NonIndexed".into());
    or(spec, "suspend", false.into());
    or(spec, "manualSelector", false.into());
    or(spec, "podReplacementPolicy", "TerminatingOrFailed".into());
    template(&mut spec["template"]);
}

fn cron_job(object: &mut Value) {
    let spec = &mut object["spec"];
    or_text(spec, "concurrencyPolicy", "Allow");
    or(spec, "suspend", false.into());
    or(spec, "successfulJobsHistoryLimit", 3.into());
    or(spec, "failedJobsHistoryLimit", 1.into());
    template(&mut spec["jobTemplate"]["spec"]["template"]);
}

fn template(template: &mut Value) {
    if template["spec"].is_object() {
        pod_spec(&mut template["spec"]);
    }
}

/// The defaults of a Pod.
fn pod_spec(spec: &mut Value) {
    or_text(spec, "restartPolicy", "Always");
    or_text(spec, "dnsPolicy", "ClusterFirst");
    or_text(spec, "schedulerName", "default-scheduler");
    or(spec, "terminationGracePeriodSeconds", 30.into());
    or(spec, "securityContext", json!({}));
    if let Some(account) = spec["serviceAccountName"].as_str().map(str::to_owned) {
        or_text(spec, "serviceAccount", &account);
    } else if let Some(account) = spec["serviceAccount"].as_str().map(str::to_owned) {
        or_text(spec, "serviceAccountName", &account);
    }
    let host = spec["hostNetwork"] == true;
    for list in ["containers", "initContainers"] {
        each(spec, list, &mut |container| self::container(container, host));
    }
    each(spec, "volumes", &mut volume);
}

fn container(container: &mut Value, host: bool) {
    or_text(container, "terminationMessagePath", "/dev/termination-log");
    or_text(container, "terminationMessagePolicy", "File");
    let image = container["image"].as_str().unwrap_or_default().to_owned();
    let last = image.rsplit('/').next().unwrap_or_default();
    let tag = last.split('@').next().and_then(|name| name.split_once(':')).map(|(_, tag)| tag);
    let latest = tag == Some("latest") || (tag.is_none() && !last.contains('@'));
    or_text(container, "imagePullPolicy", if latest { "Always" } else { "IfNotPresent" });
    for list in ["limits", "requests"] {
        if container["resources"][list].as_object().is_some_and(Map::is_empty)
            && let Some(map) = container["resources"].as_object_mut()
        {
            map.remove(list);
        }
    }
    each(container, "ports", &mut |port| {
        or_text(port, "protocol", "TCP");
        if host && port["hostPort"].is_null() {
            port["hostPort"] = port["containerPort"].clone();
        }
    });
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[probe].is_object() {
            self::probe(&mut container[probe]);
        }
    }
    for hook in ["postStart", "preStop"] {
        if container["lifecycle"][hook]["httpGet"].is_object() {
            http_get(&mut container["lifecycle"][hook]["httpGet"]);
        }
    }
    each(container, "env", &mut |env| {
        if env["valueFrom"]["fieldRef"].is_object() {
            or_text(&mut env["valueFrom"]["fieldRef"], "apiVersion", "v1");
        }
    });
}

/// What is limited and not asked for is asked for.
fn requests_from_limits(container: &mut Value) {
    let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
    for (name, value) in limits {
        let requests = &mut container["resources"]["requests"];
        if requests.get(&name).is_none() {
            requests[&name] = value;
        }
    }
}

fn http_get(action: &mut Value) {
    or_text(action, "path", "/");
    or_text(action, "scheme", "HTTP");
}

fn probe(probe: &mut Value) {
    for (name, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        or(probe, name, value.into());
    }
    if probe["httpGet"].is_object() {
        http_get(&mut probe["httpGet"]);
    }
    if probe["grpc"].is_object() {
        or(&mut probe["grpc"], "service", "".into());
    }
}

fn volume(volume: &mut Value) {
    let mode = json!(0o644);
    let sources = volume.as_object().map_or(0, Map::len);
    if sources <= 1 {
        volume["emptyDir"] = json!({});
    }
    for kind in ["secret", "configMap", "downwardAPI", "projected"] {
        if volume[kind].is_object() {
            or(&mut volume[kind], "defaultMode", mode.clone());
        }
    }
    if volume["hostPath"].is_object() {
        or(&mut volume["hostPath"], "type", "".into());
    }
    let fields = |list: &mut Value| {
        each(list, "items", &mut |item| {
            if item["fieldRef"].is_object() {
                or_text(&mut item["fieldRef"], "apiVersion", "v1");
            }
        });
    };
    if volume["downwardAPI"].is_object() {
        fields(&mut volume["downwardAPI"]);
    }
    each(&mut volume["projected"], "sources", &mut |source| {
        if source["serviceAccountToken"].is_object() {
            or(&mut source["serviceAccountToken"], "expirationSeconds", 3600.into());
        }
        if source["downwardAPI"].is_object() {
            fields(&mut source["downwardAPI"]);
        }
    });
}

fn service(object: &mut Value) {
    let spec = &mut object["spec"];
    or_text(spec, "sessionAffinity", "None");
    if spec["sessionAffinity"] == "None"
        && let Some(map) = spec.as_object_mut()
    {
        map.remove("sessionAffinityConfig");
    }
    if spec["sessionAffinity"] == "ClientIP"
        && spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].is_null()
    {
        spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": 10800}});
    }
    or_text(spec, "type", "ClusterIP");
    each(spec, "ports", &mut |port| {
        or_text(port, "protocol", "TCP");
        let target = &port["targetPort"];
        if target.is_null() || *target == 0 || *target == "" {
            port["targetPort"] = port["port"].clone();
        }
    });
    let external = matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"));
    if external {
        or_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if spec["type"] == "LoadBalancer" {
        or(spec, "allocateLoadBalancerNodePorts", true.into());
    }
    if spec["type"] != "ExternalName" {
        or(spec, "internalTrafficPolicy", "Cluster".into());
    }
}

fn secret(object: &mut Value) {
    use base64::Engine as _;
    or_text(object, "type", "Opaque");
    if let Some(Value::Object(texts)) =
        object.as_object_mut().and_then(|map| map.remove("stringData"))
    {
        or(object, "data", json!({}));
        for (key, value) in texts {
            let bytes = value.as_str().unwrap_or_default();
            object["data"][key] = base64::engine::general_purpose::STANDARD.encode(bytes).into();
        }
    }
}

fn namespace(object: &mut Value) {
    let name = crate::types::object::meta(object, "name").to_owned();
    if !name.is_empty() {
        or(&mut object["metadata"], "labels", json!({}));
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
    }
    or(&mut object["status"], "phase", "Active".into());
}

fn network_policy(object: &mut Value) {
    let spec = &mut object["spec"];
    if spec["policyTypes"].as_array().is_none_or(Vec::is_empty) {
        let mut types = vec!["Ingress"];
        if spec["egress"].is_array() {
            types.push("Egress");
        }
        spec["policyTypes"] = types.into();
    }
    for (list, peers) in [("ingress", "from"), ("egress", "to")] {
        let _ = peers;
        each(spec, list, &mut |rule| {
            each(rule, "ports", &mut |port| or(port, "protocol", "TCP".into()));
        });
    }
}

fn binding(object: &mut Value) {
    or_text(&mut object["roleRef"], "apiGroup", "rbac.authorization.k8s.io");
    each(object, "subjects", &mut |subject| {
        let group =
            if subject["kind"] == "ServiceAccount" { "" } else { "rbac.authorization.k8s.io" };
        if !group.is_empty() {
            or_text(subject, "apiGroup", group);
        }
    });
}

fn definition(object: &mut Value) {
    let spec = &mut object["spec"];
    let names = &mut spec["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    or_text(names, "singular", &kind.to_lowercase());
    or_text(names, "listKind", &format!("{kind}List"));
    or(spec, "conversion", json!({"strategy": "None"}));
}
