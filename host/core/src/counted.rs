//! Numbers with their noun, for messages.

/// A number and its noun: `1 object`, `2 objects`.
pub fn counted(count: impl Into<u64>, one: &str, many: &str) -> String {
    let count = count.into();
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The same for the size of a collection.
pub fn counted_len(len: usize, one: &str, many: &str) -> String {
    counted(u64::try_from(len).unwrap_or(u64::MAX), one, many)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noun_is_singular_for_one_only() {
        let objects = [0_u32, 1, 2].map(|count| counted(count, "object", "objects"));
        assert_eq!(objects, ["0 objects", "1 object", "2 objects"]);
        assert_eq!(counted_len(1, "case", "cases"), "1 case");
    }
}
