//! Components that are no guests, and guests that say of themselves what cannot be.

use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

use crate::case::Case;
use crate::guests::{describing, guest};

/// Components that are no guests, and guests that say of themselves what cannot be.
pub(crate) fn components_and_manifests() -> Vec<Case> {
    [
        failing_descriptions(),
        impossible_manifests(),
        definitions_without_the_right(),
        components_that_import_or_hold_too_much(),
    ]
    .concat()
}

/// Guests from which no manifest can be had.
fn failing_descriptions() -> Vec<Case> {
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
    ]
}

fn impossible_manifests() -> Vec<Case> {
    vec![
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
    ]
}

fn definitions_without_the_right() -> Vec<Case> {
    vec![
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
    ]
}

fn components_that_import_or_hold_too_much() -> Vec<Case> {
    let imports = many(5_000, |index| format!("(import \"x{index}\" (func))"));
    let functions = many(20_000, |index| format!("(func (result i32) (i32.const {index}))"));
    let mut padded = guest().component();
    pad(&mut padded, 60 << 20);
    vec![
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
pub(crate) fn many(count: usize, part: impl Fn(usize) -> String) -> String {
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
