//! `innkeeper render`: runs a guest on objects from files, without a cluster.

mod admission;
mod answer;
mod files_view;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use innkeeper_cluster::SecretDigestKey;
use innkeeper_contract::Kind;
use innkeeper_core::host_names::Grants;
use innkeeper_core::ownership::PrimaryOwner;
use innkeeper_core::plan::PlannerState;
use innkeeper_core::{KnownMasks, ObjectKey, ObjectRef, control};
use innkeeper_operator::evaluate::{REVISION_DIGEST_PURPOSE, Subject, evaluate};
use jiff::Timestamp;

use self::admission::Admission;
use self::answer::Answer;
use self::files_view::FilesView;
use crate::document::Document;
use crate::given_module::{self, GivenModule};
use crate::objects::{self, InputObject};
use crate::parameter_kinds::ParameterArguments;
use crate::{component, golden, out};

/// Arguments of `innkeeper render`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The guest's component, plain or gzip.
    file: PathBuf,
    /// Objects as YAML or JSON, several documents in a file; `-` is standard input (repeatable).
    /// One must be the primary; the guest can read the others. An object whose controller is the
    /// primary, by name or uid, or whose label innkeeper.dev/retained-for names it, counts as made
    /// for it before. The guest gets the parameters of a Module among the objects, and may do what
    /// it grants: with its spec.valueSources, the output has digests in place of the values that
    /// the operator copies. They have no key, so a short value can be guessed from its digest.
    #[arg(short = 'f', long = "objects", required = true, value_name = "FILE")]
    objects: Vec<PathBuf>,
    /// The primary, as NAME or NAMESPACE/NAME, if the files have several.
    #[arg(long, value_name = "NAME")]
    primary: Option<String>,
    #[command(flatten)]
    parameters: ParameterArguments,
    /// The time that the guest reads, RFC 3339 (default: the present time).
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
    /// A kind that the API server does not serve, as APIVERSION/KIND, for example
    /// route.openshift.io/v1/Route (repeatable).
    #[arg(long = "unserved", value_name = "KIND")]
    unserved: Vec<String>,
    /// Set the primary's deletionTimestamp; the guest must have a finalizer.
    #[arg(long)]
    deleting: bool,
    /// Compare the output with this file: print the difference, and fail if there is one.
    #[arg(long, value_name = "FILE")]
    golden: Option<PathBuf>,
    /// Write the output to the golden file.
    #[arg(long, requires = "golden")]
    update: bool,
    /// `yaml`: the desired objects, and the rest of the answer as comments. `json`: the whole
    /// answer.
    #[arg(short, long, value_enum, default_value = "yaml")]
    output: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Yaml,
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let opened = component::open(&arguments.file)?;
    let mut given = Vec::new();
    for file in &arguments.objects {
        given.extend(objects::read(file)?);
    }
    let module = given_module::take(&mut given, &arguments.file)?;
    let of_module = module.as_ref().and_then(GivenModule::parameters);
    let (parameters, guest) = arguments.parameters.resolve_or(of_module, &opened.guest)?;
    let guest = module.as_ref().map_or(guest.clone(), |module| guest.with_limits(module.limits()));
    let manifest = guest.manifest();
    let Some(kind) = &manifest.primary else {
        bail!(
            "the guest {} has no primary: it is a policy; run `innkeeper review` with it",
            manifest.name
        )
    };
    let now = arguments.now.unwrap_or_else(Timestamp::now);
    let primary = choose(&given, kind, arguments.primary.as_deref())?;
    if arguments.deleting && given[primary].text(DELETION).is_empty() {
        given[primary].value["metadata"]["deletionTimestamp"] = seconds(now).into();
    }
    let admission = Admission::of(manifest, kind, &mut given[primary], now)?;
    let grants = module.as_ref().map_or_else(Grants::default, GivenModule::grants);
    let mut view =
        FilesView::new(manifest, (kind, primary), &given, &arguments.unserved, &parameters, now)?
            .hiding(grants.value_sources);
    if view.primary().is_terminating() && manifest.finalizer.is_none() {
        bail!(
            "{} has no finalizer, so the host does not run it for a {} that is being deleted: Kubernetes deletes the objects that it owns (`Describe::finalizes` of the SDK adds a finalizer)",
            manifest.name,
            kind.kind
        );
    }
    let primary = view.primary().clone();
    if let Some(module) = &module {
        module.warn_unless_selected(&primary);
    }
    let object_ref = ObjectRef::new(Arc::new(kind.clone()), primary.key.clone());
    let name = module.as_ref().map_or(&manifest.name, |module| &module.name);
    let owner =
        PrimaryOwner::new(name, object_ref, &primary.uid).decorating(control::decorates(manifest));
    view.mark_as_made(&owner);
    // Without the host's key, revisions have other names than in the cluster.
    let digest = |text: &str| SecretDigestKey::new(&[]).digest_text(REVISION_DIGEST_PURPOSE, text);
    let subject = Subject {
        guest: &guest,
        known_masks: &KnownMasks::default(),
        primary: &primary,
        owner: &owner,
        grants,
        digest: &digest,
        unapplied: &[],
        // A prune that waits for one more clean round counts.
        state: &PlannerState { clean: true, ..PlannerState::default() },
        now,
    };
    let answer = Answer::of(evaluate(&subject, &mut view).result, module.is_some())?;
    if let (Some(admission), Some(status)) = (&admission, answer.status()) {
        admission.print_status_warnings(status);
    }
    let document = match arguments.output {
        Format::Yaml => answer.yaml()?,
        Format::Json => Document::json(&answer.json())?,
    };
    // The golden file may expect a failure.
    if let Some(golden) = &arguments.golden {
        return golden::compare(golden, "desired state", document.text(), arguments.update);
    }
    out::document(&document)?;
    match answer.failure {
        Some(message) => bail!("the guest failed: {message}"),
        None => Ok(()),
    }
}

/// When the deletion of an object was asked for.
const DELETION: &str = "/metadata/deletionTimestamp";

/// As Kubernetes writes times: without fractions.
fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// The primary, by its place: the one that is named, or the only one.
fn choose(given: &[InputObject], kind: &Kind, name: Option<&str>) -> anyhow::Result<usize> {
    let key = |given: &InputObject| {
        ObjectKey::new(given.text("/metadata/namespace"), given.text("/metadata/name")).to_string()
    };
    let all: Vec<usize> = (0..given.len()).filter(|&index| given[index].is(kind)).collect();
    let chosen: Vec<usize> = all
        .iter()
        .copied()
        .filter(|&index| {
            name.is_none_or(|name| {
                given[index].text("/metadata/name") == name || key(&given[index]) == name
            })
        })
        .collect();
    let names = || all.iter().map(|&index| key(&given[index])).collect::<Vec<_>>().join(", ");
    match (chosen.as_slice(), name) {
        ([only], _) => Ok(*only),
        (_, _) if all.is_empty() => {
            bail!("there is no {kind} in the files: add the object that the guest is to reconcile")
        }
        ([], Some(name)) => bail!("there is no {kind} {name} in the files; there is {}", names()),
        _ => bail!("the files have several of {kind} ({}): choose one with --primary", names()),
    }
}
