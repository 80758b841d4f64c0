use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::*;

/// The rounds of each property.
const ROUNDS: usize = 20_000;

fn mask(document: &Value) -> FieldMask {
    FieldMask::read(document.as_object().unwrap()).unwrap()
}

fn error(document: &Value) -> String {
    FieldMask::read(document.as_object().unwrap()).unwrap_err().to_string()
}

fn pruned(mask: &FieldMask, value: &Value) -> Value {
    serde_json::from_str(&mask.prune(&value.to_string()).unwrap()).unwrap()
}

fn pod() -> Value {
    json!({
        "metadata": {"name": "a", "labels": {"app": "x", "a.b/c": "y"}},
        "spec": {"replicas": 3, "containers": [
            {"name": "a", "image": "x:1", "args": ["-v"]}, {"name": "b", "image": "y:1"}]},
        "status": {"conditions": [
            {"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
    })
}

#[test]
fn pruning_keeps_the_fields_items_and_members_that_are_named() {
    let mask = mask(&json!({
        "f:metadata": {"f:labels": {"f:a.b/c": {}}},
        "f:spec": {"f:containers": {"*": {"f:image": {}}}},
        "f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {}}},
    }));
    assert_eq!(
        pruned(&mask, &pod()),
        json!({
            "metadata": {"labels": {"a.b/c": "y"}},
            "spec": {"containers": [{"image": "x:1"}, {"image": "y:1"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        })
    );
}

#[test]
fn wildcard_is_every_member_of_an_object() {
    let mask = mask(&json!({"f:metadata": {"*": {"f:app": {}}}}));
    assert_eq!(pruned(&mask, &pod()), json!({"metadata": {"labels": {"app": "x"}, "name": "a"}}));
}

#[test]
fn object_on_the_way_to_a_path_stays_when_it_has_none_of_its_fields() {
    let mask = mask(&json!({"f:spec": {"f:paused": {}}, "f:data": {"f:a": {}}}));
    assert_eq!(pruned(&mask, &pod()), json!({"spec": {}}));
    assert!(mask.differs(&json!({"spec": {}}).to_string(), &json!({}).to_string()));
}

#[test]
fn value_of_another_type_than_the_mask_expects_stays_whole() {
    let mask = mask(&json!({"f:a": {"f:b": {}}, "f:c": {"k:{\"name\":\"x\"}": {"f:y": {}}}}));
    let odd = json!({"a": [{"b": 1, "z": 2}], "c": {"name": "q"}});
    assert_eq!(pruned(&mask, &odd), odd);
    let odd = json!({"a": "text", "c": null});
    assert_eq!(pruned(&mask, &odd), odd);
}

#[test]
fn difference_counts_when_it_is_within_the_mask_only() {
    let mask = mask(&json!({"f:spec": {"f:containers": {"*": {"f:image": {}}}}}));
    let differs = |change: &dyn Fn(&mut Value)| {
        let mut after = pod();
        change(&mut after);
        mask.differs(&pod().to_string(), &after.to_string())
    };
    assert!(!differs(&|_| {}));
    assert!(!differs(&|pod| pod["status"] = json!({})));
    assert!(!differs(&|pod| pod["spec"]["containers"][0]["args"] = json!([])));
    assert!(differs(&|pod| pod["spec"]["containers"][0]["image"] = json!("x:2")));
    assert!(differs(&|pod| drop(pod["spec"]["containers"].as_array_mut().unwrap().pop())));
    assert!(differs(&|pod| pod["spec"]["containers"].as_array_mut().unwrap().reverse()));
    assert!(differs(&|pod| pod["spec"] = json!(null)));
}

#[test]
fn text_that_is_not_json_differs_and_cannot_be_pruned() {
    let mask = mask(&json!({"f:a": {}}));
    for garbage in ["", "{", "{\"a\":}", "nul"] {
        assert!(mask.differs("{}", garbage) && mask.differs(garbage, "{}"), "{garbage}");
        assert!(mask.prune(garbage).is_err(), "{garbage}");
    }
}

#[test]
fn document_of_another_format_is_refused_with_the_path() {
    for (document, message) in [
        (json!({"spec": {}}), "`.` has the element `spec`, which is none of"),
        (json!({"f:": {}}), "has the element `f:`"),
        (json!({"f:a": {"v:1": {}}}), "`f:a` has the element `v:1`"),
        (json!({"f:a": {"i:0": {}}}), "`f:a` has the element `i:0`"),
        (json!({"f:a": {".": {}}}), "`f:a` has the element `.`"),
        (json!({"f:a": {"**": {}}}), "`f:a` has the element `**`"),
        (json!({"f:a": true}), "`f:a` is not an object"),
        (json!({"f:a": {"*": [1]}}), "`f:a.*` is not an object"),
        (json!({"k:name": {}}), "whose keys are not an object"),
        (json!({"k:{}": {}}), "whose keys are not an object"),
        (json!({"k:{\"a\":{}}": {}}), "whose keys are not an object"),
        (json!({"k:{\"a\":null}": {}}), "whose keys are not an object"),
        (
            json!({"f:l": {"k:{\"a\":1}": {}, "k:{\"b\":1}": {}}}),
            "`f:l` has the element `k:{\"b\":1}`",
        ),
    ] {
        let error = error(&document);
        assert!(error.contains(message), "{document}: {error}");
    }
}

#[test]
fn hostile_document_is_refused_by_its_limits() {
    let mut deep = json!({});
    for _ in 0..=DEPTH_MAX {
        deep = json!({ "f:a": deep });
    }
    assert!(error(&deep).contains("is deeper than 16 elements"));
    let _ = mask(&deep["f:a"]);
    let many: Map<String, Value> =
        (0..=ELEMENTS_MAX).map(|number| (format!("f:{number}"), json!({}))).collect();
    assert!(error(&many.into()).contains("more than 4096 elements"));
    let long = json!({format!("f:{}", "é".repeat(ELEMENT_BYTES_MAX)): {}});
    let message = error(&long);
    assert!(message.contains("an element of 1026 bytes") && message.len() < 200, "{message}");
    let mut wide = json!({"x": {}});
    for _ in 0..30 {
        wide = json!({format!("f:{}", "é".repeat(200)): wide});
    }
    assert!(error(&wide).len() < 700);
}

#[test]
fn wildcards_next_to_names_at_every_level_are_refused_or_are_the_whole_object() {
    // Each level would double the mask.
    let mut wild = json!({"f:x": {}});
    for number in 0..15 {
        wild = json!({"*": wild, "f:a": {format!("f:{number}"): {}}});
    }
    assert!(error(&wild).contains("more than 4096 elements"));
    // As would the union of two that are within the limit.
    let many = |prefix: &str, below: &Value| -> Map<String, Value> {
        (0..100).map(|number| (format!("f:{prefix}{number}"), below.clone())).collect()
    };
    let one = mask(&many("a", &json!({"f:z": {}})).into());
    let other = mask(&json!({"*": many("b", &json!({}))}));
    assert!(one.union(&other).is_whole());
    assert!(one.elements() == 200 && other.elements() == 101);
}

#[test]
fn list_of_items_with_keys_of_other_names_is_whole_in_a_union() {
    let by_type = mask(&json!({"f:l": {"k:{\"type\":\"a\"}": {}}, "f:x": {}}));
    let by_name = mask(&json!({"f:l": {"k:{\"name\":\"a\"}": {}}, "f:y": {}}));
    let union = by_type.union(&by_name);
    assert_eq!(union, mask(&json!({"f:l": {}, "f:x": {}, "f:y": {}})));
    assert!(union.contains(&by_type) && union.contains(&by_name) && !by_type.contains(&by_name));
}

#[test]
fn many_keys_of_one_list_cost_one_lookup_for_each_item() {
    let keys = (0..1_000).map(|number| (format!("k:{{\"name\":{number}}}"), json!({"f:a": {}})));
    let mask = mask(&json!({"f:l": keys.collect::<Map<String, Value>>()}));
    let item = |number: usize, a: usize| json!({"name": number, "a": a, "b": 1});
    let list =
        |a: usize| json!({"l": (0..2_000).map(|number| item(number, a)).collect::<Vec<_>>()});
    assert_eq!(pruned(&mask, &list(1))["l"].as_array().unwrap().len(), 1_000);
    assert!(mask.differs(&list(1).to_string(), &list(2).to_string()));
}

#[test]
fn two_texts_of_the_same_keys_are_one_item() {
    let same = mask(&json!({"f:l": {
        "k:{\"name\":\"a\"}": {"f:x": {}}, "k:{ \"name\": \"\\u0061\" }": {"f:y": {}}}}));
    let list = json!({"l": [{"name": "a", "x": 1, "y": 2, "z": 3}, {"name": "b", "x": 1}]});
    assert_eq!(pruned(&same, &list), json!({"l": [{"name": "a", "x": 1, "y": 2}]}));
}

#[test]
fn mask_of_paths_is_that_of_its_document() {
    let paths = FieldMask::of_paths(&[&["metadata", "name"], &["metadata", "uid"], &["kind"]]);
    assert_eq!(paths, mask(&json!({"f:metadata": {"f:name": {}, "f:uid": {}}, "f:kind": {}})));
    assert!(FieldMask::of_paths(&[]).is_whole());
}

/// What masks keep of a value, by the definition: `documents` are masks of which each may keep it.
fn model(documents: &[Value], value: &Value) -> Value {
    let elements = || documents.iter().flat_map(|document| document.as_object().unwrap());
    if documents.contains(&json!({})) {
        return value.clone();
    }
    let has = |prefix: &str| elements().any(|(element, _)| element.starts_with(prefix));
    match value {
        Value::Object(members) if has("f:") || has("*") => {
            let kept = members.iter().filter_map(|(name, value)| {
                let named = format!("f:{name}");
                let below = elements().filter(|(element, _)| *element == "*" || **element == named);
                let below: Vec<Value> = below.map(|(_, below)| below.clone()).collect();
                (!below.is_empty()).then(|| (name.clone(), model(&below, value)))
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) if has("k:") || has("*") => {
            let kept = items.iter().filter_map(|item| {
                let below = of_item(elements(), item);
                (!below.is_empty()).then(|| model(&below, item))
            });
            Value::Array(kept.collect())
        }
        _ => value.clone(),
    }
}

/// The masks of an item of a list: those of its keys keep the keys too.
fn of_item<'a>(
    elements: impl Iterator<Item = (&'a String, &'a Value)>,
    item: &Value,
) -> Vec<Value> {
    let mut found = Vec::new();
    for (element, below) in elements {
        let keys: Map<String, Value> = match element.strip_prefix("k:") {
            Some(keys) => serde_json::from_str(keys).unwrap(),
            None if element == "*" => Map::new(),
            None => continue,
        };
        if keys.iter().all(|(name, value)| item.get(name) == Some(value)) {
            found.push(below.clone());
            found.extend(keys.keys().map(|name| json!({format!("f:{name}"): {}})));
        }
    }
    found
}

const NAMES: [&str; 4] = ["a", "b", "name", "x/y.z"];

fn random_document(rng: &mut Rng, depth: usize) -> Value {
    let count = if depth == 0 { 0 } else { rng.usize(0..4) };
    let elements = (0..count).map(|_| {
        let element = match rng.usize(0..8) {
            0 => "*".to_owned(),
            // The keys of a list have the same names, as those of every list at this depth.
            1 if depth.is_multiple_of(2) => r#"k:{"name":"a"}"#.to_owned(),
            2 if depth.is_multiple_of(2) => r#"k:{"name":1}"#.to_owned(),
            1 | 2 => r#"k:{"a":true,"name":"a"}"#.to_owned(),
            _ => format!("f:{}", NAMES[rng.usize(0..NAMES.len())]),
        };
        (element, random_document(rng, depth - 1))
    });
    Value::Object(elements.collect())
}

fn random_value(rng: &mut Rng, depth: usize) -> Value {
    match rng.usize(0..if depth == 0 { 5 } else { 12 }) {
        0 => json!(null),
        1 => json!(true),
        2 => json!(1),
        3 | 4 => json!("a"),
        5..=7 => (0..rng.usize(0..4)).map(|_| random_value(rng, depth - 1)).collect(),
        _ => {
            let members = (0..rng.usize(0..5)).map(|_| {
                (NAMES[rng.usize(0..NAMES.len())].to_owned(), random_value(rng, depth - 1))
            });
            Value::Object(members.collect())
        }
    }
}

/// Changes a value at a random place.
fn change(rng: &mut Rng, value: &mut Value) {
    let inner = match value {
        Value::Object(members) if !members.is_empty() => {
            let place = rng.usize(0..members.len());
            members.iter_mut().nth(place).map(|(_, value)| value)
        }
        Value::Array(items) if !items.is_empty() => {
            let place = rng.usize(0..items.len());
            items.get_mut(place)
        }
        _ => None,
    };
    match inner {
        Some(inner) if rng.usize(0..5) > 0 => change(rng, inner),
        _ => *value = random_value(rng, 1),
    }
}

#[test]
fn pruning_and_comparison_agree_with_the_model_for_random_masks() {
    let mut rng = Rng::with_seed(7);
    let mut differing = 0;
    for _ in 0..ROUNDS {
        let document = random_document(&mut rng, 4);
        let mask = mask(&document);
        let before = random_value(&mut rng, 5);
        let mut after = before.clone();
        change(&mut rng, &mut after);
        let (kept, kept_after) = (
            model(std::slice::from_ref(&document), &before),
            model(std::slice::from_ref(&document), &after),
        );
        assert_eq!(pruned(&mask, &before), kept, "{document} {before}");
        assert_eq!(pruned(&mask, &kept), kept, "{document} {before}");
        let differs = mask.differs(&before.to_string(), &after.to_string());
        assert_eq!(differs, kept != kept_after, "{document} {before} {after}");
        differing += usize::from(before != after && !differs);
    }
    assert!(differing > ROUNDS / 20, "{differing} changes were outside their mask");
}

#[test]
fn reader_finds_in_a_union_what_its_own_mask_keeps_for_random_masks() {
    let mut rng = Rng::with_seed(11);
    let mut smaller = 0;
    for _ in 0..ROUNDS {
        let (one, other) = (random_document(&mut rng, 4), random_document(&mut rng, 4));
        let union = mask(&one).union(&mask(&other));
        assert_eq!(union, mask(&other).union(&mask(&one)));
        assert!(union.contains(&mask(&one)) && union.contains(&mask(&other)), "{one} {other}");
        let third = random_document(&mut rng, 4);
        let (value, of_three) = (random_object(&mut rng), union.union(&mask(&third)));
        let kept = pruned(&union, &value);
        for reader in [&one, &other].map(mask) {
            assert_eq!(pruned(&reader, &kept), pruned(&reader, &value), "{one} {other} {value}");
            let of_three = pruned(&of_three, &value);
            assert_eq!(
                pruned(&reader, &of_three),
                pruned(&reader, &value),
                "{third}: {one} {value}"
            );
        }
        smaller += usize::from(kept != value);
    }
    assert!(smaller > ROUNDS / 20, "{smaller} unions left something out");
}

#[test]
fn mask_that_contains_another_keeps_what_it_keeps_for_random_masks() {
    let mut rng = Rng::with_seed(13);
    let mut contained = 0;
    for _ in 0..ROUNDS {
        let (mut one, other) = (random_document(&mut rng, 3), random_document(&mut rng, 3));
        // Elements of the other one, next to others.
        for (element, below) in other.as_object().unwrap() {
            if rng.bool() || rng.bool() {
                one[element] = below.clone();
            }
        }
        let Ok(own) = FieldMask::read(one.as_object().unwrap()) else { continue };
        let other = mask(&other);
        if own.is_whole() || !own.contains(&other) {
            continue;
        }
        contained += 1;
        let value = random_object(&mut rng);
        let kept = pruned(&own, &value);
        assert_eq!(pruned(&other, &kept), pruned(&other, &value), "{own:?} {other:?} {value}");
    }
    assert!(contained > ROUNDS / 100, "{contained} masks contained another");
}

/// The text of an object is one of JSON, too.
fn random_object(rng: &mut Rng) -> Value {
    let members = NAMES.map(|name| (name.to_owned(), random_value(rng, 4)));
    Value::Object(members.into_iter().collect())
}

#[test]
fn value_that_one_mask_expects_to_be_a_list_and_the_other_an_object_is_whole_in_a_union() {
    let of_object = mask(&json!({"f:spec": {"f:containers": {"f:image": {}}, "f:a": {}}}));
    let of_list = mask(&json!({"f:spec": {"f:containers": {"*": {"f:name": {}}}, "f:b": {}}}));
    let union = of_object.union(&of_list);
    let whole = json!({"f:spec": {"f:containers": {}, "f:a": {}, "f:b": {}}});
    assert_eq!(union, mask(&whole));
    let narrow = mask(&json!({"f:spec": {"f:containers": {"*": {"f:name": {}}, "f:image": {}}}}));
    let of_object = mask(&json!({"f:spec": {"f:containers": {"f:image": {}}}}));
    assert!(!narrow.contains(&of_object), "it leaves out items of a list, and the other none");
}

#[test]
fn wildcard_of_another_mask_counts_for_the_members_that_only_the_first_names() {
    let named = mask(&json!({"f:spec": {"*": {"f:x": {}}, "f:a": {"k:{\"n\":1}": {}}}}));
    let wild = mask(&json!({"f:spec": {"*": {"f:x": {}}}}));
    let list = json!({"spec": {"a": [{"n": 2}]}});
    assert_ne!(pruned(&wild, &pruned(&named, &list)), pruned(&wild, &list));
    assert!(!named.contains(&wild));
}
