//! The arguments of the admission server.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use axum::http::Uri;
use innkeeper_admission::certificates::Lifetimes;
use innkeeper_core::names::is_label;
use innkeeper_operator::{AdmissionEndpoint, AdmissionSettings, ModulesLocation};

/// Arguments of `innkeeper run` for policies.
#[derive(clap::Args)]
pub(crate) struct AdmissionArguments {
    /// Address on which to review the requests of the API server over HTTPS, such as 0.0.0.0:8443.
    /// Without it no policy reviews anything [default: none].
    #[arg(
        id = "admission_bind",
        long = "admission-bind",
        value_name = "ADDRESS",
        env = "INNKEEPER_ADMISSION_BIND"
    )]
    bind: Option<SocketAddr>,
    /// Name of the Service in the host's namespace by which the API server reaches that address.
    #[arg(
        long = "admission-service",
        value_name = "NAME",
        default_value = "innkeeper-admission",
        env = "INNKEEPER_ADMISSION_SERVICE"
    )]
    service: String,
    /// Port of that Service.
    #[arg(
        long = "admission-port",
        value_name = "PORT",
        default_value_t = 443,
        value_parser = clap::value_parser!(u16).range(1..),
        env = "INNKEEPER_ADMISSION_PORT"
    )]
    port: u16,
    /// URL by which the API server reaches that address instead of by a Service, such as
    /// https://192.0.2.7:8443: for a host that runs outside of the cluster.
    #[arg(long = "admission-url", value_name = "URL", env = "INNKEEPER_ADMISSION_URL")]
    url: Option<String>,
    /// File with certificates of authorities (PEM). Only clients with a certificate of one of them
    /// are answered [default: all are].
    #[arg(
        long = "admission-client-ca",
        value_name = "FILE",
        env = "INNKEEPER_ADMISSION_CLIENT_CA"
    )]
    client_ca: Option<PathBuf>,
}

impl AdmissionArguments {
    /// The address of the server, and how the API server reaches it; `None` without a server.
    ///
    /// # Errors
    /// If the host takes its Modules from a folder, or the URL or the name cannot be used.
    pub(super) fn settings(
        &self,
        from: &ModulesLocation,
    ) -> anyhow::Result<Option<(SocketAddr, AdmissionSettings)>> {
        let Some(bind) = self.bind else { return Ok(None) };
        if !matches!(from, ModulesLocation::Cluster) {
            bail!(
                "--admission-bind: a host with --modules has no policies, since no Module in the cluster could own their webhook configurations; leave out one of both"
            );
        }
        let endpoint = match &self.url {
            Some(url) => endpoint(url).context("--admission-url")?,
            None if is_label(&self.service) => {
                AdmissionEndpoint::Service { name: self.service.clone(), port: self.port }
            }
            None => bail!(
                "--admission-service: {:?} is no valid name (lower-case letters, digits and '-')",
                self.service
            ),
        };
        Ok(Some((bind, AdmissionSettings { endpoint, lifetimes: Lifetimes::default() })))
    }

    /// The authorities of clients, as PEM.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn client_authority(&self) -> anyhow::Result<Option<String>> {
        let Some(file) = &self.client_ca else { return Ok(None) };
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("--admission-client-ca: cannot read {}", file.display()))?;
        Ok(Some(text))
    }
}

/// A URL without the path of a policy, and the host in it.
fn endpoint(url: &str) -> anyhow::Result<AdmissionEndpoint> {
    const FORM: &str = "give https://HOST, https://HOST:PORT or https://HOST:PORT/PATH";
    let uri: Uri = url.parse().ok().with_context(|| format!("{url:?} is no URL; {FORM}"))?;
    let authority = uri.authority().map(axum::http::uri::Authority::as_str).unwrap_or_default();
    if uri.scheme_str() != Some("https") || authority.contains('@') || uri.query().is_some() {
        bail!("{url:?} cannot be used; {FORM}");
    }
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    if host.is_empty() {
        bail!("{url:?} has no host; {FORM}");
    }
    Ok(AdmissionEndpoint::Url { url: url.trim_end_matches('/').to_owned(), host })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        admission: AdmissionArguments,
    }

    fn settings(line: &[&str]) -> anyhow::Result<Option<(SocketAddr, AdmissionSettings)>> {
        let line = std::iter::once(&"run").chain(line);
        Command::try_parse_from(line)?.admission.settings(&ModulesLocation::Cluster)
    }

    fn refusal(line: &[&str]) -> String {
        format!("{:#}", settings(line).unwrap_err())
    }

    #[test]
    fn host_without_an_address_has_no_server() {
        assert!(settings(&["--admission-url", "https://a"]).unwrap().is_none());
    }

    #[test]
    fn service_and_url_become_the_endpoint() {
        let bind = ["--admission-bind", "127.0.0.1:0"];
        let (_, found) = settings(&bind).unwrap().unwrap();
        let name = "innkeeper-admission".to_owned();
        assert_eq!(found.endpoint, AdmissionEndpoint::Service { name, port: 443 });
        for (url, host, kept) in [
            ("https://192.0.2.7:8443", "192.0.2.7", "https://192.0.2.7:8443"),
            ("https://[::1]:8443/", "::1", "https://[::1]:8443"),
            ("https://host.example/path/", "host.example", "https://host.example/path"),
        ] {
            let line = [bind[0], bind[1], "--admission-url", url];
            let (_, found) = settings(&line).unwrap().unwrap();
            let (url, host) = (kept.to_owned(), host.to_owned());
            assert_eq!(found.endpoint, AdmissionEndpoint::Url { url, host });
        }
    }

    #[test]
    fn arguments_that_cannot_be_used_are_refused_with_the_flag() {
        let bind = ["--admission-bind", "127.0.0.1:0"];
        for url in ["http://a", "a", "https://a@b", "https://a?b=c", "https://:1", ""] {
            let text = refusal(&[bind[0], bind[1], "--admission-url", url]);
            assert!(text.contains("--admission-url"), "{url}: {text}");
        }
        let text = refusal(&[bind[0], bind[1], "--admission-service", "A_B"]);
        assert!(text.contains("--admission-service: \"A_B\""), "{text}");
        let folder = ModulesLocation::Directory("modules".into());
        let command = Command::try_parse_from(["run", bind[0], bind[1]]).unwrap();
        let text = command.admission.settings(&folder).unwrap_err().to_string();
        assert!(text.contains("--modules"), "{text}");
    }
}
