//! Tiny guests, one behaviour each: core modules as text, made into components with the
//! contract's own WIT, and policies of Kubewarden, which stay core modules. What no SDK would let a
//! guest do, these can.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]
#![allow(clippy::missing_panics_doc, reason = "a text that is no WebAssembly fails the test")]
#![allow(
    clippy::return_self_not_must_use,
    clippy::must_use_candidate,
    reason = "builders of tests"
)]

mod earlier_podroute;
pub mod kubewarden;
mod policy;
mod review_case;
mod wat_text;

use std::fmt::Write as _;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

pub use earlier_podroute::earlier_podroute;
pub use policy::{ALLOWED, POLICY_MANIFEST};

use crate::review_case::{Case, HEAP_LEAST};
use crate::wat_text::escaped;

/// The contract.
pub const WIT: &str = include_str!("../../../wit/guest.wit");

/// A manifest that declares what the tests read.
pub const MANIFEST: &str = r#"{"name":"tiny","primary":{"apiVersion":"example.com/v1","kind":"Tiny","plural":"tinies"},"reads":[{"apiVersion":"v1","kind":"ConfigMap","plural":"configmaps"}]}"#;

/// An empty `desired` document.
pub const NOTHING: &str = "{}";

/// A guest in the making.
#[derive(Clone, Debug)]
pub struct Tiny {
    manifest: String,
    wit: String,
    version: &'static str,
    imports: &'static str,
    parts: String,
    exports: Exports,
    describe: String,
    describe_policy: String,
    reconcile: String,
    outcome: (u8, String),
    review: String,
    cases: Vec<Case>,
    decision: (u8, String),
    data: String,
}

/// Which interfaces of the contract a guest exports.
#[derive(Clone, Copy, Debug)]
enum Exports {
    Reconciler,
    Policy,
    Both,
}

// Where the texts lie in the guest's memory.
const DESCRIBE_RESULT: usize = 1024;
const RECONCILE_RESULT: usize = 1040;
/// Where the answer of the last read is.
pub const READ_RESULT: usize = 1056;
const REVIEW_RESULT: usize = 1076;
/// Free for a test's own data, up to 2048.
pub const SCRATCH: usize = 1100;
/// Where a small manifest begins.
pub const MANIFEST_AT: usize = 2048;
/// Where the text of the outcome begins.
pub const OUTCOME_AT: usize = 16 << 10;
const PAGE: usize = 64 << 10;

/// What [`Tiny::timed`] replaces: as many digits as the time has in milliseconds.
pub const TIME: &str = "0000000000000";

/// What [`Tiny::echoing`] replaces.
pub const ECHO: &str = "@@@";
/// The member of the primary whose first bytes [`Tiny::echoing`] takes.
const ECHO_MEMBER: &str = "\"echo\":\"";
const ECHO_MEMBER_AT: usize = SCRATCH;
/// Where the texts of [`Tiny::when_observed`] lie.
const CONDITIONS_AT: usize = SCRATCH + 100;

impl Default for Tiny {
    fn default() -> Self {
        Self {
            manifest: MANIFEST.to_owned(),
            wit: WIT.to_owned(),
            version: "0.1.0",
            imports: "",
            parts: String::new(),
            describe: format!("(i32.const {DESCRIBE_RESULT})"),
            describe_policy: String::new(),
            reconcile: format!("(i32.const {RECONCILE_RESULT})"),
            outcome: (0, NOTHING.to_owned()),
            exports: Exports::Reconciler,
            review: format!("(i32.const {REVIEW_RESULT})"),
            cases: Vec::new(),
            decision: (0, ALLOWED.to_owned()),
            data: String::new(),
        }
    }
}

impl Tiny {
    /// Has one function whose every block may go to every other: small to send, and minutes to
    /// compile.
    pub fn bomb() -> Self {
        const BLOCKS: usize = 1_000;
        let targets: String = (0..BLOCKS).fold(String::new(), |mut text, block| {
            write!(text, " {block}").unwrap();
            text
        });
        let jump = format!(
            "block local.get 0 br_table{targets} end local.get 0 i32.const 1 i32.add local.set 0 "
        );
        Self::default().with(&format!(
            "(func (param i32) {}{}{})",
            "block ".repeat(BLOCKS),
            jump.repeat(BLOCKS),
            "end local.get 0 i32.const 3 i32.mul local.set 0 ".repeat(BLOCKS)
        ))
    }

    /// Gives another manifest.
    pub fn manifest(mut self, manifest: &str) -> Self {
        manifest.clone_into(&mut self.manifest);
        self
    }

    /// Is built against the contract as `change` makes it.
    pub fn wit(mut self, version: &'static str, change: impl FnOnce(String) -> String) -> Self {
        self.wit = change(self.wit).replace("@0.1.0;", &format!("@{version};"));
        self.version = version;
        self
    }

    /// Is built against a released version of the contract, of which this is the WIT.
    pub fn released(mut self, version: &'static str, wit: &str) -> Self {
        wit.clone_into(&mut self.wit);
        self.version = version;
        self
    }

    /// Ends with `complete`, `partial` or `failed` (0, 1, 2) and a text.
    pub fn outcome(mut self, case: u8, text: &str) -> Self {
        self.outcome = (case, text.to_owned());
        self
    }

    /// Does this (wasm text, leaving nothing on the stack) before `describe` answers.
    pub fn on_describe(mut self, code: &str) -> Self {
        self.describe = format!("{code} {}", self.describe);
        self
    }

    /// Does this before `reconcile` answers.
    pub fn on_reconcile(mut self, code: &str) -> Self {
        self.reconcile = format!("{code} {}", self.reconcile);
        self
    }

    /// Answers `reconcile` with the pointer that this leaves on the stack.
    pub fn answers(mut self, code: &str) -> Self {
        code.clone_into(&mut self.reconcile);
        self
    }

    /// Has further parts (functions, globals, tables, a start function).
    pub fn with(mut self, parts: &str) -> Self {
        self.parts.push_str(parts);
        self
    }

    /// Has data at an address.
    pub fn data(mut self, at: usize, text: &str) -> Self {
        write!(self.data, "(data (i32.const {at}) \"{}\")", escaped(text.as_bytes())).unwrap();
        self
    }

    /// Writes the time, in milliseconds, over the first [`TIME`] in the text of its outcome.
    pub fn timed(self) -> Self {
        let last = OUTCOME_AT + self.outcome.1.find(TIME).unwrap() + TIME.len() - 1;
        self.importing(CLOCK)
            .with(
                "(func $stamp (param $at i32)
                     (local $left i64)
                     (local.set $left (i64.trunc_f64_u (call $now)))
                     (loop $digit
                         (i32.store8 (local.get $at)
                             (i32.add (i32.const 48)
                                 (i32.wrap_i64 (i64.rem_u (local.get $left) (i64.const 10)))))
                         (local.set $at (i32.sub (local.get $at) (i32.const 1)))
                         (local.set $left (i64.div_u (local.get $left) (i64.const 10)))
                         (br_if $digit (i64.ne (local.get $left) (i64.const 0)))))",
            )
            .on_reconcile(&format!("(call $stamp (i32.const {last}))"))
    }

    /// Writes the first bytes of the member `echo`, a text in the primary, over each [`ECHO`] in
    /// the text of its outcome.
    pub fn echoing(self) -> Self {
        let mut copies = String::new();
        for (at, _) in self.outcome.1.match_indices(ECHO) {
            let (at, bytes) = (OUTCOME_AT + at, ECHO.len());
            write!(copies, "(memory.copy (i32.const {at}) (local.get $i) (i32.const {bytes}))")
                .unwrap();
        }
        let find = finds(ECHO_MEMBER_AT, ECHO_MEMBER);
        self.with(FIND)
            .data(ECHO_MEMBER_AT, ECHO_MEMBER)
            .on_reconcile(&format!("(local.set $i {find}) (if (local.get $i) (then {copies}))"))
    }

    /// Does this only if all of the texts are in what an [`echoing`](Self::echoing) guest observes.
    pub fn when_observed(mut self, texts: &[&str], code: &str) -> Self {
        let mut at = CONDITIONS_AT;
        let mut condition = "(i32.const 1)".to_owned();
        for text in texts {
            let found = finds(at, text);
            condition = format!("(i32.and {condition} (i32.ne {found} (i32.const 0)))");
            self = self.data(at, text);
            at += text.len();
        }
        self.on_reconcile(&format!("(if {condition} (then {code}))"))
    }

    /// Imports, under `$get`, `$list`, `$now` and `$log`.
    pub fn importing(mut self, imports: &'static str) -> Self {
        self.imports = imports;
        self
    }

    /// The exported functions of an interface, in wasm text; nothing if the guest does not export
    /// it.
    fn functions(&self) -> String {
        let mut functions = String::new();
        let review = format!("{} {}", review_case::decide(&self.cases), self.review);
        let has = |interface| match self.exports {
            Exports::Both => true,
            Exports::Reconciler => interface == "reconciler",
            Exports::Policy => interface == "policy",
        };
        for (interface, function, document, code, describe) in [
            ("reconciler", "reconcile", "observed", &self.reconcile, ""),
            ("policy", "review", "request", &review, &*self.describe_policy),
        ] {
            if !has(interface) {
                continue;
            }
            let interface = format!("innkeeper:guest/{interface}@{}", self.version);
            write!(
                functions,
                r#"(func (export "{interface}#describe") (result i32) {describe} (call $describe))
                (func ${function} (export "{interface}#{function}")
                    (param ${document} i32) (param $length i32) (result i32)
                    (local $i i32)
                    {code})"#
            )
            .unwrap();
        }
        functions
    }

    /// As a core module, in wasm text.
    fn text(&self) -> String {
        let pair = |at: usize, len: usize| {
            let mut bytes = u32::try_from(at).unwrap().to_le_bytes().to_vec();
            bytes.extend(u32::try_from(len).unwrap().to_le_bytes());
            bytes
        };
        let result = |(case, text): &(u8, String), at: usize| {
            let mut bytes = vec![*case, 0, 0, 0];
            bytes.extend(pair(at, text.len()));
            escaped(&bytes)
        };
        // Large texts lie one behind the other; a large manifest goes behind the outcomes.
        let decision_at = OUTCOME_AT + self.outcome.1.len();
        let behind = decision_at + self.decision.1.len();
        let (manifest_at, end) = if MANIFEST_AT + self.manifest.len() <= OUTCOME_AT {
            (MANIFEST_AT, behind)
        } else {
            (behind, behind + self.manifest.len())
        };
        let heap_at = end.max(HEAP_LEAST);
        let pages = heap_at.div_ceil(PAGE) + 2;
        format!(
            r#"(module
                {imports}
                (memory $memory (export "memory") {pages})
                (global $next (mut i32) (i32.const {heap_at}))
                (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                    (local $at i32)
                    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 15)) (i32.const -16)))
                    (global.set $next (i32.add (local.get $at) (local.get 3)))
                    (loop $more
                        (if (i32.gt_u (global.get $next) (i32.mul (memory.size) (i32.const 65536)))
                            (then
                                (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable))
                                (br $more))))
                    (local.get $at))
                {parts}
                {find}
                (func $describe (result i32) {describe})
                {functions}
                (data (i32.const {DESCRIBE_RESULT}) "{describe_result}")
                (data (i32.const {RECONCILE_RESULT}) "{reconcile_result}")
                (data (i32.const {REVIEW_RESULT}) "{review_result}")
                (data (i32.const {manifest_at}) "{manifest}")
                (data (i32.const {OUTCOME_AT}) "{outcome}")
                (data (i32.const {decision_at}) "{decision}")
                {cases}
                {data})"#,
            imports = self.imports.replace("VERSION", self.version),
            parts = self.parts,
            find = if self.cases.is_empty() || self.parts.contains(FIND) { "" } else { FIND },
            cases = review_case::data(&self.cases),
            describe = self.describe,
            functions = self.functions(),
            describe_result = escaped(&pair(manifest_at, self.manifest.len())),
            reconcile_result = result(&self.outcome, OUTCOME_AT),
            review_result = result(&self.decision, decision_at),
            manifest = escaped(self.manifest.as_bytes()),
            outcome = escaped(self.outcome.1.as_bytes()),
            decision = escaped(self.decision.1.as_bytes()),
            data = self.data,
        )
    }

    /// As a component.
    pub fn component(&self) -> Vec<u8> {
        let mut module = wat::parse_str(self.text()).unwrap();
        let mut resolve = Resolve::default();
        let package = resolve.push_str("guest.wit", &self.wit).unwrap();
        let world = match self.exports {
            Exports::Reconciler => "reconciler-guest",
            Exports::Policy => "policy-guest",
            Exports::Both => "reconciler-policy-guest",
        };
        let world = resolve.select_world(&[package], Some(world)).unwrap();
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
        ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
    }
}

/// Finds a text between two addresses: gives the address behind it, or 0.
const FIND: &str = "
    (func $find (param $at i32) (param $length i32) (param $text i32) (param $bytes i32) (result i32)
        (local $end i32) (local $i i32)
        (local.set $end (i32.add (local.get $at) (local.get $length)))
        (loop $next
            (if (i32.gt_u (i32.add (local.get $at) (local.get $bytes)) (local.get $end))
                (then (return (i32.const 0))))
            (local.set $i (i32.const 0))
            (block $differs
                (loop $same
                    (br_if $differs (i32.ne
                        (i32.load8_u (i32.add (local.get $at) (local.get $i)))
                        (i32.load8_u (i32.add (local.get $text) (local.get $i)))))
                    (local.set $i (i32.add (local.get $i) (i32.const 1)))
                    (br_if $same (i32.lt_u (local.get $i) (local.get $bytes))))
                (return (i32.add (local.get $at) (local.get $bytes))))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br $next))
        unreachable)";

/// The address behind a text, which lies at an address, in the observed document.
fn finds(at: usize, text: &str) -> String {
    let bytes = text.len();
    format!(
        "(call $find (local.get $observed) (local.get $length) (i32.const {at}) (i32.const {bytes}))"
    )
}

/// What a read names: the API version, the kind, the namespace, and the name or the selector.
pub type ReadArguments = [&'static str; 4];

/// The ConfigMap that [`get`] reads.
const CONFIG_MAP: ReadArguments = ["v1", "ConfigMap", "ns", "cm"];

/// `cluster.get` of ConfigMap `cm` in namespace `ns`, as wasm text that leaves nothing; the
/// answer lies at `READ_RESULT`.
pub fn get() -> String {
    read("get", CONFIG_MAP)
}

/// `cluster.list` of ConfigMaps in namespace `ns` with the selector `cm`.
pub fn list() -> String {
    read("list", CONFIG_MAP)
}

/// `cluster.get` or `cluster.list` with these arguments, as [`get`].
pub fn read(function: &str, arguments: ReadArguments) -> String {
    let mut at = SCRATCH;
    let texts: Vec<String> = arguments
        .iter()
        .map(|text| {
            let constants = format!("(i32.const {at}) (i32.const {})", text.len());
            at += text.len();
            constants
        })
        .collect();
    format!("(call ${function} {} (i32.const {READ_RESULT}))", texts.join(" "))
}

/// What [`get`] and [`list`] need.
pub fn reader() -> Tiny {
    reader_of(CONFIG_MAP)
}

/// What [`read`] needs with these arguments.
pub fn reader_of(arguments: ReadArguments) -> Tiny {
    Tiny::default().importing(READS).data(SCRATCH, &arguments.concat())
}

/// Answers `complete` with the text of the last read, if it succeeded.
pub fn read_as_outcome() -> String {
    format!(
        "(if (i32.load8_u (i32.const {READ_RESULT})) (then unreachable)) \
         (i32.store8 (i32.const {READ_RESULT}) (i32.const 0)) (i32.const {READ_RESULT})"
    )
}

/// The discriminant of the error of the last read, as `requeueAfterSeconds`.
pub fn read_error() -> String {
    format!("(i32.load8_u (i32.const {}))", READ_RESULT + 4)
}

/// Imports `$get` and `$list`.
pub const READS: &str = r#"
    (import "innkeeper:guest/cluster@VERSION" "get"
        (func $get (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "innkeeper:guest/cluster@VERSION" "list"
        (func $list (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#;

/// Imports `$now`.
pub const CLOCK: &str =
    r#"(import "innkeeper:guest/clock@VERSION" "now-ms" (func $now (result f64)))"#;

/// Imports `$log`.
pub const LOG: &str =
    r#"(import "innkeeper:guest/log@VERSION" "write" (func $log (param i32 i32 i32)))"#;
