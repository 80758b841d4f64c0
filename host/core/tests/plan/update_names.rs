//! Update groups with objects that exist without the host: it adopts them, or others keep them.

use expect_test::expect;
use innkeeper_contract::Policy;
use innkeeper_core::plan::UpdateState;
use serde_json::{Value, json};

use crate::case::Case;
use crate::updates::{all, group_of, progress, ready, rolling, running};

/// The group with Pods that have no controller, and a user who lets the primary adopt them.
fn adopting(group: &Value, pods: &[(&str, Value)]) -> Case {
    let mut case = group_of(group, &[]);
    case.adopt = true;
    for (name, status) in pods {
        case.put(
            "Pod",
            &json!({"metadata": {"name": name, "namespace": "web", "uid": name,
                "resourceVersion": "3", "labels": {"app": "x"}}, "spec": {"image": "old"},
                "status": status}),
        );
    }
    case
}

fn all_ready() -> [(&'static str, Value); 4] {
    ["a", "b", "c", "d"].map(|name| (name, ready()))
}

#[test]
fn rolling_group_adopts_as_many_objects_as_it_may_update() {
    for method in ["RollingInPlace", "RollingRecreate"] {
        let mut group = rolling(method);
        let case = adopting(&group, &all_ready());
        case.check(&expect![[r"
            adopt Pod web/a
            skip Pod web/b: outdated, updated in its turn
            skip Pod web/c: outdated, updated in its turn
            skip Pod web/d: outdated, updated in its turn"]]);
        assert_eq!(progress(&case).state, UpdateState::Updating);

        // One that does not serve is adopted first, as it is updated first.
        let mut pods = all_ready();
        pods[2].1 = running(false, 0);
        adopting(&group, &pods).check(&expect![[r"
            skip Pod web/a: outdated, updated in its turn
            skip Pod web/b: outdated, updated in its turn
            adopt Pod web/c
            skip Pod web/d: outdated, updated in its turn"]]);

        // A missing one takes the only place.
        adopting(&group, &pods[..2]).check(&expect![[r"
            skip Pod web/a: outdated, updated in its turn
            skip Pod web/b: outdated, updated in its turn
            create Pod web/c
            create Pod web/d"]]);
        group["paused"] = true.into();
        let case = adopting(&group, &all_ready());
        assert_eq!(progress(&case).state, UpdateState::Paused);
    }
}

#[test]
fn group_that_does_not_roll_adopts_all_objects_at_once() {
    for method in ["InPlace", "Recreate", "OnDelete"] {
        adopting(&rolling(method), &all_ready()).check(&expect![[r"
            adopt Pod web/a
            adopt Pod web/b
            adopt Pod web/c
            adopt Pod web/d"]]);
    }
}

#[test]
fn independent_object_whose_name_another_took_counts_towards_the_limit_of_a_recreating_group() {
    let mut group = rolling("RollingRecreate");
    let case = |group: &Value| {
        let mut case = group_of(group, &all("old")[1..]);
        for object in &mut case.desired_state.objects {
            object.policy.insert(Policy::Independent);
        }
        case.foreign("Pod", "a", &json!([]));
        case
    };
    let update = progress(&case(&group));
    assert_eq!((update.total, update.updated), (4, 0));
    let UpdateState::Waiting(object_ref, reason) = update.state else { panic!("{update:?}") };
    assert_eq!(object_ref.key.name(), "a");
    assert_eq!(reason, "another's object has its name");
    group["maxUnavailable"] = 2.into();
    assert_eq!(progress(&case(&group)).state, UpdateState::Updating);
    // Without a limit of its own, the first recreate has to show that creates are accepted.
    let case = case(&rolling("Recreate"));
    assert!(matches!(progress(&case).state, UpdateState::Waiting(..)));
}
