use super::*;

const NOW: Duration = Duration::from_mins(1);

fn key(namespace: &str, number: usize) -> ObjectKey {
    ObjectKey::new(namespace, &format!("p{number:04}"))
}

/// Takes this many keys, each finished at once.
fn take(module_queue: &mut ModuleQueue, count: usize) -> Vec<String> {
    std::iter::from_fn(|| {
        let key = module_queue.take(NOW, 1)?;
        module_queue.finished(&key);
        Some(key.to_string())
    })
    .take(count)
    .collect()
}

fn flood(module_queue: &mut ModuleQueue, namespace: &str, count: usize, class: Priority) {
    for number in 0..count {
        module_queue.push(&key(namespace, number), class);
    }
}

#[test]
fn a_namespace_with_one_key_waits_for_one_key_of_a_flooding_one() {
    let mut module_queue = ModuleQueue::default();
    flood(&mut module_queue, "noisy", 3_000, Priority::Changed);
    assert_eq!(take(&mut module_queue, 1), ["noisy/p0000"]);
    module_queue.push(&key("quiet", 0), Priority::Changed);
    assert_eq!(take(&mut module_queue, 2), ["quiet/p0000", "noisy/p0001"]);
    assert_eq!(module_queue.ready(), 2_998);
}

#[test]
fn a_small_burst_ends_before_a_large_one() {
    let mut module_queue = ModuleQueue::default();
    flood(&mut module_queue, "noisy", 1_000, Priority::Changed);
    flood(&mut module_queue, "quiet", 10, Priority::Changed);
    let order = take(&mut module_queue, 20);
    let of_quiet = order.iter().filter(|name| name.starts_with("quiet/")).count();
    assert_eq!(of_quiet, 10, "{order:?}");
}

#[test]
fn a_namespace_comes_first_that_had_no_turn_for_long() {
    let mut module_queue = ModuleQueue::default();
    for namespace in 0..1_000 {
        flood(&mut module_queue, &format!("n{namespace:04}"), 3, Priority::Changed);
    }
    take(&mut module_queue, 1_500);
    module_queue.push(&key("quiet", 0), Priority::Changed);
    assert_eq!(take(&mut module_queue, 1), ["quiet/p0000"]);
    // It had its turn, so every other namespace has one before it comes again.
    module_queue.push(&key("quiet", 1), Priority::Changed);
    let order = take(&mut module_queue, 1_001);
    assert_eq!(order.iter().position(|name| name == "quiet/p0001"), Some(1_000));
}

#[test]
fn a_changed_key_comes_before_routine_keys_of_every_namespace() {
    let mut module_queue = ModuleQueue::default();
    for namespace in 0..1_000 {
        flood(&mut module_queue, &format!("n{namespace:04}"), 3, Priority::Routine);
    }
    take(&mut module_queue, 10);
    module_queue.push(&key("n0000", 9), Priority::Changed);
    assert_eq!(take(&mut module_queue, 1), ["n0000/p0009"]);
}

#[test]
fn routine_keys_have_their_share_of_turns_under_a_flood_of_changes() {
    let mut module_queue = ModuleQueue::default();
    flood(&mut module_queue, "noisy", 3_000, Priority::Changed);
    flood(&mut module_queue, "quiet", 5, Priority::Routine);
    let order = take(&mut module_queue, 5 * ROUTINE_TURN as usize);
    assert_eq!(order.iter().filter(|name| name.starts_with("quiet/")).count(), 5, "{order:?}");
}

#[test]
fn each_cluster_scoped_primary_is_a_tenant_of_its_own() {
    let mut module_queue = ModuleQueue::default();
    // Three primaries change again as soon as they have been worked on.
    flood(&mut module_queue, "", 3, Priority::Changed);
    for _ in 0..10 {
        let key = module_queue.take(NOW, 1).unwrap();
        module_queue.finished(&key);
        module_queue.push(&key, Priority::Changed);
    }
    module_queue.push(&key("", 9), Priority::Changed);
    assert_eq!(take(&mut module_queue, 1), ["p0009"]);
}

#[test]
fn a_tenant_holds_only_so_many_workers_and_goes_on_when_one_is_free() {
    let mut module_queue = ModuleQueue::default();
    flood(&mut module_queue, "noisy", 5, Priority::Changed);
    flood(&mut module_queue, "noisy", 5, Priority::Routine);
    let first = module_queue.take(NOW, 2).unwrap();
    assert!(module_queue.take(NOW, 2).is_some());
    assert_eq!(module_queue.take(NOW, 2), None);
    module_queue.push(&key("noisy", 8), Priority::Changed);
    assert_eq!(module_queue.take(NOW, 2), None, "a key that becomes ready does not end the hold");
    module_queue.push(&key("quiet", 0), Priority::Routine);
    assert_eq!(module_queue.take(NOW, 2), Some(key("quiet", 0)));
    module_queue.finished(&first);
    assert!(module_queue.take(NOW, 2).is_some());
    assert_eq!((module_queue.take(NOW, 2), module_queue.running()), (None, 3));
}

#[test]
fn a_tenant_that_wrote_its_burst_waits_and_the_others_do_not() {
    let mut module_queue = ModuleQueue::default();
    module_queue.set_rate(NonZeroU32::new(10).unwrap());
    for _ in 0..250 {
        module_queue.wrote(&key("noisy", 0), NOW);
    }
    flood(&mut module_queue, "noisy", 3, Priority::Changed);
    module_queue.push(&key("quiet", 0), Priority::Changed);
    assert_eq!(take(&mut module_queue, 9), ["quiet/p0000"]);
    let paid = NOW + Duration::from_secs(5);
    assert_eq!((module_queue.ready(), module_queue.next_paid(NOW)), (3, Some(paid)));
    assert_eq!(module_queue.take(paid, 1), Some(key("noisy", 0)));
}

#[test]
fn a_module_that_wrote_its_burst_waits() {
    let mut module_queue = ModuleQueue::default();
    module_queue.set_rate(NonZeroU32::new(10).unwrap());
    for number in 0..310 {
        module_queue.wrote(&key(&format!("n{}", number % 31), 0), NOW);
    }
    module_queue.push(&key("quiet", 0), Priority::Changed);
    assert_eq!(module_queue.take(NOW, 1), None);
    assert_eq!(module_queue.next_paid(NOW), Some(NOW + Duration::from_secs(1)));
}

#[test]
fn tenants_that_are_gone_are_forgotten() {
    let mut module_queue = ModuleQueue::default();
    module_queue.set_rate(NonZeroU32::new(10_000).unwrap());
    for number in 0..10_000_u32 {
        let now = Duration::from_secs(u64::from(number) * 60);
        let key = key(&format!("n{number}"), 0);
        module_queue.push(&key, Priority::Changed);
        assert_eq!(module_queue.take(now, 1).as_ref(), Some(&key));
        module_queue.wrote(&key, now);
        module_queue.finished(&key);
    }
    assert!(module_queue.tenants.len() <= 2 * TENANTS_MIN, "{}", module_queue.tenants.len());
    assert!(
        module_queue.changed.served.len() <= 2 * TENANTS_MIN,
        "{}",
        module_queue.changed.served.len()
    );
    assert!(module_queue.changed.waiting.is_empty() && module_queue.changed.order.is_empty());
}
