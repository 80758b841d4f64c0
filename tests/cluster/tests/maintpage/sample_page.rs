//! The sample's MaintPage, and what a user does with its toggle.

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, Stage, kubelet};
use serde_json::{Value, json};

use crate::toggle::{MAINTPAGE, toggled, until_published, until_routed};

/// The MaintPage of the sample, with its application and its page.
pub(crate) struct SamplePage<'a> {
    pub(crate) stage: &'a Stage,
    /// Its namespace.
    pub(crate) ns: &'a str,
}

impl SamplePage<'_> {
    const NAME: &'static str = "example-maintpage";
    const PAGE: &'static str = "example-maintpage-maintpage-pod";
    const APP: &'static str = "production";

    fn at(&self) -> (Kind, &str, &str) {
        (MAINTPAGE, self.ns, Self::NAME)
    }

    async fn toggle(&self, on: bool) -> Result<()> {
        self.stage.admin.edit(self.at(), &toggled(on)).await?;
        Ok(())
    }

    /// Waits until the Service routes to the application.
    async fn serves_the_app(&self) -> Result<Value> {
        until_routed(&self.stage.admin, self.ns, Self::APP, Self::APP).await
    }

    /// Waits until the Service routes to the page.
    async fn serves_the_page(&self) -> Result<Value> {
        until_routed(&self.stage.admin, self.ns, Self::APP, Self::NAME).await
    }

    async fn until_published(&self, status: (&str, &str)) -> Result<Value> {
        until_published(self.stage, self.ns, Self::NAME, status).await
    }

    /// Has the application and the page run.
    pub(crate) async fn both_sides_answer(&self) -> Result<()> {
        kubelet::runs_all(&self.stage.admin, self.ns, ("app", Self::APP), 1).await?;
        kubelet::runs(&self.stage.admin, self.ns, Self::PAGE).await?;
        self.stage.says(self.at(), ("Ready", "True", "AllReady")).await?;
        Ok(())
    }

    /// Toggles while the page does not answer; gives the message of the condition.
    pub(crate) async fn switch_waits_for_a_page_that_does_not_answer(&self) -> Result<String> {
        kubelet::is_unready(&self.stage.admin, self.ns, Self::PAGE).await?;
        self.stage.says(self.at(), ("Ready", "False", "InProgress")).await?;
        self.toggle(true).await?;
        self.until_published(("Not Published", "WaitsForPage")).await?;
        let waits = self.stage.says(self.at(), ("Ready", "False", "SwitchWaits")).await?;
        let why = format!("Pod {} is not ready: it runs but is not ready", Self::PAGE);
        assert!(waits.contains(&why), "{waits}");
        self.serves_the_app().await?;
        Ok(waits)
    }

    /// Switches with the command of the condition, although the page does not answer, and undoes
    /// that.
    pub(crate) async fn command_of_the_condition_switches_at_once(
        &self,
        condition: &str,
    ) -> Result<()> {
        let command =
            format!("kubectl -n {} patch maintpage {} --type merge -p '", self.ns, Self::NAME);
        let (_, patch) = condition.split_once(&command).unwrap();
        let patch: Value = serde_json::from_str(patch.split_once('\'').unwrap().0)?;
        self.stage.admin.edit(self.at(), &patch).await?;
        self.serves_the_page().await?;
        self.stage.says(self.at(), ("Ready", "False", "InProgress")).await?;
        let when_ready =
            json!({"spec": {"maintpageconfig": {"switch": null, "maintpagetoggle": false}}});
        self.stage.admin.edit(self.at(), &when_ready).await?;
        self.serves_the_app().await?;
        Ok(())
    }

    /// Toggles, and has the page answer later.
    pub(crate) async fn service_moves_once_the_page_answers(&self) -> Result<()> {
        self.toggle(true).await?;
        self.stage.says(self.at(), ("Ready", "False", "SwitchWaits")).await?;
        kubelet::runs(&self.stage.admin, self.ns, Self::PAGE).await?;
        self.serves_the_page().await?;
        self.until_published(("Published", "Toggled")).await?;
        self.stage.says(self.at(), ("Ready", "True", "AllReady")).await?;
        Ok(())
    }

    pub(crate) async fn service_moves_back(&self) -> Result<()> {
        self.toggle(false).await?;
        self.serves_the_app().await?;
        self.until_published(("Not Published", "NotToggled")).await?;
        Ok(())
    }

    /// All goes with the MaintPage, also the Pod, which the original left behind.
    pub(crate) async fn objects_go_with_the_maintpage(&self) -> Result<()> {
        let admin = &self.stage.admin;
        admin.delete(MAINTPAGE, self.ns, Self::NAME).await?;
        for (kind, child) in
            [(Kind::POD, Self::PAGE), (Kind::DEPLOYMENT, Self::APP), (Kind::SERVICE, Self::APP)]
        {
            admin.until_gone(SOON, (kind, self.ns, child)).await?;
        }
        Ok(())
    }
}
