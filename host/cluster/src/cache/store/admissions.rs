//! Which identities may read a cache, and whose client fills it.

use super::{CacheStore, Closed};
use crate::cache::cache_id::CacheId;
use crate::cache::kind_cache::Phase;
use crate::cache::member::{Admission, Member, MemberState};
use crate::settings::GRANT_VALID;
use crate::{ApiClient, ApiError, Denial, Identity};

impl CacheStore {
    /// Elects the holder of a cache, and gives its client; `None` if no member may read the kind.
    ///
    /// # Errors
    /// [`Closed`].
    pub(in crate::cache) fn elect(
        &self,
        id: &CacheId,
        serial: u64,
    ) -> Result<Option<ApiClient>, Closed> {
        self.update_cache(id, serial, |cache, notices| {
            let may = |member: &Member| !matches!(member.admission, Admission::Denied(_));
            let chosen = cache
                .holder
                .as_ref()
                .filter(|identity| cache.members.get(*identity).is_some_and(may))
                .or_else(|| cache.first_member(|admission| *admission == Admission::Admitted))
                .or_else(|| cache.first_member(|admission| *admission == Admission::Pending))
                .cloned();
            if chosen != cache.holder
                && let Some(identity) = &chosen
            {
                tracing::debug!(cache = %id, %identity, "watch taken over by another identity");
            }
            cache.holder = chosen;
            let member = cache.holder.as_ref().and_then(|identity| cache.members.get(identity));
            let client = member.map(|member| member.client.clone());
            let is_known = matches!(cache.phase, Phase::NotServed | Phase::Mismatched(_));
            if client.is_none() && !is_known {
                // Without a watch the objects are old: members read them after the next list.
                cache.phase = Phase::Syncing;
                cache.notice_states(id, notices);
            }
            client
        })
        .ok_or(Closed)
    }

    /// Whether the client of this identity fills the cache.
    pub(in crate::cache) fn is_holder(
        &self,
        id: &CacheId,
        serial: u64,
        identity: &Identity,
    ) -> bool {
        let inner = self.lock();
        inner.cache(id, serial).is_some_and(|cache| cache.holder.as_ref() == Some(identity))
    }

    /// The state of a member.
    ///
    /// # Errors
    /// [`Closed`], also if the member has left.
    pub(in crate::cache) fn member_state(
        &self,
        id: &CacheId,
        serial: u64,
        identity: &Identity,
    ) -> Result<MemberState, Closed> {
        let inner = self.lock();
        let cache = inner.cache(id, serial).ok_or(Closed)?;
        let member = cache.members.get(identity).ok_or(Closed)?;
        Ok(match &member.admission {
            Admission::Denied(_) => MemberState::Denied,
            Admission::Unproven(_) => MemberState::Pending,
            _ if cache.holder.as_ref() == Some(identity) => MemberState::Holder,
            Admission::Pending => MemberState::Pending,
            Admission::Admitted => MemberState::Admitted,
        })
    }

    /// Admits a member, or denies it: a review or the holder's watch has shown whether it may read.
    pub(in crate::cache) fn set_admission(
        &self,
        id: &CacheId,
        serial: u64,
        identity: &Identity,
        denial: Option<Denial>,
    ) {
        let now = self.env.instant();
        self.update_cache(id, serial, |cache, notices| {
            let Some(member) = cache.members.get_mut(identity) else { return };
            if let Some(denial) = denial {
                if !matches!(member.admission, Admission::Denied(_)) {
                    tracing::info!(cache = %id, %denial, "watch forbidden");
                }
                member.admission = Admission::Denied(denial);
                member.notify.notify_one();
                if cache.holder.as_ref() == Some(identity) {
                    cache.holder = None;
                    cache.notify.notify_one();
                }
            } else {
                member.admission = Admission::Admitted;
                member.proven = now;
                if cache.holder.is_none() {
                    cache.notify.notify_one();
                }
            }
            cache.notice_states(id, notices);
        });
    }

    /// Takes the failure of a review. An admitted member stays admitted for [`GRANT_VALID`] after
    /// the server last showed that it may read.
    pub(in crate::cache) fn review_failed(
        &self,
        id: &CacheId,
        serial: u64,
        identity: &Identity,
        error: &ApiError,
    ) {
        let now = self.env.instant();
        self.update_cache(id, serial, |cache, notices| {
            let Some(member) = cache.members.get_mut(identity) else { return };
            if member.admission == Admission::Admitted
                && now.duration_since(member.proven) >= GRANT_VALID
            {
                let minutes = GRANT_VALID.as_secs() / 60;
                let message = format!(
                    "the right of {identity} to read it is not known: the API server has answered no access review for {minutes} minutes ({error}); reads go on after its next answer"
                );
                tracing::warn!(cache = %id, "cache not readable: {message}");
                member.admission = Admission::Unproven(message);
                cache.notice_states(id, notices);
            }
        });
    }
}
