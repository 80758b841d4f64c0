//! Reading one object.

use super::list_options::{too_large, version};
use super::{Ask, Outcome};
use crate::cluster::Cluster;
use crate::http::accept::View;
use crate::request::Answer;
use crate::status_error::StatusError;
use crate::table;
use crate::table::Include;
use crate::watch::partial;

impl Cluster {
    /// `get`.
    pub(super) fn get(&mut self, ask: &Ask<'_>) -> Outcome {
        let (wanted, present) =
            (version(ask.query).map_err(StatusError::unforeseen)?, self.store.version());
        if wanted > present {
            return Err(too_large(wanted, present));
        }
        let Some(stored) = self.store.get(ask.kind_key(), ask.key()) else {
            return Err(StatusError::not_found(ask.named(&ask.target.name)));
        };
        let text = Self::text(&ask.kind, &stored.text);
        Ok(match ask.view() {
            View::Table => {
                let include = Include::parse(ask.query.get("includeObject"));
                let objects = [serde_json::from_slice(&text).unwrap_or_default()];
                Answer::json(200, &table::of(&ask.kind, &objects, None, include, self.now()))
            }
            View::Metadata => Answer::json(200, &partial(&stored.object().whole())),
            View::Plain | View::Aggregated => Answer::bytes(200, text),
        })
    }
}
