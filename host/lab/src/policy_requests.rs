//! Carries the admission requests of the simulated API server to the policies of the operator.

use innkeeper_admission::{InProcessAnswer, answer_in_process};
use innkeeper_operator::ReplicaPolicies;
use innkeeper_operator::policies::PolicyReviewer;
use innkeeper_simulator::{Simulator, WebhookReply};
use serde_json::Value;

/// Where the simulated API server reaches the policies.
pub(crate) const URL: &str = "https://innkeeper.lab";

/// Answers all requests to [`URL`] with the policies of an operator, which runs guests on the
/// loop's own thread.
pub(crate) fn answer(simulator: &Simulator, policies: &ReplicaPolicies) {
    let reviewer = PolicyReviewer::new(policies.clone());
    let env = policies.env().clone();
    simulator.webhooks_below(URL, move |path, review| {
        let body = review.to_string();
        let now = env.instant().into_std();
        answer_in_process(&reviewer, path, body.as_bytes(), now)
            .map_or(WebhookReply::Timeout, reply)
    });
}

fn reply(answer: InProcessAnswer) -> WebhookReply {
    let InProcessAnswer { status: code, body } = answer;
    match serde_json::from_str::<Value>(&body) {
        Ok(review) if code == 200 => WebhookReply::Review(review),
        _ => WebhookReply::Error { code, body },
    }
}
