//! `innkeeper test`: runs test cases on a simulated cluster or on a real one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use innkeeper_cluster::{Cluster, Env, Fence, Kube, SecretDigestKey, Settings};
use innkeeper_contract::Manifest;
use innkeeper_core::counted_len;
use innkeeper_lab::scenario::{Backend, Failure, Outcome, Player, Suite, junit, of_modules};
use innkeeper_lab::{Api, Guests, Lab, Modules, Setup};
use innkeeper_sandbox::{CodeCache, Interruption};
use serde_json::{Value, json};

use crate::component::Opened;
use crate::logs::{self, LogClock, LogFormat};
use crate::out::Page;
use crate::parameter_kinds::with_parameters;
use crate::temporary::TemporaryFolder;
use crate::{code_cache, component, objects, out, rbac};

/// Maximum time until all modules are active, in virtual time.
const ACTIVATION_MAX: Duration = Duration::from_mins(2);

/// The folder next to the cases whose Modules the command uses if no flag names any.
const MODULES: &str = "modules";

/// Arguments of `innkeeper test`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder of one case (numbered files), of several cases, or with a kuttl-test.yaml.
    dir: PathBuf,
    /// Component of a guest, plain or gzip; can be repeated. The command runs it as a Module of the
    /// guest's name with the minimal rules of `innkeeper rbac`.
    #[arg(long = "guest", value_name = "FILE", conflicts_with = "kubeconfig")]
    guests: Vec<PathBuf>,
    /// Folder of Modules, as for `innkeeper run` [default: DIR/modules, if it exists and no --guest
    /// is given].
    #[arg(long, value_name = "DIR", conflicts_with = "kubeconfig")]
    modules: Option<PathBuf>,
    /// Name of a case to run; can be repeated [default: all cases].
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Maximum time until the asserts of a step hold, unless the suite or a TestAssert sets one; on
    /// a simulated cluster in virtual time [default: 30].
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Seed of everything random in the simulated cluster: uids and generated names.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// File to which to write the results as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Update asserts that do not hold: replace the values of their fields by the observed ones.
    #[arg(long)]
    update: bool,
    /// Run the cases on the cluster of this kubeconfig, with its active Modules, instead of on a
    /// simulated one. Each case gets its own namespace, which the command deletes afterwards.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Name of the kubeconfig context to use [default: its current context].
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,
    /// Do not delete the namespaces and objects of the cases from the cluster of --kubeconfig.
    #[arg(long, requires = "kubeconfig")]
    keep: bool,
    /// Log level of the operator on the simulated cluster: error, warn, info, debug or trace.
    #[arg(long, default_value = "error", env = "RUST_LOG", value_name = "FILTER")]
    log_filter: String,
}

/// Runs the command.
///
/// # Errors
/// If a case fails or cannot be run.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let _temporary = TemporaryFolder::make()?;
    let mut suite = Suite::read(&arguments.dir)?;
    if !arguments.cases.is_empty() {
        let all: Vec<String> = suite.cases.iter().map(|case| case.name.clone()).collect();
        if let Some(missing) = arguments.cases.iter().find(|name| !all.contains(name)) {
            bail!("--case {missing}: no such case; the cases are {}", all.join(", "));
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
            .with_context(|| format!("--junit: cannot write {}", file.display()))?;
    }
    let failed = outcomes.iter().filter(|one| one.failure.is_some()).count();
    out::line(format_args!("{} passed, {failed} failed", outcomes.len() - failed))?;
    if failed > 0 {
        bail!("{failed} of {} failed", counted_len(outcomes.len(), "case", "cases"));
    }
    Ok(())
}

/// Modules, and the objects that they need.
#[derive(Default)]
struct TestModules {
    modules: Vec<Value>,
    rights: Vec<Value>,
}

impl TestModules {
    /// Reads those of the flags or of the folder. `definitions` are objects of the suite, some of
    /// which may be definitions of kinds that parameters name.
    ///
    /// # Errors
    /// If there is none, or one cannot be used.
    fn read(
        arguments: &Arguments,
        cache: &CodeCache,
        definitions: &[Value],
    ) -> anyhow::Result<Self> {
        let mut all = Self::default();
        for file in &arguments.guests {
            let opened = open(file, cache)?;
            let manifest = opened.guest.manifest();
            let name = &manifest.name;
            let groups =
                manifest.definitions().filter_map(|one| one.pointer("/spec/group").cloned());
            let mut module = json!({
                "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "metadata": {"name": name},
                "spec": {"source": {"file": file.canonicalize()?}, "serviceAccountName": name,
                    "allowedCRDGroups": groups.collect::<Vec<_>>()},
            });
            if manifest.policy.is_some() {
                module["spec"]["policy"] = json!({});
                // A preview would hold back a policy that denies what exists before the case.
                module["spec"]["rollout"] = json!({"strategy": "Immediate"});
            }
            all.add(module, manifest);
        }
        let default = arguments.dir.join(MODULES);
        let folder = match &arguments.modules {
            Some(folder) => Some(folder),
            None => Some(&default).filter(|default| all.modules.is_empty() && default.is_dir()),
        };
        if let Some(folder) = folder {
            all.read_folder(folder, cache, definitions)?;
        }
        if all.modules.is_empty() {
            bail!(
                "no guest is given; name its component with --guest, or put a Module with spec.source.file into {}",
                default.display()
            );
        }
        Ok(all)
    }

    fn read_folder(
        &mut self,
        folder: &Path,
        cache: &CodeCache,
        definitions: &[Value],
    ) -> anyhow::Result<()> {
        for file in &objects::files_of(folder).context("--modules")? {
            for object in objects::read(file)? {
                if object.text("/kind") != "Module" {
                    continue;
                }
                let place = object.place.to_string();
                let mut module = object.value;
                let source = module.pointer("/spec/source/file").and_then(Value::as_str);
                let Some(source) = source else {
                    bail!(
                        "{place}: the Module has no spec.source.file; set it to the path of the component, relative to the manifest"
                    );
                };
                let path = file.parent().unwrap_or(folder).join(source);
                let path = path.canonicalize().with_context(|| {
                    format!("{place}: cannot read the spec.source.file {}", path.display())
                })?;
                let opened = open(&path, cache)?;
                module["spec"]["source"]["file"] = path.display().to_string().into();
                let parameters = module.pointer("/spec/parameters").unwrap_or(&Value::Null);
                let guest = with_parameters(&opened.guest, parameters, definitions)
                    .with_context(|| format!("{place}: cannot use the kinds of the parameters"))?;
                self.add(module, guest.manifest());
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

/// Opens a guest with the code that the lab runs, so that it is compiled once.
fn open(path: &Path, cache: &CodeCache) -> anyhow::Result<Opened> {
    component::open_with(path, Interruption::Fuel, Some(cache.clone()))
}

fn on_simulator(arguments: &Arguments, suite: &Suite) -> anyhow::Result<Vec<Outcome>> {
    let clock = LogClock::default();
    logs::start_at(LogFormat::Text, &arguments.log_filter, &clock)?;
    let folder = tempfile::tempdir()?;
    let cache = code_cache::open_or_temporary(&folder)?;
    let given = TestModules::read(arguments, &cache, &suite.manifests)?;
    let guests = Guests::with_cache(cache)?;
    let mut outcomes = Vec::new();
    for case in &suite.cases {
        let mut setup = Setup::new(arguments.seed);
        setup.controllers = case.controllers();
        setup.modules = Modules::Given(given.modules.clone());
        setup.objects.clone_from(&given.rights);
        setup.objects.extend(suite.manifests.iter().cloned());
        let namespace = suite.namespace.clone().unwrap_or_else(|| format!("test-{}", case.name));
        // A policy under test does not review the namespace of the case.
        setup.objects.push(json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace}}));
        let outcome = innkeeper_lab::block_on(async {
            // The clock of the lab: it starts now, too.
            clock.set(Env::scripted(setup.seed, setup.start));
            let lab = Lab::start(&guests, setup).await?;
            let served = lab.serves(ACTIVATION_MAX).await;
            let backend = Backend::Lab(Box::new(lab));
            if let Err(timeout) = served {
                let details = of_modules(&backend).await;
                let message = format!("cannot run the case: {timeout}");
                let failure = Failure { details, ..Failure::new("setup", message) };
                return Ok(Outcome::failed(&case.name, failure));
            }
            let player = Player::new(&backend, namespace, suite.timeout, arguments.update);
            let outcome = player.play(case).await;
            if let Backend::Lab(lab) = backend {
                lab.end().await;
            }
            anyhow::Ok(outcome)
        })?;
        let outcome = outcome.unwrap_or_else(|error| {
            let message = format!("cannot run the case: {error:#}");
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
    let (key, fence) = (SecretDigestKey::new(&[]), Fence::open(&env));
    let cluster = Cluster::open(&kube, env.clone(), Settings::default(), key, fence).await?;
    let api = Api::cluster(cluster.host());
    for manifest in &suite.manifests {
        api.apply(manifest, "default").await.with_context(|| {
            let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
            format!("cannot apply {:?} {:?}", text("/kind"), text("/metadata/name"))
        })?;
    }
    let backend = Backend::Cluster(api, env.clone());
    let mut outcomes = Vec::new();
    for case in &suite.cases {
        let namespace = suite.namespace.clone().unwrap_or_else(|| {
            // A new name for each run: the previous namespace may still be terminating.
            format!("test-{}-{:05x}", case.name, env.random() & 0xf_ffff)
        });
        let player = Player::new(&backend, namespace, suite.timeout, arguments.update);
        let mut outcome = player.play(case).await;
        if !arguments.keep
            && let Err(error) = player.clean_up(case).await
        {
            // An earlier failure is more important.
            let message = format!("cannot delete the objects of the case: {error}");
            outcome.failure.get_or_insert_with(|| Failure::new("clean-up", message));
        }
        print_result(&outcome)?;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Prints the result of a case.
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
        page.line(format_args!("      {file} updated"));
    }
    out::page(&page)
}
