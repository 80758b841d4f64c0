//! Shows a written object in the form that the client accepts.

use serde_json::Value;

use crate::api::http::accept::View;
use crate::api::request::Response;
use crate::api::request_context::RequestContext;
use crate::api::table;
use crate::api::table::Include;
use crate::state::cluster::Cluster;
use crate::state::store::text_of;
use crate::types::object::partial;

/// The response to a write, in the requested form. A `Status` and a list stay as they are.
pub(crate) fn shown(
    cluster: &Cluster,
    context: &RequestContext<'_>,
    response: Response,
) -> Response {
    let Response::Json { code, body, warnings } = response else { return response };
    let view = context.view();
    let object = || -> Option<Value> {
        let object: Value = serde_json::from_slice(&body).ok()?;
        (object["kind"] == context.kind.name.as_str()).then_some(object)
    };
    let shown = match view {
        View::Plain | View::Aggregated | View::MetadataList(_) => None,
        View::Metadata(version) => object().map(|object| partial(&object, version)),
        View::Table(version) => object().map(|object| {
            let include = Include::parse(context.query.get("includeObject"));
            table::of(version, &context.kind, &[object], None, include, cluster.now())
        }),
    };
    let body = shown.map_or(body, |shown| text_of(&shown));
    Response::Json { code, body, warnings }
}
