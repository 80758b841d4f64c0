//! `cargo xtask demo`: Innkeeper at work, from nothing, on a simulated cluster or a real control plane.

mod kubectl;
mod stage;
mod view;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use innkeeper_controlplane::{ControlPlane, Options};
use serde_json::{Value, json};

use crate::command::{cargo, root, run as run_command};
use crate::progress::{Steps, say};
use crate::{cluster, guests};
use kubectl::Kubectl;
use stage::Host;
use view::View;

/// The module of the demo, as in deploy/samples/module-podroute.yaml.
const MODULE: &str = "podroute";
/// The guests of the demo on a simulated cluster.
const SHOWN: [&str; 7] = ["imo", "kabocha", "kuri", "maintpage", FIRST, SECOND, "postgres"];
/// The guest at first.
const FIRST: &str = "podroute";
/// The same with one more label on everything.
const SECOND: &str = "podroute-labelled";
/// Where the sample goes.
const NAMESPACE: &str = "demo";
/// How long each thing that is shown may take.
const BOUND: Duration = Duration::from_mins(1);
/// How often the cluster is looked at.
const POLL: Duration = Duration::from_millis(300);

/// Builds Innkeeper and its guests, and runs `innkeeper demo` with these arguments.
///
/// # Errors
/// What could not be built, or what the demo says.
pub(crate) fn run(once: bool, arguments: &[String]) -> Result<()> {
    guests::build(&root(), Some(&SHOWN))?;
    run_command(&mut cargo(&["build", "--package", "innkeeper-cli"]))?;
    simulated(once, arguments)
}

/// The same with what is built already.
pub(crate) fn simulated(once: bool, arguments: &[String]) -> Result<()> {
    let mut demo = std::process::Command::new(stage::program()?);
    demo.args(["demo", "--components"]).arg(root().join("guests/target/components"));
    demo.arg("--cache-dir").arg(innkeeper_controlplane::cache_folder()?.join("code"));
    demo.args(once.then_some("--once")).args(arguments);
    run_command(&mut demo)
}

/// Shows podroute on a real control plane; then goes on until Ctrl-C, or ends with `once`. `built`: the host is
/// built already.
///
/// # Errors
/// The first thing that did not happen in time, with the end of the host's log.
pub(crate) fn on_cluster(once: bool, built: bool) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::SeqCst)).context("catching Ctrl-C")?;

    let mut steps = Steps::new(8);
    steps.next("guests (about 2 min the first time; a Rust for wasm is looked for or installed)");
    let components = guests::build(&root(), Some(&[FIRST, SECOND]))?;
    let component = |name: &str| {
        let found = components.iter().find(|component| component.name == name);
        found.map(|one| one.path.clone()).with_context(|| format!("no component {name} was built"))
    };
    let (first, second) = (component(FIRST)?, component(SECOND)?);
    steps.end("built");

    steps.next("host (about 8 min the first time)");
    if !built {
        run_command(&mut cargo(&["build", "--package", "innkeeper-cli"]))?;
    }
    let program = stage::program()?;
    steps.end("built");

    steps.next("control plane (about 8 min the first time, 4 s afterwards)");
    let options = Options { controller_manager: true, ..Options::default() };
    let plane = ControlPlane::start_and_tell(&options, &mut |line| say(&format!("      {line}")))?;
    let kubectl = Kubectl::new(plane.kubeconfig())?;
    steps.end("ready");

    steps.next("CRD and rights of the host (deploy/)");
    kubectl.run(&["apply", "-k", &root().join("deploy").to_string_lossy()])?;
    steps.end("installed");

    steps.next("innkeeper run, as the ServiceAccount innkeeper-system/innkeeper");
    let host = Host::start(&program, &plane, &kubectl)?;
    let mut demo = Demo { kubectl, host, view: View::new(), stop, plane };
    demo.until("the host is ready", |demo| demo.host.is_ready())?;
    steps.end("ready");

    steps.next("the module podroute, and its sample");
    demo.kubectl.apply_file(&root().join("deploy/samples/module-podroute.yaml"))?;
    demo.push(&program, &first)?;
    demo.until("the module serves", |demo| {
        demo.kubectl.get("module", "", MODULE).map(|object| condition(&object, "Serving"))
    })?;
    demo.kubectl.run(&["create", "namespace", NAMESPACE])?;
    let sample = root().join("deploy/samples/podroute.yaml");
    demo.kubectl.apply_file_in(NAMESPACE, &sample)?;
    demo.until("Deployment and Service are there", |demo| {
        let deployment = demo.deployment()?;
        let service = demo.kubectl.get("service", NAMESPACE, "podroute-service")?;
        Ok(deployment["spec"]["replicas"] == 3 && service["spec"]["ports"][0]["port"] == 8080)
    })?;
    steps.end("from custom resource to objects");

    steps.next("replicas 3 -> 5");
    demo.kubectl.merge(
        "podroute",
        NAMESPACE,
        "test-podroute",
        &json!({ "spec": { "replicas": 5 } }),
    )?;
    demo.until("the Deployment follows", |demo| Ok(demo.deployment()?["spec"]["replicas"] == 5))?;
    steps.end("followed");

    steps.next("a second version of the guest, into the running host");
    let labels = demo.deployment()?["metadata"]["labels"].clone();
    demo.push(&program, &second)?;
    demo.until("the second version has written its label", |demo| {
        Ok(demo.deployment()?["metadata"]["labels"] != labels)
    })?;
    steps.end("took over");

    if !once {
        demo.go_on()?;
    }
    demo.end()
}

/// Everything that runs.
struct Demo {
    host: Host,
    kubectl: Kubectl,
    view: View,
    stop: Arc<AtomicBool>,
    plane: ControlPlane,
}

impl Demo {
    /// Shows what changes until `done`.
    fn until(&mut self, what: &str, done: impl Fn(&mut Self) -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + BOUND;
        loop {
            self.look()?;
            if done(self)? {
                return self.look();
            }
            if Instant::now() > deadline {
                let seconds = BOUND.as_secs();
                return Err(self.host.error(&format!("{seconds} s, and still not: {what}")));
            }
            thread::sleep(POLL);
        }
    }

    /// Shows what has changed since the last look. An error if something has ended.
    fn look(&mut self) -> Result<()> {
        if self.stop.load(Ordering::SeqCst) {
            bail!("stopped by Ctrl-C before everything was shown");
        }
        self.host.check()?;
        self.plane.check()?;
        self.view.show(&self.kubectl.objects(NAMESPACE)?);
        Ok(())
    }

    /// Hands a component to the module, as a user does.
    fn push(&self, program: &std::path::Path, component: &std::path::Path) -> Result<()> {
        let mut command = std::process::Command::new(program);
        command.env("KUBECONFIG", self.plane.kubeconfig());
        command.arg("push").arg(component).args(["--module", MODULE]);
        say(&format!("      $ innkeeper push {} --module {MODULE}", component.display()));
        run_command(&mut command)
    }

    fn deployment(&self) -> Result<Value> {
        self.kubectl.get("deployment", NAMESPACE, "pod-route")
    }

    /// Shows changes until Ctrl-C.
    fn go_on(&mut self) -> Result<()> {
        say("");
        say("Everything keeps running until Ctrl-C. In another terminal:");
        say(&format!("  export KUBECONFIG={}", self.plane.kubeconfig().display()));
        if let Some(alias) = cluster::kubectl_hint()? {
            say(&format!("  {alias}"));
        }
        say(&format!("  kubectl -n {NAMESPACE} get podroutes,deployments,services"));
        say(&format!(
            "  kubectl -n {NAMESPACE} scale deployment pod-route --replicas 1   # is put right"
        ));
        say(&format!(
            "  kubectl -n {NAMESPACE} delete service podroute-service           # comes back"
        ));
        say(&format!("The host's log: {}", self.host.log().display()));
        say("There is no node here, so Pods stay Pending and nothing becomes ready.");
        say("");
        while !self.stop.load(Ordering::SeqCst) {
            self.look()?;
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Ends the host, then the control plane.
    fn end(mut self) -> Result<()> {
        say("");
        self.host.end()?;
        say("The host and the control plane have ended; nothing is left behind.");
        Ok(())
    }
}

/// Whether the condition is True.
fn condition(object: &Value, name: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter().any(|condition| condition["type"] == name && condition["status"] == "True")
    })
}
