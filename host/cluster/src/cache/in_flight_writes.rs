//! Watch events that wait for the response to a write: [`InFlightWrites`].

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::ObjectKey;

use super::cache_id::CacheId;
use super::known_version::KnownVersion;
use super::watch_event::WatchEvent;

/// The writes in flight, by the object that they write.
#[derive(Default)]
pub(super) struct InFlightWrites(BTreeMap<Arc<Kind>, BTreeMap<ObjectKey, Flight>>);

/// The writes of one object.
#[derive(Default)]
struct Flight {
    writes: usize,
    /// What the caches knew of the object before the first of these writes.
    known: Vec<KnownVersion>,
    parked: Vec<ParkedEvent>,
}

/// An event that waits for the end of the writes of its object.
pub(super) struct ParkedEvent {
    pub(super) id: CacheId,
    pub(super) serial: u64,
    pub(super) event: WatchEvent,
}

impl InFlightWrites {
    /// Begins a write of an object, of which the caches know this.
    pub(super) fn begin(&mut self, kind: &Arc<Kind>, key: &ObjectKey, known: Vec<KnownVersion>) {
        let flights = self.0.entry(kind.clone()).or_default();
        let flight = flights.entry(key.clone()).or_default();
        if flight.writes == 0 {
            flight.known = known;
        }
        flight.writes += 1;
    }

    pub(super) fn is_in_flight(&self, kind: &Kind, key: &ObjectKey) -> bool {
        self.0.get(kind).is_some_and(|flights| flights.contains_key(key))
    }

    /// What the caches knew of an object before the writes of it that are in flight.
    pub(super) fn known(&self, kind: &Kind, key: &ObjectKey) -> &[KnownVersion] {
        let flight = self.0.get(kind).and_then(|flights| flights.get(key));
        flight.map_or(&[], |flight| &flight.known)
    }

    /// Ends one write of an object; after the last one, gives the events that waited for it.
    pub(super) fn end(&mut self, kind: &Arc<Kind>, key: &ObjectKey) -> Vec<ParkedEvent> {
        let Some(flights) = self.0.get_mut(kind) else { return Vec::new() };
        let Some(flight) = flights.get_mut(key) else { return Vec::new() };
        flight.writes -= 1;
        if flight.writes > 0 {
            return Vec::new();
        }
        let parked = flights.remove(key).map(|flight| flight.parked).unwrap_or_default();
        if flights.is_empty() {
            self.0.remove(kind);
        }
        parked
    }

    /// Drops the events of a cache that wait: a list that begins now is newer.
    pub(super) fn drop_parked(&mut self, id: &CacheId, serial: u64) {
        for flight in self.0.get_mut(&id.kind).into_iter().flat_map(BTreeMap::values_mut) {
            flight.parked.retain(|event| event.id != *id || event.serial != serial);
        }
    }

    /// Parks an event if a write of its object is in flight; otherwise gives it back.
    pub(super) fn park(
        &mut self,
        id: &CacheId,
        serial: u64,
        event: WatchEvent,
    ) -> Option<WatchEvent> {
        match self.0.get_mut(&id.kind).and_then(|flights| flights.get_mut(event.key())) {
            Some(flight) => {
                flight.parked.push(ParkedEvent { id: id.clone(), serial, event });
                None
            }
            None => Some(event),
        }
    }
}
