//! Examples of Metacontroller's repository as guests: see README.md.
//!
//! Each guest is a component of its own, an example target of this package. This library has them
//! as modules, for the tests.

// A component has one guest.
#![cfg(not(target_arch = "wasm32"))]

#[path = "../blue-green/guest.rs"]
pub mod blue_green;
#[path = "../cat-set/guest.rs"]
pub mod cat_set;
#[path = "../clustered-parent/guest.rs"]
pub mod clustered_parent;
#[path = "../config-map-list/guest.rs"]
pub mod config_map_list;
#[path = "../config-map-propagation/guest.rs"]
pub mod config_map_propagation;
#[path = "../crd-roles/guest.rs"]
pub mod crd_roles;
#[path = "../daemon-job/guest.rs"]
pub mod daemon_job;
#[path = "../global-config-map/guest.rs"]
pub mod global_config_map;
#[path = "../indexed-job/guest.rs"]
pub mod indexed_job;
#[path = "../namespace-list/guest.rs"]
pub mod namespace_list;
#[path = "../pod-name-label/guest.rs"]
pub mod pod_name_label;
#[path = "../secret-propagation/guest.rs"]
pub mod secret_propagation;
#[path = "../service-per-pod/guest.rs"]
pub mod service_per_pod;
#[path = "../update-strategy/guest.rs"]
pub mod update_strategy;
