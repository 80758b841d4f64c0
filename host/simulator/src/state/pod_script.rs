//! The script of simulated Pods: how long they take to start, whether they end, and with which
//! code.

use jiff::SignedDuration;
use serde_json::Value;

use crate::types::members::text;

/// How Pods run: the first rule that matches an image, else the rule for all. Annotations of a Pod
/// (`simulator.innkeeper.dev/start-after`, `ready-after`, `ends-after`: seconds, or `never`;
/// `exit-code`; `cpu-utilization`; `pull: fails`) count more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodScript {
    /// The rule for images that no other rule matches.
    pub all: PodRule,
    /// Rules for images.
    pub rules: Vec<PodRule>,
}

impl Default for PodScript {
    fn default() -> Self {
        Self { all: PodRule::new("*"), rules: Vec::new() }
    }
}

/// How Pods of an image run. A time of `None` is never.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRule {
    /// The image of any of its containers; a `*` stands for any text.
    pub image: String,
    /// Whether the image can be pulled.
    pub pulls: bool,
    /// From being scheduled to running.
    pub start_after: Option<SignedDuration>,
    /// From running to ready, for Pods with a readiness probe, in addition to its initial delay;
    /// other Pods are ready when they run.
    pub ready_after: Option<SignedDuration>,
    /// From running to having ended, for Pods of Jobs, and for those that are annotated so.
    pub ends_after: Option<SignedDuration>,
    /// Whether `ends_after` also applies to Pods that no Job controls.
    pub ends_without_job: bool,
    /// The exit code of its containers.
    pub exit_code: i64,
    /// The load of processors in percent of what the Pod requests, for autoscalers; `None` if
    /// nobody measures it.
    pub cpu_utilization: Option<i64>,
}

impl PodRule {
    /// Pods of such images run after a second, are ready after another if they have a probe, and
    /// those of Jobs succeed after five.
    pub fn new(image: &str) -> Self {
        Self {
            image: image.to_owned(),
            pulls: true,
            start_after: Some(SignedDuration::from_secs(1)),
            ready_after: Some(SignedDuration::from_secs(1)),
            ends_after: Some(SignedDuration::from_secs(5)),
            ends_without_job: false,
            exit_code: 0,
            cpu_utilization: None,
        }
    }

    fn fits(&self, image: &str) -> bool {
        let mut parts = self.image.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = image.strip_prefix(first) else { return false };
        let parts: Vec<&str> = parts.collect();
        let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
        for part in middle {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last)
    }
}

impl PodScript {
    /// The rule for a Pod, with its annotations applied.
    pub(crate) fn rule(&self, pod: &Value) -> PodRule {
        let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
        let images: Vec<&str> = containers.map(|one| text(&one["image"])).collect();
        let found = self.rules.iter().find(|rule| images.iter().any(|image| rule.fits(image)));
        let mut rule = found.unwrap_or(&self.all).clone();
        let annotation = |name: &str| {
            pod["metadata"]["annotations"][format!("simulator.innkeeper.dev/{name}")].as_str()
        };
        let seconds = |name: &str, unless: Option<SignedDuration>| match annotation(name) {
            None => unless,
            Some(text) => {
                let number = text.strip_suffix('s').unwrap_or(text).parse::<f64>().ok();
                number.and_then(|number| SignedDuration::try_from_secs_f64(number).ok())
            }
        };
        rule.start_after = seconds("start-after", rule.start_after);
        rule.ready_after = seconds("ready-after", rule.ready_after);
        let ends = rule.ends_without_job
            || crate::types::members::controller(pod).is_some_and(|owner| owner["kind"] == "Job");
        rule.ends_after = seconds("ends-after", rule.ends_after.filter(|_| ends));
        if let Some(code) = annotation("exit-code").and_then(|text| text.parse().ok()) {
            rule.exit_code = code;
        }
        if let Some(percent) = annotation("cpu-utilization").and_then(|text| text.parse().ok()) {
            rule.cpu_utilization = Some(percent);
        }
        rule.pulls &= annotation("pull") != Some("fails");
        rule
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn star_in_an_image_pattern_matches_any_text() {
        let fits = |rule: &str, image: &str| PodRule::new(rule).fits(image);
        assert!(fits("*", "nginx"));
        assert!(fits("quay.io/*:1", "quay.io/a/b:1"));
        assert!(!fits("quay.io/*:1", "quay.io/a/b:2"));
        assert!(fits("nginx", "nginx"));
        assert!(!fits("nginx", "nginx:1"));
    }

    #[test]
    fn annotation_overrides_a_rule_and_a_rule_overrides_the_default() {
        let mut slow = PodRule::new("slow");
        slow.start_after = Some(SignedDuration::from_secs(60));
        let script = PodScript { rules: vec![slow], ..PodScript::default() };
        let mut pod = json!({"metadata": {}, "spec": {"containers": [{"image": "slow"}]}});
        assert_eq!(script.rule(&pod).start_after, Some(SignedDuration::from_secs(60)));
        pod["metadata"]["annotations"] = json!({
            "simulator.innkeeper.dev/start-after": "never",
            "simulator.innkeeper.dev/ends-after": "3s",
        });
        let rule = script.rule(&pod);
        assert_eq!((rule.start_after, rule.ends_after), (None, Some(SignedDuration::from_secs(3))));
        pod["spec"]["containers"][0]["image"] = "fast".into();
        pod["metadata"]["annotations"] = json!({});
        assert_eq!(script.rule(&pod).start_after, Some(SignedDuration::from_secs(1)));
        assert_eq!(script.rule(&pod).ends_after, None, "only Pods of Jobs end by themselves");
        let mut ending = PodRule::new("fast");
        ending.ends_without_job = true;
        let script = PodScript { rules: vec![ending], ..PodScript::default() };
        assert_eq!(script.rule(&pod).ends_after, Some(SignedDuration::from_secs(5)));
    }
}
