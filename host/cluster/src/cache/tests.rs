mod admissions;
mod compression;
mod events;
mod fields;
mod restored;
mod served;
mod support;
mod views;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use innkeeper_contract::Kind;
use innkeeper_core::ObjectKey;
use serde_json::{Value, json};

use super::*;
use crate::scripted::{Reply, Server, allowed, eventually, forbidden, list};
use crate::{ApiError, KindState};
