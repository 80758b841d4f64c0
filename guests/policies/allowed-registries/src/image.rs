use std::fmt;

/// The registry of an image that names none.
const DEFAULT_REGISTRY: &str = "docker.io";

/// The namespace of an image of [`DEFAULT_REGISTRY`] that names none.
const DEFAULT_NAMESPACE: &str = "library";

/// Maximum length of registry and path, as the reference grammar has it.
const NAME_BYTES_MAX: usize = 255;

/// Maximum length of a tag.
const TAG_BYTES_MAX: usize = 128;

/// A reference to an image, by the [grammar of registries][grammar]. Not by a regular expression:
/// each review has a new instance, and would compile it again.
///
/// [grammar]: https://pkg.go.dev/github.com/distribution/reference
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) repository: Repository,
    pub(crate) has_digest: bool,
}

/// A registry and a path in it, in full: `nginx` is `docker.io/library/nginx`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    /// Host, in lower case, and port.
    registry: String,
    /// Empty for the whole registry.
    path: String,
}

impl Image {
    /// Parses the field `image` of a container.
    ///
    /// # Errors
    /// Why it is no reference.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (text, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        if digest.is_some_and(|digest| !is_digest(digest)) {
            return Err("its digest is none like sha256: and 64 hexadecimal digits");
        }
        let last = text.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match text[last..].split_once(':') {
            Some((_, tag)) => (&text[..text.len() - tag.len() - 1], Some(tag)),
            None => (text, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err("its tag is not of letters, digits, '_', '.' and '-'");
        }
        let repository = Repository::parse_image(name)?;
        Ok(Self { repository, has_digest: digest.is_some() })
    }
}

impl Repository {
    /// Parses an allowed registry or repository: a host, with a port and a path if they are given.
    /// A path is in full: `docker.io/shop` is the namespace `shop`, and no image of that name.
    ///
    /// # Errors
    /// Why it is none.
    pub(crate) fn parse_allowed(text: &str) -> Result<Self, &'static str> {
        if !is_registry(text.split('/').next().unwrap_or_default()) {
            return Err("it does not begin with a registry, such as ghcr.io or localhost:5000");
        }
        Self::parse(text)
    }

    /// Parses a registry, and a path in it if there is one.
    fn parse(text: &str) -> Result<Self, &'static str> {
        if text.len() > NAME_BYTES_MAX {
            return Err("its name is longer than 255 characters");
        }
        let Some((first, path)) = text.split_once('/') else {
            return Ok(Self { registry: registry(text)?, path: String::new() });
        };
        if !path.split('/').all(is_path_component) {
            return Err(
                "its path is not of lower-case letters and digits, with '.', '_' and '-' between",
            );
        }
        Ok(Self { registry: registry(first)?, path: path.to_owned() })
    }

    /// Parses the name of an image, without tag and digest, and completes it as runtimes do.
    fn parse_image(text: &str) -> Result<Self, &'static str> {
        let has_registry = text.split_once('/').is_some_and(|(first, _)| is_registry(first));
        let mut name = if has_registry {
            Self::parse(text)?
        } else {
            Self::parse(&format!("{DEFAULT_REGISTRY}/{text}"))?
        };
        if name.registry == DEFAULT_REGISTRY && !name.path.contains('/') {
            name.path = format!("{DEFAULT_NAMESPACE}/{}", name.path);
        }
        Ok(name)
    }

    /// Returns whether an image of `other` is one of this registry or repository.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        let rest = other.path.strip_prefix(self.path.as_str());
        self.registry == other.registry
            && rest.is_some_and(|rest| {
                self.path.is_empty() || rest.is_empty() || rest.starts_with('/')
            })
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.registry)?;
        if self.path.is_empty() { Ok(()) } else { write!(f, "/{}", self.path) }
    }
}

/// Whether the first part of a name is a registry and no part of the path: the rule of Docker,
/// which all container runtimes follow.
fn is_registry(first: &str) -> bool {
    let is_host = |c: char| c == '.' || c == ':' || c.is_ascii_uppercase();
    first == "localhost" || first.contains(is_host)
}

/// Returns the registry as it is compared.
fn registry(text: &str) -> Result<String, &'static str> {
    let end =
        if text.starts_with('[') { text.find(']').map(|end| end + 1) } else { text.find(':') };
    let (host, port) = text.split_at(end.unwrap_or(text.len()));
    let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_number);
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_host = match address {
        Some(address) => {
            !address.is_empty() && address.chars().all(|c| c == ':' || c.is_ascii_hexdigit())
        }
        None => host.split('.').all(is_host_label),
    };
    if !is_host || !is_port {
        return Err("its registry is no host with a port if one is given");
    }
    let registry = text.to_ascii_lowercase();
    // The old name of the same registry.
    Ok(if registry == "index.docker.io" { DEFAULT_REGISTRY.to_owned() } else { registry })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_host_label(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Whether a text is letters and digits with separators between: `.`, `_`, `__`, or any number of
/// `-`.
fn is_path_component(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let separators = text.split(is_word).filter(|one| !one.is_empty());
    text.starts_with(is_word)
        && text.ends_with(is_word)
        && separators
            .into_iter()
            .all(|one| matches!(one, "." | "_" | "__") || one.bytes().all(|byte| byte == b'-'))
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= TAG_BYTES_MAX
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
}

/// Whether a text is a digest that runtimes know.
fn is_digest(text: &str) -> bool {
    let digits = match text.split_once(':') {
        Some(("sha256", digits)) if digits.len() == 64 => digits,
        Some(("sha384", digits)) if digits.len() == 96 => digits,
        Some(("sha512", digits)) if digits.len() == 128 => digits,
        _ => return false,
    };
    digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(text: &str) -> String {
        Image::parse(text).unwrap().repository.to_string()
    }

    #[test]
    fn image_without_a_registry_is_of_docker_hub() {
        for (text, expected) in [
            ("nginx", "docker.io/library/nginx"),
            ("nginx:1.27", "docker.io/library/nginx"),
            ("nginx.example", "docker.io/library/nginx.example"),
            ("shop/web", "docker.io/shop/web"),
            ("docker.io/nginx", "docker.io/library/nginx"),
            ("index.docker.io/library/nginx", "docker.io/library/nginx"),
            ("DOCKER.IO/shop/web", "docker.io/shop/web"),
            ("localhost/web", "localhost/web"),
            ("localhost:5000/web:1", "localhost:5000/web"),
            ("registry:5000/web", "registry:5000/web"),
            ("ghcr.io/shop/web/front:v1", "ghcr.io/shop/web/front"),
            ("[2001:db8::1]:5000/web", "[2001:db8::1]:5000/web"),
            // A name and a tag, and no port.
            ("localhost:5000", "docker.io/library/localhost"),
            ("a__b/c---d.e_f", "docker.io/a__b/c---d.e_f"),
        ] {
            assert_eq!(full(text), expected, "{text}");
        }
    }

    #[test]
    fn digest_is_one_of_a_known_algorithm_and_length() {
        let sha256 = format!("sha256:{}", "0123456789abcdef".repeat(4));
        let image = Image::parse(&format!("ghcr.io/web:1@{sha256}")).unwrap();
        assert!(image.has_digest);
        assert!(!Image::parse("ghcr.io/web:1").unwrap().has_digest);
        for digest in [
            "sha256:",
            "sha256:0123",
            "md5:0123456789abcdef0123456789abcdef",
            &sha256.to_uppercase(),
            &format!("{sha256}0"),
            &sha256.replace('0', "g"),
        ] {
            assert!(Image::parse(&format!("web@{digest}")).is_err(), "{digest}");
        }
    }

    #[test]
    fn text_that_is_no_reference_is_refused() {
        for text in [
            "",
            ":1",
            "/web",
            "ghcr.io/",
            "ghcr.io//web",
            "ghcr.io/shop/../web",
            "ghcr.io/shop/Web",
            "ghcr.io/shop/web:",
            "ghcr.io/shop/web:a b",
            "ghcr.io/shop/web-",
            "ghcr.io/a___b",
            "ghcr.io./shop/web",
            "ghcr.io:https/web",
            "https://ghcr.io/web",
            "ghcr.io/shop/web ",
            "ghcr.io/shop/w\u{435}b",
            "[::1/web",
            "-a.io/web",
            &"a".repeat(256),
        ] {
            assert!(Image::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn repository_includes_what_is_below_it_and_nothing_else() {
        let includes = |allowed: &str, image: &str| {
            let allowed = Repository::parse_allowed(allowed).unwrap();
            allowed.includes(&Image::parse(image).unwrap().repository)
        };
        assert!(includes("ghcr.io", "ghcr.io/any/web"));
        assert!(includes("ghcr.io/shop", "ghcr.io/shop/web:1"));
        assert!(includes("ghcr.io/shop/web", "ghcr.io/shop/web"));
        assert!(includes("docker.io/library", "nginx"));
        assert!(includes("docker.io", "nginx"));
        assert!(includes("docker.io/library/nginx", "nginx"));
        assert!(includes("GHCR.io/shop", "ghcr.io/shop/web"));
        assert!(!includes("ghcr.io/shop", "ghcr.io/shopping/web"));
        assert!(!includes("ghcr.io/shop/web", "ghcr.io/shop"));
        assert!(!includes("docker.io/library", "evil/nginx"));
        assert!(!includes("docker.io/nginx", "nginx"));
        assert!(!includes("ghcr.io", "ghcr.io.evil.example/web"));
        assert!(!includes("ghcr.io", "ghcr.io:8080/web"));
        assert!(!includes("localhost", "localhost:5000/web"));
    }

    #[test]
    fn allowed_repository_begins_with_a_registry() {
        for text in ["", "nginx", "shop/web", "library"] {
            let why = Repository::parse_allowed(text).unwrap_err();
            assert!(why.contains("does not begin with a registry"), "{text}: {why}");
        }
        for text in ["ghcr.io/", "ghcr.io/Shop", "ghcr.io:x"] {
            assert!(Repository::parse_allowed(text).is_err(), "{text}");
        }
    }
}
