//! The primaries of the active revision that no module would reconcile after a swap.

use std::collections::BTreeSet;
use std::sync::Arc;

use innkeeper_cluster::{ApiClient, View};
use innkeeper_contract::Kind;
use innkeeper_core::{Finalizer, Object, PrimarySelector};
use innkeeper_modules::driver::LostPrimaries;
use innkeeper_modules::rollout::{Abandoned, AbandonedBy};

use super::{READ_TIME, count};
use crate::modules::open_revision::{self, OpenRevision};
use crate::shared::Shared;

/// The primaries that a module reconciles before a swap.
pub struct ReconciledPrimaries {
    view: Arc<View>,
    kind: Arc<Kind>,
    selector: PrimarySelector,
    namespaces: BTreeSet<String>,
    finalizer: Finalizer,
}

impl ReconciledPrimaries {
    /// Those of a revision.
    pub fn of(revision: &OpenRevision) -> Self {
        Self {
            view: revision.view.clone(),
            kind: revision.primary_kind.clone(),
            selector: revision.selector.clone(),
            namespaces: revision.spec().namespaces.clone(),
            finalizer: revision.finalizer.clone(),
        }
    }

    /// Those of a revision of a module that is lost, in a view of their kind.
    pub fn of_lost(module: &str, lost: LostPrimaries, view: View) -> Self {
        Self {
            view: Arc::new(view),
            kind: Arc::new(lost.kind),
            selector: lost.selector,
            namespaces: lost.namespaces,
            finalizer: Finalizer::new(module, lost.finalizer.as_deref()),
        }
    }

    /// How many of them `leaves` says would be left; `None` if they cannot be read in time. A host
    /// that has just started has not read them yet.
    async fn count(
        &self,
        shared: &Shared,
        client: &ApiClient,
        leaves: impl Fn(&Object) -> bool,
    ) -> Option<u32> {
        let _ = shared.env.timeout(READ_TIME, self.view.settled()).await;
        match self.view.snapshot().unreadable(&self.kind) {
            None => {}
            // Their kind may be served in another version.
            Some(_) => return None,
        }
        let all = open_revision::primaries_in(&self.view, &self.kind, &self.namespaces);
        let is_left = |primary: &Object| {
            let scope = (&self.namespaces, &self.selector);
            open_revision::is_selected(client, &self.kind, scope, primary)
                // One that is being deleted waits for the guest as long as the finalizer is on it.
                && (!primary.is_terminating() || self.finalizer.is_on_object(primary))
                && leaves(primary)
        };
        Some(count(all.iter().filter(|primary| is_left(primary)).count()))
    }
}

/// The primaries that no module would reconcile after a swap: the candidate reconciles another
/// kind, or none, or selects fewer of the same kind. Another version of the same kind has the same
/// objects. `client` is that of the module.
pub async fn abandoned(
    shared: &Shared,
    client: &ApiClient,
    reconciled: Option<&ReconciledPrimaries>,
    candidate: Option<&OpenRevision>,
) -> Option<Abandoned> {
    let reconciled = reconciled?;
    let of_reconciled = name(&reconciled.kind);
    let of_candidate = candidate.map(|candidate| name(&candidate.primary_kind));
    let (by, primaries) = match (candidate, of_candidate) {
        (Some(candidate), Some(kind)) if kind == of_reconciled => {
            if candidate.selector == reconciled.selector {
                return None;
            }
            let left = reconciled.count(shared, client, |one| !candidate.selects(one)).await;
            (AbandonedBy::Selector, left)
        }
        (_, Some(kind)) => {
            (AbandonedBy::OtherKind(kind), reconciled.count(shared, client, |_| true).await)
        }
        (_, None) => (AbandonedBy::NoKind, reconciled.count(shared, client, |_| true).await),
    };
    (primaries != Some(0)).then_some(Abandoned { primaries, kind: of_reconciled, by })
}

/// A kind with its group, without its version.
fn name(kind: &Kind) -> String {
    match kind.group() {
        "" => kind.kind.clone(),
        group => format!("{} of {group}", kind.kind),
    }
}
