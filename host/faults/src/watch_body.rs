//! The stream of a watch, with events that come late or not at all.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::body::{AnswerBody, BoxError};
use crate::fault::WatchFault;

/// The event by which a server ends a watch whose version it no longer has.
const EXPIRED: &str = concat!(
    r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"#,
    r#""status":"Failure","message":"too old resource version: injected fault","#,
    r#""reason":"Expired","code":410}}"#,
    "\n"
);

/// A watch with a fault.
pub(crate) struct WatchBody {
    inner: AnswerBody,
    fault: WatchFault,
    begun: Instant,
    /// The beginning of a line.
    partial: BytesMut,
    /// The events that have come and are not delivered.
    waiting: VecDeque<(Instant, Bytes)>,
    /// How many events were delivered, or lost.
    passed: u32,
    /// The server has ended the watch.
    is_ended: bool,
    /// The client was given the end.
    is_over: bool,
    timer: Pin<Box<Sleep>>,
}

/// What comes next.
enum Next {
    Event(Bytes),
    End,
    /// Nothing until this time, or until the next event.
    Wait(Option<Instant>),
}

impl WatchBody {
    pub(crate) fn new(inner: AnswerBody, fault: WatchFault) -> Self {
        let begun = Instant::now();
        Self {
            inner,
            fault,
            begun,
            partial: BytesMut::new(),
            waiting: VecDeque::new(),
            passed: 0,
            is_ended: false,
            is_over: false,
            timer: Box::pin(sleep_until(begun)),
        }
    }

    /// Takes everything that the server has sent.
    fn receive(&mut self, context: &mut Context<'_>) -> Result<(), BoxError> {
        use http_body::Body as _;

        while !self.is_ended {
            match Pin::new(&mut self.inner).poll_frame(context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(None) => self.is_ended = true,
                Poll::Ready(Some(frame)) => {
                    if let Ok(data) = frame?.into_data() {
                        self.partial.extend_from_slice(&data);
                    }
                }
            }
            while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
                let line = self.partial.split_to(end + 1).freeze();
                self.waiting.push_back((Instant::now(), line));
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Next {
        let now = Instant::now();
        let after = |from: Instant, milliseconds: u64| from + Duration::from_millis(milliseconds);
        match self.fault {
            WatchFault::Lag { events, milliseconds } => {
                let Some((came, _)) = self.waiting.front() else { return self.end_or_wait() };
                let due = after(*came, milliseconds);
                let is_behind = self.waiting.len() <= events as usize && !self.is_ended;
                if is_behind && now < due { Next::Wait(Some(due)) } else { self.deliver() }
            }
            WatchFault::Freeze { milliseconds } => {
                let due = after(self.begun, milliseconds);
                if now < due { Next::Wait(Some(due)) } else { self.deliver() }
            }
            WatchFault::Close { after_events } if self.passed >= after_events => Next::End,
            WatchFault::Expire { after_events } if self.passed >= after_events => self.expire(),
            WatchFault::Close { .. } | WatchFault::Expire { .. } => self.deliver(),
            WatchFault::Gap { events, milliseconds } => {
                self.passed += u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
                self.waiting.clear();
                let due = after(self.begun, milliseconds);
                let is_over = self.passed >= events || now >= due || self.is_ended;
                if is_over { self.expire() } else { Next::Wait(Some(due)) }
            }
        }
    }

    fn deliver(&mut self) -> Next {
        match self.waiting.pop_front() {
            Some((_, event)) => {
                self.passed += 1;
                Next::Event(event)
            }
            None => self.end_or_wait(),
        }
    }

    fn end_or_wait(&self) -> Next {
        if self.is_ended { Next::End } else { Next::Wait(None) }
    }

    fn expire(&mut self) -> Next {
        self.is_over = true;
        Next::Event(Bytes::from_static(EXPIRED.as_bytes()))
    }
}

impl http_body::Body for WatchBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if self.is_over {
                return Poll::Ready(None);
            }
            if let Err(error) = self.receive(context) {
                return Poll::Ready(Some(Err(error)));
            }
            match self.next() {
                Next::Event(event) => return Poll::Ready(Some(Ok(Frame::data(event)))),
                Next::End => {
                    self.is_over = true;
                    return Poll::Ready(None);
                }
                Next::Wait(None) => return Poll::Pending,
                Next::Wait(Some(due)) => {
                    self.timer.as_mut().reset(due);
                    ready!(self.timer.as_mut().poll(context));
                }
            }
        }
    }
}
