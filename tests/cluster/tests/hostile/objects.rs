//! Guests that want objects that are not theirs to make.

use innkeeper_tiny_guests::{TIME, Tiny};
use serde_json::{Value, json};

use crate::case::{Case, Expected};
use crate::guests::{OWN, config_map, desires, elsewhere, object, owning, says};

/// Group of roles.
const RBAC: &str = "rbac.authorization.k8s.io";
/// Secrets, as a kind that a guest owns.
const SECRETS: (&str, &str, &str, bool) = ("v1", "Secret", "secrets", true);

/// Objects that are not its to make.
pub(crate) fn foreign_objects() -> Vec<Case> {
    [
        malformed_objects(),
        kinds_without_the_right(),
        objects_elsewhere(),
        rights_beyond_its_own(),
        objects_of_others(),
        objects_without_end(),
    ]
    .concat()
}

fn wants(name: &'static str, object: Value, expected: Expected) -> Case {
    Case::runs(name, &says(&desires(&[object])), expected)
}

fn malformed_objects() -> Vec<Case> {
    let mut forged = config_map("forged");
    forged["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "1"}]);
    let mut unknown = config_map("unknown");
    unknown["dta"] = json!({"a": "b"});
    let mut large = config_map("large");
    large["data"] = json!({"a": "x".repeat(3_500_000)});
    vec![
        wants(
            "slash-in-a-name",
            config_map("../secrets/a"),
            ("False", "MalformedObject", "metadata.name is not a name"),
        ),
        wants(
            "dots-as-a-name",
            config_map(".."),
            ("False", "MalformedObject", "metadata.name is not a name"),
        ),
        wants(
            "slash-in-a-namespace",
            elsewhere(config_map("a"), "a/../b"),
            ("False", "MalformedObject", "metadata.namespace is not a name"),
        ),
        wants(
            "capitals-in-a-name",
            config_map("Not_A_Name"),
            ("False", "MalformedObject", "Not_A_Name"),
        ),
        wants(
            "megabyte-of-a-name",
            config_map(&"n".repeat(1 << 20)),
            ("False", "MalformedObject", "nnn..."),
        ),
        wants(
            "megabyte-of-a-kind",
            object("v1", &"K".repeat(1 << 20), "a"),
            ("False", "UndeclaredKind", "KKK..."),
        ),
        wants("unknown-field-of-a-kind", unknown, ("False", "Malformed", ".dta")),
        wants("object-too-large", large, ("False", "RequestEntityTooLarge", "large")),
        wants(
            "forged-owner",
            forged,
            ("False", "MalformedObject", "metadata.ownerReferences is not the guest's to give"),
        ),
    ]
}

/// Kinds that its manifest does not declare or its account may not write.
fn kinds_without_the_right() -> Vec<Case> {
    vec![
        wants(
            "kind-not-declared",
            object("v1", "Secret", "stolen"),
            ("False", "UndeclaredKind", "does not own v1 Secret"),
        ),
        wants(
            "module-not-declared",
            object("innkeeper.dev/v1alpha1", "Module", "module-not-declared"),
            ("False", "UndeclaredKind", "does not own innkeeper.dev/v1alpha1 Module"),
        ),
        Case::runs(
            "kind-not-granted",
            &owning(&[SECRETS]).outcome(0, &desires(&[object("v1", "Secret", "stolen")])),
            ("False", "Unreadable", "may not list secrets"),
        ),
        Case::runs(
            "kind-to-read-only",
            &owning(&[SECRETS]).outcome(0, &desires(&[object("v1", "Secret", "stolen")])),
            ("False", "Forbidden", "secrets"),
        )
        .may(&["get", "list", "watch"], "", "secrets"),
    ]
}

/// Objects of other namespaces, and of none.
fn objects_elsewhere() -> Vec<Case> {
    vec![
        wants(
            "another-namespace",
            elsewhere(config_map("evil"), "default"),
            ("False", "CrossNamespace", "allowCrossNamespace"),
        ),
        wants(
            "sources-of-modules",
            elsewhere(config_map("settings"), "innkeeper-modules"),
            ("False", "CrossNamespace", "ConfigMap innkeeper-modules/settings"),
        ),
        Case::runs(
            "key-of-the-host",
            &owning(&[SECRETS]).outcome(
                0,
                &desires(&[elsewhere(
                    object("v1", "Secret", "innkeeper-digest-key"),
                    "innkeeper-system",
                )]),
            ),
            ("False", "CrossNamespace", "Secret innkeeper-system/innkeeper-digest-key"),
        )
        .may(OWN, "", "secrets"),
        // Even from within, by an account that may: what is there is no module's.
        Case::is_misplaced(
            "source-from-within",
            &owning(&[]).outcome(0, &desires(&[config_map("settings")])),
            ("False", "InvalidSpec", "innkeeper-modules belongs to Innkeeper itself"),
        )
        .within("innkeeper-modules"),
        Case::runs(
            "cluster-scoped",
            &owning(&[("v1", "Namespace", "namespaces", false)])
                .outcome(0, &desires(&[object("v1", "Namespace", "evil")])),
            ("False", "CrossNamespace", "Namespace evil"),
        ),
    ]
}

/// Roles and bindings that would give its account more rights.
fn rights_beyond_its_own() -> Vec<Case> {
    let bindings = ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", true);
    let roles = ("rbac.authorization.k8s.io/v1", "Role", "roles", true);
    let mut binding = object("rbac.authorization.k8s.io/v1", "RoleBinding", "escalated");
    binding["roleRef"] = json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"});
    binding["subjects"] = json!([{"kind": "ServiceAccount", "name": "binding-without-bind", "namespace": "innkeeper-modules"}]);
    let mut role = object("rbac.authorization.k8s.io/v1", "Role", "escalated");
    role["rules"] = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    vec![
        Case::runs(
            "binding-not-granted",
            &owning(&[bindings]).outcome(0, &desires(&[binding.clone()])),
            ("False", "Unreadable", "may not list rolebindings"),
        ),
        Case::runs(
            "binding-without-bind",
            &owning(&[bindings]).outcome(0, &desires(&[binding])),
            ("False", "Forbidden", "not currently held"),
        )
        .may(OWN, RBAC, "rolebindings"),
        Case::runs(
            "role-without-escalate",
            &owning(&[roles]).outcome(0, &desires(&[role])),
            ("False", "Forbidden", "not currently held"),
        )
        .may(OWN, RBAC, "roles"),
    ]
}

fn objects_of_others() -> Vec<Case> {
    let settings = json!({"apiVersion": "example.innkeeper.dev/v1", "kind": "Settings",
        "metadata": {"name": "others"}, "spec": {"names": ["x"], "text": "theirs"}});
    let mut taken = config_map("others-x");
    taken["data"] = json!({"text": "mine"});
    vec![
        wants("child-of-another", taken, ("False", "Conflict", "controlled by Settings others"))
            .given(settings),
        wants("object-of-nobody", config_map("found"), ("False", "Conflict", "no controller"))
            .given(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "found"}, "data": {"a": "theirs"}})),
    ]
}

fn objects_without_end() -> Vec<Case> {
    let many: Vec<Value> = (0..5_000).map(|index| config_map(&format!("c{index}"))).collect();
    vec![
        Case::runs(
            "thousands-of-objects",
            &says(&desires(&many)),
            ("False", "TooManyObjects", "desires 5000 objects, the limit is 1000"),
        ),
        Case::runs(
            "object-by-the-clock",
            &by_the_clock(),
            ("False", "NotConverging", "10 rounds did not converge"),
        )
        .writes(&[("configmaps", "clock")]),
    ]
}

/// A guest that wants another value each time.
fn by_the_clock() -> Tiny {
    let mut object = config_map("clock");
    object["data"] = json!({ "now": TIME });
    says(&desires(&[object])).timed()
}
