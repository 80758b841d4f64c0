//! A guest whose outcome stands in the spec of its primary, so that a test changes what the guest
//! desires by a change of the primary.

use innkeeper_tiny_guests::{CLOCK, READ_RESULT, ReadArguments, Tiny, read, reader_of};
use serde_json::{Value, json};

/// The group of the primaries.
pub(crate) const GROUP: &str = "test.example.dev";

/// Where the outcome is that the guest gives.
const OUTCOME: usize = 1_200;
/// Where texts that the guest searches for and documents that it gives begin.
const TEXTS: usize = 32 << 10;

/// The members of a primary's spec that hold a document, each with the case of the outcome.
const MEMBERS: [(&str, u8); 3] = [("failed", 2), ("partial", 1), ("complete", 0)];

/// Functions of the guest.
const FUNCTIONS: &str = r#"
    (; The address behind the first $needle in $text, or 0. ;)
    (func $find (param $text i32) (param $length i32) (param $needle i32) (param $size i32) (result i32)
        (local $i i32) (local $j i32)
        (loop $next
            (if (i32.gt_u (i32.add (local.get $i) (local.get $size)) (local.get $length))
                (then (return (i32.const 0))))
            (local.set $j (i32.const 0))
            (block $differs
                (loop $same
                    (if (i32.eq (local.get $j) (local.get $size))
                        (then (return (i32.add (i32.add (local.get $text) (local.get $i)) (local.get $size)))))
                    (br_if $differs (i32.ne
                        (i32.load8_u (i32.add (i32.add (local.get $text) (local.get $i)) (local.get $j)))
                        (i32.load8_u (i32.add (local.get $needle) (local.get $j)))))
                    (local.set $j (i32.add (local.get $j) (i32.const 1)))
                    (br $same)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $next))
        (unreachable))
    (; The length of the JSON object at $at. ;)
    (func $size (param $at i32) (result i32)
        (local $p i32) (local $depth i32) (local $quoted i32) (local $c i32)
        (local.set $p (local.get $at))
        (loop $next
            (local.set $c (i32.load8_u (local.get $p)))
            (local.set $p (i32.add (local.get $p) (i32.const 1)))
            (if (local.get $quoted)
                (then
                    (if (i32.eq (local.get $c) (i32.const 92))
                        (then (local.set $p (i32.add (local.get $p) (i32.const 1)))))
                    (if (i32.eq (local.get $c) (i32.const 34))
                        (then (local.set $quoted (i32.const 0))))
                    (br $next)))
            (if (i32.eq (local.get $c) (i32.const 34)) (then (local.set $quoted (i32.const 1))))
            (if (i32.eq (local.get $c) (i32.const 123))
                (then (local.set $depth (i32.add (local.get $depth) (i32.const 1)))))
            (if (i32.eq (local.get $c) (i32.const 125))
                (then
                    (local.set $depth (i32.sub (local.get $depth) (i32.const 1)))
                    (if (i32.eqz (local.get $depth))
                        (then (return (i32.sub (local.get $p) (local.get $at)))))))
            (br $next))
        (unreachable))
    (; The outcome of $case with a document. ;)
    (func $give (param $case i32) (param $at i32) (param $length i32) (result i32)
        (i32.store8 (i32.const OUTCOME) (local.get $case))
        (i32.store offset=4 (i32.const OUTCOME) (local.get $at))
        (i32.store offset=8 (i32.const OUTCOME) (local.get $length))
        (i32.const OUTCOME))
"#;

/// Which text a rule of a script searches.
#[derive(Clone, Copy)]
enum Place {
    Observed,
    Read,
}

/// A guest that follows a script. Of a primary it gives, in this order:
/// 1. the document of the first rule whose text it observes;
/// 2. of a primary that is being deleted, `spec.finalizing` as a `complete` outcome;
/// 3. a trap, if `spec.trap` is true;
/// 4. `spec.failed`, `spec.partial` or `spec.complete` as an outcome of that name;
/// 5. else an empty `complete` outcome.
#[derive(Clone)]
pub(crate) struct Script {
    manifest: Value,
    rules: Vec<(Place, String, Value)>,
    /// The function and the arguments of the read of each run.
    read: Option<(&'static str, ReadArguments)>,
    reads_clock: bool,
}

impl Script {
    /// A guest that owns ConfigMaps, and has no rules.
    pub(crate) fn new() -> Self {
        let kind = |api_version: &str, kind: &str, plural: &str| json!({"apiVersion": api_version, "kind": kind, "plural": plural, "scope": "Namespaced"});
        let manifest = json!({"name": "script", "version": "1.0.0",
            "primary": kind(&format!("{GROUP}/v1"), "Script", "scripts"),
            "owned": [{"kind": kind("v1", "ConfigMap", "configmaps")}]});
        Self { manifest, rules: Vec::new(), read: None, reads_clock: false }
    }

    /// With this member of its manifest.
    pub(crate) fn with(mut self, member: &str, value: Value) -> Self {
        self.manifest[member] = value;
        self
    }

    /// With this further owned kind, as in a manifest.
    pub(crate) fn owns(mut self, owned: Value) -> Self {
        self.manifest["owned"].as_array_mut().unwrap().push(owned);
        self
    }

    /// With a finalizer of the default name.
    pub(crate) fn finalizes(self) -> Self {
        self.with("finalizer", json!(""))
    }

    /// Reads the ConfigMap `cm` in each run.
    pub(crate) fn reads(self) -> Self {
        self.reads_with("get", ["v1", "ConfigMap", "ns", "cm"])
    }

    /// Calls `get` or `list` with these arguments in each run.
    pub(crate) fn reads_with(mut self, function: &'static str, arguments: ReadArguments) -> Self {
        self.read = Some((function, arguments));
        self
    }

    /// Reads the clock in each run, and no object.
    pub(crate) fn reads_clock(mut self) -> Self {
        assert!(self.read.is_none(), "a script reads objects or the clock");
        self.reads_clock = true;
        self
    }

    /// Gives this `complete` document if what it observes contains this text.
    pub(crate) fn when(mut self, observes: &str, desired: &Value) -> Self {
        self.rules.push((Place::Observed, observes.to_owned(), desired.clone()));
        self
    }

    /// Gives this `complete` document if what it reads contains this text.
    pub(crate) fn when_read(mut self, contains: &str, desired: &Value) -> Self {
        self.rules.push((Place::Read, contains.to_owned(), desired.clone()));
        self
    }

    /// The guest as a component.
    pub(crate) fn component(&self) -> Vec<u8> {
        let mut texts = Texts::default();
        let mut steps: Vec<String> = Vec::new();
        if let Some((function, arguments)) = self.read {
            steps.push(read(function, arguments));
        }
        if self.reads_clock {
            steps.push("(drop (call $now))".to_owned());
        }
        for (place, needle, desired) in &self.rules {
            let found = match place {
                Place::Observed => found_in_observed(&mut texts, needle),
                Place::Read => found_in_read(&mut texts, needle),
            };
            let (at, length) = texts.add(&desired.to_string());
            steps.push(format!(
                "(if {found} (then (return (call $give (i32.const 0) (i32.const {at}) (i32.const {length})))))"
            ));
        }
        let deleting = found_in_observed(&mut texts, "\"deleting\":true");
        let finalizing = give_member(&mut texts, "finalizing", 0);
        steps.push(format!("(if {deleting} (then {finalizing}))"));
        let trap = found_in_observed(&mut texts, "\"trap\":true");
        steps.push(format!("(if {trap} (then (unreachable)))"));
        for (name, case) in MEMBERS {
            steps.push(give_member(&mut texts, name, case));
        }
        let (at, length) = texts.add("{}");
        steps.push(format!("(call $give (i32.const 0) (i32.const {at}) (i32.const {length}))"));

        let tiny = match self.read {
            Some((_, arguments)) => reader_of(arguments),
            None if self.reads_clock => Tiny::default().importing(CLOCK),
            None => Tiny::default(),
        };
        let tiny = tiny
            .manifest(&self.manifest.to_string())
            .with(&FUNCTIONS.replace("OUTCOME", &OUTCOME.to_string()))
            .answers(&steps.concat());
        texts.all.iter().fold(tiny, |tiny, (at, text)| tiny.data(*at, text)).component()
    }
}

/// Whether the last read has an answer that contains this text.
fn found_in_read(texts: &mut Texts, needle: &str) -> String {
    let (at, length) = texts.add(needle);
    format!(
        "(if (result i32) (i32.load8_u (i32.const {READ_RESULT}))
            (then (i32.const 0))
            (else (call $find (i32.load offset=4 (i32.const {READ_RESULT}))
                (i32.load offset=8 (i32.const {READ_RESULT}))
                (i32.const {at}) (i32.const {length}))))"
    )
}

/// Gives the object that is the value of the first member of this name, if there is one.
fn give_member(texts: &mut Texts, name: &str, case: u8) -> String {
    let found = found_in_observed(texts, &format!("\"{name}\":{{"));
    format!(
        "(local.set $i {found})
         (if (local.get $i) (then
             (local.set $i (i32.sub (local.get $i) (i32.const 1)))
             (return (call $give (i32.const {case}) (local.get $i) (call $size (local.get $i))))))"
    )
}

/// Whether the observed document contains this text.
fn found_in_observed(texts: &mut Texts, needle: &str) -> String {
    let (at, length) = texts.add(needle);
    format!(
        "(call $find (local.get $observed) (local.get $length) (i32.const {at}) (i32.const {length}))"
    )
}

/// Texts one behind the other in the guest's memory.
#[derive(Default)]
struct Texts {
    all: Vec<(usize, String)>,
    length: usize,
}

impl Texts {
    /// Adds a text; gives its address and length.
    fn add(&mut self, text: &str) -> (usize, usize) {
        let at = TEXTS + self.length;
        self.length += text.len();
        self.all.push((at, text.to_owned()));
        (at, text.len())
    }
}
