//! Drift: changes of the module's objects by other writers, and how often they are set back.

use serde_json::json;

use crate::support::{
    Script, Stage, block_on, complete, config_map, config_map_path, count, desired,
};

#[test]
fn drift_is_repaired_by_one_write_of_the_object_that_changed() {
    block_on(async {
        // Given a primary with two objects.
        let stage = Stage::start(Script::new()).await;
        let spec = complete(&desired(&[config_map("a", "1"), config_map("b", "1")]));
        stage.create("one", &spec).await;
        stage.settle().await;
        stage.writes();

        // When an administrator changes one and deletes the other.
        stage.apply(&config_map("a", "drift")).await;
        stage.settle().await;
        let repair = stage.writes();
        stage.api().delete(&config_map_path("b")).await.unwrap();
        stage.settle().await;

        // Then each is written once, and the status, which has not changed, is not.
        assert_eq!(repair, ["apply configmaps/a"]);
        assert_eq!(stage.writes(), ["apply configmaps/b"]);
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "1");
        assert!(stage.config_map("b").await.is_some());
    });
}

#[test]
fn field_that_the_guest_does_not_give_is_left_to_others() {
    block_on(async {
        // Given a primary with an object.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
        stage.settle().await;
        stage.writes();

        // When a user adds a key and a label to it.
        let change = json!({"metadata": {"labels": {"team": "red"}}, "data": {"more": "theirs"}});
        stage.merge_at(&config_map_path("a"), &change).await;
        stage.settle().await;

        // Then nothing is written.
        assert_eq!(stage.writes(), [""; 0]);

        // When the guest desires another value, then both stay.
        stage.set_spec("one", &complete(&desired(&[config_map("a", "2")]))).await;
        stage.settle().await;
        let object = stage.config_map("a").await.unwrap();
        assert_eq!(object["data"], json!({"value": "2", "more": "theirs"}));
        assert_eq!(object["metadata"]["labels"]["team"], "red");
    });
}

#[test]
fn field_that_another_writer_sets_again_and_again_is_left_alone_for_ten_minutes() {
    block_on(async {
        // Given a primary with an object, and a writer that changes it each five seconds.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &complete(&desired(&[config_map("a", "1")]))).await;
        stage.settle().await;
        stage.writes();

        // When it has done so ten times.
        for number in 0..10 {
            stage.apply(&config_map("a", &format!("theirs-{number}"))).await;
            stage.pass(5).await;
        }

        // Then the host has set the field back six times, and names field and writer.
        let message = stage.until_primary("one", "Synced", "False", "Contested").await;
        assert!(message.contains(".data.value") && message.contains("innkeeper-test"), "{message}");
        assert_eq!(count(&stage.writes())["apply configmaps/a"], 6);
        stage.pass(500).await;
        assert_eq!(stage.writes(), [""; 0]);
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "theirs-9");

        // When ten minutes have passed since the first, then the host sets it back once more.
        stage.pass(60).await;
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "1");
        stage.until_primary("one", "Synced", "True", "Applied").await;
    });
}
