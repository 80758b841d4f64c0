//! Reading one object.

use crate::api::http::accept::View;
use crate::api::request::Answer;
use crate::api::request_context::{Ask, Outcome};
use crate::api::table;
use crate::api::table::Include;
use crate::api::verbs::list_options::{too_large, version};
use crate::state::cluster::Cluster;
use crate::types::object::partial;
use crate::types::status_error::StatusError;

/// `get`.
pub(crate) fn get(cluster: &mut Cluster, ask: &Ask<'_>) -> Outcome {
    let (wanted, present) =
        (version(ask.query).map_err(StatusError::unforeseen)?, cluster.store.version());
    if wanted > present {
        return Err(too_large(wanted, present));
    }
    let Some(stored) = cluster.store.get(ask.kind_key(), ask.key()) else {
        return Err(StatusError::not_found(ask.named(&ask.target.name)));
    };
    let text = Cluster::text(&ask.kind, &stored.text);
    Ok(match ask.view() {
        View::Table => {
            let include = Include::parse(ask.query.get("includeObject"));
            let objects = [serde_json::from_slice(&text).unwrap_or_default()];
            Answer::json(200, &table::of(&ask.kind, &objects, None, include, cluster.now()))
        }
        View::Metadata => Answer::json(200, &partial(&stored.object().whole())),
        View::Plain | View::Aggregated => Answer::bytes(200, text),
    })
}
