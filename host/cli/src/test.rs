//! `innkeeper test`: scenarios on a simulated cluster, or on a real one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use innkeeper_cluster::{Cluster, Env, Fence, Kube, SecretKey, Settings};
use innkeeper_contract::Manifest;
use innkeeper_lab::scenario::{Backend, Failure, Outcome, Player, Suite, junit};
use innkeeper_lab::{Api, Guests, Lab, Modules, Setup};
use serde_json::{Value, json};

use crate::logs::{self, LogFormat};
use crate::out::Page;
use crate::{code_cache, component, objects, out, rbac};

/// How long modules may take to serve: virtual time.
const SERVING_MAX: Duration = Duration::from_mins(2);

/// The folder beside the cases whose Modules are taken if none are named.
const MODULES: &str = "modules";

/// Arguments of `innkeeper test`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A case (a folder with numbered files), a folder of cases, or one with a kuttl-test.yaml.
    dir: PathBuf,
    /// The component of a guest, plain or gzip, which serves as a module of its own name with the
    /// least rights that it needs (repeat for more).
    #[arg(long = "guest", value_name = "FILE", conflicts_with = "kubeconfig")]
    guests: Vec<PathBuf>,
    /// Take Modules from this folder, as `innkeeper run` does. DIR/modules, if it is there and
    /// neither this nor --guest is given.
    #[arg(long, value_name = "DIR", conflicts_with = "kubeconfig")]
    modules: Option<PathBuf>,
    /// Only this case (repeat for more).
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// How long asserts may take to hold, where neither a TestAssert nor the suite says it: 30 if
    /// left out. On a simulated cluster it is virtual time.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Of what all that is random in the simulated cluster is made.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the outcomes to this file, as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write asserts that do not hold anew, with what was found in the members that they name.
    #[arg(long)]
    update: bool,
    /// Play the cases on the cluster of this kubeconfig, with the modules that serve there, instead
    /// of on a simulated one. Each has a namespace of its own, which is deleted afterwards.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; its current one if left out.
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,
    /// Leave what the cases made in the cluster of the kubeconfig.
    #[arg(long, requires = "kubeconfig")]
    keep: bool,
    /// Which log lines of the operator on the simulated cluster: error, warn, info, debug or trace.
    #[arg(long, default_value = "error", env = "RUST_LOG", value_name = "FILTER")]
    log_filter: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut suite = Suite::read(&arguments.dir)?;
    if !arguments.cases.is_empty() {
        let all: Vec<String> = suite.cases.iter().map(|case| case.name.clone()).collect();
        if let Some(missing) = arguments.cases.iter().find(|name| !all.contains(name)) {
            bail!("--case {missing}: there is {}", all.join(", "));
        }
        suite.cases.retain(|case| arguments.cases.contains(&case.name));
    }
    suite.timeout = suite.timeout.or(arguments.timeout.map(Duration::from_secs));
    let outcomes = match &arguments.kubeconfig {
        Some(kubeconfig) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(on_cluster(arguments, &suite, kubeconfig))?
        }
        None => on_simulator(arguments, &suite)?,
    };
    if let Some(file) = &arguments.junit {
        let name = arguments.dir.display().to_string();
        std::fs::write(file, junit(&name, &outcomes))
            .with_context(|| format!("--junit {} cannot be written", file.display()))?;
    }
    let failed = outcomes.iter().filter(|one| one.failure.is_some()).count();
    out::line(format_args!("{} passed, {failed} failed", outcomes.len() - failed))?;
    if failed > 0 {
        bail!("{failed} of {} cases failed", outcomes.len());
    }
    Ok(())
}

/// Modules, and what they need to be there.
#[derive(Default)]
struct TestModules {
    modules: Vec<Value>,
    rights: Vec<Value>,
}

impl TestModules {
    /// Those that the arguments or the folder name.
    fn read(arguments: &Arguments) -> anyhow::Result<Self> {
        let mut served = Self::default();
        for file in &arguments.guests {
            let opened = component::open(file)?;
            let manifest = opened.guest.manifest();
            let name = &manifest.name;
            let groups = manifest.crds.iter().filter_map(|one| one.pointer("/spec/group"));
            let module = json!({
                "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "metadata": {"name": name},
                "spec": {"source": {"file": file.canonicalize()?}, "serviceAccountName": name,
                    "allowedCRDGroups": groups.collect::<Vec<_>>()},
            });
            served.add(module, manifest);
        }
        let beside = arguments.dir.join(MODULES);
        let folder = match &arguments.modules {
            Some(folder) => Some(folder),
            None => Some(&beside).filter(|beside| served.modules.is_empty() && beside.is_dir()),
        };
        if let Some(folder) = folder {
            served.read_folder(folder)?;
        }
        if served.modules.is_empty() {
            bail!(
                "no guest is given: name its component with --guest, or put a Module with source.file into {}",
                beside.display()
            );
        }
        Ok(served)
    }

    fn read_folder(&mut self, folder: &Path) -> anyhow::Result<()> {
        let unreadable = || format!("--modules {} cannot be read", folder.display());
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).with_context(unreadable)? {
            files.push(entry.with_context(unreadable)?.path());
        }
        files.sort();
        let is_manifest = |file: &&PathBuf| {
            file.extension()
                .is_some_and(|one| ["yaml", "yml", "json"].iter().any(|known| one == *known))
        };
        for file in files.iter().filter(is_manifest) {
            for given in objects::read(file)? {
                if given.text("/kind") != "Module" {
                    continue;
                }
                let place = given.place.to_string();
                let mut module = given.value;
                let source = module.pointer("/spec/source/file").and_then(Value::as_str);
                let Some(source) = source else {
                    bail!(
                        "{place}: a Module for a test needs spec.source.file, the path of the component from the folder of the manifest"
                    );
                };
                let path = file.parent().unwrap_or(folder).join(source);
                let path = path.canonicalize().with_context(|| {
                    format!("{place}: spec.source.file {} is not there", path.display())
                })?;
                let opened = component::open(&path)?;
                module["spec"]["source"]["file"] = path.display().to_string().into();
                self.add(module, opened.guest.manifest());
            }
        }
        Ok(())
    }

    fn add(&mut self, module: Value, manifest: &Manifest) {
        let text = |pointer: &str| module.pointer(pointer).and_then(Value::as_str);
        if let (Some(account), Some(name)) =
            (text("/spec/serviceAccountName"), text("/metadata/name"))
        {
            self.rights.extend(rbac::minimal_rules(manifest, name, account));
        }
        self.modules.push(module);
    }
}

fn on_simulator(arguments: &Arguments, suite: &Suite) -> anyhow::Result<Vec<Outcome>> {
    logs::start(LogFormat::Text, &arguments.log_filter)?;
    let served = TestModules::read(arguments)?;
    let guests = match code_cache::open()? {
        Some(cache) => Guests::with_cache(cache)?,
        None => Guests::new()?,
    };
    let mut outcomes = Vec::new();
    for case in &suite.cases {
        let mut setup = Setup::new(arguments.seed);
        setup.controllers = case.controllers();
        setup.modules = Modules::Given(served.modules.clone());
        setup.objects.clone_from(&served.rights);
        setup.objects.extend(suite.manifests.iter().cloned());
        let played = innkeeper_lab::block_on(async {
            let lab = Lab::start(&guests, setup).await?;
            lab.serves(SERVING_MAX).await?;
            let place = Backend::Lab(Box::new(lab));
            let namespace =
                suite.namespace.clone().unwrap_or_else(|| format!("test-{}", case.name));
            let player = Player::new(&place, namespace, suite.timeout, arguments.update);
            let outcome = player.play(case).await;
            if let Backend::Lab(lab) = place {
                lab.end().await;
            }
            anyhow::Ok(outcome)
        })?;
        let outcome = played.unwrap_or_else(|error| {
            let message = format!("the case cannot be played: {error:#}");
            Outcome::failed(&case.name, Failure::new("setup", message))
        });
        print_result(&outcome)?;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

async fn on_cluster(
    arguments: &Arguments,
    suite: &Suite,
    kubeconfig: &Path,
) -> anyhow::Result<Vec<Outcome>> {
    let kube = Kube {
        kubeconfig: Some(kubeconfig.to_owned()),
        context: arguments.context.clone(),
        instance: None,
    };
    let env = Env::real();
    let (key, fence) = (SecretKey::new(&[]), Fence::open(&env));
    let cluster = Cluster::open(&kube, env.clone(), Settings::default(), key, fence).await?;
    let api = Api::cluster(cluster.host());
    for manifest in &suite.manifests {
        api.apply(manifest, "default").await.with_context(|| {
            let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
            format!("{:?} {:?} cannot be applied", text("/kind"), text("/metadata/name"))
        })?;
    }
    let place = Backend::Cluster(api, env.clone());
    let mut outcomes = Vec::new();
    for case in &suite.cases {
        let namespace = suite.namespace.clone().unwrap_or_else(|| {
            // Another one each time: the last one may not be gone yet.
            format!("test-{}-{:05x}", case.name, env.random() & 0xf_ffff)
        });
        let player = Player::new(&place, namespace, suite.timeout, arguments.update);
        let mut outcome = player.play(case).await;
        if !arguments.keep
            && let Err(error) = player.clean_up(case).await
        {
            // What failed before says more.
            let message = format!("what the case made cannot be deleted: {error}");
            outcome.failure.get_or_insert_with(|| Failure::new("clean-up", message));
        }
        print_result(&outcome)?;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Says what came of a case.
fn print_result(outcome: &Outcome) -> anyhow::Result<()> {
    let mut page = Page::default();
    let Outcome { name, took, .. } = outcome;
    match (&outcome.failure, outcome.passed) {
        (None, Some(passed)) => {
            let (passed, took) = (passed.as_secs(), took.as_millis());
            page.line(format_args!("ok    {name} ({passed} s in {took} ms)"));
        }
        (None, None) => page.line(format_args!("ok    {name} ({:.1} s)", took.as_secs_f64())),
        (Some(Failure { step, message, details }), _) => {
            page.line(format_args!("FAIL  {name}, step {step}"));
            page.lines(message);
            page.lines(details);
        }
    }
    for file in &outcome.updated {
        page.line(format_args!("      {file} is written anew"));
    }
    out::page(&page)
}
