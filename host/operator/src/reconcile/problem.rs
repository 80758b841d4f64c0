//! Why the desired state of a primary is not applied.

use std::time::Duration;

use innkeeper_contract::Unapplied;
use innkeeper_core::ObjectRef;

use crate::queue::ReconcileResult;
use crate::reconcile::refusal::RefusalCause;

/// One reason why a primary is not synced, in the words of its condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The object that it is about; `None` if it is about the whole run.
    pub object_ref: Option<ObjectRef>,
    /// One word in CamelCase: the reason of the condition.
    pub reason: String,
    /// What is wrong and what to do. The same problem always gives the same text.
    pub message: String,
    /// When the host tries again.
    pub retry: Retry,
    /// Why a write is refused, if one is.
    pub refusal: Option<RefusalCause>,
}

/// When the host tries again after a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// After a backoff.
    Backoff,
    /// When an object that the run read changes.
    OnChange,
    /// After this time.
    After(Duration),
}

/// The problems of a round, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

/// A condition names at most this many problems.
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

    /// The first problem.
    pub fn first(&self) -> Option<&Problem> {
        self.0.first()
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

    /// The objects that could not be applied, for the guest's next run.
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

    /// How a reconcile with these problems ends. It runs again after the time `after`, unless a
    /// problem backs off.
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
        Problem {
            object_ref: None,
            reason: "Because".into(),
            message: message.into(),
            retry,
            refusal: None,
        }
    }

    #[test]
    fn backoff_precedes_every_time_and_the_earliest_time_counts() {
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
