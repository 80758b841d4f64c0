//! The database and the files of a Shop.

use innkeeper_sdk::condition;
use innkeeper_sdk::kinds::{Deployment, PersistentVolumeClaim, StatefulSet};
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::serde_json::{Value, json};

use crate::bug::Bug;
use crate::run::Run;

/// Where a `StatefulSet` has the size of its claims.
const SIZE: &str = "/spec/volumeClaimTemplates/0/spec/resources/requests/storage";

/// The condition that tells whether the database has the size of the spec.
const SIZE_CONDITION: &str = "DatabaseSized";

impl Run<'_> {
    /// Adds database and files if the spec asks for them.
    pub(crate) fn with_storage(&self, desired: Desired) -> Desired {
        self.with_files(self.with_database(desired))
    }

    /// The size of the claims of a `StatefulSet` cannot be changed: the first one stays, and a
    /// condition says so.
    fn with_database(&self, desired: Desired) -> Desired {
        let spec = &self.shop().spec;
        let sized = condition::is_true(SIZE_CONDITION, "AsInSpec", "");
        if spec.storage == 0 {
            return desired.condition(sized);
        }
        let name = self.name("-db");
        let wanted = format!("{}Gi", spec.storage);
        let present = self.observed.owned::<Raw<StatefulSet>>(&name);
        let present = present.and_then(|owned| owned.object.field::<String>(SIZE).ok()?);
        let is_recreated = self.has(Bug::RecreatesDatabase);
        let size = present.filter(|_| !is_recreated).unwrap_or_else(|| wanted.clone());
        let labels = json!({"shop-db": self.observed.name()});
        let claim = json!({"metadata": {"name": "data"}, "spec": claim(&size, None)});
        let set = json!({"spec": {
            "replicas": 1, "serviceName": name, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "db", "image": "db:1"}]}},
            "volumeClaimTemplates": [claim]}});
        let set = Raw::<StatefulSet>::new(name, set);
        let policy = is_recreated.then_some(Policy::RecreateWhenImmutable);
        let desired = desired.object_with(set, policy);
        if size == wanted || self.has(Bug::KeepsSizeSilently) {
            return desired.condition(sized);
        }
        desired.condition(condition::is_false(
            SIZE_CONDITION,
            "CannotChange",
            format!("the database has {size}, and its size cannot be changed"),
        ))
    }

    fn with_files(&self, desired: Desired) -> Desired {
        let spec = &self.shop().spec;
        let is_dropped = match self.bug {
            Bug::DropsFilesWhileUnready => {
                !self.observed.is_ready::<Deployment>(self.observed.name())
            }
            Bug::DeletesClaimOfLostPod => self.lost_pods() > 0,
            _ => false,
        };
        if !spec.files || is_dropped {
            return desired;
        }
        let class = self.has(Bug::RecreatesFiles).then(|| format!("class-{}", spec.replicas));
        let body = json!({"spec": claim("1Gi", class)});
        let files = Raw::<PersistentVolumeClaim>::new(self.name("-files"), body);
        let policies: &[Policy] = match self.bug {
            Bug::DropsFilesWhileUnready | Bug::DeletesClaimOfLostPod => &[Policy::Deletable],
            Bug::RecreatesFiles => &[Policy::RecreateWhenImmutable, Policy::Deletable],
            _ => &[],
        };
        desired.object_with(files, policies.iter().copied())
    }
}

fn claim(size: &str, class: Option<String>) -> Value {
    let mut claim = json!({"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}}});
    if let Some(class) = class {
        claim["storageClassName"] = class.into();
    }
    claim
}
