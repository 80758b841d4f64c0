//! The webhooks that answer in process.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// Answers an `AdmissionReview` by one, or not at all.
pub(crate) type Handler = Box<dyn FnMut(&Value) -> Option<Value> + Send>;

/// The handler of each URL.
#[derive(Default)]
pub(crate) struct WebhookHandlers(BTreeMap<String, Handler>);

impl fmt::Debug for WebhookHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl WebhookHandlers {
    /// Sets the handler of a URL.
    pub(crate) fn set(&mut self, url: &str, handler: Handler) {
        self.0.insert(url.trim_end_matches('/').to_owned(), handler);
    }

    /// Calls the handler of a URL.
    pub(crate) fn call(&mut self, url: &str, review: &Value) -> CallOutcome {
        match self.0.get_mut(url.trim_end_matches('/')).map(|handler| handler(review)) {
            Some(Some(answer)) => CallOutcome::Response(answer),
            Some(None) => CallOutcome::Timeout,
            None => CallOutcome::Unreachable,
        }
    }
}

/// How a call of a webhook ended.
pub(crate) enum CallOutcome {
    Response(Value),
    Timeout,
    Unreachable,
}
