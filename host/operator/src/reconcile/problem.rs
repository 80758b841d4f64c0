//! What stands between a primary and what its guest wants.

use std::time::Duration;

use innkeeper_contract::Unapplied;
use innkeeper_core::ObjectRef;

use crate::queue::ReconcileResult;

/// One obstacle, said so that a condition can be made from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The object that it is about; `None` if it is about the run as a whole.
    pub object_ref: Option<ObjectRef>,
    /// One CamelCase word.
    pub reason: String,
    /// What is wrong and, where it is not plain, what to do. Stable text.
    pub message: String,
    /// What may help.
    pub retry: Retry,
}

/// What may help against a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Trying again, later and later.
    Backoff,
    /// A change of something that was read.
    OnChange,
    /// Trying again after this time.
    After(Duration),
}

/// The problems of a round, in the order in which they were met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

/// So many problems are told in a condition; the others show up when these are mended.
const MESSAGE_PROBLEMS_MAX: usize = 5;

impl Problems {
    /// Adds one.
    pub fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The reason of the condition: that of the first problem.
    pub fn reason(&self) -> Option<&str> {
        self.0.first().map(|problem| problem.reason.as_str())
    }

    /// The message of the condition: no counts and no times, so that it is stable.
    pub fn message(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for problem in &self.0 {
            let line = match &problem.object_ref {
                Some(object_ref) => format!("{object_ref}: {}", problem.message),
                None => problem.message.clone(),
            };
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        if lines.len() > MESSAGE_PROBLEMS_MAX {
            lines.truncate(MESSAGE_PROBLEMS_MAX);
            lines.push("and more".to_owned());
        }
        lines.join("; ")
    }

    /// What the guest is told in the next round.
    pub fn unapplied(&self) -> Vec<Unapplied> {
        self.0
            .iter()
            .filter_map(|problem| {
                Some(Unapplied {
                    reference: problem.object_ref.as_ref()?.reference(),
                    reason: problem.reason.clone(),
                    message: problem.message.clone(),
                })
            })
            .collect()
    }

    /// How the work on the key ends. `after` is when it is to be run again in any case.
    pub fn result(&self, after: Option<Duration>) -> ReconcileResult {
        if self.0.iter().any(|problem| problem.retry == Retry::Backoff) {
            return ReconcileResult::Failed;
        }
        let again = self
            .0
            .iter()
            .filter_map(|problem| match problem.retry {
                Retry::After(time) => Some(time),
                Retry::Backoff | Retry::OnChange => None,
            })
            .chain(after)
            .min();
        if self.is_empty() {
            ReconcileResult::Ok(again)
        } else {
            ReconcileResult::AwaitChange(again)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(message: &str, retry: Retry) -> Problem {
        Problem { object_ref: None, reason: "Because".into(), message: message.into(), retry }
    }

    #[test]
    fn the_problem_with_the_earliest_retry_decides() {
        let minute = Duration::from_mins(1);
        let of = |retries: &[Retry], after| {
            Problems(retries.iter().map(|retry| problem("m", *retry)).collect()).result(after)
        };
        assert_eq!(of(&[], None), ReconcileResult::Ok(None));
        assert_eq!(of(&[], Some(minute)), ReconcileResult::Ok(Some(minute)));
        assert_eq!(of(&[Retry::OnChange], None), ReconcileResult::AwaitChange(None));
        assert_eq!(
            of(&[Retry::OnChange, Retry::After(minute)], Some(minute * 2)),
            ReconcileResult::AwaitChange(Some(minute))
        );
        assert_eq!(of(&[Retry::OnChange, Retry::Backoff], Some(minute)), ReconcileResult::Failed);
    }

    #[test]
    fn a_message_lists_each_problem_once_up_to_its_limit() {
        let problems = Problems(vec![
            problem("a", Retry::OnChange),
            problem("a", Retry::OnChange),
            problem("b", Retry::Backoff),
        ]);
        assert_eq!(problems.message(), "a; b");
        let many = Problems((0..9).map(|n| problem(&n.to_string(), Retry::OnChange)).collect());
        assert_eq!(many.message(), "0; 1; 2; 3; 4; and more");
    }
}
