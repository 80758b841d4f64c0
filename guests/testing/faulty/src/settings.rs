//! The ConfigMaps of a Shop.

use std::collections::BTreeMap;

use innkeeper_sdk::kinds::{ConfigMap, Ingress};
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::serde_json::json;
use serde::Deserialize;

use crate::bug::Bug;
use crate::run::Run;
use crate::shop::Shop;

/// The annotation with a hash of the content.
const HASH: &str = "shop.example/hash";

/// The name of an object that all Shops share.
const SHARED: &str = "shops";

/// A ConfigMap that exists.
#[derive(Deserialize)]
struct Settings {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

kind!(Resource for Settings = ConfigMap::KIND, ConfigMap::API_VERSION, ConfigMap::PLURAL);

impl Run<'_> {
    /// The name of the ConfigMap with the settings.
    pub(crate) fn settings_name(&self) -> String {
        let note = &self.shop().status.note;
        match self.bug {
            Bug::SharedSettings => "shop-settings-of-all".to_owned(),
            Bug::NameByTime if note.is_empty() => {
                // Names have no colons.
                let now = self.context.now().to_string().to_lowercase().replace(':', "-");
                self.name(&format!("-settings-{now}"))
            }
            Bug::NameByTime => note.clone(),
            _ => self.name("-settings"),
        }
    }

    /// Adds the ConfigMap with the settings.
    pub(crate) fn with_settings(&self, mut desired: Desired) -> Desired {
        let name = self.settings_name();
        let present = self.observed.owned::<Settings>(&name).map(|owned| owned.object);
        let status = &self.shop().status;
        if self.has(Bug::HandsOver) && self.is_last() {
            desired = desired.object(ConfigMap::new(SHARED).data("of", self.observed.name()));
        }
        if self.has(Bug::SkipsInitialized) {
            let extra = self.name("-extra");
            if !status.initialized || self.observed.owned::<Settings>(&extra).is_some() {
                desired = desired.object(ConfigMap::new(extra));
            }
        }
        let data = self.data(present.as_ref());
        let hash = hash(&data);
        let is_kept = match self.bug {
            Bug::SetsUpOnce => status.initialized,
            Bug::SettingsOnlyAtFirst => {
                self.page_names().iter().any(|name| self.observed.owned::<Settings>(name).is_some())
            }
            Bug::SkipsKnownGeneration => status.count == self.shop().metadata.generation,
            Bug::ComparesHash => present
                .as_ref()
                .is_some_and(|one| one.metadata.annotations.get(HASH) == Some(&hash)),
            _ => false,
        };
        if is_kept {
            return desired.keep::<ConfigMap>("", &name);
        }
        if self.has(Bug::MergesIntoForeign) && present.is_none() && self.is_foreign(&name) {
            let merged = ConfigMap::new(name).data("shop", self.observed.name());
            return desired.object_with(merged, [Policy::Merge]);
        }
        let mut map = ConfigMap::new(name).label("shop", self.observed.name());
        for (key, value) in data {
            map = map.data(&key, value);
        }
        if self.has(Bug::ComparesHash) {
            map = map.annotation(HASH, &hash);
        }
        desired.object_with(map, self.has(Bug::CreatesOnly).then_some(Policy::CreateOnly))
    }

    fn is_foreign(&self, name: &str) -> bool {
        self.context.get::<Settings>(self.observed.namespace(), name).is_ok()
    }

    fn is_last(&self) -> bool {
        let shops = self.context.list::<Shop>(self.observed.namespace(), "");
        let names = shops.into_iter().flatten().map(|shop| shop.object.metadata.name);
        names.max().is_none_or(|last| last == self.observed.name())
    }

    fn data(&self, present: Option<&Settings>) -> BTreeMap<String, String> {
        let shop = self.shop();
        let mut data = shop.spec.settings.clone();
        let was = |key: &str| present.and_then(|present| present.data.get(key));
        let mut set = |key: &str, value: String| drop(data.insert(key.to_owned(), value));
        match self.bug {
            Bug::TimeInData => set("time", self.context.now().to_string()),
            Bug::GenerationInData => set("generation", shop.metadata.generation.to_string()),
            Bug::CountsOthers => {
                let shops = self.context.list::<Shop>(self.observed.namespace(), "");
                set("shops", shops.map_or(0, |shops| shops.len()).to_string());
            }
            Bug::CountRunsOfRareShop if !self.has_rare(self.bug) => {}
            Bug::CountRuns | Bug::CountRunsOfRareShop => {
                let count = was("runs").and_then(|runs| runs.parse().ok());
                set("runs", (count.unwrap_or(0_u64) + 1).to_string());
            }
            Bug::Alternate => {
                let side = if was("side").is_some_and(|side| side == "a") { "b" } else { "a" };
                set("side", side.to_owned());
            }
            Bug::WholeUid => set("id", shop.metadata.uid.clone()),
            Bug::PartOfUid => set("id", shop.metadata.uid.chars().take(8).collect()),
            // As a map with a random seed lists its keys.
            Bug::UnorderedList => {
                let mut keys = ["color", "size", "weight", "price"];
                keys.sort_by_key(|key| hash_of(&format!("{}{key}", shop.metadata.uid)));
                set("keys", keys.join(","));
            }
            Bug::PasswordInSettings => set("password", self.password().unwrap_or_default()),
            Bug::NamesTooFewFields => set("note", self.note()),
            Bug::KeepsSettings => {
                for (key, value) in present.map(|present| present.data.clone()).unwrap_or_default()
                {
                    data.entry(key).or_insert(value);
                }
            }
            _ => {}
        }
        data
    }

    /// Adds the ConfigMaps of the pages.
    pub(crate) fn with_pages(&self, mut desired: Desired) -> Desired {
        let shop = self.shop();
        if self.has(Bug::UndeclaredKind) && shop.spec.settings.contains_key("z") {
            desired = desired.object(Raw::<Ingress>::new("z", json!({"spec": {}})));
        }
        let names = self.page_names();
        let namespace = shop.spec.settings.get("a").filter(|_| self.has(Bug::ForeignNamespace));
        desired.objects(names.iter().map(|name| {
            let page = Raw::<ConfigMap>::new(name, json!({"data": {"page": name}}));
            match namespace {
                Some(namespace) => page.namespace(namespace),
                None => page,
            }
        }))
    }

    fn page_names(&self) -> Vec<String> {
        let mut pages = self.shop().spec.pages.clone();
        pages.sort();
        let prefix = self.name("-page-");
        // What makes a name of a text: other characters become a digit.
        let name = |page: &str| {
            if self.has(Bug::NameFromSetting) {
                return format!("{prefix}{page}");
            }
            let safe = page.chars().map(|one| if one.is_ascii_lowercase() { one } else { '0' });
            format!("{prefix}{}0", safe.take(20).collect::<String>())
        };
        let mut names: Vec<String> = pages.iter().map(|page| name(page)).collect();
        if !self.has(Bug::DuplicatePages) {
            // Different pages can have one name.
            names.sort();
            names.dedup();
        }
        if self.has(Bug::KeepsPages) {
            for owned in self.observed.all_owned::<Raw<ConfigMap>>() {
                let present = owned.object.metadata.name.clone();
                if present.starts_with(&prefix) && !names.contains(&present) {
                    names.push(present);
                }
            }
        }
        names
    }
}

fn hash(data: &BTreeMap<String, String>) -> String {
    format!("{:016x}", hash_of(&format!("{data:?}")))
}

/// FNV-1a, <http://www.isthe.com/chongo/tech/comp/fnv/>.
fn hash_of(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
