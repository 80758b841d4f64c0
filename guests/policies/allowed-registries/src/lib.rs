//! A policy that denies Pods, and templates of Pods, with images from other registries than the
//! parameters of the Module allow, and, if they say so, with images that have no digest.
//!
//! It ratchets: an update that leaves an image as it was is allowed with a warning, so that the
//! policy does not stop the controllers of objects that are older than it. An object that is being
//! deleted is always allowed, since its finalizers must go.

mod image;
mod parameters;
mod used_image;

use innkeeper_sdk::serde_json::Value;
use innkeeper_sdk::{
    Context, Describe, DescribePolicy, Manifest, Operation, RequestRule, Review, Reviewer, Verdict,
};
use pod_specs::PodSpecField;

use image::{Image, Repository};
pub use parameters::Parameters;
use used_image::UsedImage;

/// The policy.
pub struct Policy;

/// What images must be.
struct Requirement {
    allowed: Vec<Repository>,
    digests: bool,
}

impl Requirement {
    fn of(parameters: &Parameters) -> Result<Self, Verdict> {
        let (allowed, digests) = (parameters.repositories()?, parameters.require_digests);
        Ok(Self { allowed, digests })
    }

    /// Returns what is wrong with an image, and what to do; `None` if it is allowed.
    fn fault(&self, used: &UsedImage) -> Option<String> {
        let UsedImage { user, image: text, .. } = used;
        let image = match Image::parse(text) {
            Ok(image) => image,
            Err(why) => return Some(format!("the image {text:?} of {user} is none: {why}")),
        };
        let repository = &image.repository;
        if !self.allowed.iter().any(|allowed| allowed.includes(repository)) {
            let allowed: Vec<String> = self.allowed.iter().map(Repository::to_string).collect();
            return Some(format!(
                "the image {text:?} of {user} is {repository}, which is not allowed; use one of {}",
                allowed.join(", ")
            ));
        }
        (self.digests && !image.has_digest).then(|| {
            format!("the image {text:?} of {user} has no digest; add @sha256: and its digest")
        })
    }
}

impl Policy {
    fn decide(request: &Review<Value>) -> Result<Verdict, Verdict> {
        let requirement = Requirement::of(&request.parameters()?)?;
        let Some(object) = request.object() else { return Ok(Verdict::allow()) };
        if !object["metadata"]["deletionTimestamp"].is_null() {
            return Ok(Verdict::allow());
        }
        let kind = request.kind();
        let Some(field) = PodSpecField::of(kind) else {
            return Err(Verdict::failed(format!(
                "the policy knows no Pods of the kind {} of the group {:?}; leave it out of spec.policy.rules of the Module",
                kind.kind, kind.group
            )));
        };
        let old = match request.old_object() {
            Some(old) => UsedImage::all(old, field)?,
            None => Vec::new(),
        };
        let mut verdict = Verdict::allow();
        let mut faults = Vec::new();
        for used in UsedImage::all(object, field)? {
            let Some(fault) = requirement.fault(&used) else { continue };
            if old.iter().any(|one| one.is_same(&used)) {
                verdict = verdict.warn(fault);
            } else {
                faults.push((used.field, fault));
            }
        }
        if faults.is_empty() {
            return Ok(verdict);
        }
        let messages: Vec<&str> = faults.iter().map(|(_, fault)| fault.as_str()).collect();
        let denied = Verdict::invalid(messages.join("; "));
        Ok(faults.into_iter().fold(denied, |denied, (field, fault)| denied.cause(field, fault)))
    }
}

impl Reviewer for Policy {
    type Object = Value;

    fn describe() -> Manifest {
        let pods = RequestRule::of_resources("", ["pods"]);
        let debugged = RequestRule::of_resources("", ["pods"]).subresource("ephemeralcontainers");
        let policy = Describe::validating_policy("allowed-registries", env!("CARGO_PKG_VERSION"))
            .rule(pods)
            .rule(debugged.on([Operation::Update]));
        pod_specs::template_rules()
            .into_iter()
            .fold(policy, DescribePolicy::rule)
            .parameters(Parameters::schema())
            .manifest()
    }

    fn review(_context: &Context, request: &Review<Value>) -> Verdict {
        Self::decide(request).unwrap_or_else(|failed| failed)
    }
}

innkeeper_sdk::export!(reviewer: Policy);
