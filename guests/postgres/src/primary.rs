use innkeeper_sdk::{Column, CustomResource, Metadata, Primary, Resource, Rule};
use serde::{Deserialize, Serialize};

/// A `PostgreSQL`, as the guest reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct PostgreSQL {
    /// Its metadata.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: PostgreSQLSpec,
}

/// What is wanted.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct PostgreSQLSpec {
    /// The database's name. It cannot be changed: nothing would move the data.
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(min = 1, max = 63),
            extend("x-kubernetes-validations" = [
                { "rule": "self == oldSelf", "message": "the database cannot be renamed: make another PostgreSQL and move the data" },
                { "rule": "!(self in ['template0', 'template1'])", "message": "the server keeps this name for itself" },
            ])
        )
    )]
    pub db: String,
    /// The database's user. It cannot be changed: the old one would keep its password.
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(min = 1, max = 63),
            extend("x-kubernetes-validations" = [
                { "rule": "self == oldSelf", "message": "the user cannot be renamed: the old one would stay, with its password" },
                { "rule": "!self.startsWith('pg_')", "message": "the server keeps names that begin with pg_ for itself" },
            ])
        )
    )]
    pub user: String,
    /// The name of a Secret of the same namespace, whose key `postgresql_password` holds the
    /// user's password. A changed password is rolled out.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(min = 1, max = 253)))]
    pub password: String,
    /// The image, which has the programs of PostgreSQL. Another major version does not read the
    /// data of the one before.
    #[serde(default = "image")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(min = 1)))]
    pub image: String,
    /// Where the data lies.
    #[serde(default)]
    pub storage: Storage,
    /// When the database is backed up, and how many backups are kept.
    #[serde(default)]
    pub backup: Backup,
    /// What becomes of data and backups when this `PostgreSQL` is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

/// Where the data lies.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
#[cfg_attr(
    not(target_arch = "wasm32"),
    schemars(extend("x-kubernetes-validations" = [{
        "rule": "has(self.className) == has(oldSelf.className) && (!has(self.className) || self.className == oldSelf.className)",
        "message": "the class of a volume cannot be changed",
    }]))
)]
pub struct Storage {
    /// How much: a quantity. It can grow, where the storage class can, and not shrink.
    #[serde(default = "one_gib")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(max = 32),
            regex(pattern = "^[0-9]+(\\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$"),
            extend("x-kubernetes-validations" = [{
                "rule": "quantity(self).compareTo(quantity(oldSelf)) >= 0",
                "message": "a volume cannot shrink",
            }])
        )
    )]
    pub size: String,
    /// The storage class of data and backups; the cluster's default if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(min = 1, max = 253)))]
    pub class_name: Option<String>,
}

/// When the database is backed up, and how many backups are kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Backup {
    /// When, in cron's five fields.
    #[serde(default = "every_minute")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(length(max = 100), regex(pattern = "^(@[a-z]+|[^ ]+( [^ ]+){4})$"))
    )]
    pub schedule: String,
    /// How many of the newest are kept, beside one an hour for 24 hours and one a day for 7 days.
    #[serde(default = "ten")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(range(min = 1, max = 1000)))]
    pub keep: u32,
    /// How much room they have: a quantity. It can grow, where the storage class can.
    #[serde(default = "one_gib")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(max = 32),
            regex(pattern = "^[0-9]+(\\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$"),
            extend("x-kubernetes-validations" = [{
                "rule": "quantity(self).compareTo(quantity(oldSelf)) >= 0",
                "message": "a volume cannot shrink",
            }])
        )
    )]
    pub size: String,
}

/// What becomes of data and backups when the `PostgreSQL` is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub enum DeletionPolicy {
    /// They stay, and a `PostgreSQL` of the same name and namespace takes them up again.
    #[default]
    Retain,
    /// They go with it.
    Delete,
}

/// What is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct PostgreSQLStatus {
    /// The pod that serves, or that will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Whether its data has been prepared (as the pod's label `appReady`).
    pub app_ready: bool,
    /// When a backup succeeded last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(extend("format" = "date-time")))]
    pub last_backup: Option<String>,
}

impl Default for Storage {
    fn default() -> Self {
        Self { size: one_gib(), class_name: None }
    }
}

impl Default for Backup {
    fn default() -> Self {
        Self { schedule: every_minute(), keep: ten(), size: one_gib() }
    }
}

/// Not the newest: that would be another major version one day, which cannot read the data.
fn image() -> String {
    "postgres:15".to_owned()
}

fn one_gib() -> String {
    "1Gi".to_owned()
}

fn every_minute() -> String {
    "* * * * *".to_owned()
}

fn ten() -> u32 {
    10
}

impl Resource for PostgreSQL {
    const API_VERSION: &'static str = "exp.wheel.jp/v1";
    const KIND: &'static str = "PostgreSQL";
    const PLURAL: &'static str = "postgresqls";
}

impl Primary for PostgreSQL {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl CustomResource for PostgreSQL {
    type Spec = PostgreSQLSpec;
    type Status = PostgreSQLStatus;

    const SHORT_NAMES: &'static [&'static str] = &["pg"];
    const COLUMNS: &'static [Column] = &[
        Column::text("Database", ".spec.db"),
        Column::text("User", ".spec.user"),
        Column::text("Ready", ".status.conditions[?(@.type==\"Ready\")].status"),
        Column::date("Backup", ".status.lastBackup"),
    ];
    const RULES: &'static [Rule] = &[Rule {
        rule: "self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        message: "the name of a PostgreSQL is its Service's: at most 63 lower-case letters, digits and `-`, beginning with a letter and not ending with `-`",
    }];
}
