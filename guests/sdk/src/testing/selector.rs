use serde_json::Value;

/// Returns whether an object's labels match a Kubernetes label selector.
///
/// Supports `key=value`, `key==value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`, `key` and
/// `!key`, joined by commas. Fails if the selector is malformed.
pub(super) fn matches(selector: &str, object: &Value) -> Result<bool, String> {
    let mut all = true;
    // Without an early return, so that a malformed selector fails for every object.
    for requirement in requirements(selector) {
        all &= matches_one(requirement.trim(), object)?;
    }
    Ok(all)
}

/// Splits the selector at the commas outside of parentheses.
fn requirements(selector: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, character) in selector.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&selector[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&selector[start..]);
    if selector.trim().is_empty() { Vec::new() } else { parts }
}

fn matches_one(requirement: &str, object: &Value) -> Result<bool, String> {
    let label = |key: &str| object["metadata"]["labels"].get(key.trim()).and_then(Value::as_str);
    let words: Vec<&str> = requirement.splitn(3, ' ').collect();
    if let [key, verb @ ("in" | "notin"), values] = words[..] {
        let values = values
            .trim()
            .strip_prefix('(')
            .and_then(|values| values.strip_suffix(')'))
            .ok_or_else(|| format!("`{requirement}`: the values must be in parentheses"))?;
        let among =
            label(key).is_some_and(|value| values.split(',').any(|one| one.trim() == value));
        return Ok(among == (verb == "in"));
    }
    if let Some((key, value)) = requirement.split_once("!=") {
        return Ok(label(key) != Some(value.trim()));
    }
    if let Some((key, value)) = requirement.split_once('=') {
        let value = value.strip_prefix('=').unwrap_or(value);
        return Ok(label(key) == Some(value.trim()));
    }
    if requirement.is_empty() || requirement.contains(' ') {
        return Err(format!("`{requirement}` is not a requirement of a label selector"));
    }
    match requirement.strip_prefix('!') {
        Some(key) => Ok(label(key).is_none()),
        None => Ok(label(requirement).is_some()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selector_matches_as_in_kubernetes() {
        let object = json!({ "metadata": { "labels": { "app": "web", "tier": "front" } } });
        for (selector, expected) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier=front", true),
            ("app=web,tier=back", false),
            ("app!=web", false),
            ("zone!=a", true),
            ("app in (shop, web),tier", true),
            ("app notin (shop,web)", false),
            ("zone notin (a)", true),
            ("zone", false),
            ("!zone", true),
        ] {
            assert_eq!(matches(selector, &object), Ok(expected), "{selector}");
        }
    }

    #[test]
    fn selector_is_an_error_when_it_is_malformed() {
        let object = json!({});
        assert!(matches("app web", &object).is_err());
        assert!(matches("app in web", &object).is_err());
        assert!(matches("app=web,", &object).is_err());
    }
}
