use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use super::encodings::PIECE_BYTES;
use super::*;

const VALUE: &[u8] = b"correct horse\xf0\x9f\x90\xb4?>battery";

fn redactor(value: &[u8]) -> Redactor {
    Redactor::new([value])
}

#[test]
fn value_is_masked_in_every_form() {
    let redactor = redactor(VALUE);
    let text = String::from_utf8(VALUE.to_vec()).unwrap();
    for form in [
        text.clone(),
        STANDARD.encode(VALUE),
        STANDARD_NO_PAD.encode(VALUE),
        URL_SAFE.encode(VALUE),
        URL_SAFE_NO_PAD.encode(VALUE),
        hex::encode(VALUE),
        hex::encode(VALUE).to_uppercase(),
    ] {
        let masked = redactor.mask(&format!("it is {form} here"));
        assert!(masked.starts_with("it is [redacted]") && masked.ends_with(" here"), "{masked}");
        let least = form.get(..6).unwrap();
        assert!(!masked.contains(least), "{form}: {masked}");
    }
}

#[test]
fn value_is_masked_within_longer_base64() {
    let redactor = redactor(b"hunter2hunter2");
    for user in ["u", "us", "use", "user"] {
        let header = STANDARD.encode(format!("{user}:hunter2hunter2!!"));
        let masked = redactor.mask(&header);
        assert!(masked.contains(MASK) && masked.len() < header.len(), "{header}: {masked}");
    }
}

#[test]
fn value_is_masked_when_it_is_quoted() {
    let redactor = redactor(b"line \"one\"\nline two");
    let masked = redactor.mask(r#"invalid value "line \"one\"\nline two": no"#);
    assert_eq!(masked, "invalid value \"[redacted]\": no");
}

#[test]
fn value_is_masked_as_the_api_server_quotes_it() {
    let redactor = redactor(b"postgres://app:p<a>ss@db/x?a=b&c=d\x01'\"\xc2\xa0e\x7f");
    for form in [
        r#"postgres://app:p<a>ss@db/x?a=b&c=d\x01'\"\u00a0e\x7f"#,
        "postgres://app:p\\u003ca\\u003ess@db/x?a=b\\u0026c=d\\u0001'\\\"\u{a0}e\x7f",
        r#"postgres://app:p\\u003ca\\u003ess@db/x?a=b\\u0026c=d\\u0001'\\\"\u00a0e\x7f"#,
    ] {
        let masked = redactor.mask(&format!("Invalid value: {form}: field is immutable"));
        assert_eq!(masked, "Invalid value: [redacted]: field is immutable", "{form}");
    }
}

#[test]
fn line_end_of_a_value_does_not_hide_it() {
    assert_eq!(redactor(b"hunter2hunter2\n").mask("<hunter2hunter2>"), "<[redacted]>");
}

#[test]
fn long_value_is_masked_whole_and_in_parts() {
    let value: Vec<u8> =
        (0..20_000_u32).map(|n| b'a' + u8::try_from(n * n % 23).unwrap()).collect();
    let redactor = redactor(&value);
    let text = String::from_utf8(value.clone()).unwrap();
    assert_eq!(redactor.mask(&text), MASK);
    assert_eq!(redactor.mask(&hex::encode(&value)), MASK);
    let part = redactor.mask(text.get(5_000..5_500).unwrap());
    assert!(part.contains(MASK) && part.len() < 2 * PIECE_BYTES + MASK.len(), "{part}");
    let encoded = redactor.mask(&STANDARD.encode(&value));
    assert!(encoded.len() < 20, "{encoded}");
}

#[test]
fn short_value_is_left_and_a_text_without_values_stays() {
    assert_eq!(redactor(b"secret7").mask("secret7"), "secret7");
    let text = "nothing of it: ünïcode, \u{1f434}";
    assert_eq!(redactor(VALUE).mask(text), text);
    assert_eq!(Redactor::default().mask(text), text);
}

#[test]
fn overlapping_values_are_masked_whole() {
    let redactor = Redactor::new([&b"abcdefgh"[..], b"efghijkl", b"abcdefghijklmn"]);
    assert_eq!(redactor.mask("-abcdefghijkl-"), "-[redacted]-");
    assert_eq!(redactor.mask("abcdefghijklmnop"), "[redacted]op");
}

#[test]
fn value_that_is_no_text_is_masked_in_its_encodings() {
    let value: Vec<u8> = (0x80..0xff).collect();
    let redactor = redactor(&value);
    assert_eq!(redactor.mask(&hex::encode(&value)), MASK);
    assert_eq!(redactor.mask("\u{fffd}\u{fffd}\u{fffd}"), "\u{fffd}\u{fffd}\u{fffd}");
}

#[test]
fn word_that_holds_a_value_is_replaced() {
    let mut word = "WithHunter2Hunter2".to_owned();
    redactor(b"Hunter2Hunter2").mask_word(&mut word);
    assert_eq!(word, MASKED_WORD);
}

#[test]
fn values_that_all_end_at_every_place_take_one_step_for_each_byte() {
    // Compared one by one these are 100 million matches.
    let values: Vec<Vec<u8>> = (8..127).map(|length| vec![b'a'; length]).collect();
    let redactor = Redactor::new(values.iter().map(Vec::as_slice));
    assert_eq!(redactor.mask(&"a".repeat(1 << 20)), MASK);
    let all = vec![b'a'; VALUES_BYTES_MAX];
    assert_eq!(Redactor::new([all.as_slice()]).mask(&"a".repeat(256 << 10)), MASK);
}

/// No text shows four bytes of a value where it was cut, or more of it elsewhere.
fn assert_masked(redactor: &Redactor, value: &str, text: &str) {
    let masked = redactor.mask(text);
    let shown = foreign::one_line(value, usize::MAX);
    for (at, _) in shown.char_indices() {
        let part = shown.get(at..).unwrap();
        let part = part.get(..part.ceil_char_boundary(CUT_VALUE_BYTES_MIN)).unwrap();
        let is_shown = part.len() >= CUT_VALUE_BYTES_MIN && masked.contains(part);
        assert!(!is_shown, "{part:?} of {text:?}: {masked:?}");
    }
}

#[test]
fn long_text_of_wide_characters_is_masked_in_every_form() {
    let value = "吾輩は猫である。名前はまだ無い。".repeat(9);
    let redactor = redactor(value.as_bytes());
    for form in [value.clone(), STANDARD.encode(&value), hex::encode(&value)] {
        let masked = redactor.mask(&form);
        // The last character of base64 may hold bits of what follows.
        assert!(masked.starts_with(MASK) && masked.len() <= MASK.len() + 4, "{masked}");
    }
}

#[test]
fn long_value_that_is_partly_text_is_masked_as_it_is_shown() {
    let mut value = "ü".repeat(100).into_bytes();
    value.push(0xff);
    value.extend("ö".repeat(100).into_bytes());
    assert_eq!(redactor(&value).mask(&String::from_utf8_lossy(&value)), MASK);
}

#[test]
fn value_is_masked_after_it_was_made_visible() {
    let value = "line \"one\"\nline\u{200b}\ttwo";
    let redactor = redactor(value.as_bytes());
    for shown in [foreign::one_line(value, 999), foreign::message(value, 999)] {
        assert_eq!(redactor.mask(&format!("<{shown}>")), "<[redacted]>");
    }
}

#[test]
fn beginning_of_a_value_is_masked_where_the_text_was_cut() {
    let long = "0123456789 \u{200b}abcdefghijklmnopqrstuvwxyz, ".repeat(9);
    for value in ["correct \"horse\"\n🐴 battery", &long] {
        let redactor = redactor(value.as_bytes());
        for bytes_max in 0..=value.len() + 9 {
            let cut = foreign::one_line(format_args!("at={value}"), bytes_max);
            assert_masked(&redactor, value, &format!("name `{cut}` is not a name"));
        }
        let encoded = STANDARD.encode(value);
        let cut = foreign::one_line(&encoded, 20);
        assert_eq!(redactor.mask(&cut), "[redacted]...");
    }
}

#[test]
fn beginning_of_a_value_stays_in_a_text_that_was_not_cut() {
    let redactor = redactor(b"https://user:password@example.com");
    for text in ["see https://user.example.com", "htt...", "it waits..."] {
        assert_eq!(redactor.mask(text), text);
    }
    assert_eq!(redactor.mask("see https://us... for it"), "see [redacted]... for it");
}

#[test]
fn refusal_that_cuts_a_value_shows_nothing_of_it() {
    use innkeeper_core::host_names::{self, Grants};
    use innkeeper_core::names;
    use serde_json::json;

    let value = "SESAME \"4711\"\nPHRASE; 0815";
    let redactor = redactor(value.as_bytes());
    for padding in 200..330 {
        let name = format!("innkeeper.dev/{}{value}", "x".repeat(padding));
        let object = json!({"metadata": {"labels": {&name: "x"}}});
        for refusal in [
            names::check_reference("v1", "ConfigMap", "", &name).unwrap_err(),
            names::check_metadata(&object["metadata"]).unwrap_err(),
            host_names::check(&object, false, Grants::default()).unwrap_err(),
        ] {
            assert_masked(&redactor, value, &refusal);
        }
    }
}

#[test]
fn dots_that_begin_a_value_everywhere_take_few_steps() {
    let redactor = redactor(&[b'.'; 100]);
    assert_eq!(redactor.mask(&".".repeat(1 << 16)), MASK);
}
