//! `innkeeper review`: asks a policy about objects from files, without a cluster.
//!
//! It makes the document of a request, and checks the verdict and its changes, by the functions of
//! the host.

pub(crate) mod answer;
mod kubectl;
pub(crate) mod request;
pub(crate) mod reviewer;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use jiff::Timestamp;

use self::answer::{Answer, Outcome};
use self::request::RequestArguments;
use self::reviewer::Reviewer;
use crate::document::Document;
use crate::given_module::{self, GivenModule};
use crate::objects;
use crate::out::{self, Format};
use crate::parameter_kinds::ParameterArguments;
use crate::{component, golden};

/// The exit status of a request that the policy denies.
pub(crate) const DENIED: u8 = 1;

/// The exit status of files and options that cannot be used.
pub(crate) const UNUSABLE: u8 = 2;

/// The exit status of a review without a verdict that counts.
pub(crate) const FAILED: u8 = 3;

/// Arguments of `innkeeper review`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The guest's component, plain or gzip.
    file: PathBuf,
    /// Objects as YAML or JSON, several documents in a file; `-` is standard input (repeatable).
    /// The policy reviews those that match its rules, each by a request of its own, and can read
    /// all others. It gets the parameters of a Module among them, whose rules count too.
    #[arg(short = 'f', long = "objects", required = true, value_name = "FILE")]
    objects: Vec<PathBuf>,
    #[command(flatten)]
    request: RequestArguments,
    #[command(flatten)]
    parameters: ParameterArguments,
    /// The time that the guest reads, RFC 3339 (default: the present time).
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
    /// A kind that the API server does not serve, as APIVERSION/KIND, for example
    /// route.openshift.io/v1/Route (repeatable).
    #[arg(long = "unserved", value_name = "KIND")]
    unserved: Vec<String>,
    /// Compare the output with this file: print the difference, and fail if there is one. Verdicts
    /// do not count for the exit status then.
    #[arg(long, value_name = "FILE")]
    golden: Option<PathBuf>,
    /// Write the output to the golden file.
    #[arg(long, requires = "golden")]
    update: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

/// Runs the command, and returns its exit status: 0 if the policy allows each request, 1 if it
/// denies one, 2 for files and options that cannot be used, 3 if a review failed.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match review_all(arguments) {
        Ok(status) => status.into(),
        // The reader closed the pipe.
        Err(error) if out::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprint_error(&error);
            UNUSABLE.into()
        }
    }
}

/// Prints an error as that of the command.
pub(crate) fn eprint_error(error: &anyhow::Error) {
    out::eprint(&format!("innkeeper: {}", out::error_chain(error)));
}

fn review_all(arguments: &Arguments) -> anyhow::Result<u8> {
    let opened = component::open(&arguments.file)?;
    let manifest = opened.guest.manifest();
    let Some(policy) = &manifest.policy else {
        bail!("the guest {} has no policy: run `innkeeper render` with it", manifest.name)
    };
    let mut given = Vec::new();
    for file in &arguments.objects {
        given.extend(objects::read(file)?);
    }
    let module = given_module::take(&mut given, &arguments.file)?;
    let of_module = module.as_ref().and_then(GivenModule::parameters);
    let (parameters, guest) = arguments.parameters.resolve_or(of_module, &opened.guest)?;
    let guest = module.as_ref().map_or(guest.clone(), |module| guest.with_limits(module.limits()));
    let rules = module.as_ref().map_or(&*policy.rules, |module| module.rules_of(policy));
    let requests = arguments.request.requests(&given, guest.manifest(), rules)?;
    let now = arguments.now.unwrap_or_else(Timestamp::now);
    let parameters = if parameters.is_null() { String::new() } else { parameters.to_string() };
    let reviewer = Reviewer {
        guest: &guest,
        policy,
        module: module.as_ref(),
        given: &given,
        unserved: &arguments.unserved,
        parameters: &parameters,
        now,
    };
    reviewer.print_notes();
    let answers: Vec<Answer> =
        requests.iter().map(|request| reviewer.review(request)).collect::<Result<_, _>>()?;
    print(arguments, &answers, module.as_ref().map_or(&guest.manifest().name, |one| &one.name))
}

/// Prints the answers, and returns the exit status.
fn print(arguments: &Arguments, answers: &[Answer], module: &str) -> anyhow::Result<u8> {
    let webhook = format!("{module}.policy.innkeeper.dev");
    let page = answer::page(answers, &webhook);
    let json = match arguments.output {
        Format::Text => None,
        Format::Json => Some(Document::json(&answer::json(answers))?),
    };
    let text = json.as_ref().map_or_else(|| page.text(), Document::text);
    if let Some(golden) = &arguments.golden {
        return Ok(match golden::compare(golden, "review", text, arguments.update) {
            Ok(()) => 0,
            Err(error) => {
                eprint_error(&error);
                DENIED
            }
        });
    }
    match &json {
        None => out::page(&page)?,
        Some(json) => out::document(json)?,
    }
    Ok(answers.iter().map(|answer| status(&answer.outcome)).max().unwrap_or_default())
}

fn status(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Failed(_) => FAILED,
        Outcome::Decided(decision) if decision.verdict.denial.is_some() => DENIED,
        Outcome::Decided(_) | Outcome::NotReviewed(_) => 0,
    }
}
