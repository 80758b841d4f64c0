//! Hostile guests against the real operator on a simulated cluster, one file per class of attack.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod adopted_definitions;
mod baseline;
mod conflicts;
mod consent;
mod copy_refusals;
mod definitions;
mod deleted_definitions;
mod discovery;
mod events;
mod fairness;
mod finalizers;
mod groups_third_look;
mod history_third_look;
mod kind_parameters;
mod kinds;
mod leak;
mod log;
mod objects;
mod old_names;
mod output;
mod own_namespaces;
mod ownership;
mod policies;
mod policies_second_look;
mod policies_second_look_settings;
mod requeue;
mod revision_history;
mod rights;
mod run_result;
mod schemas;
mod second_look;
mod secrets;
mod selection;
mod stored_objects;
mod things;
mod third_look;
mod updates;
mod value_guesses;
mod value_sources;
mod versions;
mod write_rate;
