//! What a client reads: the objects of lists and gets, and the events of watches, as they reach it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use serde_json::Value;

use crate::body::{AnswerBody, BoxError};

/// The most objects of a list that a line names.
const NAMED_MAX: usize = 10;

/// The largest answer that is described, and the longest event, in bytes.
const TEXT_BYTES_MAX: usize = 8 << 20;

/// The body of an answer, of which each whole event, or the whole document, is described.
pub(crate) struct ReadBody {
    inner: AnswerBody,
    is_watch: bool,
    text: BytesMut,
    describe: Box<dyn Fn(String) + Send>,
}

impl ReadBody {
    /// `describe` gets a line for each event of a watch, or one for another answer.
    pub(crate) fn new(
        inner: AnswerBody,
        is_watch: bool,
        describe: impl Fn(String) + Send + 'static,
    ) -> Self {
        Self { inner, is_watch, text: BytesMut::new(), describe: Box::new(describe) }
    }

    fn take(&mut self, data: &Bytes) {
        if self.text.len() + data.len() > TEXT_BYTES_MAX {
            self.text.clear();
            return;
        }
        self.text.extend_from_slice(data);
        while self.is_watch
            && let Some(end) = self.text.iter().position(|byte| *byte == b'\n')
        {
            let event = self.text.split_to(end + 1);
            if let Some(line) =
                serde_json::from_slice(&event).ok().and_then(|event| event_line(&event))
            {
                (self.describe)(line);
            }
        }
    }

    fn end(&mut self) {
        if !self.is_watch
            && let Ok(document) = serde_json::from_slice(&self.text)
        {
            (self.describe)(document_line(&document));
        }
        self.text.clear();
    }
}

/// An event; `None` for a bookmark, which has no object.
fn event_line(event: &Value) -> Option<String> {
    let object = &event["object"];
    match event["type"].as_str()? {
        "BOOKMARK" => None,
        "ERROR" => Some(format!("the watch ends with {}", object["code"])),
        type_ => Some(format!("{type_} {}", object_line(object))),
    }
}

fn document_line(document: &Value) -> String {
    let Some(items) = document["items"].as_array() else { return object_line(document) };
    let kind = document["kind"].as_str().unwrap_or("list");
    let version = document["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let names: Vec<String> = items.iter().take(NAMED_MAX).map(named).collect();
    let names = if names.is_empty() { "empty".to_owned() } else { names.join(" ") };
    let more = match items.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{kind} of resourceVersion {version}: {names}{more}")
}

fn object_line(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or("object");
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let deleted =
        if object["metadata"]["deletionTimestamp"].is_null() { "" } else { ", terminating" };
    format!("{kind} {}, resourceVersion {version}{deleted}", named(object))
}

fn named(object: &Value) -> String {
    let text = |name| object["metadata"][name].as_str().unwrap_or_default();
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}

impl http_body::Body for ReadBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.take(data);
                }
            }
            Some(Err(_)) => {}
            None => self.end(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        // The end of a document is described when it is polled.
        false
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http_body_util::{BodyExt as _, Full};
    use serde_json::json;

    use super::*;

    async fn lines(text: String, is_watch: bool) -> Vec<String> {
        let found: Arc<Mutex<Vec<String>>> = Arc::default();
        let all = found.clone();
        let inner = Full::from(text.clone()).map_err(|never| match never {}).boxed_unsync();
        let body = ReadBody::new(inner, is_watch, move |line| all.lock().unwrap().push(line));
        assert_eq!(body.collect().await.unwrap().to_bytes(), text, "nothing is changed");
        std::mem::take(&mut *found.lock().unwrap())
    }

    fn map(name: &str) -> Value {
        json!({"kind": "ConfigMap", "data": {"a": "secret"},
            "metadata": {"namespace": "n", "name": name, "resourceVersion": "7"}})
    }

    #[tokio::test]
    async fn each_event_of_a_watch_has_a_line_without_values() {
        let mut deleted = map("b");
        deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        let events = [
            json!({"type": "ADDED", "object": map("a")}),
            json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}),
            json!({"type": "MODIFIED", "object": deleted}),
            json!({"type": "ERROR", "object": {"code": 410}}),
        ];
        let lines_of: Vec<String> = events.iter().map(Value::to_string).collect();
        let text = lines_of.join("\n") + "\n";
        let expected = [
            "ADDED ConfigMap n/a, resourceVersion 7",
            "MODIFIED ConfigMap n/b, resourceVersion 7, terminating",
            "the watch ends with 410",
        ];
        assert_eq!(lines(text, true).await, expected);
    }

    #[tokio::test]
    async fn list_names_its_first_objects() {
        let list = |items: Vec<Value>| {
            json!({"kind": "ConfigMapList", "metadata": {"resourceVersion": "9"}, "items": items})
                .to_string()
        };
        assert_eq!(
            lines(list(vec![map("a"), map("b")]), false).await,
            ["ConfigMapList of resourceVersion 9: n/a n/b"]
        );
        assert_eq!(
            lines(list(Vec::new()), false).await,
            ["ConfigMapList of resourceVersion 9: empty"]
        );
        let many = lines(list(vec![map("a"); 12]), false).await;
        assert!(many[0].ends_with(" and 2 more"), "{many:?}");
        assert_eq!(lines(map("a").to_string(), false).await, ["ConfigMap n/a, resourceVersion 7"]);
    }
}
