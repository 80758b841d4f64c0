//! Bodies of responses: a text, or a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::state::watch::{Feed, Next};

/// The body of a response.
#[derive(Debug)]
pub struct Body(Inner);

#[derive(Debug)]
enum Inner {
    Whole(Option<Bytes>),
    Watch(Feed),
}

impl Body {
    pub(crate) fn whole(bytes: Bytes) -> Self {
        Self(Inner::Whole(Some(bytes)))
    }

    pub(crate) fn watch(feed: Feed) -> Self {
        Self(Inner::Watch(feed))
    }

    /// The next data without waiting; `None` if there is none yet. For a caller that advances the
    /// simulator itself.
    pub fn try_next(&mut self) -> Option<Bytes> {
        match &mut self.0 {
            Inner::Whole(bytes) => bytes.take(),
            Inner::Watch(feed) => match feed.next(None) {
                Next::Line(line) => Some(line),
                Next::End | Next::Nothing => None,
            },
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Watch(feed) => match feed.next(Some(context.waker())) {
                Next::Line(line) => Poll::Ready(Some(Ok(Frame::data(line)))),
                Next::End => Poll::Ready(None),
                Next::Nothing => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Inner::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Inner::Watch(_) => SizeHint::default(),
        }
    }
}
