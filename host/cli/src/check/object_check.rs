//! Checks what the policies of a set make of one object.

use std::fmt::Write as _;

use innkeeper_contract::{Operation, PolicyKind};
use innkeeper_core::diff::changed_fields;
use serde_json::Value;

use super::check_result::{CheckResult, Finding};
use super::documents::DocumentId;
use super::field_values::{FieldValues, overlap};
use super::orders::{End, Explored, Problem, compare, explore};
use super::policy_reviews::{Given, NoResult, PolicyReviews};
use super::policy_set::PolicySet;
use crate::review::request::Request;

/// The most policies of which all orders are asked: 720.
const ALL_ORDERS_MAX: usize = 6;

/// The most changed fields of one policy that are looked at.
const FIELDS_MAX: usize = 1_000;

/// The policies that review a request, as indices of the set.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) mutating: Vec<usize>,
    pub(super) validating: Vec<usize>,
}

impl Asked {
    /// Those of a set; `namespace` are the labels of the namespace of the object.
    pub(super) fn of(set: &PolicySet, request: &Request<'_>, namespace: Option<&Value>) -> Self {
        let of_kind = |kind: PolicyKind| {
            let all = set.policies(kind).into_iter();
            all.filter(|index| set.members[*index].is_asked(request, namespace)).collect()
        };
        Self { mutating: of_kind(PolicyKind::Mutate), validating: of_kind(PolicyKind::Validate) }
    }

    /// Whether all these policies are among those that review another request.
    pub(super) fn are_in(&self, other: &Self) -> bool {
        let all = |these: &[usize], those: &[usize]| these.iter().all(|one| those.contains(one));
        all(&self.mutating, &other.mutating) && all(&self.validating, &other.validating)
    }
}

/// Checks a request that at least one mutating policy reviews.
///
/// # Errors
/// If a review has no result.
pub(super) fn check(
    given: Given<'_>,
    request: &Request<'_>,
    asked: &Asked,
) -> Result<CheckResult, NoResult> {
    let (mut reviews, object) = PolicyReviews::begin(given, request)?;
    let Asked { mutating, validating } = asked;
    let names = Names(given);
    let mut explored = Vec::new();
    if mutating.len() <= ALL_ORDERS_MAX {
        explored.push(explore(&mut reviews, mutating, validating, object)?);
    } else {
        for (index, first) in mutating.iter().enumerate() {
            for second in &mutating[index + 1..] {
                explored.push(explore(&mut reviews, &[*first, *second], &[], object)?);
            }
        }
        let reversed = mutating.iter().rev().copied().collect();
        let orders = [mutating.clone(), reversed];
        explored.push(compare(&mut reviews, &orders, validating, object)?);
    }
    let mut findings: Vec<Finding> = Vec::new();
    let report = Report { reviews: &reviews, names: &names };
    for problem in explored.iter().flat_map(|explored| &explored.problems) {
        let finding = report.finding(problem);
        // Pairs find the same policies again and again.
        let is_known = |known: &Finding| {
            known.reason == finding.reason
                && known.policies.len() == finding.policies.len()
                && known.policies.iter().all(|one| finding.policies.contains(one))
        };
        if !findings.iter().any(is_known) {
            findings.push(finding);
        }
    }
    let message = message(&names, mutating, &explored, findings.is_empty());
    Ok(CheckResult::new(request.to_string(), message, findings))
}

/// What was asked, and the result in short.
fn message(names: &Names<'_>, policies: &[usize], explored: &[Explored], is_ok: bool) -> String {
    let mut text = names.list(policies);
    let orders: usize = (1..=policies.len()).product();
    match policies.len() {
        0 | 1 => {}
        ..=ALL_ORDERS_MAX => {
            let _ = write!(text, ", in all {orders} orders");
        }
        many => {
            let _ = write!(
                text,
                ", in pairs, by name and reversed, since {many} policies have too many orders"
            );
        }
    }
    if is_ok {
        let is_denied = explored.iter().all(|one| matches!(&*one.ends, [(End::Denied, _)]));
        let result = match (is_denied, policies.len()) {
            (true, 0 | 1) => "it denies the object",
            (true, _) => "each order denies the object",
            (false, 0 | 1) => "a second pass changes nothing",
            (false, _) => "one result; a second pass changes nothing",
        };
        let _ = write!(text, ": {result}");
    }
    text
}

/// The names of the policies of a set.
struct Names<'a>(Given<'a>);

impl Names<'_> {
    fn of(&self, policy: usize) -> String {
        self.0.set.members.get(policy).map(|member| member.name.clone()).unwrap_or_default()
    }

    fn list(&self, policies: &[usize]) -> String {
        policies.iter().map(|policy| self.of(*policy)).collect::<Vec<_>>().join(", ")
    }
}

/// Describes problems.
struct Report<'a> {
    reviews: &'a PolicyReviews<'a>,
    names: &'a Names<'a>,
}

impl Report<'_> {
    fn finding(&self, problem: &Problem) -> Finding {
        let (reason, message, policies, fields) = match problem {
            Problem::OrderMatters { policies: [first, second], orders } => {
                let (one, other) = (self.names.of(*first), self.names.of(*second));
                let message = format!("the result depends on the order of {one} and {other}");
                ("OrderMatters", message, vec![one, other], self.between_ends(orders))
            }
            Problem::NotIdempotent { policy, results: (once, second) } => {
                let name = self.names.of(*policy);
                let (message, fields) = match second {
                    Some(second) => (
                        format!("{name} is not idempotent: it changes its own result"),
                        self.between(("once", *once), ("twice", *second)),
                    ),
                    None => {
                        (format!("{name} is not idempotent: it denies its own result"), Vec::new())
                    }
                };
                ("NotIdempotent", message, vec![name], fields)
            }
            Problem::ChangesAgain { policy, first_pass, second } => {
                return self.changes_again(*policy, first_pass, *second);
            }
            Problem::VerdictDiffers { policy, allowed, denied, message } => {
                let name = self.names.of(*policy);
                let (allowed, denied) = (self.names.list(allowed), self.names.list(denied));
                let message = format!(
                    "{name} allows the result of {allowed}, and denies that of {denied}: {message}"
                );
                ("VerdictDiffers", message, vec![name], Vec::new())
            }
        };
        Finding { reason, message, policies, reconcilers: Vec::new(), fields }
    }

    fn between(&self, one: (&str, DocumentId), other: (&str, DocumentId)) -> Vec<FieldValues> {
        let (first, second) = (self.reviews.value(one.1), self.reviews.value(other.1));
        FieldValues::between((one.0, &first), (other.0, &second))
    }

    fn between_ends(&self, orders: &[(Vec<usize>, End); 2]) -> Vec<FieldValues> {
        let [(first, one), (second, other)] = orders;
        let (first, second) = (self.names.list(first), self.names.list(second));
        if let (End::Object(one), End::Object(other)) = (one, other) {
            return self.between((&first, *one), (&second, *other));
        }
        let verdict = |end: &End| if *end == End::Denied { "denied" } else { "allowed" };
        let values = vec![(first, verdict(one).into()), (second, verdict(other).into())];
        vec![FieldValues { path: "the request".to_owned(), values }]
    }

    /// A policy that changes the result of all again, and the others that had set its fields.
    fn changes_again(
        &self,
        policy: usize,
        (order, objects): &(Vec<usize>, Vec<DocumentId>),
        second: Option<DocumentId>,
    ) -> Finding {
        let name = self.names.of(policy);
        let list = self.names.list(order);
        let (first, Some(second)) = (objects[objects.len() - 1], second) else {
            return Finding {
                reason: "SecondPassDenied",
                message: format!("{name} denies the result of {list} in a second pass"),
                policies: vec![name],
                reconcilers: Vec::new(),
                fields: Vec::new(),
            };
        };
        let fields = self.between((&format!("after {list}"), first), ("asked again", second));
        let mut policies = vec![name.clone()];
        for (index, other) in order.iter().enumerate().filter(|(_, other)| **other != policy) {
            let (before, after) = (objects.get(index), objects.get(index + 1));
            let (Some(before), Some(after)) = (before, after) else { continue };
            let (before, after) = (self.reviews.value(*before), self.reviews.value(*after));
            let changed = changed_fields(&before, &after, FIELDS_MAX);
            if changed.iter().any(|one| fields.iter().any(|field| overlap(one, &field.path))) {
                policies.push(self.names.of(*other));
            }
        }
        let message = match policies.get(1..).unwrap_or_default() {
            [] => format!("{name} changes the result of {list} in a second pass"),
            others => format!(
                "{name} and {} fight: {name} changes the result of {list} in a second pass",
                others.join(", ")
            ),
        };
        Finding { reason: "SecondPassChanges", message, policies, reconcilers: Vec::new(), fields }
    }
}

/// What a request of the check does to the object: CREATE, and UPDATE where a policy reviews that
/// only.
pub(super) const OPERATIONS: [Operation; 2] = [Operation::Create, Operation::Update];
