//! Digests of revisions, as users give and read them.

use anyhow::bail;

/// The digits of a digest, in lower case.
///
/// # Errors
/// If they are none, or fewer than 12.
pub(crate) fn check_digits(digest: &str) -> anyhow::Result<String> {
    if !(12..=64).contains(&digest.len()) || !digest.chars().all(|digit| digit.is_ascii_hexdigit())
    {
        bail!("{digest:?} is no digest; give at least its first 12 hex digits");
    }
    Ok(digest.to_ascii_lowercase())
}

/// The first 12 digits.
pub(crate) fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}
