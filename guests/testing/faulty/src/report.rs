//! The status and the conditions of a Shop.

use innkeeper_sdk::prelude::*;
use innkeeper_sdk::{condition, event};

use crate::bug::Bug;
use crate::run::Run;
use crate::shop::ShopStatus;

/// The most replicas of a spec that the guest likes.
const REPLICAS_LIKED: u32 = 9;

/// How many writes a storm has.
const STORM: i64 = 60;

/// Seconds between two runs of a guest that writes the time: less than the check waits.
const AGAIN_SECONDS: u32 = 14;

impl Run<'_> {
    /// Whether the spec was, or is, one that the guest does not like.
    pub(crate) fn is_bad(&self) -> bool {
        let shop = self.shop();
        shop.spec.replicas > REPLICAS_LIKED || shop.status.note == "bad"
    }

    /// Adds status and conditions. Call it last.
    pub(crate) fn with_report(&self, mut desired: Desired) -> Desired {
        desired = desired.status(&self.status());
        if matches!(self.bug, Bug::TimeInData | Bug::TimeInStatus) {
            desired = desired.requeue_after(AGAIN_SECONDS);
        }
        let password = || format!("the password is {}", self.password().unwrap_or_default());
        match self.bug {
            Bug::PasswordInCondition => {
                let leak = condition::is_true("Checked", "Checked", password());
                desired = desired.condition(leak);
            }
            Bug::PasswordInEvent => desired = desired.event(event::normal("Checked", password())),
            _ => {}
        }
        if self.has(Bug::FlapsCondition) {
            let message = format!("checked in run {}", self.status().count);
            desired = desired.condition(condition::is_true("Checked", "Checked", message));
        }
        if matches!(self.bug, Bug::AlwaysReady | Bug::HidesRefusal) {
            return desired.condition(condition::ready("Running", "the Shop is running"));
        }
        desired.ready_condition(self.observed)
    }

    fn status(&self) -> ShopStatus {
        let shop = self.shop();
        let present = &shop.status;
        let has_failed = !self.observed.unapplied().is_empty();
        let mut status = ShopStatus {
            initialized: true,
            replicas: self.replicas(),
            is_applied: !has_failed,
            count: 0,
            note: String::new(),
        };
        match self.bug {
            Bug::StatusOnce if present.initialized => status.replicas = present.replicas,
            Bug::TimeInStatus => status.note = self.context.now().to_string(),
            Bug::AppendsToStatus => status.note = format!("{}.", present.note),
            // The condition changes with the count, and the count with each run.
            Bug::FlapsCondition => status.count = (present.count + 1) % 2,
            Bug::SkipsKnownGeneration => status.count = shop.metadata.generation,
            Bug::FailureSticks if has_failed || present.note == "failed" => {
                "failed".clone_into(&mut status.note);
            }
            Bug::RefusesAfterBadSpec if self.is_bad() => "bad".clone_into(&mut status.note),
            Bug::StormsAfterFailure if has_failed || present.count > 0 => {
                status.count = (present.count + 1) % STORM;
            }
            Bug::CountsLostPods => {
                status.count = present.count + i64::try_from(self.lost_pods()).unwrap_or(0);
            }
            Bug::NameByTime => status.note = self.settings_name(),
            Bug::PasswordInStatus => status.note = self.password().unwrap_or_default(),
            _ => {}
        }
        status
    }
}
