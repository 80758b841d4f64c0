//! The Job that migrates the data of a Shop.

use innkeeper_sdk::kinds::Job;
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::serde_json::json;

use crate::bug::Bug;
use crate::run::Run;

impl Run<'_> {
    /// Adds the Job if the spec asks for it. Its template cannot be changed, so that the host makes
    /// it again.
    pub(crate) fn with_job(&self, desired: Desired) -> Desired {
        if !self.shop().spec.migrate {
            return desired;
        }
        let name = self.name("-migrate");
        let mut template = json!({"spec": {"restartPolicy": "Never",
            "containers": [{"name": "migrate", "image": self.image()}]}});
        if self.has(Bug::RecreatesJob)
            && let Some(present) = self.observed.owned::<Raw<Job>>(&name)
        {
            template["metadata"] =
                json!({"annotations": {"shop.example/of": present.object.metadata.uid}});
        }
        if self.has_rare(Bug::UidInRareJob) {
            let uid = &self.shop().metadata.uid;
            template["metadata"] = json!({"annotations": {"shop.example/of": uid}});
        }
        let job = Raw::<Job>::new(name, json!({"spec": {"template": template}}));
        desired.object_with(job, [Policy::RecreateWhenImmutable])
    }
}
