//! What a client sees of a watch: nothing new while its API server is frozen, and nothing of what
//! happens while the client is paused.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::{Body, Frame};
use serde::Deserialize;

use crate::body::{AnswerBody, BoxError};
use crate::sieve::resource_key::ResourceKey;
use crate::watch_body::EXPIRED;

/// The maximum length of an event in bytes.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a watch has to know of the pauses.
pub(crate) trait View: Clone + Send + 'static {
    /// The version at which the API server of the watch shows its kind, if it is frozen. Takes all
    /// changes into account that have happened.
    fn frozen(&self) -> Option<u64>;

    /// Whether the client is paused for an object; without a key, for any of the kind.
    fn is_held(&self, key: Option<&ResourceKey>) -> bool;

    /// Waits until a pause begins or ends.
    fn changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Opens a watch.
    fn open(&self, request: Request<Bytes>) -> Opening;
}

/// A watch that is being opened.
pub(crate) type Opening =
    Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, BoxError>> + Send>>;

/// A watch of a client.
pub(crate) struct ViewBody<V> {
    view: V,
    kind: String,
    /// The request, without a version where it has none.
    request: Request<Bytes>,
    source: Source,
    partial: BytesMut,
    /// The version of the last event that was delivered.
    version: Option<String>,
    /// Whether events were lost while the client was paused.
    missed: bool,
    is_over: bool,
    changed: Pin<Box<dyn Future<Output = ()> + Send>>,
}

enum Source {
    /// The API server is frozen.
    None,
    Opening(Opening),
    Open(AnswerBody),
    Ended,
}

/// The parts of an event that matter here.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "type")]
    type_: String,
    object: HeadObject,
}

#[derive(Deserialize)]
struct HeadObject {
    #[serde(default)]
    metadata: HeadMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeadMetadata {
    namespace: String,
    name: String,
    resource_version: String,
}

impl<V: View> ViewBody<V> {
    /// A watch of a kind. `open` is its stream; `None` if the API server is frozen for it.
    pub(crate) fn new(
        view: V,
        kind: &str,
        request: Request<Bytes>,
        open: Option<AnswerBody>,
    ) -> Self {
        let changed = view.changed();
        Self {
            view,
            kind: kind.to_owned(),
            request,
            source: open.map_or(Source::None, Source::Open),
            partial: BytesMut::new(),
            version: None,
            missed: false,
            is_over: false,
            changed,
        }
    }

    /// Takes the next line of the source, if there is one.
    fn take_line(&mut self) -> Option<Bytes> {
        let end = self.partial.iter().position(|byte| *byte == b'\n')?;
        Some(self.partial.split_to(end + 1).freeze())
    }

    /// Decides about an event: gives it, or nothing if the client does not see it.
    fn deliver(&mut self, line: Bytes) -> Option<Bytes> {
        let Ok(head) = serde_json::from_slice::<Head>(&line) else { return Some(line) };
        let HeadMetadata { namespace, name, resource_version } = head.object.metadata;
        if head.type_ == "ERROR" {
            return Some(line);
        }
        let frozen = self.view.frozen();
        let is_newer = |frozen: u64| resource_version.parse().is_ok_and(|own: u64| own > frozen);
        if frozen.is_some_and(is_newer) {
            // It comes again when the API server goes on.
            self.source = Source::None;
            self.partial.clear();
            return None;
        }
        let key = ResourceKey::new(&self.kind, &namespace, &name);
        if head.type_ != "BOOKMARK" && self.view.is_held(Some(&key)) {
            self.missed = true;
            return None;
        }
        if self.missed && self.view.is_held(None) {
            // A later version must not hide that events were lost.
            return None;
        }
        self.version = Some(resource_version);
        Some(line)
    }

    /// The request for what comes after the last event.
    fn next_request(&self) -> Result<Request<Bytes>, http::Error> {
        let Some(version) = &self.version else { return Ok(self.request.clone()) };
        let uri = self.request.uri();
        let query = uri.query().unwrap_or_default();
        let dropped = ["resourceVersion=", "resourceVersionMatch=", "sendInitialEvents="];
        let kept = query.split('&').filter(|pair| {
            !pair.is_empty() && !dropped.iter().any(|dropped| pair.starts_with(dropped))
        });
        let own = format!("resourceVersion={version}");
        let query = kept.chain([own.as_str()]).collect::<Vec<_>>().join("&");
        let mut request = self.request.clone();
        *request.uri_mut() = format!("{}?{query}", uri.path()).parse::<http::Uri>()?;
        Ok(request)
    }

    fn expire(&mut self) -> Bytes {
        self.is_over = true;
        self.source = Source::Ended;
        Bytes::from_static(EXPIRED.as_bytes())
    }
}

/// Nothing in it is pinned.
impl<V> Unpin for ViewBody<V> {}

impl<V: View> Body for ViewBody<V> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let own = self.get_mut();
        loop {
            if own.is_over {
                return Poll::Ready(None);
            }
            while own.changed.as_mut().poll(context).is_ready() {
                own.changed = own.view.changed();
            }
            if own.missed && !own.view.is_held(None) {
                let line = own.expire();
                return Poll::Ready(Some(Ok(Frame::data(line))));
            }
            while let Some(line) = own.take_line() {
                if let Some(line) = own.deliver(line) {
                    return Poll::Ready(Some(Ok(Frame::data(line))));
                }
            }
            // A frozen API server has nothing, and a client that missed events must list again.
            let waits = match &own.source {
                Source::None => own.view.frozen().is_some(),
                Source::Ended => own.missed,
                Source::Opening(_) | Source::Open(_) => false,
            };
            if waits {
                return Poll::Pending;
            }
            match &mut own.source {
                Source::None => {
                    let request = own.next_request()?;
                    own.source = Source::Opening(own.view.open(request));
                }
                Source::Opening(opening) => match opening.as_mut().poll(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(response) => {
                        let response = response?;
                        if !response.status().is_success() {
                            let line = own.expire();
                            return Poll::Ready(Some(Ok(Frame::data(line))));
                        }
                        own.source = Source::Open(response.into_body());
                    }
                },
                Source::Open(body) => match Pin::new(body).poll_frame(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(None) => own.source = Source::Ended,
                    Poll::Ready(Some(frame)) => {
                        if let Ok(data) = frame?.into_data() {
                            own.partial.extend_from_slice(&data);
                        }
                        if own.partial.len() > LINE_BYTES_MAX {
                            return Poll::Ready(Some(Err("an event is too long".into())));
                        }
                    }
                },
                Source::Ended => {
                    own.is_over = true;
                    return Poll::Ready(None);
                }
            }
        }
    }
}
