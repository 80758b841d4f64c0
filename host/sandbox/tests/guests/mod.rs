//! Tiny guests, one behaviour each: core modules as text, made into components with the
//! contract's own WIT.

#![allow(clippy::unwrap_used, dead_code, unreachable_pub, reason = "each test uses some of these")]

use std::fmt::Write as _;

use innkeeper_sandbox::{
    CallError, Engine, Guest, Host, Interruption, Level, Limits, LoadError, ReadError,
    ResourceKind, Run,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The contract.
pub const WIT: &str = include_str!("../../../../wit/guest.wit");

/// A manifest that declares what the tests read.
pub const MANIFEST: &str = r#"{"name":"tiny","primary":{"apiVersion":"example.com/v1","kind":"Tiny","plural":"tinies"},"reads":[{"apiVersion":"v1","kind":"ConfigMap","plural":"configmaps"}]}"#;

/// An empty `desired` document.
pub const NOTHING: &str = "{}";

/// A guest in the making.
pub struct Tiny {
    manifest: String,
    wit: String,
    version: &'static str,
    imports: &'static str,
    parts: String,
    describe: String,
    reconcile: String,
    outcome: (u8, String),
    data: String,
}

/// Where the texts lie in the guest's memory.
const DESCRIBE_RESULT: usize = 1024;
const RECONCILE_RESULT: usize = 1040;
const READ_RESULT: usize = 1056;
pub const SCRATCH: usize = 1100;
const MANIFEST_AT: usize = 2048;
const OUTCOME_AT: usize = 16 << 10;
const HEAP_AT: usize = 128 << 10;

impl Default for Tiny {
    fn default() -> Self {
        Self {
            manifest: MANIFEST.to_owned(),
            wit: WIT.to_owned(),
            version: "0.1.0",
            imports: "",
            parts: String::new(),
            describe: format!("(i32.const {DESCRIBE_RESULT})"),
            reconcile: format!("(i32.const {RECONCILE_RESULT})"),
            outcome: (0, NOTHING.to_owned()),
            data: String::new(),
        }
    }
}

impl Tiny {
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

    /// Imports, under `$get`, `$list`, `$now` and `$log`.
    pub fn importing(mut self, imports: &'static str) -> Self {
        self.imports = imports;
        self
    }

    /// As a core module, in wasm text.
    fn text(&self) -> String {
        let pair = |at: usize, len: usize| {
            let mut bytes = u32::try_from(at).unwrap().to_le_bytes().to_vec();
            bytes.extend(u32::try_from(len).unwrap().to_le_bytes());
            bytes
        };
        let mut outcome = vec![self.outcome.0, 0, 0, 0];
        outcome.extend(pair(OUTCOME_AT, self.outcome.1.len()));
        let interface = format!("innkeeper:guest/reconciler@{}", self.version);
        format!(
            r#"(module
                {imports}
                (memory $memory (export "memory") 4)
                (global $next (mut i32) (i32.const {HEAP_AT}))
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
                (func $describe (export "{interface}#describe") (result i32) {describe})
                (func $reconcile (export "{interface}#reconcile") (param $observed i32) (param $length i32) (result i32)
                    (local $i i32)
                    {reconcile})
                (data (i32.const {DESCRIBE_RESULT}) "{describe_result}")
                (data (i32.const {RECONCILE_RESULT}) "{reconcile_result}")
                (data (i32.const {MANIFEST_AT}) "{manifest}")
                (data (i32.const {OUTCOME_AT}) "{outcome}")
                {data})"#,
            imports = self.imports.replace("VERSION", self.version),
            parts = self.parts,
            describe = self.describe,
            reconcile = self.reconcile,
            describe_result = escaped(&pair(MANIFEST_AT, self.manifest.len())),
            reconcile_result = escaped(&outcome),
            manifest = escaped(self.manifest.as_bytes()),
            outcome = escaped(self.outcome.1.as_bytes()),
            data = self.data,
        )
    }

    /// As a component.
    pub fn component(&self) -> Vec<u8> {
        let mut module = wat::parse_str(self.text()).unwrap();
        let mut resolve = Resolve::default();
        let package = resolve.push_str("guest.wit", &self.wit).unwrap();
        let world = resolve.select_world(&[package], Some("reconciler-guest")).unwrap();
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)
            .unwrap();
        ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
    }

    /// Loaded, by epoch and with default limits.
    pub fn load(&self) -> Result<Guest, LoadError> {
        self.load_with(&Limits::default())
    }

    /// Loaded with these limits.
    pub fn load_with(&self, limits: &Limits) -> Result<Guest, LoadError> {
        engine(Interruption::Epoch).load(&self.component(), limits)
    }

    /// Loaded and called once, with these limits and nobody to ask.
    pub fn run_with(&self, limits: &Limits) -> Result<Run, CallError> {
        self.load().unwrap().with_limits(*limits).reconcile("{}", &mut Cluster::default())
    }
}

fn escaped(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "\\{byte:02x}").unwrap();
        text
    })
}

/// `cluster.get` of ConfigMap `cm` in namespace `ns`, as wasm text that leaves nothing; the
/// answer lies at `READ_RESULT`.
pub fn get() -> String {
    read("get")
}

/// `cluster.list` of ConfigMaps in namespace `ns` with the selector `cm`.
pub fn list() -> String {
    read("list")
}

fn read(function: &str) -> String {
    format!(
        "(call ${function} (i32.const {SCRATCH}) (i32.const 2) (i32.const {}) (i32.const 9) \
         (i32.const {}) (i32.const 2) (i32.const {}) (i32.const 2) (i32.const {READ_RESULT}))",
        SCRATCH + 2,
        SCRATCH + 11,
        SCRATCH + 13,
    )
}

/// What [`get`] and [`list`] need.
pub fn reader() -> Tiny {
    Tiny::default().importing(READS).data(SCRATCH, "v1ConfigMapnscm")
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

pub const READS: &str = r#"
    (import "innkeeper:guest/cluster@VERSION" "get"
        (func $get (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "innkeeper:guest/cluster@VERSION" "list"
        (func $list (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#;

pub const CLOCK: &str =
    r#"(import "innkeeper:guest/clock@VERSION" "now-ms" (func $now (result f64)))"#;

pub const LOG: &str =
    r#"(import "innkeeper:guest/log@VERSION" "write" (func $log (param i32 i32 i32)))"#;

/// An engine that compiles in this process.
pub fn engine(interruption: Interruption) -> Engine {
    Engine::builder().interruption(interruption).guests(4).permits(2).build().unwrap()
}

/// A cluster that answers everything alike and remembers what it was asked.
#[derive(Default)]
pub struct Cluster {
    pub answer: Option<Result<String, ReadError>>,
    pub asked: Vec<String>,
    pub lines: Vec<(Level, String)>,
    pub now_ms: u64,
}

impl Cluster {
    pub fn answering(answer: Result<&str, ReadError>) -> Self {
        Self { answer: Some(answer.map(ToOwned::to_owned)), ..Self::default() }
    }

    fn answer(&mut self, question: String) -> Result<String, ReadError> {
        self.asked.push(question);
        self.answer.clone().unwrap_or(Err(ReadError::NotFound))
    }
}

impl Host for Cluster {
    fn get(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        name: &str,
    ) -> Result<String, ReadError> {
        self.answer(format!("get {} {} {namespace}/{name}", kind.api_version, kind.kind))
    }

    fn list(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        label_selector: &str,
    ) -> Result<String, ReadError> {
        self.answer(format!("list {} {} {namespace}?{label_selector}", kind.api_version, kind.kind))
    }

    fn now_ms(&mut self) -> u64 {
        self.asked.push("now".to_owned());
        self.now_ms
    }

    fn log(&mut self, level: Level, message: &str) {
        self.lines.push((level, message.to_owned()));
    }
}
