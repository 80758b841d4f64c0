use super::*;
use crate::source::{COMPONENT_BYTES_MAX, Digest};

/// A component that gzip does not make smaller: `bytes` pseudo-random bytes behind a header.
fn component(bytes: usize) -> Component {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let noise = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[7]
    });
    let bytes: Vec<u8> = b"\0asm\x0d\0\x01\0".iter().copied().chain(noise.take(bytes)).collect();
    Component { digest: Digest::of(&bytes), bytes: bytes.into() }
}

fn metadata() -> Map<String, Value> {
    let metadata = json!({"labels": {"whose": "web"}, "annotations": {"why": "a test"}});
    metadata.as_object().cloned().unwrap_or_default()
}

/// ConfigMaps by name, as a cluster has them.
type There = BTreeMap<String, Value>;

fn written(component: &Component) -> There {
    let bodies = config_maps("web-1", component, &metadata()).into_iter();
    bodies.map(|body| (body["metadata"]["name"].as_str().unwrap().to_owned(), body)).collect()
}

fn config_map(body: &Value) -> ConfigMap {
    serde_json::from_value(body.clone()).unwrap()
}

fn read(there: &There, key: Option<&str>) -> Result<Component, SourceError> {
    let mut reading = ChunkReader::begin("web-1", &config_map(&there["web-1"]), key)?;
    while let Some(part) = reading.wanted() {
        match there.get(&part) {
            Some(body) => reading.take(&config_map(body))?,
            None => return Err(reading.missing()),
        }
    }
    reading.component(COMPONENT_BYTES_MAX)
}

fn refused(there: &There, reason: &str, message: &str) {
    let error = read(there, None).unwrap_err();
    assert_eq!((error.reason(), error.to_string().as_str()), (reason, message));
}

#[test]
fn component_that_fits_into_one_config_map_is_written_as_one() {
    for bytes in [10, CONFIG_MAP_BYTES_MAX - 8] {
        let component = component(bytes);
        let there = written(&component);
        assert_eq!(there.len(), 1);
        let annotations = &there["web-1"]["metadata"]["annotations"];
        assert_eq!(annotations["why"], "a test");
        assert_eq!(annotations[DIGEST_ANNOTATION], format!("sha256:{}", component.digest));
        assert!(annotations.get(ANNOTATION).is_none());
        assert_eq!(read(&there, None).unwrap(), component);
    }
}

#[test]
fn larger_component_is_split_with_its_first_chunk_written_last_and_joined_when_read() {
    let component = component((2 << 20) + 12_345);
    let bodies = config_maps("web-1", &component, &metadata());
    let names: Vec<_> =
        bodies.iter().map(|body| body["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["web-1-chunk-3", "web-1-chunk-2", "web-1"]);
    for body in &bodies {
        assert_eq!(body["immutable"], true);
        assert_eq!(body["metadata"]["namespace"], NAMESPACE);
        assert_eq!(body["metadata"]["labels"]["whose"], "web");
        let piece = STANDARD.decode(body["binaryData"][SOURCE_KEY].as_str().unwrap()).unwrap();
        assert!(piece.len() <= CHUNK_BYTES_MAX, "{}", piece.len());
        assert!(piece.len() > CHUNK_BYTES_MAX / 2, "{}", piece.len());
        // Only the first part says how many there are.
        let is_first = body["metadata"]["name"] == "web-1";
        let parts = body["metadata"]["annotations"].get(ANNOTATION);
        assert_eq!(parts.and_then(Value::as_str), is_first.then_some("3"));
    }
    let there = written(&component);
    assert_eq!(read(&there, None).unwrap(), component);
    assert_eq!(read(&there, Some(SOURCE_KEY)).unwrap(), component);
}

#[test]
fn the_largest_component_can_be_split() {
    let bytes = vec![0; PACKED_BYTES_MAX];
    let pieces = split(&bytes);
    assert_eq!(pieces.len(), 37);
    assert!(pieces.len() <= CHUNKS_MAX);
    assert!(pieces.iter().all(|piece| piece.len() <= CHUNK_BYTES_MAX));
}

#[test]
fn read_names_the_chunk_that_is_missing_or_has_no_bytes() {
    let component = component(2 << 20);
    let mut there = written(&component);
    let part = there.remove("web-1-chunk-2").unwrap();
    refused(
        &there,
        "SourceNotFound",
        "ConfigMap innkeeper-modules/web-1 says that it has 3 chunks, and ConfigMap innkeeper-modules/web-1-chunk-2 does not exist: create it with its bytes under the key guest.wasm of binaryData, or correct the annotation innkeeper.dev/chunks",
    );

    let mut other = part.clone();
    other["binaryData"] = json!({"guest": "AAAA"});
    there.insert("web-1-chunk-2".to_owned(), other);
    refused(
        &there,
        "SourceNotFound",
        "ConfigMap innkeeper-modules/web-1-chunk-2, chunk 2 of web-1, has no key guest.wasm in binaryData; it has guest",
    );

    // A piece of something else does not go unnoticed.
    let mut other = part;
    other["binaryData"] = json!({SOURCE_KEY: "AAAA"});
    there.insert("web-1-chunk-2".to_owned(), other);
    assert_ne!(read(&there, None).map(|component| component.digest), Ok(component.digest));
}

#[test]
fn the_annotation_has_to_be_a_number_of_parts() {
    for value in ["0", "65", "-1", "three", "", " 2"] {
        let mut there = written(&component(2 << 20));
        there.get_mut("web-1").unwrap()["metadata"]["annotations"][ANNOTATION] = value.into();
        refused(
            &there,
            "SourceMalformed",
            &format!(
                "ConfigMap innkeeper-modules/web-1 has {value:?} in its annotation innkeeper.dev/chunks: it has to be the number of its chunks, 1 to 64"
            ),
        );
    }
}

#[test]
fn more_than_the_limit_is_not_even_fetched() {
    let piece = STANDARD.encode(vec![7; CONFIG_MAP_BYTES_MAX]);
    let body = json!({"metadata": {"annotations": {ANNOTATION: "64"}},
        "binaryData": {SOURCE_KEY: piece}});
    let body = config_map(&body);
    let mut reading = ChunkReader::begin("web-1", &body, None).unwrap();
    let error = loop {
        assert!(reading.wanted().is_some());
        if let Err(error) = reading.take(&body) {
            break error;
        }
    };
    assert_eq!(error.reason(), "SourceTooLarge");
    assert!(error.to_string().contains("ConfigMap innkeeper-modules/web-1 is larger"), "{error}");
    assert_eq!(reading.wanted().as_deref(), Some("web-1-chunk-34"));
}

#[test]
fn further_chunks_are_recognized_by_their_names() {
    assert_eq!((name("web", 1), name("web", 12)), ("web".to_owned(), "web-chunk-12".to_owned()));
    for (name, first) in [
        ("web-chunk-2", Some("web")),
        ("web-chunk-64", Some("web")),
        ("web-chunk-2-chunk-3", Some("web-chunk-2")),
        ("web", None),
        ("web-chunk-1", None),
        ("web-chunk-65", None),
        ("web-chunk-02", None),
        ("web-chunk-two", None),
        ("-chunk-2", None),
    ] {
        assert_eq!(first_of(name), first, "{name}");
    }
}

#[test]
fn config_maps_with_the_old_annotation_are_read() {
    let component = component(2 << 20);
    let old = |text: &str| text.replace(ANNOTATION, PARTS_ANNOTATION);
    let there = written(&component).into_iter().map(|(name, body)| {
        let body = serde_json::from_str(&old(&body.to_string())).unwrap();
        (name.replace(INFIX, PART_INFIX), body)
    });
    let there: BTreeMap<String, Value> = there.collect();
    assert!(there.contains_key(&format!("web-1{PART_INFIX}3")));
    assert_eq!(read(&there, None).unwrap(), component);
    assert_eq!(first_of(&format!("web{PART_INFIX}2")), Some("web"));
}
