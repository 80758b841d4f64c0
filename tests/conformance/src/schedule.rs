//! In which order specs run, and which run alone.

use crate::list::{List, Verdict};

/// What a spec's name has if no other spec may run next to it.
const ALONE: [&str; 2] = ["[Serial]", "[Disruptive]"];

/// The order of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// Specs that run side by side, in this order.
    pub(crate) together: Vec<String>,
    /// Specs that run afterwards, one by one.
    pub(crate) alone: Vec<String>,
}

impl Schedule {
    /// Orders specs: the longest first by the seconds of the list, so that the run does not wait
    /// for one at its end.
    pub(crate) fn new(names: Vec<String>, list: &List) -> Self {
        let seconds = |name: &String| match list.verdict(name) {
            Some(Verdict::Passes { seconds }) => seconds.unwrap_or(0),
            // Their time is not known: some wait until their bound.
            Some(Verdict::Differs { slow: true, .. } | Verdict::Skipped { .. }) | None => u64::MAX,
            Some(Verdict::Differs { .. }) => 0,
        };
        let (mut alone, mut together): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| ALONE.iter().any(|mark| name.contains(mark)));
        for names in [&mut together, &mut alone] {
            names.sort_by(|a, b| seconds(b).cmp(&seconds(a)).then_with(|| a.cmp(b)));
        }
        Self { together, alone }
    }

    /// How many specs run.
    pub(crate) fn len(&self) -> usize {
        self.together.len() + self.alone.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> List {
        let text = "
kubernetes: 1.2.3
reasons: {r: {text: t}}
specs:
- {name: differs, verdict: differs, reason: r}
- {name: long, verdict: passes, seconds: 60}
- {name: middle, verdict: passes, seconds: 9}
- {name: short, verdict: passes}
- {name: skipped, verdict: skipped, reason: r}
- {name: slow, verdict: differs, reason: r, slow: true}
- {name: 'spaces [Serial]', verdict: passes, seconds: 70}
";
        serde_yaml_ng::from_str(text).unwrap()
    }

    fn schedule(names: &[&str]) -> Schedule {
        Schedule::new(names.iter().map(|name| (*name).to_owned()).collect(), &list())
    }

    #[test]
    fn long_specs_and_those_of_unknown_length_start_first() {
        let found = schedule(&["short", "middle", "differs", "long", "skipped", "new", "slow"]);
        let expected = ["new", "skipped", "slow", "long", "middle", "differs", "short"];
        assert_eq!(found.together, expected);
        assert_eq!(found.alone, Vec::<String>::new());
    }

    #[test]
    fn serial_and_disruptive_specs_run_alone_and_none_is_lost() {
        let found = schedule(&["short", "spaces [Serial]", "etcd [Disruptive] ends", "long"]);
        assert_eq!(found.together, ["long", "short"]);
        assert_eq!(found.alone, ["etcd [Disruptive] ends", "spaces [Serial]"]);
        assert_eq!(found.len(), 4);
    }
}
