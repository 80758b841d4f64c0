//! The memory for bodies, of which each address gets a part.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::limits::ServerLimits;

/// The memory for the bodies of all running requests. One address gets a part of it only.
pub(super) struct BodyBudget {
    limits: ServerLimits,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    total: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

impl BodyBudget {
    pub(super) fn new(limits: ServerLimits) -> Self {
        Self { limits, used: Mutex::default() }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part of the budget that one body uses: empty at first.
    pub(super) fn part(&self, address: IpAddr) -> BudgetPart<'_> {
        BudgetPart { budget: self, address, bytes: 0 }
    }

    fn has_room(&self, used: &Used, address: IpAddr, bytes: usize) -> bool {
        let of_address = used.by_address.get(&address).copied().unwrap_or_default();
        used.total.saturating_add(bytes) <= self.limits.all_bodies_bytes
            && of_address.saturating_add(bytes) <= self.limits.all_bodies_bytes_per_address
    }
}

/// The bytes that one body uses. Dropping the part returns them to the budget.
pub(super) struct BudgetPart<'a> {
    budget: &'a BodyBudget,
    address: IpAddr,
    bytes: usize,
}

impl BudgetPart<'_> {
    /// Whether this many more bytes have room now.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.budget.has_room(&self.budget.used(), self.address, bytes)
    }

    /// Takes more bytes if there is room. Returns whether there was.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let mut used = self.budget.used();
        if !self.budget.has_room(&used, self.address, bytes) {
            return false;
        }
        used.total += bytes;
        *used.by_address.entry(self.address).or_default() += bytes;
        self.bytes += bytes;
        true
    }
}

impl Drop for BudgetPart<'_> {
    fn drop(&mut self) {
        let mut used = self.budget.used();
        used.total -= self.bytes;
        if let Some(of_address) = used.by_address.get_mut(&self.address) {
            *of_address -= self.bytes;
            if *of_address == 0 {
                used.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_is_shared_by_addresses_and_given_back() {
        let limits = ServerLimits {
            all_bodies_bytes: 100,
            all_bodies_bytes_per_address: 60,
            ..ServerLimits::default()
        };
        let budget = BodyBudget::new(limits);
        let [one, two] = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
        let mut first = budget.part(one);
        assert!(first.take(50) && first.take(10) && !first.take(1));
        assert!(!budget.part(one).has_room(1), "the address has its part");
        let mut second = budget.part(two);
        assert!(second.take(40) && !second.has_room(1) && !second.take(usize::MAX));
        drop(first);
        assert_eq!(budget.used().total, 40);
        assert!(second.take(20));
        drop(second);
        assert_eq!(budget.used().total, 0);
        assert!(budget.used().by_address.is_empty());
    }
}
