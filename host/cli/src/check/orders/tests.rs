use serde_json::{Value, json};

use super::*;
use crate::check::documents::Documents;

/// A policy as a function: the changed object, or none for a denial.
type Policy = Box<dyn Fn(&Value) -> Option<Value>>;

/// Policies as functions, and how often they were asked.
struct Functions {
    policies: Vec<Policy>,
    documents: Documents,
    known: std::collections::BTreeMap<(usize, DocumentId), Step>,
    calls: usize,
}

impl Functions {
    fn new(policies: Vec<Policy>) -> Self {
        let (documents, known) = (Documents::default(), std::collections::BTreeMap::new());
        Self { policies, documents, known, calls: 0 }
    }

    fn explore(&mut self, object: &Value) -> Explored {
        let all: Vec<usize> = (0..self.policies.len()).collect();
        let object = self.documents.keep(object).unwrap();
        explore(self, &all, &[], object).unwrap()
    }

    fn value(&self, end: End) -> Value {
        match end {
            End::Object(id) => self.documents.value(id),
            End::Denied => Value::Null,
        }
    }
}

impl Reviews for Functions {
    type Error = String;

    fn step(&mut self, policy: usize, object: DocumentId) -> Result<Step, String> {
        if let Some(known) = self.known.get(&(policy, object)) {
            return Ok(known.clone());
        }
        self.calls += 1;
        let step = match self.policies[policy](&self.documents.value(object)) {
            Some(made) => Step::Made(self.documents.keep(&made)?),
            None => Step::Denied("no".into()),
        };
        self.known.insert((policy, object), step.clone());
        Ok(step)
    }

    fn later(&mut self, policy: usize, object: DocumentId) -> Result<Step, String> {
        self.step(policy, object)
    }

    fn denial(&mut self, policy: usize, object: DocumentId) -> Result<Option<Arc<str>>, String> {
        Ok(match self.step(policy, object)? {
            Step::Made(_) => None,
            Step::Denied(message) => Some(message),
        })
    }
}

/// Sets a member to a value.
fn sets(name: &str, value: &str) -> Policy {
    let (name, value) = (name.to_owned(), value.to_owned());
    Box::new(move |object| {
        let mut object = object.clone();
        object[&name] = value.clone().into();
        Some(object)
    })
}

/// Sets a member to the value that another one has.
fn copies(from: &str, to: &str) -> Policy {
    let (from, to) = (from.to_owned(), to.to_owned());
    Box::new(move |object| {
        let mut object = object.clone();
        object[&to] = object[&from].clone();
        Some(object)
    })
}

#[test]
fn policies_of_different_fields_have_one_end_and_share_calls() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut functions = Functions::new(names.map(|name| sets(name, "1")).into());
    let explored = functions.explore(&json!({}));
    assert_eq!((explored.ends.len(), &*explored.problems), (1, &[][..]));
    assert_eq!(explored.ends[0].1, [0, 1, 2, 3, 4, 5]);
    // The policies that are not among the asked ones, for each of 64 sets; then each about its own
    // result and about that of all.
    assert_eq!(functions.calls, 64 * 6 / 2 + 6 + 6);
}

#[test]
fn two_policies_that_set_one_field_are_named_with_the_orders_and_their_ends() {
    let policies = vec![sets("a", "1"), sets("x", "first"), sets("b", "1"), sets("x", "second")];
    let mut functions = Functions::new(policies);
    let explored = functions.explore(&json!({}));
    assert_eq!(explored.ends.len(), 2);
    let Problem::OrderMatters { policies, orders } = &explored.problems[0] else {
        panic!("{explored:?}")
    };
    assert_eq!(*policies, [1, 3]);
    let [(first, one), (second, two)] = orders;
    assert_eq!((&**first, &**second), (&[0, 2, 1, 3][..], &[0, 2, 3, 1][..]));
    assert_eq!(functions.value(*one)["x"], "second");
    assert_eq!(functions.value(*two)["x"], "first");
    // Each of the two sets its value again in a second pass.
    let again = |problem: &&Problem| matches!(problem, Problem::ChangesAgain { .. });
    assert_eq!(explored.problems.iter().filter(again).count(), 2);
}

#[test]
fn policy_that_reads_what_another_one_sets_is_found() {
    let mut functions = Functions::new(vec![sets("a", "1"), copies("a", "b")]);
    let explored = functions.explore(&json!({"a": "0"}));
    let Problem::OrderMatters { policies, .. } = &explored.problems[0] else {
        panic!("{explored:?}")
    };
    assert_eq!(*policies, [0, 1]);
    let changes_again = &explored.problems[1];
    assert!(matches!(changes_again, Problem::ChangesAgain { policy: 1, .. }), "{changes_again:?}");
}

#[test]
fn policy_that_changes_its_own_result_is_found_alone() {
    let append: Policy = Box::new(|object| {
        let mut object = object.clone();
        object["list"].as_array_mut()?.push("x".into());
        Some(object)
    });
    let mut functions = Functions::new(vec![append]);
    let explored = functions.explore(&json!({"list": []}));
    assert_eq!(explored.ends.len(), 1);
    assert_eq!(explored.problems.len(), 1);
    let Problem::NotIdempotent { policy: 0, results: (once, Some(twice)) } = explored.problems[0]
    else {
        panic!("{explored:?}")
    };
    assert_eq!(functions.documents.value(once)["list"], json!(["x"]));
    assert_eq!(functions.documents.value(twice)["list"], json!(["x", "x"]));
}

#[test]
fn denial_in_some_orders_only_is_a_different_end() {
    let denies: Policy = Box::new(|object| object["a"].is_null().then(|| object.clone()));
    let mut functions = Functions::new(vec![sets("a", "1"), denies]);
    let explored = functions.explore(&json!({}));
    let ends: Vec<End> = explored.ends.iter().map(|(end, _)| *end).collect();
    assert!(matches!(&*ends, [End::Denied, End::Object(_)]), "{ends:?}");
    assert!(matches!(&explored.problems[0], Problem::OrderMatters { policies: [0, 1], .. }));
}

#[test]
fn denial_in_every_order_is_one_end() {
    let denies = || -> Policy { Box::new(|_| None) };
    let mut functions = Functions::new(vec![sets("a", "1"), denies(), denies()]);
    let explored = functions.explore(&json!({}));
    assert_eq!((explored.ends.len(), &*explored.problems), (1, &[][..]));
}

#[test]
fn verdict_that_differs_between_results_names_both_orders() {
    let denies: Policy = Box::new(|object| (object["x"] != "first").then(|| object.clone()));
    let mut functions = Functions::new(vec![sets("x", "first"), sets("x", "second"), denies]);
    let object = functions.documents.keep(&json!({})).unwrap();
    let explored = explore(&mut functions, &[0, 1], &[2], object).unwrap();
    let last = explored.problems.last().unwrap();
    let expected = Problem::VerdictDiffers {
        policy: 2,
        allowed: vec![0, 1],
        denied: vec![1, 0],
        message: "no".into(),
    };
    assert_eq!(*last, expected);
}

#[test]
fn orders_that_are_given_are_compared_with_the_first() {
    let mut functions = Functions::new(vec![sets("x", "1"), sets("y", "1"), sets("x", "2")]);
    let object = functions.documents.keep(&json!({})).unwrap();
    let orders = [vec![0, 1, 2], vec![2, 1, 0]];
    let explored = compare(&mut functions, &orders, &[], object).unwrap();
    assert_eq!(explored.ends.len(), 2);
    assert!(matches!(&explored.problems[0], Problem::OrderMatters { policies: [0, 2], .. }));
}
