use serde::Serialize;
use serde_json::Value;

/// Letters and digits that form no words, as Kubernetes uses them in `pod-template-hash`.
const DIGITS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Returns a short hash of a value, for a label: seven letters and digits that change when the
/// value does. The order of members does not count. The same value has the same hash in every
/// version of the SDK.
///
/// Use it as a label that selects the objects of one version. In the *name* of an object it makes
/// another object of each version, which the host creates at once and no update group limits.
///
/// ```
/// use innkeeper_sdk::serde_json::json;
/// use innkeeper_sdk::template_hash;
///
/// let template = json!({ "image": "nginx", "port": 80 });
/// assert_eq!(template_hash(&template), template_hash(&json!({ "port": 80, "image": "nginx" })));
/// assert_ne!(template_hash(&template), template_hash(&json!({ "port": 81, "image": "nginx" })));
/// ```
pub fn template_hash(value: &impl Serialize) -> String {
    let mut hash = Fnv1a(0x811c_9dc5);
    match serde_json::to_value(value) {
        Ok(value) => hash.value(&value),
        // A value that is no JSON is not applied either.
        Err(error) => hash.bytes(error.to_string().as_bytes()),
    }
    let mut rest = hash.0;
    let digit = |_| {
        let digit = DIGITS.get((rest % 27) as usize).copied().unwrap_or(b'b');
        rest /= 27;
        char::from(digit)
    };
    // 27^7 is more than 2^32.
    (0..7).map(digit).collect()
}

/// FNV-1a of 32 bits.
struct Fnv1a(u32);

impl Fnv1a {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }

    /// Adds JSON without spaces, with sorted members.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                // Sorted here: a feature of serde_json keeps the order of insertion.
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(key, _)| *key);
                self.bytes(b"{");
                for (key, value) in members {
                    self.value(&Value::String(key.clone()));
                    self.bytes(b":");
                    self.value(value);
                    self.bytes(b",");
                }
                self.bytes(b"}");
            }
            Value::Array(values) => {
                self.bytes(b"[");
                for value in values {
                    self.value(value);
                    self.bytes(b",");
                }
                self.bytes(b"]");
            }
            leaf => self.bytes(leaf.to_string().as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hash_of_a_value_never_changes() {
        assert_eq!(template_hash(&json!(null)), "drpwggh");
        assert_eq!(template_hash(&json!({ "b": [1, "x"], "a": { "c": true } })), "qsx8vqm");
        // The SDKs of other languages test these values too.
        let texts = json!({
            "é\u{2028}": "\u{1}\u{8}\"\\/<&>\u{7f}😀", "\u{e000}": -1, "😀": [[], {}, false]
        });
        assert_eq!(template_hash(&texts), "phsrcdl");
    }

    #[test]
    fn order_of_members_does_not_count_and_everything_else_does() {
        let hash = |text: &str| template_hash(&serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(hash(r#"{"a":1,"b":2}"#), hash(r#"{"b":2,"a":1}"#));
        assert_ne!(hash("[1,2]"), hash("[2,1]"));
        assert_ne!(hash("[1]"), hash("1"));
        assert_ne!(hash(r#"["a","b"]"#), hash(r#"["a,b"]"#));
        assert_ne!(hash(r#"{"a":{"b":1}}"#), hash(r#"{"a":1,"b":1}"#));
        assert_ne!(hash("1"), hash(r#""1""#));
    }

    #[test]
    fn hash_is_a_label_value() {
        for number in 0..1000 {
            let hash = template_hash(&number);
            assert!(crate::names::is_label_value(&hash), "{hash}");
            assert_eq!(hash.len(), 7, "{hash}");
        }
    }
}
