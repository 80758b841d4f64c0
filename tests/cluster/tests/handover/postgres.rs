//! From the original shell operator of postgres.

use anyhow::Result;
use innkeeper_cluster_tests::readme::postgres::{
    ADOPT, ALL, APPROVE, CLAIM, END, INSTALL, NAME_CLAIM, SAVE, STOP,
};
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Admin, Kind, kubelet, name_of};
use serde_json::{Value, json};

use crate::definitions::v1beta1;
use crate::original::{Original, OriginalObject};
use crate::takeover::{Takeover, controlled_by, uids};

const POSTGRESQL: Kind = Kind::new("exp.wheel.jp/v1", "PostgreSQL");
/// The one that the README's commands name, in the namespace `default`.
const NAME: &str = "foodb";
/// One whose objects have a controller reference.
const OWNED: &str = "bardb";

/// The claim that the README's commands create.
const CLAIM_NAME: &str = "foodb-original";

/// As the original's shell script installed it: no schema, no status subresource.
fn definition() -> Value {
    let names = ("PostgreSQL", "postgresqls", "postgresql");
    v1beta1(("exp.wheel.jp", "v1"), names, &Value::Null, false)
}

fn postgresql(name: &str) -> Value {
    json!({"apiVersion": POSTGRESQL.api_version, "kind": POSTGRESQL.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"db": "foo", "user": "foo", "password": "foodb-password"}})
}

fn objects(name: &str) -> [Value; 2] {
    let labels = json!({ "name": name });
    [
        json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": "NodePort", "selector": labels, "ports": [{"port": 5432}]}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "postgres", "image": "postgres:latest",
                            "ports": [{"containerPort": 5432}],
                            "volumeMounts": [
                                {"name": "data", "mountPath": "/var/lib/postgresql/data"}]}],
                        "volumes": [{"name": "data", "emptyDir": {}}]}}}}),
    ]
}

fn at(name: &str) -> [(Kind, &str, &str); 2] {
    [(Kind::SERVICE, "default", name), (Kind::DEPLOYMENT, "default", name)]
}

/// A default class with volumes, which the controller manager binds.
async fn volumes(admin: &Admin) -> Result<()> {
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {
            "storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "Immediate"});
    admin.apply(&class.to_string()).await?;
    for number in 0..4 {
        let name = format!("volume-{number}");
        let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": "standard", "hostPath": {"path": format!("/nowhere/{name}")}}});
        admin.apply(&volume.to_string()).await?;
    }
    Ok(())
}

/// The names of all claims, in order.
async fn claims(admin: &Admin) -> Result<Vec<String>> {
    let claims = admin.list(Kind::CLAIM, "default").await?;
    let mut names: Vec<_> = claims.iter().map(|claim| name_of(claim).to_owned()).collect();
    names.sort();
    Ok(names)
}

/// The blocks of commands that need containers run in `acceptance_volumes.rs`.
#[tokio::test(flavor = "multi_thread")]
async fn postgresqls_are_handed_over_with_their_definition_and_objects() -> Result<()> {
    let takeover = Takeover::new(&[("postgres", &ALL)], &[definition()]).await?;
    let (stage, admin) = (&takeover.stage, takeover.admin());
    let pods = tokio::spawn(kubelet::run_all(admin.clone()));
    let account = (Kind::SERVICE_ACCOUNT, "default", "default");
    admin.until("the namespace has its account", SOON, account, |_| true).await?;
    volumes(admin).await?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "foodb-password", "namespace": "default"},
        "data": {"postgresql_password": "bXlwYXNzd29yZA=="}});
    admin.apply(&secret.to_string()).await?;
    let owner = admin.create(&postgresql(OWNED).to_string()).await?;
    for object in objects(OWNED) {
        admin.create(&controlled_by(object, &owner).to_string()).await?;
    }
    admin.create(&postgresql(NAME).to_string()).await?;
    let of_original = objects(NAME).map(|object| OriginalObject::new(object, &[])).into();
    let original = Original::start(admin, "postgres", of_original).await?;
    let before = [uids(admin, &at(OWNED)).await?, uids(admin, &at(NAME)).await?];

    let saved = takeover.run_block("postgres", SAVE).await?;
    assert_eq!(saved, "");
    takeover.run_block("postgres", STOP).await?;
    assert_eq!(original.writes().await?, [""; 0], "nothing was missing");
    takeover.run_block("postgres", CLAIM).await?;
    let named = takeover.run_block("postgres", NAME_CLAIM).await?;
    assert!(named.ends_with(CLAIM_NAME), "the definition keeps the field: {named}");

    // Nothing changes before the user approves the definition: no candidate is active.
    let shown = takeover.run_block("postgres", INSTALL).await?;
    assert!(shown.contains("preserveUnknownFields"), "{shown}");
    assert_eq!(claims(admin).await?, [CLAIM_NAME]);
    takeover.run_block("postgres", APPROVE).await?;
    let definition = admin.must_get(Kind::CRD, "", "postgresqls.exp.wheel.jp").await?;
    let version = &definition["spec"]["versions"][0];
    assert!(version["subresources"]["status"].is_object(), "{version:#}");
    stage.synced((POSTGRESQL, "default", OWNED)).await?;
    stage.says((POSTGRESQL, "default", NAME), ("Synced", "False", "Conflict")).await?;

    let untouched = ["bardb-backups", "bardb-data", CLAIM_NAME];
    assert_eq!(claims(admin).await?, untouched, "nothing is made for it without consent");

    takeover.run_block("postgres", ADOPT).await?;
    for (name, before) in [OWNED, NAME].into_iter().zip(before) {
        stage.synced((POSTGRESQL, "default", name)).await?;
        assert_eq!(uids(admin, &at(name)).await?, before, "the same objects");
    }
    let all = ["bardb-backups", "bardb-data", "foodb-data", CLAIM_NAME];
    assert_eq!(claims(admin).await?, all, "the backups are on the claim that the spec names");
    takeover.run_block("postgres", END).await?;
    let postgresql = admin.must_get(POSTGRESQL, "default", NAME).await?;
    assert!(postgresql["metadata"]["annotations"]["innkeeper.dev/adopt"].is_null());
    stage.synced((POSTGRESQL, "default", NAME)).await?;
    pods.abort();
    Ok(())
}
