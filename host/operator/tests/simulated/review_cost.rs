//! The bench of reviews, with a few: it measures nothing, and does not rot.

#[path = "../../benches/reviews/cost.rs"]
mod cost;

use cost::Costs;

#[test]
fn bench_of_reviews_times_each_step_of_each_round() {
    for Costs(steps) in cost::measure(&[1, 2], 4) {
        assert_eq!(cost::STEPS.len(), steps.len());
        let times: Vec<usize> = steps.iter().map(Vec::len).collect();
        // Each round calls the guest alone or reviews, by turns, and reads the request.
        assert_eq!(times, [2, 2, 2, 4, 2]);
    }
    assert!((2_900..3_300).contains(&cost::pod().to_string().len()));
}
