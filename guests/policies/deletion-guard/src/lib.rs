//! A policy that denies the deletion of objects that somebody would miss, until a user releases
//! them: objects with a label, databases whose claims have volumes, these claims, and Namespaces
//! with any of them.
//!
//! It reads other objects, through the account of its own Module.
//!
//! | file | what |
//! |---|---|
//! | `parameters` | the Module's parameters |
//! | `guarded` | the metadata that decides |
//! | `claim`, `database` | observed claims and databases |
//! | `contents` | what a Namespace has that would be missed |
//! | `guard` | the decision |

mod claim;
mod contents;
mod database;
mod guard;
mod guarded;
mod parameters;

use innkeeper_sdk::serde_json::Value;
use innkeeper_sdk::{
    Context, Describe, Manifest, Operation, RequestRule, Review, Reviewer, Verdict, read,
};

use claim::Claim;
use database::Database;
use guard::Guard;
pub use parameters::Parameters;

/// Which requests can be about a guarded object: those about kinds that are guarded without a
/// label, and those about an object with labels.
const MAY_BE_GUARDED: &str = "request.resource.resource in ['namespaces', 'persistentvolumeclaims', 'postgresqls', 'customresourcedefinitions'] || (oldObject != null && has(oldObject.metadata.labels))";

/// The policy.
pub struct Policy;

impl Reviewer for Policy {
    type Object = Value;

    fn describe() -> Manifest {
        Describe::validating_policy("deletion-guard", env!("CARGO_PKG_VERSION"))
            .rule(RequestRule::of_resources("*", ["*"]).on([Operation::Delete]))
            .matches("may-be-guarded", MAY_BE_GUARDED)
            .reads::<read::Namespace>()
            .reads::<Claim>()
            .reads::<Database>()
            .reads_parameter("kinds")
            .parameters(Parameters::schema())
            .manifest()
    }

    fn review(context: &Context, request: &Review<Value>) -> Verdict {
        Guard::decide(context, request).unwrap_or_else(|failed| failed)
    }
}

innkeeper_sdk::export!(reviewer: Policy);
