//! Members of built-in kinds that take one of a few values.

use serde_json::Value;

use crate::types::kind::Kind;
use crate::types::status_error::FieldError;

/// A member by its path, where `*` stands for each item of a list, and what it may be.
type Choice = (&'static [&'static str], &'static [&'static str]);

const SERVICE: &[Choice] = &[
    (&["spec", "type"], &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]),
    (&["spec", "sessionAffinity"], &["ClientIP", "None"]),
    (&["spec", "internalTrafficPolicy"], &["Cluster", "Local"]),
    (&["spec", "externalTrafficPolicy"], &["Cluster", "Local"]),
    (&["spec", "ipFamilyPolicy"], &["SingleStack", "PreferDualStack", "RequireDualStack"]),
    (&["spec", "ports", "*", "protocol"], PROTOCOLS),
];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const DEPLOYMENT: &[Choice] = &[(&["spec", "strategy", "type"], &["Recreate", "RollingUpdate"])];
const STATEFUL_SET: &[Choice] = &[
    (&["spec", "podManagementPolicy"], &["OrderedReady", "Parallel"]),
    (&["spec", "updateStrategy", "type"], &["OnDelete", "RollingUpdate"]),
];
const DAEMON_SET: &[Choice] =
    &[(&["spec", "updateStrategy", "type"], &["OnDelete", "RollingUpdate"])];
const CRON_JOB: &[Choice] = &[(&["spec", "concurrencyPolicy"], &["Allow", "Forbid", "Replace"])];
const JOB: &[Choice] = &[(&["spec", "completionMode"], &["Indexed", "NonIndexed"])];
const CLAIM: &[Choice] = &[
    (
        &["spec", "accessModes", "*"],
        &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"],
    ),
    (&["spec", "volumeMode"], &["Block", "Filesystem"]),
];
const NETWORK_POLICY: &[Choice] = &[(&["spec", "policyTypes", "*"], &["Egress", "Ingress"])];
const INGRESS: &[Choice] = &[(
    &["spec", "rules", "*", "http", "paths", "*", "pathType"],
    &["Exact", "ImplementationSpecific", "Prefix"],
)];
const BINDING: &[Choice] = &[
    (&["roleRef", "apiGroup"], &["rbac.authorization.k8s.io"]),
    (&["roleRef", "kind"], &["ClusterRole", "Role"]),
    (&["subjects", "*", "kind"], &["Group", "ServiceAccount", "User"]),
];
const POD: &[Choice] = &[
    (&["restartPolicy"], &["Always", "OnFailure", "Never"]),
    (&["dnsPolicy"], &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]),
    (&["containers", "*", "imagePullPolicy"], &["Always", "IfNotPresent", "Never"]),
    (&["containers", "*", "terminationMessagePolicy"], &["FallbackToLogsOnError", "File"]),
    (&["containers", "*", "ports", "*", "protocol"], PROTOCOLS),
];

/// Reports invalid enum values of an object.
pub(crate) fn check(kind: &Kind, object: &Value, errors: &mut Vec<FieldError>) {
    let (own, pod): (&[Choice], &[&str]) = match (kind.group.as_str(), kind.name.as_str()) {
        ("", "Service") => (SERVICE, &[]),
        ("", "PersistentVolumeClaim") => (CLAIM, &[]),
        ("", "Pod") => (&[], &["spec"]),
        ("apps", "Deployment") => (DEPLOYMENT, &["spec", "template", "spec"]),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => {
            (&[], &["spec", "template", "spec"])
        }
        ("apps", "StatefulSet") => (STATEFUL_SET, &["spec", "template", "spec"]),
        ("apps", "DaemonSet") => (DAEMON_SET, &["spec", "template", "spec"]),
        ("batch", "Job") => (JOB, &["spec", "template", "spec"]),
        ("batch", "CronJob") => (CRON_JOB, &["spec", "jobTemplate", "spec", "template", "spec"]),
        ("networking.k8s.io", "NetworkPolicy") => (NETWORK_POLICY, &[]),
        ("networking.k8s.io", "Ingress") => (INGRESS, &[]),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => (BINDING, &[]),
        _ => return,
    };
    for (path, known) in own {
        look(object, path, String::new(), known, errors);
    }
    if let Some(spec) = (!pod.is_empty()).then(|| crate::types::value::at(object, pod)).flatten() {
        for (path, known) in POD {
            look(spec, path, pod.join("."), known, errors);
        }
    }
}

fn look(value: &Value, path: &[&str], at: String, known: &[&str], errors: &mut Vec<FieldError>) {
    match path {
        [] => {
            // What is empty or absent has a default, or a rule of its own.
            if let Some(text) = value.as_str().filter(|text| !text.is_empty())
                && !known.contains(&text)
            {
                let known: Vec<String> = known.iter().map(|one| (*one).to_owned()).collect();
                errors.push(FieldError::unsupported(at, text, &known));
            }
        }
        ["*", rest @ ..] => {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                look(item, rest, format!("{at}[{index}]"), known, errors);
            }
        }
        [name, rest @ ..] => {
            let Some(member) = value.get(*name) else { return };
            let at = if at.is_empty() { (*name).to_owned() } else { format!("{at}.{name}") };
            look(member, rest, at, known, errors);
        }
    }
}
