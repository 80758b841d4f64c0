use innkeeper_sdk::{Column, CustomResource, Metadata, Rule, kind};
use serde::{Deserialize, Serialize};

use crate::restored_from::{ReportedStatus, RestoredFrom};
#[cfg(not(target_arch = "wasm32"))]
use crate::volume_spec::CLAIM_NAME;

/// The sizes of volumes: quantities.
#[cfg(not(target_arch = "wasm32"))]
const QUANTITY: &str = "^[0-9]+(\\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$";

/// Returns the rule of sizes in the CRD.
#[cfg(not(target_arch = "wasm32"))]
fn cannot_shrink() -> innkeeper_sdk::serde_json::Value {
    innkeeper_sdk::serde_json::json!([{
        "rule": "quantity(self).compareTo(quantity(oldSelf)) >= 0",
        "message": "a volume cannot shrink",
    }])
}

/// A `PostgreSQL`, as the guest reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct PostgreSQL {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: PostgreSQLSpec,
    /// Status of the last run.
    #[serde(default)]
    pub status: Option<ReportedStatus>,
}

/// Desired state of a PostgreSQL.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct PostgreSQLSpec {
    /// Name of the database. Immutable, because nothing would move the data.
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(min = 1, max = 63),
            extend("x-kubernetes-validations" = [
                { "rule": "self == oldSelf", "message": "the database cannot be renamed: create another PostgreSQL and move the data" },
                { "rule": "!(self in ['template0', 'template1'])", "message": "PostgreSQL reserves this name" },
            ])
        )
    )]
    pub db: String,
    /// User of the database. Immutable, because the former user would keep its password.
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(min = 1, max = 63),
            extend("x-kubernetes-validations" = [
                { "rule": "self == oldSelf", "message": "the user cannot be renamed: the former user would keep its password" },
                { "rule": "!self.startsWith('pg_')", "message": "PostgreSQL reserves names that begin with pg_" },
            ])
        )
    )]
    pub user: String,
    /// Name of a Secret in the same namespace with the user's password under the key
    /// `postgresql_password`. A changed password rolls out a new pod.
    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(min = 1, max = 253)))]
    pub password: String,
    /// Image with the programs of PostgreSQL. A server cannot read the data of another major
    /// version.
    #[serde(default = "image")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(min = 1)))]
    pub image: String,
    /// Volume of the data.
    #[serde(default)]
    pub storage: Storage,
    /// Schedule and retention of the backups.
    #[serde(default)]
    pub backup: Backup,
    /// Whether to keep data and backups when this `PostgreSQL` is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

/// The volume of the data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Storage {
    /// Size, a quantity. It can grow if the storage class allows volume expansion, and cannot
    /// shrink.
    #[serde(default = "one_gib")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(max = 32),
            regex(pattern = QUANTITY),
            extend("x-kubernetes-validations" = cannot_shrink())
        )
    )]
    pub size: String,
    /// Storage class of the volume of the data, and of the backups unless `spec.backup` says
    /// otherwise; the cluster's default if left out. The class of an existing claim cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(min = 1, max = 253)))]
    pub class_name: Option<String>,
    /// Existing `PersistentVolumeClaim` in the same namespace, in place of one that is created.
    /// It is only mounted, never changed or deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(min = 1, max = 253),
            regex(pattern = CLAIM_NAME)
        )
    )]
    pub claim_name: Option<String>,
    /// Keeps the data in the pod (emptyDir), as the original operator did. A new pod restores the
    /// newest backup; later rows are lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<bool>,
}

/// The schedule and retention of the backups.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Backup {
    /// Schedule in the five fields of cron.
    #[serde(default = "every_minute")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(length(max = 100), regex(pattern = "^(@[a-z]+|[^ ]+( [^ ]+){4})$"))
    )]
    pub schedule: String,
    /// Number of newest backups to keep, in addition to one per hour for 24 hours and one per day
    /// for 7 days.
    #[serde(default = "ten")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(range(min = 1, max = 1000)))]
    pub keep: u32,
    /// Size of the volume of the backups, a quantity. It can grow if the storage class allows
    /// volume expansion.
    #[serde(default = "one_gib")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(max = 32),
            regex(pattern = QUANTITY),
            extend("x-kubernetes-validations" = cannot_shrink())
        )
    )]
    pub size: String,
    /// Storage class of the volume of the backups; `spec.storage.className` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(length(min = 1, max = 253)))]
    pub class_name: Option<String>,
    /// Existing `PersistentVolumeClaim` in the same namespace, in place of one that is created.
    /// Several databases may share it: each has the directory `<name>.backups` there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        schemars(
            length(min = 1, max = 253),
            regex(pattern = CLAIM_NAME)
        )
    )]
    pub claim_name: Option<String>,
}

/// Whether data and backups outlive a deleted `PostgreSQL`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub enum DeletionPolicy {
    /// Keeps the volumes; a later `PostgreSQL` of the same name and namespace adopts them.
    #[default]
    Retain,
    /// Deletes the volumes.
    Delete,
}

/// Observed state of a PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct PostgreSQLStatus {
    /// Pod of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Whether the init container has prepared the pod's data (as the pod's label `appReady`).
    pub app_ready: bool,
    /// Time at which the last successful backup completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(extend("format" = "date-time")))]
    pub last_backup: Option<String>,
    /// Backup from which the data was restored, because the volume of the data was empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<RestoredFrom>,
}

impl Default for Storage {
    fn default() -> Self {
        Self { size: one_gib(), class_name: None, claim_name: None, ephemeral: None }
    }
}

impl Default for Backup {
    fn default() -> Self {
        Self {
            schedule: every_minute(),
            keep: ten(),
            size: one_gib(),
            class_name: None,
            claim_name: None,
        }
    }
}

/// Not `latest`, which would become another major version, which cannot read the data.
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

kind!(Primary for PostgreSQL, "exp.wheel.jp/v1", "postgresqls");

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
        message: "the name of a PostgreSQL names its Service: use at most 63 lower-case letters, digits and `-`, beginning with a letter and not ending with `-`",
    }];
}
