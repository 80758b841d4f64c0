//! A guest of the repository, with its samples.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use innkeeper_check::{Budget, Law, ScenarioRunner, Subject};
use innkeeper_contract::Manifest;
use innkeeper_lab::Guests;
use innkeeper_sandbox::{Engine, Limits};
use serde::Deserialize as _;
use serde_json::{Value, json};

/// The seed of the tests.
pub(crate) const SEED: u64 = 1;

fn guests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests")
}

/// The documents of a YAML file below the folder of the guests.
pub(crate) fn documents(file: &str) -> Vec<Value> {
    let path = guests_folder().join(file);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let documents = serde_yaml_ng::Deserializer::from_str(&text);
    documents.map(|document| Value::deserialize(document).unwrap()).collect()
}

/// A guest with parameters, and objects of which its primaries are the samples.
pub(crate) fn subject(guest: &str, parameters: &Value, objects: Vec<Value>) -> Subject {
    let component = guests_folder().join(format!("target/components/{guest}.wasm"));
    let bytes = std::fs::read(&component).unwrap_or_else(|error| {
        panic!("{}: {error}; `cargo xtask guests {guest}` builds it", component.display())
    });
    let manifest = manifest(guest, &bytes);
    let groups = manifest.definitions().filter_map(|one| one.pointer("/spec/group").cloned());
    // Without an account of its own it acts as the host.
    let mut module = json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "metadata": {"name": guest},
        "spec": {"source": {"file": component.canonicalize().unwrap()},
            "allowedCRDGroups": groups.collect::<Vec<_>>()},
    });
    if !parameters.is_null() {
        module["spec"]["parameters"] = parameters.clone();
    }
    let mut subject = Subject {
        name: guest.to_owned(),
        manifest,
        module,
        earlier_module: None,
        preexisting: Vec::new(),
        samples: Vec::new(),
        history: Vec::new(),
    };
    let (samples, preexisting) = objects.into_iter().partition(|object| subject.is_primary(object));
    subject.samples = samples;
    subject.preexisting = preexisting;
    subject
}

/// The manifest of a guest. Its component is compiled once for all tests of this program.
fn manifest(guest: &str, component: &[u8]) -> Manifest {
    static KNOWN: Mutex<BTreeMap<String, Manifest>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap();
    if let Some(manifest) = known.get(guest) {
        return manifest.clone();
    }
    let engine = Engine::builder().guests(1).permits(2).review_permits(2).build().unwrap();
    let manifest = engine.load(component, &Limits::default()).unwrap().manifest().clone();
    known.insert(guest.to_owned(), manifest.clone());
    manifest
}

/// A guest of `guests/laws.yaml`, which `cargo xtask soak` reads too.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListedGuest {
    /// Its name.
    pub(crate) guest: String,
    samples: Vec<String>,
    #[serde(default)]
    skip: Vec<String>,
    #[serde(default)]
    history: Vec<String>,
}

impl ListedGuest {
    /// All listed guests.
    pub(crate) fn all() -> Vec<Self> {
        let path = guests_folder().join("laws.yaml");
        serde_yaml_ng::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    /// The guest with its samples.
    pub(crate) fn subject(&self) -> Subject {
        let objects = self.samples.iter().flat_map(|file| documents(file)).collect();
        Subject { history: self.history.clone(), ..subject(&self.guest, &Value::Null, objects) }
    }

    /// The laws that the guest does not break by design.
    pub(crate) fn laws(&self) -> Vec<Law> {
        let skipped: Vec<Law> = self.skip.iter().map(|name| Law::named(name).unwrap()).collect();
        Law::ALL.into_iter().filter(|law| !skipped.contains(law)).collect()
    }
}

/// The seed in `INNKEEPER_TEST_SEED`, or [`SEED`].
pub(crate) fn seed() -> u64 {
    std::env::var("INNKEEPER_TEST_SEED").map_or(SEED, |seed| seed.parse().unwrap())
}

/// A runner with compiled code that other tests of this program share.
pub(crate) fn runner(guests: &Guests, subject: Subject) -> ScenarioRunner {
    ScenarioRunner::new(guests.clone(), subject)
}

/// As many cases of each of these laws, without direct evaluation and a limit of time.
pub(crate) fn budget(laws: &[Law], cases_max: usize) -> Budget {
    Budget {
        seed: SEED,
        laws: laws.to_vec(),
        time: Duration::from_hours(1),
        cases_max,
        primaries_max: 0,
        shrink_time: Duration::ZERO,
    }
}
