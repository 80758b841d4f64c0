//! The plurals of kinds.

/// Returns the English plural of a kind, by the common rules.
pub(super) fn plural_of(kind: &str) -> String {
    let name = kind.to_lowercase();
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if ends(&["s", "x", "z", "ch", "sh"]) {
        return format!("{name}es");
    }
    match name.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{name}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plural_follows_the_common_english_rules() {
        for (kind, plural) in [
            ("Greeting", "greetings"),
            ("Proxy", "proxies"),
            ("Gateway", "gateways"),
            ("Ingress", "ingresses"),
            ("Box", "boxes"),
            ("HTTPCheck", "httpchecks"),
            ("Branch", "branches"),
        ] {
            assert_eq!(plural_of(kind), plural);
        }
    }
}
