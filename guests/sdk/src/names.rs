//! Checks of names and label values against the rules of Kubernetes.
//!
//! A primary's name has at most 253 characters. A label value or the name of a Service that a
//! guest derives from it must be shorter: let the API server reject longer names with a
//! [`Rule`](crate::Rule), and check them in the guest with
//! [`Outcome::refused`](crate::Outcome::refused).

/// Maximum length of a DNS label and of a label value, in characters.
pub const LABEL_MAX: usize = 63;

/// Returns whether the text is a valid label value: at most 63 letters, digits, `-`, `_` and `.`,
/// with a letter or digit at both ends. The empty text is valid.
pub fn is_label_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let end = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= LABEL_MAX
        && bytes.iter().copied().all(inner)
        && end(bytes.first())
        && end(bytes.last())
}

/// Returns whether the text is a DNS label (RFC 1123), as a container's name must be: 1 to 63
/// lower-case letters, digits and `-`, with a letter or digit at both ends.
pub fn is_dns_label(text: &str) -> bool {
    let inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && bytes.len() <= LABEL_MAX
        && bytes.iter().copied().all(inner)
        && bytes.first() != Some(&b'-')
        && bytes.last() != Some(&b'-')
}

/// Returns whether the text is a valid Service name: a DNS label that begins with a letter
/// (RFC 1035).
pub fn is_service_name(text: &str) -> bool {
    is_dns_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_value_is_valid_with_at_most_63_characters_and_alphanumeric_ends() {
        for good in ["", "a", "A.b_c-9", &"a".repeat(63)] {
            assert!(is_label_value(good), "{good:?}");
        }
        for bad in ["-a", "a.", "a b", "ä", &"a".repeat(64)] {
            assert!(!is_label_value(bad), "{bad:?}");
        }
    }

    #[test]
    fn dns_label_is_invalid_with_upper_case_or_dots() {
        for good in ["a", "9-a", &"a".repeat(63)] {
            assert!(is_dns_label(good), "{good:?}");
        }
        for bad in ["", "A", "a.b", "a_b", "-a", "a-", &"a".repeat(64)] {
            assert!(!is_dns_label(bad), "{bad:?}");
        }
    }

    #[test]
    fn service_name_is_invalid_when_it_begins_with_a_digit() {
        assert!(is_service_name("web-1"));
        assert!(!is_service_name("1-web"));
        assert!(!is_service_name(""));
    }
}
