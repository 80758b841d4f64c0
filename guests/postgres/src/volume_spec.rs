use serde::Deserialize;

/// The names of claims, as a schema has them: DNS subdomains (RFC 1123).
pub(crate) const CLAIM_NAME: &str =
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// The fields of a spec, or of the Module's parameters, that say where a volume is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct VolumeSpec {
    /// Storage class of a claim that the guest creates.
    pub class_name: Option<String>,
    /// An existing claim.
    pub claim_name: Option<String>,
    /// Whether the volume is an emptyDir.
    pub ephemeral: Option<bool>,
}

/// Returns whether the text is a DNS subdomain (RFC 1123), as the name of a claim must be.
pub(crate) fn is_claim_name(text: &str) -> bool {
    let is_part = |part: &str| {
        let inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        !part.is_empty()
            && part.bytes().all(inner)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim_name_is_valid_when_it_is_a_dns_subdomain() {
        for good in ["a", "foodb-data", "a.b-1.c", &"a".repeat(253)] {
            assert!(is_claim_name(good), "{good:?}");
        }
        let long = "a".repeat(254);
        for bad in ["", ".", "..", "a..b", "../a", "a/b", "A", "a_b", "-a", "a-", "a\n", &long] {
            assert!(!is_claim_name(bad), "{bad:?}");
        }
    }
}
