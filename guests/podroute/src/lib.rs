//! podroute: each `Podroute` becomes a Deployment, a Service and, where the cluster has them,
//! an OpenShift Route.
//!
//! The names of the objects are fixed, as in the original operator, so a namespace can have only
//! one Podroute: a second one gets a condition that names the first.

mod parameters;
mod primary;
mod reconcile;
mod route;

pub use parameters::Parameters;
pub use primary::{Podroute, PodrouteSpec, PodrouteStatus};
pub use reconcile::{DEPLOYMENT, Guest, ROUTE, SERVICE};
pub use route::Route;

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);
