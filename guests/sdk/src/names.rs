//! Whether a text is a name that Kubernetes takes, and names that are as long as allowed.
//!
//! A primary's own name is at most 253 characters. What a guest makes of it (a label's value, a
//! Service's name) may have to be shorter: say so by a condition instead of making half of
//! what is wanted, or have the API server refuse it by a [`Rule`](crate::Rule).

/// The longest DNS label and the longest value of a label.
pub const LABEL_MAX: usize = 63;

/// Whether this can be a label's value (letters, digits, `-`, `_` and `.`, which do
/// not stand at an end; at most 63 characters; empty is fine).
pub fn is_label_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let end = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= LABEL_MAX
        && bytes.iter().copied().all(inner)
        && end(bytes.first())
        && end(bytes.last())
}

/// Whether this can be a container's name: a DNS label (RFC 1123), which is lower-case letters,
/// digits and `-`, which does not stand at an end; at most 63 characters.
pub fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && bytes.len() <= LABEL_MAX
        && bytes.iter().copied().all(inner)
        && bytes.first() != Some(&b'-')
        && bytes.last() != Some(&b'-')
}

/// Whether this can be a Service's name: a DNS label that begins with a letter (RFC 1035).
pub fn is_service_name(text: &str) -> bool {
    is_dns_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_value_has_at_most_63_characters_and_ends_in_letters_or_digits() {
        for good in ["", "a", "A.b_c-9", &"a".repeat(63)] {
            assert!(is_label_value(good), "{good:?}");
        }
        for bad in ["-a", "a.", "a b", "ä", &"a".repeat(64)] {
            assert!(!is_label_value(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_dns_label_is_lower_case_and_has_no_dots() {
        for good in ["a", "9-a", &"a".repeat(63)] {
            assert!(is_dns_label(good), "{good:?}");
        }
        for bad in ["", "A", "a.b", "a_b", "-a", "a-", &"a".repeat(64)] {
            assert!(!is_dns_label(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_service_name_begins_with_a_letter() {
        assert!(is_service_name("web-1"));
        assert!(!is_service_name("1-web"));
        assert!(!is_service_name(""));
    }
}
