//! Update groups: times in objects that are ahead of the host's clock.

use innkeeper_core::plan::{UpdateProgress, UpdateState};
use serde_json::{Value, json};

use crate::case::NOW;
use crate::updates::{APPLIED, all, group_of, progress, put, rolling, running};

/// 2099-01-01T00:00:00Z.
const FAR: i64 = 4_070_908_800;

/// A group whose objects count as available after 10 seconds.
fn waiting_group() -> Value {
    let mut group = rolling("RollingInPlace");
    group["minReadySeconds"] = 10.into();
    group
}

/// The progress of an update whose first object has this status and was applied at this time.
fn progress_of(group: &Value, status: &Value, applied: i64) -> UpdateProgress {
    let mut case = group_of(group, &all("old")[1..]);
    put(&mut case, "a", "new", status, applied);
    progress(&case)
}

/// What the update waits for, and for how many seconds; of another state, its text.
fn waits(progress: UpdateProgress) -> (String, Option<u64>) {
    let seconds = progress.look_again.map(|time| time.as_secs());
    match progress.state {
        UpdateState::Waiting(_, problem) => (problem, seconds),
        state => (format!("{state:?}"), seconds),
    }
}

#[test]
fn transition_time_in_the_future_is_named_and_ends_by_the_deadline() {
    let named = "its condition Ready changed at 2099-01-01T00:00:00Z, which is in the future; correct the clock of the controller that writes it, or delete the object";
    let mut group = waiting_group();
    let status = running(true, FAR);
    let waiting = waits(progress_of(&group, &status, APPLIED));
    assert_eq!(waiting, (named.to_owned(), Some(3_600)));

    group["progressDeadlineSeconds"] = 600.into();
    let waiting = waits(progress_of(&group, &status, NOW - 599));
    assert_eq!(waiting, (named.to_owned(), Some(1)));
    let state = progress_of(&group, &status, NOW - 600).state;
    let expected = format!("it is not available after 600 s: {named}");
    assert!(matches!(&state, UpdateState::Failed(_, problem) if *problem == expected), "{state:?}");
}

#[test]
fn transition_time_a_few_seconds_ahead_waits_without_naming_it() {
    for (ahead, is_named) in [(60, false), (61, true)] {
        let progress = progress_of(&waiting_group(), &running(true, NOW + ahead), APPLIED);
        let (problem, seconds) = waits(progress);
        assert_eq!(problem.contains("which is in the future"), is_named, "{problem}");
        assert_eq!(problem == "it is not ready for 10 s yet", !is_named, "{problem}");
        assert_eq!(seconds, u64::try_from(ahead + 10).ok());
    }
}

#[test]
fn entry_of_the_host_in_the_future_names_the_clocks() {
    let named = "the host applied it at 2099-01-01T00:00:00Z, which is in the future: the clocks of the host and the API server differ";
    let mut group = waiting_group();
    // The deadline begins with the same time.
    for deadline in [Value::Null, 11.into()] {
        group["progressDeadlineSeconds"] = deadline;
        let waiting = waits(progress_of(&group, &running(true, FAR), FAR));
        assert_eq!(waiting, (named.to_owned(), Some(3_600)));
    }
    let (problem, seconds) = waits(progress_of(&group, &running(false, APPLIED), FAR));
    assert_eq!((problem.as_str(), seconds), ("it runs but is not ready", Some(3_600)));
}

#[test]
fn time_in_the_future_is_no_matter_without_min_ready_seconds() {
    let progress = progress_of(&rolling("RollingInPlace"), &running(true, FAR), FAR);
    assert_eq!((progress.state, progress.available), (UpdateState::Updating, 1));
}

#[test]
fn year_9999_and_unreadable_times_wake_no_storm() {
    let mut group = waiting_group();
    group["progressDeadlineSeconds"] = 11.into();
    let year = i64::from(u32::MAX) * 58;
    for time in ["9999-12-30T00:00:00Z", "9999-12-31T23:59:59Z", "2099-13-01", "", "\u{1b}[31m"] {
        for applied in [NOW, year] {
            let status = json!({"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": time}]});
            let progress = progress_of(&group, &status, applied);
            let seconds = progress.look_again.unwrap().as_secs();
            assert!((10..=3_600).contains(&seconds), "{time} {applied}: {seconds}");
            assert!(!format!("{:?}", progress.state).contains("31m"), "{:?}", progress.state);
        }
    }
}
