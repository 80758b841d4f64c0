//! Carries out a plan: chooses the fault of each request, and keeps a log.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::fault::Fault;
use crate::plan::FaultPlan;
use crate::request_info::RequestInfo;

/// How large all delayed requests may be together, in KiB, each at least one.
const DELAYED_KIB_MAX: usize = 64 * 1024;

/// What a client sent or read.
#[derive(Clone, Debug)]
pub enum LogEntry {
    /// A request that it sent.
    Request(RequestRecord),
    /// A line about what reached it of an answer: an event of a watch, or a document.
    Read(String),
}

impl LogEntry {
    /// The request, if the entry is one.
    pub fn request(&self) -> Option<&RequestRecord> {
        match self {
            Self::Request(request) => Some(request),
            Self::Read(_) => None,
        }
    }
}

/// A request that a client sent, and what happened to it.
#[derive(Clone, Debug)]
pub struct RequestRecord {
    /// What it asks for.
    pub info: RequestInfo,
    /// Its body.
    pub body: Bytes,
    /// Its number among the writes, from 1; `None` for others.
    pub write: Option<u32>,
    /// The fault, by its place in the plan.
    pub fault: Option<usize>,
    /// The HTTP status of the answer; `None` if none came.
    pub code: Option<u16>,
}

/// Injects faults into the requests of clients. Clones are the same one.
#[derive(Clone)]
pub struct FaultInjector<S> {
    server: S,
    shared: Arc<Mutex<State>>,
    /// The room for delayed requests, in KiB.
    delayed: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    plan: FaultPlan,
    /// How many requests each fault of the plan has selected.
    selected: Vec<u32>,
    /// Whether each fault of the plan has affected a request.
    is_used: Vec<bool>,
    writes: u32,
    log: Vec<LogEntry>,
    /// Whether the log also has what reaches the client.
    records_reads: bool,
    /// Where each fault that happens is reported, instead of the log.
    reports: Option<mpsc::Sender<String>>,
}

impl<S: Clone> FaultInjector<S> {
    /// An injector in front of a server, without faults.
    pub fn new(server: S) -> Self {
        let delayed = Arc::new(Semaphore::new(DELAYED_KIB_MAX));
        Self { server, shared: Arc::default(), delayed }
    }

    /// An injector with a plan that keeps no log of requests, so that it may run for long. It
    /// sends a line for each fault that happens; if the channel is full, it drops the line.
    pub fn reporting(server: S, plan: FaultPlan, reports: mpsc::Sender<String>) -> Self {
        let injector = Self::new(server);
        injector.set_plan(plan);
        injector.lock().reports = Some(reports);
        injector
    }

    /// Replaces the plan. Requests and writes are counted from here on.
    pub fn set_plan(&self, plan: FaultPlan) {
        let mut state = self.lock();
        state.selected = vec![0; plan.faults.len()];
        state.is_used = vec![false; plan.faults.len()];
        state.plan = plan;
        state.writes = 0;
    }

    /// Takes the log since the last call.
    pub fn take_log(&self) -> Vec<LogEntry> {
        std::mem::take(&mut self.lock().log)
    }

    /// How many writes there were since the plan was set.
    pub fn writes(&self) -> u32 {
        self.lock().writes
    }

    /// The faults of the plan that have affected no request, by their place.
    pub fn unused(&self) -> Vec<usize> {
        let state = self.lock();
        let unused = state.is_used.iter().enumerate().filter(|(_, is_used)| !**is_used);
        unused.map(|(index, _)| index).collect()
    }

    /// The faults of [`Self::unused`], as a person reads them.
    pub(crate) fn unused_lines(&self) -> Vec<String> {
        let state = self.lock();
        let faults = state.plan.faults.iter().zip(&state.is_used);
        faults.filter(|(_, is_used)| !**is_used).map(|(fault, _)| fault.to_string()).collect()
    }

    pub(crate) fn server(&self) -> S {
        self.server.clone()
    }

    /// Chooses the fault of a request by the plan, and records both. Returns the fault and the
    /// index of the log entry.
    pub(crate) fn choose_and_record(
        &self,
        info: RequestInfo,
        body: Bytes,
    ) -> (Option<Fault>, usize) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut fault = None;
        for (index, planned) in state.plan.faults.iter().enumerate() {
            if !planned.selects(&info) {
                continue;
            }
            state.selected[index] = state.selected[index].saturating_add(1);
            if fault.is_none() && planned.affects(state.selected[index]) {
                fault = Some(index);
                state.is_used[index] = true;
            }
        }
        let write = info.is_write().then(|| {
            state.writes = state.writes.saturating_add(1);
            state.writes
        });
        let happens = fault.map(|index| state.plan.faults[index].fault.clone());
        match (&state.reports, &happens) {
            (Some(reports), Some(fault)) => {
                // A full channel has enough lines for a person.
                let _ = reports.try_send(format!("{info}: {fault}"));
            }
            (Some(_), None) => {}
            (None, _) => {
                let record = RequestRecord { info, body, write, fault, code: None };
                state.log.push(LogEntry::Request(record));
            }
        }
        (happens, state.log.len().saturating_sub(1))
    }

    /// Records also what reaches the client, from here on.
    pub fn record_reads(&self) {
        self.lock().records_reads = true;
    }

    pub(crate) fn records_reads(&self) -> bool {
        self.lock().records_reads
    }

    /// Records what has reached the client of the answer to a request.
    pub(crate) fn record_read(&self, read: String) {
        self.lock().log.push(LogEntry::Read(read));
    }

    /// Takes room for a delayed request with a body of this size; `None` if there is none.
    pub(crate) fn delay(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes / 1024 + 1).ok()?;
        self.delayed.clone().try_acquire_many_owned(kib).ok()
    }

    /// Records the answer to a request by the index of its entry, unless the log was taken
    /// meanwhile.
    pub(crate) fn record_answer(&self, index: usize, info: &RequestInfo, code: u16) {
        let mut state = self.lock();
        if let Some(LogEntry::Request(request)) = state.log.get_mut(index)
            && request.info == *info
        {
            request.code = Some(code);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
