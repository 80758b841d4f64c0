//! Honest schemas pass; hostile ones are refused before they take time or memory.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use super::*;

/// CPU time of this thread that a refusal may take with a debug build.
const QUICKLY: Duration = Duration::from_secs(10);

/// CPU time of this thread, which other programs on the machine do not change.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}

fn quickly(schema: &Value, document: &Value) -> Result<(), SchemaError> {
    let began = cpu_time();
    let result = validate(schema, document);
    let took = cpu_time().saturating_sub(began);
    assert!(took < QUICKLY, "it took {took:?}");
    result
}

fn unusable(schema: &Value, expected: &str) {
    match quickly(schema, &json!({})) {
        Err(SchemaError::Unusable(why)) => assert!(why.contains(expected), "{why}"),
        other => panic!("{other:?} instead of unusable: {expected}"),
    }
}

fn too_costly(schema: &Value, document: &Value) {
    match quickly(schema, document) {
        Err(SchemaError::TooCostly(_)) => {}
        other => panic!("{other:?} instead of too costly"),
    }
}

/// `levels` definitions of which each applies the next one twice.
fn doubling(levels: usize) -> Value {
    let mut schema = json!({"$ref": "#/$defs/d0", "$defs": {}});
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        schema["$defs"][format!("d{level}")] = json!({"allOf": [next, next]});
    }
    schema["$defs"][format!("d{levels}")] = json!({"type": "object"});
    schema
}

#[test]
fn schema_of_a_real_guest_passes_with_many_parameters() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.dev/routes",
        "type": "object",
        "required": ["routes"],
        "additionalProperties": false,
        "properties": {"routes": {"type": "array", "items": {"$ref": "#/$defs/route"}}},
        "$defs": {"route": {
            "type": "object",
            "properties": {
                "host": {"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "maxLength": 253},
                "name": {"type": "string", "pattern": r"^[\w-]{1,63}$"},
                "weight": {"type": ["integer", "null"], "minimum": 0},
                "kind": {"enum": ["plain", "secure"]},
                "children": {"type": "array", "items": {"$ref": "#/$defs/route"}},
            },
            "patternProperties": {"^x-": true},
            "anyOf": [{"required": ["host"]}, {"required": ["name"]}],
        }},
    });
    let route = |host: String| {
        json!({"host": host, "weight": 3, "kind": "plain", "x-more": [1],
        "children": [{"name": "child"}]})
    };
    let routes: Vec<_> = (0..500).map(|n| route(format!("web-{n}.example.dev"))).collect();
    assert_eq!(quickly(&schema, &json!({ "routes": routes })), Ok(()));
    let error = quickly(&schema, &json!({"routes": [route("-".into())]})).unwrap_err();
    assert!(
        matches!(&error, SchemaError::Misfit(misfit)
        if misfit.problems[0].pointer == "/routes/0/host"),
        "{error}"
    );
}

#[test]
fn references_that_double_are_refused_by_their_steps() {
    assert_eq!(quickly(&doubling(4), &json!({})), Ok(()));
    for levels in [20, 30, 45] {
        too_costly(&doubling(levels), &json!({}));
    }
}

#[test]
fn recursion_that_doubles_with_the_documents_depth_is_refused() {
    let both = json!({"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]});
    let mut document = json!({});
    for _ in 0..30 {
        document = json!({ "a": document });
    }
    too_costly(&both, &document);
    assert_eq!(quickly(&both, &json!({"a": {"a": {}}})), Ok(()));
}

#[test]
fn schema_that_refers_to_itself_without_end_is_refused() {
    unusable(&json!({"allOf": [{"$ref": "#"}]}), "refers to itself without end");
    unusable(
        &json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        "refers to itself without end",
    );
}

#[test]
fn large_patterns_are_refused_before_they_are_compiled() {
    unusable(&json!({"pattern": r"\p{L}{200}"}), "when it is compiled");
    unusable(&json!({"patternProperties": {r"(\W{40}){40}": true}}), "when it is compiled");
    unusable(&json!({"pattern": "a".repeat(PATTERN_BYTES_MAX + 1)}), "a pattern has more than");
    unusable(&json!({"pattern": "(unclosed"}), "cannot be compiled");
    let many: Vec<_> = (0..=PATTERNS_MAX).map(|n| json!({"pattern": format!("{n}")})).collect();
    unusable(&json!({ "anyOf": many }), "more than 64 patterns");
}

#[test]
fn long_text_against_a_large_pattern_is_refused() {
    let schema = json!({"properties": {"a": {"pattern": r"^(\p{L}{1,4}-)*$"}}});
    assert_eq!(quickly(&schema, &json!({"a": "ab-cd-"})), Ok(()));
    too_costly(&schema, &json!({"a": "ab-".repeat(300_000)}));
}

#[test]
fn pattern_that_backtracks_elsewhere_takes_linear_time() {
    let schema = json!({"patternProperties": {"^(a+)+$": {"type": "string"}}});
    assert_eq!(quickly(&schema, &json!({format!("{}b", "a".repeat(10_000)): 1})), Ok(()));
}

#[test]
fn schema_that_is_too_large_or_too_deep_is_refused() {
    let mut nested = json!(1);
    for _ in 0..100 {
        nested = json!([nested]);
    }
    unusable(&json!({ "const": nested }), "nested more than");
    unusable(&json!({"enum": vec![json!([]); 2 << 20]}), "values");
    unusable(&json!({"const": "x".repeat(SCHEMA_BYTES_MAX)}), "bytes");
    unusable(&json!({"anyOf": vec![json!(true); 5_000]}), "more than 2000 subschemas");
}

#[test]
fn large_documents_against_many_alternatives_are_refused() {
    let alternatives: Vec<_> =
        (0..1_500).map(|n| json!({ "required": [format!("m{n}")] })).collect();
    let schema = json!({"items": {"anyOf": alternatives}});
    assert_eq!(quickly(&schema, &json!([{"m7": 1}])), Ok(()));
    too_costly(&schema, &Value::Array(vec![json!({"m1499": 1}); 50_000]));
}

#[test]
fn large_constants_and_unique_items_count_for_each_value() {
    let constant = json!({"enum": (0..5_000).collect::<Vec<u32>>()});
    too_costly(&json!({ "items": constant }), &Value::Array(vec![json!(1); 1_000]));
    too_costly(&json!({"uniqueItems": true}), &Value::Array(vec![json!([1]); 100_000]));
    assert_eq!(quickly(&json!({"uniqueItems": true}), &json!([1, 2, 3])), Ok(()));
}

#[test]
fn references_lead_to_subschemas_of_the_schema_only() {
    for reference in [
        "file:///etc/hostname",
        "https://example.dev/other",
        "#/definitions/none",
        "#/$defs/%61",
        "other",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        unusable(&json!({"$ref": reference, "$defs": {"a": true}}), "nothing is fetched");
    }
    // A place that is no subschema would be checked again for each reference.
    unusable(&json!({"$ref": "#/const", "const": {"type": "object"}}), "nothing is fetched");
    unusable(&json!({"properties": {"a": {"$id": "https://example.dev/"}}}), "$id");
    unusable(&json!({"$schema": "https://example.dev/own"}), "$schema");
    for keyword in ["$dynamicRef", "$recursiveRef", "$anchor"] {
        unusable(&json!({"allOf": [{keyword: "#a"}]}), "is not supported");
    }
    unusable(
        &json!({"$schema": "http://json-schema.org/draft-07/schema#", "format": "regex"}),
        "regex",
    );
}

#[test]
fn identity_of_a_metaschema_does_not_replace_the_schema() {
    let schema = json!({
        "$id": "https://json-schema.org/draft/2020-12/schema",
        "properties": {"a": {"$ref": "#/$defs/number"}},
        "$defs": {"number": {"type": "number"}},
    });
    assert!(matches!(validate(&schema, &json!({"a": "x"})), Err(SchemaError::Misfit(_))));
    assert_eq!(validate(&schema, &json!({"a": 1})), Ok(()));
}

#[test]
fn thousand_problems_are_counted_and_five_are_listed() {
    let schema = json!({"items": {"enum": vec!["x".repeat(2_000)]}});
    let error = quickly(&schema, &Value::Array(vec![json!(1); 1_000])).unwrap_err();
    let SchemaError::Misfit(misfit) = &error else { panic!("{error}") };
    assert_eq!((misfit.problems.len(), misfit.more), (5, 995));
    assert!(error.to_string().len() < 6_000, "{}", error.to_string().len());
}

/// A name that takes twice its length where a reference leads through it.
fn long_name() -> String {
    "~".repeat(200 << 10)
}

#[test]
fn long_names_on_the_way_to_subschemas_take_no_memory_for_each() {
    let members: serde_json::Map<_, _> =
        (0..1_900).map(|n| (format!("a{n}"), json!(true))).collect();
    let schema = json!({"properties": {long_name(): {"properties": members}}});
    let bounded = bounds::check(&schema).unwrap();
    let bytes: usize = bounded.targets.keys().map(String::len).sum();
    assert!(bytes < SCHEMA_BYTES_MAX, "{bytes} bytes");
}

#[test]
fn long_name_of_a_property_counts_for_each_value_it_is_sought_in() {
    let schema = json!({"items": {"properties": {long_name(): true}}});
    assert_eq!(quickly(&schema, &json!([{}, {}])), Ok(()));
    too_costly(&schema, &Value::Array(vec![json!({}); 30_000]));
}

#[test]
fn format_of_a_long_text_takes_linear_time() {
    let texts = [
        "a".repeat(1 << 20),
        "xn--".to_owned() + &"9a".repeat(500_000),
        "é".repeat(500_000),
        "a.".repeat(500_000),
        "[".repeat(1 << 20),
        "{a}".repeat(300_000),
        "/~0".repeat(300_000),
        "::".repeat(500_000),
        "P1Y".repeat(300_000),
        "http://".to_owned() + &"%61/".repeat(250_000),
    ];
    for format in [
        "idn-hostname",
        "hostname",
        "email",
        "idn-email",
        "uri",
        "iri",
        "uri-reference",
        "iri-reference",
        "uri-template",
        "json-pointer",
        "relative-json-pointer",
        "duration",
        "date",
        "time",
        "date-time",
        "ipv4",
        "ipv6",
        "uuid",
        "period",
    ] {
        let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"a": {"format": format}}});
        for text in &texts {
            let result = quickly(&schema, &json!({"a": text}));
            let is_known = !matches!(result, Err(SchemaError::Unavailable(_)));
            assert!(is_known, "{format}: {result:?}");
        }
    }
}

#[test]
fn numbers_at_the_ends_of_their_range_are_compared_at_once() {
    for number in [json!(1e308), json!(1e-308), json!(5e-324), json!(u64::MAX)] {
        let schema =
            json!({"items": {"multipleOf": number, "minimum": number, "exclusiveMaximum": number}});
        let result = quickly(&schema, &json!([1e308, 1e-308, 5e-324, u64::MAX, i64::MIN, 0.1]));
        assert!(matches!(result, Err(SchemaError::Misfit(_))), "{number}: {result:?}");
    }
}
