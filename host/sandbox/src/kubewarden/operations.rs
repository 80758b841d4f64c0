//! The operations of a Kubewarden policy.

use std::sync::Arc;

use innkeeper_contract::Manifest;
use serde_json::Value;

use super::metadata::{PROTOCOL, wrong_protocol};
use super::policy::KubewardenPolicy;
use super::request;
use super::response::{ProtocolVersion, SettingsResponse, ValidationResponse};
use crate::call::{Figures, call};
use crate::error::{CallError, LoadError, SettingsError, text};
use crate::host::{Host, NoHost};
use crate::limits::Limits;
use crate::output;
use crate::review_outcome::{Review, ReviewOutcome};
use crate::runtime::Runtime;
use crate::wapc::module::Answer;

/// The operations of the protocol.
const VALIDATE: &str = "validate";
const VALIDATE_SETTINGS: &str = "validate_settings";
const PROTOCOL_VERSION: &str = "protocol_version";

impl KubewardenPolicy {
    /// Asks the policy for its version of the protocol, without a cluster. Returns what it logged.
    ///
    /// # Errors
    /// [`LoadError::WrongProtocol`] for another version, and [`LoadError::Describe`].
    pub(crate) fn check_protocol(
        &self,
        runtime: &Runtime,
        limits: &Limits,
    ) -> Result<Vec<String>, LoadError> {
        let mut host = NoHost::default();
        let (answer, _) = call(runtime, limits, (None, 0), &mut host, |store| {
            self.module.call(store, PROTOCOL_VERSION, &[])
        });
        match answer? {
            Answer::Response(version) => {
                let ProtocolVersion(version) = output::read_bytes(&version, limits)?;
                if version == PROTOCOL { Ok(host.warnings) } else { Err(wrong_protocol(&version)) }
            }
            Answer::Error(error) => Err(wrong_protocol(&error)),
        }
    }

    /// Asks the policy whether it can work with these settings, without a cluster.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub(crate) fn check_settings(
        &self,
        runtime: &Runtime,
        limits: &Limits,
        parameters: &Value,
    ) -> Result<(), SettingsError> {
        let settings = request::settings(parameters).to_string().into_bytes();
        let given = (None, settings.len());
        let (answer, _) = call(runtime, limits, given, &mut NoHost::default(), |store| {
            self.module.call(store, VALIDATE_SETTINGS, &settings)
        });
        match answer? {
            Answer::Response(response) => {
                let response: SettingsResponse = output::read_bytes(&response, limits)?;
                let message = response.message.unwrap_or_default();
                if response.valid { Ok(()) } else { Err(SettingsError::Refused(text(message))) }
            }
            // An SDK answers so if the settings have another type than the policy's.
            Answer::Error(error) => Err(SettingsError::Refused(text(error))),
        }
    }

    /// Reviews a request, given as `review-request` document.
    ///
    /// # Errors
    /// [`CallError`].
    pub(crate) fn review(
        &self,
        runtime: &Runtime,
        (manifest, limits): (&Arc<Manifest>, &Limits),
        document: &str,
        host: &mut dyn Host,
    ) -> Result<Review, CallError> {
        let limit = limits.memory_bytes;
        let payload = request::payload(document)
            .map_err(|error| CallError::RequestUnreadable { what: text(error.to_string()) })?;
        if payload.len() > limit {
            return Err(CallError::RequestTooLarge { limit });
        }
        let given = (Some(Arc::clone(manifest)), payload.len());
        let (answer, mut figures): (_, Figures) =
            call(runtime, limits, given, host, |store| self.module.call(store, VALIDATE, &payload));
        let outcome = match answer? {
            Answer::Response(response) => {
                figures.output_bytes = response.len();
                let response: ValidationResponse = output::read_bytes(&response, limits)?;
                ReviewOutcome::Decided(response.into())
            }
            Answer::Error(error) => {
                figures.output_bytes = error.len();
                ReviewOutcome::Failed(text(error))
            }
        };
        Ok(Review { outcome, figures })
    }
}
