//! One run of the guest.

use innkeeper_sdk::prelude::*;
use innkeeper_sdk::read;

use crate::bug::Bug;
use crate::shop::Shop;

/// The key of the password in its Secret.
const PASSWORD_KEY: &str = "password";

/// What one run works with.
pub(crate) struct Run<'a> {
    pub(crate) bug: Bug,
    pub(crate) context: &'a Context<'a>,
    pub(crate) observed: &'a Observed<'a, Shop>,
}

impl Run<'_> {
    /// Whether the guest has a bug.
    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    /// Whether the guest has a bug that shows only with a rare combination of properties, and the
    /// Shop has these.
    pub(crate) fn has_rare(&self, bug: Bug) -> bool {
        let spec = &self.shop().spec;
        let is_stuck = spec.is_stuck && spec.replicas >= 3;
        let is_rare = match bug {
            Bug::TrapOnRareShop => spec.migrate && spec.storage == 2 && is_stuck,
            Bug::LabelOfRareShop => spec.pages.len() > 1 && spec.storage == 1 && is_stuck,
            Bug::CountRunsOfRareShop => spec.password && spec.storage > 0 && is_stuck,
            Bug::UidInRareJob => {
                spec.migrate && spec.password && spec.storage > 0 && spec.replicas >= 3
            }
            _ => false,
        };
        self.has(bug) && spec.paused && spec.files && is_rare
    }

    /// The primary.
    pub(crate) fn shop(&self) -> &Shop {
        self.observed.primary()
    }

    /// The name of the primary with a suffix.
    pub(crate) fn name(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.observed.name())
    }

    /// The password of the Shop; `None` if there is none.
    pub(crate) fn password(&self) -> Option<String> {
        let name = self.name("-password");
        let secret = self.context.get::<read::Secret>(self.observed.namespace(), &name).ok()?;
        secret.object.data.get(PASSWORD_KEY).cloned()
    }
}
