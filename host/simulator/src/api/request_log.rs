//! The log of requests and responses, which a test may ask for.

use crate::api::request::{Request, Response};
use crate::state::cluster::Cluster;

/// Writes a request to the log, if one is kept.
pub(crate) fn log_request(cluster: &mut Cluster, request: &Request) {
    if cluster.keeps_log() {
        cluster.note(format!(
            "{} {} {:?} {} {}",
            request.method,
            request.path,
            request.query,
            request.acting.as_ref().map_or(&request.user.name, |acting| &acting.name),
            String::from_utf8_lossy(&request.body)
        ));
    }
}

/// Writes an answer to the log, if one is kept.
pub(crate) fn log_response(cluster: &mut Cluster, answer: &Response) {
    if cluster.keeps_log() {
        let line = match answer {
            Response::Json { code, body, .. } | Response::Of { code, body, .. } => {
                format!("{code} {}", String::from_utf8_lossy(body))
            }
            // Long, and the same for all who ask.
            Response::Tagged { etag, .. } => format!("200 {etag}"),
            Response::Text { code, body } => format!("{code} {body}"),
            Response::Watch(_) => "200 watch".to_owned(),
        };
        cluster.note(line);
    }
}
