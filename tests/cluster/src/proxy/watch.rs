//! The body of a watch on its way: held back, silenced or cut.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::sync::{mpsc, watch};

/// What goes to the client: frames, or an error that cuts the connection.
pub(super) type Frames = mpsc::Receiver<Result<Frame<Bytes>, Cut>>;

/// The connection is cut on purpose.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cut by the test's proxy")
    }
}

impl std::error::Error for Cut {}

/// Resources whose events are held back.
pub(super) type Held = BTreeSet<String>;

/// One open watch, as the proxy keeps it.
#[derive(Debug)]
pub(super) struct OpenWatch {
    pub(super) resource: String,
    /// Events held back now.
    pub(super) waiting: AtomicUsize,
    /// Whether it passes nothing on any more.
    stalled: watch::Sender<bool>,
    /// Whether its connection is to be cut.
    cut: watch::Sender<bool>,
    closed: AtomicBool,
}

impl OpenWatch {
    pub(super) fn new(resource: &str) -> Arc<Self> {
        Arc::new(Self {
            resource: resource.to_owned(),
            waiting: AtomicUsize::new(0),
            stalled: watch::Sender::new(false),
            cut: watch::Sender::new(false),
            closed: AtomicBool::new(false),
        })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(super) fn stall(&self) {
        self.stalled.send_replace(true);
    }

    pub(super) fn cut(&self) {
        self.cut.send_replace(true);
    }
}

/// Carries the events of `upstream` to the frames that are returned, until either side
/// ends. Events pass whole, one line each.
pub(super) fn carry(upstream: Body, open: Arc<OpenWatch>, held: watch::Receiver<Held>) -> Frames {
    let (sender, receiver) = mpsc::channel(64);
    tokio::spawn(async move {
        let mut cut = open.cut.subscribe();
        let cut_on_purpose = tokio::select! {
            () = pump(upstream, &open, held, &sender) => false,
            result = cut.wait_for(|cut| *cut) => result.is_ok(),
            () = sender.closed() => false,
        };
        if cut_on_purpose {
            // Fails only if the client is gone already.
            let _ = sender.send(Err(Cut)).await;
        }
        open.waiting.store(0, Ordering::SeqCst);
        open.closed.store(true, Ordering::SeqCst);
    });
    receiver
}

async fn pump(
    mut upstream: Body,
    open: &OpenWatch,
    mut held: watch::Receiver<Held>,
    sender: &mpsc::Sender<Result<Frame<Bytes>, Cut>>,
) {
    let mut stalled = open.stalled.subscribe();
    let mut unfinished = BytesMut::new();
    let mut lines: Vec<Bytes> = Vec::new();
    let mut ended = false;
    loop {
        let holds = held.borrow_and_update().contains(&open.resource);
        let silent = *stalled.borrow_and_update();
        if !holds && !silent {
            for line in lines.drain(..) {
                if sender.send(Ok(Frame::data(line))).await.is_err() {
                    return;
                }
            }
            if ended {
                return;
            }
        }
        open.waiting.store(lines.len(), Ordering::SeqCst);
        tokio::select! {
            frame = upstream.frame(), if !ended => match frame {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        unfinished.extend_from_slice(&data);
                        while let Some(end) = unfinished.iter().position(|byte| *byte == b'\n') {
                            lines.push(unfinished.split_to(end + 1).freeze());
                        }
                    }
                }
                Some(Err(_)) => {
                    // The server cut it: so do we.
                    let _ = sender.send(Err(Cut)).await;
                    return;
                }
                None => ended = true,
            },
            changed = held.changed() => if changed.is_err() { return },
            changed = stalled.changed() => if changed.is_err() { return },
        }
    }
}
