//! The misbehaviours.

use innkeeper_tiny_guests::{CLOCK, LOG, OUTCOME_AT, SCRATCH, TIME, Tiny, get};
use serde_json::{Value, json};

use crate::case::Case;

/// Verbs of what is owned.
const OWN: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
/// Group of roles.
const RBAC: &str = "rbac.authorization.k8s.io";

/// A manifest that owns ConfigMaps and these: version, kind, plural, and whether it has namespaces.
fn manifest(owned: &[(&str, &str, &str, bool)]) -> Value {
    let kind = |api_version: &str, kind: &str, plural: &str, namespaced: bool| {
        json!({"apiVersion": api_version, "kind": kind, "plural": plural,
            "scope": if namespaced { "Namespaced" } else { "Cluster" }})
    };
    let owned: Vec<Value> = [("v1", "ConfigMap", "configmaps", true)]
        .iter()
        .chain(owned)
        .map(|one| json!({"kind": kind(one.0, one.1, one.2, one.3)}))
        .collect();
    json!({"name": "hostile", "primary": kind("hostile.example.dev/v1", "Hostile", "hostiles", true),
        "owned": owned})
}

/// A guest that owns ConfigMaps.
fn guest() -> Tiny {
    owning(&[])
}

/// A guest that owns ConfigMaps and these.
fn owning(owned: &[(&str, &str, &str, bool)]) -> Tiny {
    Tiny::default().manifest(&manifest(owned).to_string())
}

/// A guest that says of itself what `change` makes of an honest manifest.
fn describing(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut manifest = manifest(&[]);
    change(&mut manifest);
    Tiny::default().manifest(&manifest.to_string()).component()
}

/// A guest that owns ConfigMaps and answers with this text.
fn says(text: &str) -> Tiny {
    guest().outcome(0, text)
}

/// An answer that desires these.
fn desires(objects: &[Value]) -> String {
    let objects: Vec<Value> = objects.iter().map(|one| json!({ "object": one })).collect();
    json!({ "objects": objects }).to_string()
}

fn object(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
}

fn config_map(name: &str) -> Value {
    object("v1", "ConfigMap", name)
}

fn elsewhere(mut object: Value, namespace: &str) -> Value {
    object["metadata"]["namespace"] = namespace.into();
    object
}

/// All of them.
pub(crate) fn all() -> Vec<Case> {
    [
        vec![events_by_the_clock()],
        what_it_takes(),
        what_it_answers(),
        what_it_wants(),
        what_it_says(),
        what_it_is(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A guest that has something new to tell each second.
fn events_by_the_clock() -> Case {
    let outcome =
        json!({"events": [{"reason": "Again", "message": TIME}], "requeueAfterSeconds": 1});
    Case::runs("events-by-the-clock", &says(&outcome.to_string()).timed(), ("True", "Applied", ""))
}

/// A component that takes minutes to compile.
pub(crate) fn bomb() -> Case {
    Case::is_refused(
        "compile-bomb",
        Tiny::bomb().component(),
        ("False", "CompileTimeout", "took longer than 60s and was stopped"),
    )
}

/// Time, stack, memory, tables, reads, logs.
fn what_it_takes() -> Vec<Case> {
    let short = json!({"timeout": "200ms"});
    vec![
        Case::runs(
            "endless-loop",
            &guest().on_reconcile("(loop $l (br $l))"),
            ("False", "GuestTimeout", "ran longer than 200ms"),
        )
        .limits(&short),
        Case::runs(
            "endless-calls-of-the-host",
            &guest().importing(CLOCK).on_reconcile("(loop $l (drop (call $now)) (br $l))"),
            ("False", "GuestTimeout", "ran longer than 200ms"),
        )
        .limits(&short),
        Case::runs(
            "endless-recursion",
            &guest().with("(func $deeper (call $deeper))").on_reconcile("(call $deeper)"),
            ("False", "GuestTrapped", "call stack exhausted"),
        ),
        Case::runs(
            "memory-to-the-limit",
            &guest().on_reconcile(
                "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) unreachable",
            ),
            ("False", "GuestOutOfMemory", "more than 67108864 bytes of memory"),
        ),
        Case::runs(
            "table-to-the-limit",
            &guest().with("(table $t 1 funcref)").on_reconcile(
                "(loop $l (br_if $l (i32.ne (table.grow $t (ref.null func) (i32.const 100)) (i32.const -1)))) unreachable",
            ),
            ("False", "GuestTableTooLarge", "more than 20000 table elements"),
        ),
        Case::runs(
            "endless-reads",
            &guest()
                .importing(innkeeper_tiny_guests::READS)
                .data(SCRATCH, "v1ConfigMapnscm")
                .on_reconcile(&format!("(loop $l {} (br $l))", get())),
            ("False", "TooManyReads", "more than 10000 times"),
        ),
        Case::runs(
            "log-flood",
            &guest().importing(LOG).data(SCRATCH, "flood flood").on_reconcile(&format!(
                "(loop $l
                     (call $log (i32.const 1) (i32.const {SCRATCH}) (i32.const 11))
                     (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                                         (i32.const 50000))))"
            )),
            ("True", "Applied", ""),
        ),
        Case::runs(
            "log-forgery",
            &guest().importing(LOG).data(SCRATCH, FORGED).on_reconcile(&format!(
                "(call $log (i32.const 1) (i32.const {SCRATCH}) (i32.const {}))",
                FORGED.len()
            )),
            ("True", "Applied", ""),
        ),
    ]
}

/// What a guest logs that wants its line to look like one of the host's.
pub(crate) const FORGED: &str =
    "x\n{\"level\":\"INFO\",\"message\":\"serves\",\"module\":\"forged\"}";

/// Texts that are not what the contract says.
fn what_it_answers() -> Vec<Case> {
    let unreadable = |name, text: &str, expected| {
        Case::runs(name, &says(text), ("False", "OutputUnreadable", expected))
    };
    let data = |value: &str| {
        format!(
            r#"{{"objects":[{{"object":{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"odd"}},"data":{{{value}}}}}}}]}}"#
        )
    };
    vec![
        Case::runs(
            "huge-output",
            &guest().answers(&format!(
                "(drop (memory.grow (i32.const 700)))
                 (i32.store (i32.const {0}) (i32.const 0))
                 (i32.store (i32.const {1}) (i32.const 65536))
                 (i32.store (i32.const {2}) (i32.const 41943040))
                 (i32.const {0})",
                SCRATCH,
                SCRATCH + 4,
                SCRATCH + 8
            )),
            ("False", "OutputTooLarge", "has 41943040 bytes, the limit is 4194304"),
        ),
        Case::runs(
            "no-utf8",
            &guest()
                .on_reconcile(&format!("(i32.store8 (i32.const {OUTCOME_AT}) (i32.const 255))")),
            ("False", "OutputUnreadable", "invalid utf-8 sequence"),
        ),
        unreadable("no-json", "objects: []", "expected value at line 1"),
        unreadable(
            "deep-json",
            &data(&format!(r#""a":{}"#, "[".repeat(100_000))),
            "recursion limit exceeded",
        ),
        unreadable("not-a-number", &data(r#""a":NaN"#), "expected value"),
        unreadable("number-too-large", &data(r#""a":1e400"#), "number out of range"),
        unreadable("member-twice", r#"{"objects":[],"objects":[]}"#, "duplicate field `objects`"),
        unreadable("unknown-member", r#"{"object":[]}"#, "unknown field `object`"),
        // Of two members of one name within an object the last is taken: there is one reader, so
        // nothing is checked that is not what is sent.
        Case::runs("key-twice", &says(&data(r#""a":"first","a":"last""#)), ("True", "Applied", ""))
            .writes(&[("configmaps", "odd")]),
    ]
}

/// Objects that are not its to make.
fn what_it_wants() -> Vec<Case> {
    let wants =
        |name, object: Value, expected| Case::runs(name, &says(&desires(&[object])), expected);
    let secrets = ("v1", "Secret", "secrets", true);
    let bindings = ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", true);
    let roles = ("rbac.authorization.k8s.io/v1", "Role", "roles", true);
    let mut binding = object("rbac.authorization.k8s.io/v1", "RoleBinding", "escalated");
    binding["roleRef"] = json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"});
    binding["subjects"] = json!([{"kind": "ServiceAccount", "name": "binding-without-bind", "namespace": "innkeeper-modules"}]);
    let mut role = object("rbac.authorization.k8s.io/v1", "Role", "escalated");
    role["rules"] = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let mut forged = config_map("forged");
    forged["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "1"}]);
    let mut unknown = config_map("unknown");
    unknown["dta"] = json!({"a": "b"});
    let mut large = config_map("large");
    large["data"] = json!({"a": "x".repeat(3_500_000)});
    let settings = json!({"apiVersion": "example.innkeeper.dev/v1", "kind": "Settings",
        "metadata": {"name": "others"}, "spec": {"names": ["x"], "text": "theirs"}});
    let mut taken = config_map("others-x");
    taken["data"] = json!({"text": "mine"});
    let many: Vec<Value> = (0..5_000).map(|index| config_map(&format!("c{index}"))).collect();
    vec![
        wants("slash-in-a-name", config_map("../secrets/a"), ("False", "MalformedObject", "metadata.name is not a name")),
        wants("dots-as-a-name", config_map(".."), ("False", "MalformedObject", "metadata.name is not a name")),
        wants("slash-in-a-namespace", elsewhere(config_map("a"), "a/../b"), ("False", "MalformedObject", "metadata.namespace is not a name")),
        wants("capitals-in-a-name", config_map("Not_A_Name"), ("False", "MalformedObject", "Not_A_Name")),
        wants("megabyte-of-a-name", config_map(&"n".repeat(1 << 20)), ("False", "MalformedObject", "nnn...")),
        wants("megabyte-of-a-kind", object("v1", &"K".repeat(1 << 20), "a"), ("False", "UndeclaredKind", "KKK...")),
        wants("unknown-field-of-a-kind", unknown, ("False", "Malformed", ".dta")),
        wants("object-too-large", large, ("False", "Invalid", "large")),
        wants("forged-owner", forged, ("False", "MalformedObject", "metadata.ownerReferences is not the guest's to give")),
        wants("kind-not-declared", object("v1", "Secret", "stolen"), ("False", "UndeclaredKind", "does not own v1 Secret")),
        wants("module-not-declared", object("innkeeper.dev/v1alpha1", "Module", "module-not-declared"), ("False", "UndeclaredKind", "does not own innkeeper.dev/v1alpha1 Module")),
        Case::runs(
            "kind-not-granted",
            &owning(&[secrets]).outcome(0, &desires(&[object("v1", "Secret", "stolen")])),
            ("False", "Unreadable", "may not list secrets"),
        ),
        Case::runs(
            "kind-to-read-only",
            &owning(&[secrets]).outcome(0, &desires(&[object("v1", "Secret", "stolen")])),
            ("False", "Forbidden", "secrets"),
        )
        .may(&["get", "list", "watch"], "", "secrets"),
        wants("another-namespace", elsewhere(config_map("evil"), "default"), ("False", "CrossNamespace", "allowCrossNamespace")),
        wants("sources-of-modules", elsewhere(config_map("settings"), "innkeeper-modules"), ("False", "CrossNamespace", "ConfigMap innkeeper-modules/settings")),
        Case::runs(
            "key-of-the-host",
            &owning(&[secrets]).outcome(
                0,
                &desires(&[elsewhere(object("v1", "Secret", "innkeeper-digest-key"), "innkeeper-system")]),
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
        wants("child-of-another", taken, ("False", "Conflict", "controlled by Settings others"))
            .given(settings),
        wants("object-of-nobody", config_map("found"), ("False", "Conflict", "no controller"))
            .given(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "found"}, "data": {"a": "theirs"}})),
        Case::runs(
            "thousands-of-objects",
            &says(&desires(&many)),
            ("False", "TooManyObjects", "desires 5000 objects, the limit is 1000"),
        ),
        Case::runs("object-by-the-clock", &by_the_clock(), ("False", "NotConverging", "wants something else after each write"))
            .writes(&[("configmaps", "clock")]),
    ]
}

/// A guest that wants another value each time.
fn by_the_clock() -> Tiny {
    let mut object = config_map("clock");
    object["data"] = json!({ "now": TIME });
    says(&desires(&[object])).timed()
}

/// Status, conditions and Events that nobody could write or read.
fn what_it_says() -> Vec<Case> {
    let condition = |type_: &str, reason: &str| {
        json!({"conditions": [{"type": type_, "status": "True", "reason": reason}]}).to_string()
    };
    let events: Vec<Value> = (0..10_000)
        .map(|index| json!({"reason": "Flood", "message": format!("{index}")}))
        .collect();
    let malformed = |name, text: &str, expected| {
        Case::runs(name, &says(text), ("False", "MalformedStatus", expected))
    };
    vec![
        malformed(
            "huge-status",
            &json!({"status": {"a": "x".repeat(2 << 20)}}).to_string(),
            "the limit is 262144",
        ),
        malformed("type-of-two-words", &condition("no type", "Fine"), "conditions[0].type"),
        malformed("reason-of-two-words", &condition("Fine", "no reason"), "conditions[0].reason"),
        malformed(
            "flood-of-events",
            &json!({ "events": events }).to_string(),
            "10000 events are more",
        ),
        Case::runs(
            "status-by-the-clock",
            &says(&json!({"status": {"now": TIME}}).to_string()).timed(),
            ("True", "Applied", ""),
        ),
        Case::runs(
            "failure-of-its-own-word",
            &guest().outcome(2, &json!({"reason": "WordOfAGuest", "message": "no"}).to_string()),
            ("False", "WordOfAGuest", "no"),
        ),
        Case::runs(
            "failure-without-end",
            &guest().outcome(
                2,
                &json!({"reason": "shouts\n".repeat(10_000), "message": "no ".repeat(500_000)})
                    .to_string(),
            ),
            ("False", "GuestFailed", "no no"),
        ),
        // Its own word on what only the host knows is not taken.
        Case::runs(
            "lie-about-synced",
            &owning(&[("v1", "Secret", "secrets", true)]).outcome(
                0,
                &json!({"objects": [{"object": object("v1", "Secret", "stolen")}],
                    "conditions": [{"type": "Synced", "status": "True", "reason": "Applied"}]})
                .to_string(),
            ),
            ("False", "Unreadable", "may not list secrets"),
        ),
    ]
}

/// Components that are no guests, and guests that say of themselves what cannot be.
fn what_it_is() -> Vec<Case> {
    let imports = many(5_000, |index| format!("(import \"x{index}\" (func))"));
    let functions = many(20_000, |index| format!("(func (result i32) (i32.const {index}))"));
    let mut padded = guest().component();
    pad(&mut padded, 60 << 20);
    let described = |name, component, expected| {
        Case::is_refused(name, component, ("False", "DescribeFailed", expected))
    };
    let short = json!({"timeout": "200ms"});
    vec![
        described("trap-in-describe", guest().on_describe("unreachable").component(), "trapped"),
        described(
            "loop-in-describe",
            guest().on_describe("(loop $l (br $l))").component(),
            "ran longer than 200ms",
        )
        .limits(&short),
        described(
            "loop-at-the-start",
            guest().with("(func $spin (loop $l (br $l))) (start $spin)").component(),
            "ran longer than 200ms",
        )
        .limits(&short),
        described(
            "manifest-that-is-no-json",
            Tiny::default().manifest("hello").component(),
            "the manifest of the guest cannot be read",
        ),
        described(
            "huge-manifest",
            describing(|manifest| manifest["version"] = "v".repeat(5 << 20).into()),
            "the limit is 4194304",
        ),
        Case::is_refused(
            "thousands-of-kinds",
            describing(|manifest| {
                manifest["reads"] = (0..5_000)
                    .map(|index| json!({"apiVersion": "v1", "kind": format!("K{index}"), "plural": format!("k{index}")}))
                    .collect();
            }),
            ("False", "InvalidManifest", "5001 are more than the 100"),
        ),
        Case::is_refused(
            "schema-that-shouts",
            describing(|manifest| {
                let size = json!({"enum": ["x".repeat(2 << 20)]});
                manifest["parametersSchema"] = json!({"properties": {"size": size}});
            }),
            ("False", "InvalidParametersSchema", "bytes"),
        )
        .spec(json!({"parameters": {"size": 1}})),
        Case::is_refused(
            "modules-as-its-own",
            describing(|manifest| {
                manifest["owned"] = json!([{"kind": {"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "plural": "modules", "scope": "Cluster"}}]);
            }),
            ("False", "InvalidManifest", "kinds of innkeeper.dev are the host's own"),
        ),
        Case::is_refused(
            "kinds-that-are-paths",
            describing(|manifest| {
                manifest["reads"] =
                    json!([{"apiVersion": "v1", "kind": "Pod", "plural": "pods/exec"}]);
            }),
            ("False", "InvalidManifest", "is not a lower-case plural"),
        ),
        Case::is_refused(
            "definition-not-granted",
            describing(|manifest| manifest["crds"] = json!([definition()])),
            ("False", "CRDGroupNotAllowed", "allowedCRDGroups"),
        ),
        Case::is_refused(
            "definition-without-the-right",
            describing(|manifest| manifest["crds"] = json!([definition()])),
            ("False", "CRDForbidden", "may not patch customresourcedefinitions"),
        )
        .spec(json!({"allowedCRDGroups": ["evil.example.dev"]})),
        Case::is_refused(
            "import-of-wasi",
            wat::parse_str(
                r#"(component (import "wasi:sockets/tcp@0.2.0" (instance (export "x" (func)))))"#,
            )
            .unwrap(),
            ("False", "UnknownImport", "wasi:sockets/tcp"),
        ),
        Case::is_refused(
            "thousands-of-imports",
            wat::parse_str(format!("(component {imports})")).unwrap(),
            ("False", "UnknownImport", "imports x0"),
        ),
        // It has them, and that is all.
        Case::runs("thousands-of-functions", &guest().with(&functions), ("True", "Applied", "")),
        Case::is_refused(
            "sixty-megabytes",
            padded,
            ("False", "SourceTooLarge", "the limit of 33554432 bytes when unpacked"),
        ),
    ]
}

/// So many parts, one behind the other.
fn many(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().concat()
}

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "evils.evil.example.dev"},
        "spec": {"group": "evil.example.dev", "scope": "Namespaced",
            "names": {"kind": "Evil", "plural": "evils", "singular": "evil", "listKind": "EvilList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
}

/// Adds a custom section of so many zeros to a component.
fn pad(component: &mut Vec<u8>, bytes: usize) {
    let mut left = bytes + 2;
    component.push(0);
    loop {
        let low = u8::try_from(left & 0x7f).unwrap();
        left >>= 7;
        component.push(if left == 0 { low } else { low | 0x80 });
        if left == 0 {
            break;
        }
    }
    component.extend([1, b'x']);
    component.resize(component.len() + bytes, 0);
}
