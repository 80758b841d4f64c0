//! Reading one object.

use crate::api::http::accept::View;
use crate::api::request::Response;
use crate::api::request_context::{Outcome, RequestContext};
use crate::api::table;
use crate::api::table::Include;
use crate::api::verbs::list_options::{too_large, version};
use crate::state::cluster::Cluster;
use crate::types::object::partial;
use crate::types::status_error::StatusError;

/// `get`.
pub(crate) fn get(cluster: &mut Cluster, context: &RequestContext<'_>) -> Outcome {
    let (wanted, present) =
        (version(context.query).map_err(StatusError::unforeseen)?, cluster.store.version());
    if wanted > present {
        return Err(too_large(wanted, present));
    }
    let Some(stored) = cluster.store.get(context.kind_key(), context.key()) else {
        return Err(StatusError::not_found(context.named(&context.target.name)));
    };
    let text = Cluster::text(&context.kind, &stored.text);
    Ok(match context.view() {
        View::Table(version) => {
            let include = Include::parse(context.query.get("includeObject"));
            let objects = [serde_json::from_slice(&text).unwrap_or_default()];
            let now = cluster.now();
            Response::json(200, &table::of(version, &context.kind, &objects, None, include, now))
        }
        View::Metadata(version) => Response::json(200, &partial(&stored.object().whole(), version)),
        View::Plain | View::Aggregated | View::MetadataList(_) => Response::bytes(200, text),
    })
}
