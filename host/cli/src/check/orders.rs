//! Asks policies in all orders about one object, and finds where the order or a second pass
//! matters.
//!
//! Orders share their common beginnings: for each set of policies that were asked, an object that
//! several orders make is followed once. So policies that do not disturb each other take a call for
//! each set and policy, and not one for each position in each order.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::documents::DocumentId;

/// What a policy made of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The object after the policy: the same one if the policy changed nothing.
    Made(DocumentId),
    /// The message of a denial.
    Denied(Arc<str>),
}

/// Asks policies, which are given by their index.
pub(super) trait Reviews {
    /// Why a review has no result.
    type Error;

    /// What a policy makes of an object.
    ///
    /// # Errors
    /// If the review has no result.
    fn step(&mut self, policy: usize, object: DocumentId) -> Result<Step, Self::Error>;

    /// The same at a later time.
    ///
    /// # Errors
    /// If the review has no result.
    fn later(&mut self, policy: usize, object: DocumentId) -> Result<Step, Self::Error>;

    /// The message with which a policy that changes nothing denies an object; none if it allows it.
    ///
    /// # Errors
    /// If the review has no result.
    fn denial(
        &mut self,
        policy: usize,
        object: DocumentId,
    ) -> Result<Option<Arc<str>>, Self::Error>;
}

/// The end of an order: the API server stops at the first denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    /// The object after all policies.
    Object(DocumentId),
    /// A policy denied the request.
    Denied,
}

/// What breaks the rules for policies of one set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// Two orders, in which two neighbours have changed places, end differently.
    OrderMatters {
        /// The two policies.
        policies: [usize; 2],
        /// The orders, with their ends.
        orders: [(Vec<usize>, End); 2],
    },
    /// A policy changes its own result.
    NotIdempotent {
        /// The policy.
        policy: usize,
        /// Its result, and what it makes of it; none if it denies it.
        results: (DocumentId, Option<DocumentId>),
    },
    /// After all policies, one of them changes the object again.
    ChangesAgain {
        /// The policy.
        policy: usize,
        /// The order of the first pass, and the object before it and after each policy.
        first_pass: (Vec<usize>, Vec<DocumentId>),
        /// What the policy makes of the result; none if it denies it.
        second: Option<DocumentId>,
    },
    /// A policy that changes nothing denies the result of one order and allows that of another.
    VerdictDiffers {
        /// The policy.
        policy: usize,
        /// The order whose result it allows.
        allowed: Vec<usize>,
        /// The order whose result it denies.
        denied: Vec<usize>,
        /// Its message.
        message: Arc<str>,
    },
}

/// The ends of all orders of some policies, each with the first order that has it, and problems.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Explored {
    pub(super) ends: Vec<(End, Vec<usize>)>,
    pub(super) problems: Vec<Problem>,
}

/// Asks `policies`, at most 32, in all orders about an object, again about each result, and
/// `validating` ones about all results.
///
/// # Errors
/// If a review has no result.
pub(super) fn explore<R: Reviews>(
    reviews: &mut R,
    policies: &[usize],
    validating: &[usize],
    object: DocumentId,
) -> Result<Explored, R::Error> {
    let mut search = Search { reviews, policies, seen: BTreeSet::new(), ends: Vec::new() };
    search.follow(0, object, &mut Vec::new())?;
    let ends = search.ends;
    check(reviews, &ends, policies, validating, object)
}

/// The same for these orders only, the first of which is compared with the others.
///
/// # Errors
/// If a review has no result.
pub(super) fn compare<R: Reviews>(
    reviews: &mut R,
    orders: &[Vec<usize>],
    validating: &[usize],
    object: DocumentId,
) -> Result<Explored, R::Error> {
    let mut ends: Vec<(End, Vec<usize>)> = Vec::new();
    for order in orders {
        let end = end_of(reviews, order, object)?;
        if ends.iter().all(|(known, _)| *known != end) {
            ends.push((end, order.clone()));
        }
    }
    check(reviews, &ends, orders.first().map_or(&[], Vec::as_slice), validating, object)
        .map(|explored| Explored { ends, ..explored })
}

fn check<R: Reviews>(
    reviews: &mut R,
    ends: &[(End, Vec<usize>)],
    policies: &[usize],
    validating: &[usize],
    object: DocumentId,
) -> Result<Explored, R::Error> {
    let mut problems = Vec::new();
    if let Some(((_, first), others)) = ends.split_first() {
        for (_, order) in others {
            let found = fight(reviews, first, order, object)?;
            problems.extend(found.filter(|found| is_new(&problems, found)));
        }
    }
    for policy in policies {
        problems.extend(twice(reviews, *policy, object)?);
    }
    for (end, order) in ends {
        let End::Object(result) = end else { continue };
        for policy in policies {
            let found = again(reviews, *policy, order, object, *result)?;
            problems.extend(found.filter(|found| is_new(&problems, found)));
        }
    }
    for policy in validating {
        problems.extend(verdicts(reviews, *policy, ends)?);
    }
    Ok(Explored { ends: ends.to_vec(), problems })
}

/// Whether no problem is of the same policies already: one example of each is enough.
fn is_new(problems: &[Problem], found: &Problem) -> bool {
    !problems.iter().any(|known| match (known, found) {
        (Problem::OrderMatters { policies: known, .. }, Problem::OrderMatters { policies, .. }) => {
            known.iter().all(|one| policies.contains(one))
        }
        (
            Problem::NotIdempotent { policy: known, .. }
            | Problem::ChangesAgain { policy: known, .. },
            Problem::ChangesAgain { policy, .. },
        ) => known == policy,
        _ => false,
    })
}

/// Follows all orders.
struct Search<'a, R> {
    reviews: &'a mut R,
    policies: &'a [usize],
    /// The sets of asked policies, as bits, with the objects that they made.
    seen: BTreeSet<(u32, DocumentId)>,
    ends: Vec<(End, Vec<usize>)>,
}

impl<R: Reviews> Search<'_, R> {
    /// Asks each policy that is not in `asked` next. The first order with an end is the first of
    /// all orders with it, by the positions of the policies.
    fn follow(
        &mut self,
        asked: u32,
        object: DocumentId,
        order: &mut Vec<usize>,
    ) -> Result<(), R::Error> {
        if !self.seen.insert((asked, object)) {
            return Ok(());
        }
        if order.len() == self.policies.len() {
            self.end(End::Object(object), order);
            return Ok(());
        }
        for (index, policy) in self.policies.iter().enumerate() {
            let bit = 1_u32 << (index % 32);
            if asked & bit != 0 {
                continue;
            }
            order.push(*policy);
            match self.reviews.step(*policy, object)? {
                Step::Made(made) => self.follow(asked | bit, made, order)?,
                Step::Denied(_) => {
                    // The policies after it are not asked; any order of them ends so.
                    let rest = self.policies.iter().filter(|one| !order.contains(one)).copied();
                    let whole: Vec<usize> = order.iter().copied().chain(rest).collect();
                    self.end(End::Denied, &whole);
                }
            }
            order.pop();
        }
        Ok(())
    }

    fn end(&mut self, end: End, order: &[usize]) {
        if self.ends.iter().all(|(known, _)| *known != end) {
            self.ends.push((end, order.to_vec()));
        }
    }
}

/// The end of one order.
fn end_of<R: Reviews>(
    reviews: &mut R,
    order: &[usize],
    object: DocumentId,
) -> Result<End, R::Error> {
    let mut now = object;
    for policy in order {
        match reviews.step(*policy, now)? {
            Step::Made(made) => now = made,
            Step::Denied(_) => return Ok(End::Denied),
        }
    }
    Ok(End::Object(now))
}

/// Makes the second order of the first by changing places of neighbours, and returns the first
/// change that changes the end. Their ends differ, so there is one.
fn fight<R: Reviews>(
    reviews: &mut R,
    first: &[usize],
    second: &[usize],
    object: DocumentId,
) -> Result<Option<Problem>, R::Error> {
    let mut order = first.to_vec();
    let mut end = end_of(reviews, &order, object)?;
    for (index, wanted) in second.iter().enumerate() {
        let Some(mut at) = order.iter().position(|one| one == wanted) else { continue };
        while at > index {
            let before = (order.clone(), end);
            order.swap(at - 1, at);
            at -= 1;
            end = end_of(reviews, &order, object)?;
            if end != before.1 {
                let policies = [order[at + 1], order[at]];
                return Ok(Some(Problem::OrderMatters {
                    policies,
                    orders: [before, (order, end)],
                }));
            }
        }
    }
    Ok(None)
}

/// Whether a policy changes its own result.
fn twice<R: Reviews>(
    reviews: &mut R,
    policy: usize,
    object: DocumentId,
) -> Result<Option<Problem>, R::Error> {
    let Step::Made(once) = reviews.step(policy, object)? else { return Ok(None) };
    let second = match reviews.later(policy, once)? {
        Step::Made(again) if again == once => return Ok(None),
        Step::Made(again) => Some(again),
        Step::Denied(_) => None,
    };
    Ok(Some(Problem::NotIdempotent { policy, results: (once, second) }))
}

/// Whether a policy changes the result of an order again.
fn again<R: Reviews>(
    reviews: &mut R,
    policy: usize,
    order: &[usize],
    object: DocumentId,
    result: DocumentId,
) -> Result<Option<Problem>, R::Error> {
    let second = match reviews.later(policy, result)? {
        Step::Made(again) if again == result => return Ok(None),
        Step::Made(again) => Some(again),
        Step::Denied(_) => None,
    };
    let mut objects = vec![object];
    for one in order {
        if let Step::Made(made) = reviews.step(*one, objects[objects.len() - 1])? {
            objects.push(made);
        }
    }
    Ok(Some(Problem::ChangesAgain { policy, first_pass: (order.to_vec(), objects), second }))
}

/// Whether a policy that changes nothing decides differently about the results of orders.
fn verdicts<R: Reviews>(
    reviews: &mut R,
    policy: usize,
    ends: &[(End, Vec<usize>)],
) -> Result<Option<Problem>, R::Error> {
    let (mut allowed, mut denied) = (None, None);
    for (end, order) in ends {
        let End::Object(result) = end else { continue };
        match reviews.denial(policy, *result)? {
            None => drop(allowed.get_or_insert_with(|| order.clone())),
            Some(message) => drop(denied.get_or_insert_with(|| (order.clone(), message))),
        }
    }
    Ok(allowed.zip(denied).map(|(allowed, (denied, message))| Problem::VerdictDiffers {
        policy,
        allowed,
        denied,
        message,
    }))
}

#[cfg(test)]
mod tests;
