//! `innkeeper demo` on a real control plane: the same scenarios as on a simulated cluster, and a
//! cluster that is afterwards as it was before.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use innkeeper_cluster_tests::stage::{program, root};
use innkeeper_cluster_tests::{Admin, ControlPlane, Kind, Options, name_of};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// How long a whole demo may take.
const BOUND: Duration = Duration::from_mins(6);

/// The result of each scenario, in order, as on a simulated cluster.
const RESULTS: &str = include_str!("../../demo-results.txt");
/// The last line, when the demo has deleted what it made.
const END: &str = "The demo left nothing on the cluster";

fn demo(kubeconfig: &Path, cache: &Path, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(program()?);
    command.arg("demo").arg("--kubeconfig").arg(kubeconfig).arg("--cache-dir").arg(cache);
    command.arg("--components").arg(root().join("guests/target/components")).args(arguments);
    // It may not be what decides on which cluster it is played.
    command.env("KUBECONFIG", "/nowhere");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    Ok(command)
}

/// All that is in the cluster and not in a namespace, and what is in the namespace that everybody
/// has.
async fn everything(admin: &Admin) -> Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for (api_version, kind) in [
        ("v1", "Namespace"),
        ("v1", "Node"),
        ("v1", "PersistentVolume"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ] {
        for one in admin.list(Kind::new(api_version, kind), "").await? {
            all.insert(format!("{kind} {}", name_of(&one)));
        }
    }
    for (api_version, kind) in [
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("v1", "Pod"),
    ] {
        for one in admin.list(Kind::new(api_version, kind), "default").await? {
            all.insert(format!("{kind} default/{}", name_of(&one)));
        }
    }
    Ok(all)
}

async fn is_as_before(admin: &Admin, before: &BTreeSet<String>) -> Result<()> {
    let now = everything(admin).await?;
    let different: Vec<_> = now.symmetric_difference(before).collect();
    assert!(different.is_empty(), "there now or before: {different:?}");
    Ok(())
}

/// Reads on until a line begins so.
async fn until(lines: &mut Lines<BufReader<ChildStdout>>, beginning: &str) -> Result<()> {
    let found = async {
        while let Some(line) = lines.next_line().await? {
            if line.starts_with(beginning) {
                return anyhow::Ok(());
            }
        }
        bail!("it ends without {beginning:?}")
    };
    timeout(BOUND, found).await.with_context(|| format!("{beginning:?} does not come"))?
}

async fn complaints(child: &mut Child) -> Result<String> {
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).await?;
    Ok(text)
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_succeeds_and_leaves_nothing_on_the_cluster() -> Result<()> {
    let options = Options { controller_manager: true, ..Options::default() };
    let plane = tokio::task::spawn_blocking(move || ControlPlane::start(&options)).await??;
    let admin = Admin::of(&plane).await?;
    let folder = tempfile::tempdir()?;
    let cache = folder.path().join("code");
    let before = everything(&admin).await?;

    // Somebody's namespace of the same name is nothing for a demo.
    let namespace = Kind::NAMESPACE;
    admin.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: demo}\n").await?;
    let refused = demo(plane.kubeconfig(), &cache, &["--once"])?.output().await?;
    let stderr = String::from_utf8(refused.stderr)?;
    assert_eq!(refused.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("the cluster already has /api/v1/namespaces/demo;"), "{stderr}");
    admin.delete(namespace, "", "demo").await?;
    admin.until_gone(BOUND, (namespace, "", "demo")).await?;
    is_as_before(&admin, &before).await?;

    // One that is killed leaves things behind.
    let mut killed = demo(plane.kubeconfig(), &cache, &["--fast"])?.spawn()?;
    let mut lines = BufReader::new(killed.stdout.take().unwrap()).lines();
    until(&mut lines, "= Service production routes to example-maintpage-maintpage-pod").await?;
    killed.kill().await?;
    assert!(everything(&admin).await?.len() > before.len());

    // The next one takes them up, runs all scenarios, and removes everything.
    let output = demo(plane.kubeconfig(), &cache, &["--once", "--fast"])?.output();
    let output = timeout(BOUND, output).await.context("the demo does not end")??;
    let (stdout, stderr) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    assert!(output.status.success(), "{stderr}{stdout}");
    let mut lines = stdout.lines();
    for result in RESULTS.lines().chain([END]) {
        assert!(lines.any(|line| line.starts_with(result)), "{result}, in order, in:\n{stdout}");
    }
    let why = "reconciled because Podroute demo/test-podroute changed";
    assert!(stdout.contains(why), "{why}, in:\n{stdout}");
    is_as_before(&admin, &before).await?;

    // Ctrl-C ends it at any time, and it takes away what it has made.
    let mut stopped = demo(plane.kubeconfig(), &cache, &[])?.spawn()?;
    let mut lines = BufReader::new(stopped.stdout.take().unwrap()).lines();
    until(&mut lines, "The user applies the samples").await?;
    let pid = i32::try_from(stopped.id().unwrap())?;
    kill_process(Pid::from_raw(pid).unwrap(), Signal::INT)?;
    until(&mut lines, END).await?;
    let status = timeout(BOUND, stopped.wait()).await.context("the demo does not end")??;
    assert!(status.success(), "{}", complaints(&mut stopped).await?);
    is_as_before(&admin, &before).await
}
