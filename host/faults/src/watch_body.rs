//! The stream of a watch, with events that come late or not at all.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::body::{AnswerBody, BoxError};
use crate::fault::WatchFault;

/// The event by which a server ends a watch whose version it no longer has.
pub(crate) const EXPIRED: &str = concat!(
    r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"#,
    r#""status":"Failure","message":"too old resource version: injected fault","#,
    r#""reason":"Expired","code":410}}"#,
    "\n"
);

/// The maximum size in bytes of the events that wait, and of one event. A watch that exceeds it
/// ends with 410, so that the client lists again.
const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A watch with a fault.
pub(crate) struct WatchBody {
    inner: AnswerBody,
    fault: WatchFault,
    begun: Instant,
    /// The beginning of a line.
    partial: BytesMut,
    /// The events that have come and are not delivered.
    waiting: VecDeque<(Instant, Bytes)>,
    /// The last delivered events, which are to come again.
    delivered: VecDeque<Bytes>,
    /// The size of the events in both lists.
    waiting_bytes: usize,
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
            delivered: VecDeque::new(),
            waiting_bytes: 0,
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
                self.waiting_bytes += line.len();
                self.waiting.push_back((Instant::now(), line));
            }
            if self.is_overfull() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn is_overfull(&self) -> bool {
        self.waiting_bytes + self.partial.len() > WAITING_BYTES_MAX
    }

    fn next(&mut self) -> Next {
        if self.is_overfull() {
            return self.expire();
        }
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
            WatchFault::Repeat { events } => self.deliver_again(events),
            WatchFault::Bookmark {} => self.deliver_with_bookmark(),
            WatchFault::Gap { events, milliseconds } => {
                let lost = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
                self.passed = self.passed.saturating_add(lost);
                self.waiting.clear();
                self.waiting_bytes = 0;
                let due = after(self.begun, milliseconds);
                let is_over = self.passed >= events || now >= due || self.is_ended;
                if is_over { self.expire() } else { Next::Wait(Some(due)) }
            }
        }
    }

    /// The next event, or one of the last ones again.
    fn deliver_again(&mut self, after: u32) -> Next {
        if self.delivered.len() > after as usize
            && let Some(event) = self.delivered.pop_front()
        {
            self.waiting_bytes -= event.len();
            return Next::Event(event);
        }
        let next = self.deliver();
        if let Next::Event(event) = &next {
            self.waiting_bytes += event.len();
            self.delivered.push_back(event.clone());
        }
        next
    }

    /// The bookmark of the last event, or the next event.
    fn deliver_with_bookmark(&mut self) -> Next {
        if let Some(bookmark) = self.delivered.pop_front() {
            return Next::Event(bookmark);
        }
        let next = self.deliver();
        if let Next::Event(event) = &next {
            self.delivered.extend(bookmark_of(event));
        }
        next
    }

    fn deliver(&mut self) -> Next {
        match self.waiting.pop_front() {
            Some((_, event)) => {
                self.waiting_bytes -= event.len();
                self.passed = self.passed.saturating_add(1);
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
        // Nothing waits for a watch that has ended.
        (self.waiting, self.delivered) = (VecDeque::new(), VecDeque::new());
        self.waiting_bytes = 0;
        Next::Event(Bytes::from_static(EXPIRED.as_bytes()))
    }
}

/// A bookmark with the version of an event; `None` if the event is one, or an error.
fn bookmark_of(event: &Bytes) -> Option<Bytes> {
    let event: Value = serde_json::from_slice(event).ok()?;
    if !matches!(event["type"].as_str(), Some("ADDED" | "MODIFIED" | "DELETED")) {
        return None;
    }
    let object = &event["object"];
    let bookmark = json!({"type": "BOOKMARK", "object": {"kind": object["kind"],
        "apiVersion": object["apiVersion"],
        "metadata": {"resourceVersion": object["metadata"]["resourceVersion"]}}});
    Some(format!("{bookmark}\n").into())
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    async fn lines(fault: WatchFault, events: &[(&str, u32)]) -> Vec<String> {
        let line = |(type_, version): &(&str, u32)| {
            let object = json!({"kind": "ConfigMap", "apiVersion": "v1",
                "metadata": {"resourceVersion": version.to_string()}});
            json!({"type": type_, "object": object}).to_string() + "\n"
        };
        let text: String = events.iter().map(line).collect();
        let inner = Full::from(text).map_err(|never| match never {}).boxed_unsync();
        let body = WatchBody::new(inner, fault).collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        let short = |line: &str| {
            let event: Value = serde_json::from_str(line).unwrap();
            let version = event["object"]["metadata"]["resourceVersion"].as_str().unwrap();
            format!("{} {version}", event["type"].as_str().unwrap())
        };
        text.lines().map(short).collect()
    }

    const EVENTS: [(&str, u32); 3] = [("ADDED", 1), ("MODIFIED", 2), ("DELETED", 3)];

    #[tokio::test(start_paused = true)]
    async fn repeated_events_come_again_after_later_ones() {
        let at_once = lines(WatchFault::Repeat { events: 0 }, &EVENTS).await;
        let twice = ["ADDED 1", "ADDED 1", "MODIFIED 2", "MODIFIED 2", "DELETED 3", "DELETED 3"];
        assert_eq!(at_once, twice);
        let later = lines(WatchFault::Repeat { events: 1 }, &EVENTS).await;
        assert_eq!(later, ["ADDED 1", "MODIFIED 2", "ADDED 1", "DELETED 3", "MODIFIED 2"]);
    }

    #[tokio::test(start_paused = true)]
    async fn bookmark_follows_each_event() {
        let all = lines(WatchFault::Bookmark {}, &EVENTS).await;
        let expected =
            ["ADDED 1", "BOOKMARK 1", "MODIFIED 2", "BOOKMARK 2", "DELETED 3", "BOOKMARK 3"];
        assert_eq!(all, expected);
    }
}
