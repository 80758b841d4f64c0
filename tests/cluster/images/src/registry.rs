//! Pushing to a registry.

use anyhow::{Context as _, Result, bail};
use ureq::Agent;

use crate::Image;

/// A registry that is reached over plain HTTP, without credentials.
#[derive(Clone, Debug)]
pub struct Registry {
    url: String,
    agent: Agent,
}

impl Registry {
    /// At `address`, as `127.0.0.1:5000`.
    pub fn at(address: &str) -> Self {
        let config = Agent::config_builder().http_status_as_error(false).proxy(None);
        let config = config.timeout_global(Some(std::time::Duration::from_mins(1)));
        Self { url: format!("http://{address}/v2/"), agent: config.build().new_agent() }
    }

    /// Whether it answers.
    pub fn is_ready(&self) -> bool {
        self.agent.get(&self.url).call().is_ok_and(|answer| answer.status() == 200)
    }

    /// Puts `image` there. `name` is that by which pods ask for it, as
    /// `quay.io/example/production:latest` or `postgres:15`; the registry stands for all hosts.
    ///
    /// # Errors
    /// If the registry does not answer, or refuses a blob or the manifest.
    pub fn push(&self, name: &str, image: &Image) -> Result<()> {
        let (repository, tag) = place(name);
        for (digest, blob) in &image.blobs {
            self.push_blob(&repository, digest, blob)
                .with_context(|| format!("pushing {digest} of {name} to {}", self.url))?;
        }
        let url = format!("{}{repository}/manifests/{tag}", self.url);
        let request = self.agent.put(&url).header("Content-Type", Image::media_type());
        let answer = request.send(image.manifest.as_slice());
        expect(answer, 201).with_context(|| format!("pushing {name} to {}", self.url))?;
        Ok(())
    }

    fn push_blob(&self, repository: &str, digest: &str, blob: &[u8]) -> Result<()> {
        let known = format!("{}{repository}/blobs/{digest}", self.url);
        if self.agent.head(&known).call()?.status() == 200 {
            return Ok(());
        }
        let begin = format!("{}{repository}/blobs/uploads/", self.url);
        let answer = expect(self.agent.post(&begin).send_empty(), 202)?;
        let place = answer.headers().get("Location").context("no place to upload to is given")?;
        let place = place.to_str()?;
        let mark = if place.contains('?') { '&' } else { '?' };
        let put = self.agent.put(format!("{place}{mark}digest={digest}"));
        let put = put.header("Content-Type", "application/octet-stream");
        expect(put.send(blob), 201)?;
        Ok(())
    }
}

type Answer = ureq::http::Response<ureq::Body>;

fn expect(answer: Result<Answer, ureq::Error>, status: u16) -> Result<Answer> {
    let mut answer = answer?;
    if answer.status() != status {
        let text = answer.body_mut().read_to_string().unwrap_or_default();
        bail!("the registry answers {}: {text}", answer.status());
    }
    Ok(answer)
}

/// The repository and tag by which a node asks for an image: without the host, and with what is
/// left out of names of Docker's own registry.
fn place(name: &str) -> (String, String) {
    let (path, tag) = match name.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, tag),
        _ => (name, "latest"),
    };
    let repository = match path.split_once('/') {
        Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => rest.to_owned(),
        Some(_) => path.to_owned(),
        None => format!("library/{path}"),
    };
    (repository, tag.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushed_image_lies_where_a_node_asks_for_it() {
        let is = |name: &str, repository: &str, tag: &str| {
            assert_eq!(place(name), (repository.to_owned(), tag.to_owned()), "{name}");
        };
        is("quay.io/example/production:latest", "example/production", "latest");
        is("quay.io:443/example/production", "example/production", "latest");
        is("postgres:15", "library/postgres", "15");
        is("nginx", "library/nginx", "latest");
        is("someone/thing", "someone/thing", "latest");
    }
}
