//! Tiny guests, loaded and called.

#![allow(clippy::unwrap_used, dead_code, unreachable_pub, reason = "each test uses some of these")]

use innkeeper_sandbox::{
    CallError, Engine, Guest, Host, Interruption, Level, Limits, LoadError, ReadError,
    ResourceKind, Run,
};
#[allow(unused_imports, reason = "each test uses some of these")]
pub use innkeeper_tiny_guests::*;

/// Loads and calls of a tiny guest.
pub trait Load {
    /// Loads the guest by epoch and with default limits.
    fn load(&self) -> Result<Guest, LoadError>;
    /// Loads the guest with these limits.
    fn load_with(&self, limits: &Limits) -> Result<Guest, LoadError>;
    /// Loads the guest with these limits and calls it once, without a cluster.
    fn run_with(&self, limits: &Limits) -> Result<Run, CallError>;
}

impl Load for Tiny {
    fn load(&self) -> Result<Guest, LoadError> {
        self.load_with(&Limits::default())
    }

    fn load_with(&self, limits: &Limits) -> Result<Guest, LoadError> {
        engine(Interruption::Epoch).load(&self.component(), limits)
    }

    fn run_with(&self, limits: &Limits) -> Result<Run, CallError> {
        self.load().unwrap().with_limits(*limits).reconcile("{}", &mut Cluster::default())
    }
}

/// An engine that compiles in this process.
pub fn engine(interruption: Interruption) -> Engine {
    Engine::builder()
        .interruption(interruption)
        .guests(4)
        .permits(2)
        .review_permits(2)
        .build()
        .unwrap()
}

/// A cluster that gives one answer to all reads and records them.
#[derive(Default)]
pub struct Cluster {
    pub answer: Option<Result<String, ReadError>>,
    pub asked: Vec<String>,
    /// The largest size of each answer, in bytes.
    pub rooms: Vec<usize>,
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
        room: usize,
    ) -> Result<String, ReadError> {
        self.rooms.push(room);
        self.answer(format!("get {} {} {namespace}/{name}", kind.api_version, kind.kind))
    }

    fn list(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        label_selector: &str,
        room: usize,
    ) -> Result<String, ReadError> {
        self.rooms.push(room);
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
