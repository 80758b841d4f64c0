//! The webhooks that answer in process.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// Answers an `AdmissionReview` by one, or not at all.
pub(crate) type Handler = Box<dyn FnMut(&Value) -> Option<Value> + Send>;

/// Answers an `AdmissionReview` that is sent to this rest of a URL: path and query.
pub(crate) type PathHandler = Box<dyn FnMut(&str, &Value) -> WebhookReply + Send>;

/// What a webhook answers.
#[derive(Clone, Debug, PartialEq)]
pub enum WebhookReply {
    /// An `AdmissionReview` (`admission.k8s.io/v1`, JSON).
    Review(Value),
    /// An HTTP status that is no success, with the text of the body.
    Error {
        /// The HTTP status.
        code: u16,
        /// The body.
        body: String,
    },
    /// Nothing in time.
    Timeout,
}

/// The handlers of URLs.
#[derive(Default)]
pub(crate) struct WebhookHandlers {
    /// By URL.
    exact: BTreeMap<String, Handler>,
    /// By the beginning of URLs.
    below: BTreeMap<String, PathHandler>,
}

impl fmt::Debug for WebhookHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.exact.keys()).entries(self.below.keys()).finish()
    }
}

impl WebhookHandlers {
    /// Sets the handler of a URL.
    pub(crate) fn set(&mut self, url: &str, handler: Handler) {
        self.exact.insert(url.trim_end_matches('/').to_owned(), handler);
    }

    /// Sets the handler of all URLs below one.
    pub(crate) fn set_below(&mut self, prefix: &str, handler: PathHandler) {
        self.below.insert(prefix.trim_end_matches('/').to_owned(), handler);
    }

    /// Sends a review to a URL, whose request has this time; `None` if nobody is there.
    pub(crate) fn call(
        &mut self,
        url: &str,
        timeout_s: i64,
        review: &Value,
    ) -> Option<WebhookReply> {
        if let Some(handler) = self.exact.get_mut(url.trim_end_matches('/')) {
            return Some(handler(review).map_or(WebhookReply::Timeout, WebhookReply::Review));
        }
        // Of two prefixes of one URL the longer is the later one.
        self.below.iter_mut().rev().find_map(|(prefix, handler)| {
            let path = url.strip_prefix(&**prefix)?;
            let is_below = path.is_empty() || path.starts_with('/');
            is_below.then(|| handler(&format!("{path}?timeout={timeout_s}s"), review))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Answers with its name and the path.
    fn named(name: &'static str) -> PathHandler {
        Box::new(move |path, _| WebhookReply::Review(json!([name, path])))
    }

    #[test]
    fn exact_url_goes_before_the_longest_prefix() {
        let mut handlers = WebhookHandlers::default();
        handlers.set_below("https://a.test/", named("host"));
        handlers.set_below("https://a.test/deep", named("deep"));
        handlers.set("https://a.test/deep/one", Box::new(|_| Some(json!("exact"))));
        handlers.set("https://a.test/silent", Box::new(|_| None));
        let mut call = |url: &str| handlers.call(url, 5, &Value::Null);
        let review = |value: Value| Some(WebhookReply::Review(value));
        assert_eq!(call("https://a.test/deep/one"), review(json!("exact")));
        assert_eq!(call("https://a.test/deep/two"), review(json!(["deep", "/two?timeout=5s"])));
        assert_eq!(call("https://a.test/deep"), review(json!(["deep", "?timeout=5s"])));
        assert_eq!(call("https://a.test/deeper"), review(json!(["host", "/deeper?timeout=5s"])));
        assert_eq!(call("https://a.test/silent"), Some(WebhookReply::Timeout));
        assert_eq!(call("https://a.test.example/x"), None, "another host");
        assert_eq!(call("https://b.test/deep"), None);
    }
}
