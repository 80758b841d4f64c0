//! Reading one object.

use super::{Ask, Outcome};
use crate::cluster::Cluster;
use crate::request::Answer;
use crate::status_error::StatusError;
use crate::table;
use crate::watch::partial;

impl Cluster {
    /// `get`.
    pub(super) fn get(&mut self, ask: &Ask<'_>) -> Outcome {
        let Some(stored) = self.store.get(ask.kind_key(), ask.key()) else {
            return Err(StatusError::not_found(ask.named(&ask.target.name)));
        };
        let accept = &ask.request.accept;
        if accept.contains("as=Table") {
            let table = table::of(ask, &[stored.object()], None, self.now());
            return Ok(Answer::json(200, &table));
        }
        if accept.contains("as=PartialObjectMetadata") {
            return Ok(Answer::json(200, &partial(&stored.object())));
        }
        Ok(Answer::bytes(200, Self::text(&ask.kind, &stored.text)))
    }
}
