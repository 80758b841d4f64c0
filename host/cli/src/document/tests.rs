use innkeeper_fuzz_tests::cpu_time;
use serde_json::json;

use super::*;

/// Texts that end a scalar, a line or a document in some reader of YAML, or that some reader takes
/// for another scalar.
pub(crate) const HOSTILE: [&str; 52] = [
    "",
    " ",
    " a",
    "a ",
    "a\n---\nkind: X",
    "\n--- {kind: X}",
    "...\n",
    "\n...\nkind: X",
    "a\rkind: X",
    "a\r\nkind: X",
    "a\u{85}kind: X",
    "a\u{2028}kind: X",
    "a\u{2029}---\u{2029}kind: X",
    "a\tb",
    "\ta",
    "%YAML 1.1",
    "%TAG ! tag:x,1:",
    "&a b",
    "*a",
    "!!bool on",
    "!x",
    "a #b",
    "# a",
    "a: b",
    "- a",
    "? a",
    "-",
    "---",
    "|",
    ">",
    "{a: b}",
    "[a]",
    "'",
    "\"",
    "\\",
    "@a",
    "`a",
    "on",
    "No",
    "y",
    "null",
    "~",
    "1e3",
    "0x1f",
    "0777",
    "1_000",
    "0B1",
    "<<",
    "=",
    "a\0b",
    "\u{1b}]8;;x\u{1b}\\\u{9b}2J\u{7f}",
    "\u{202e}\u{2066}\u{200b}\u{feff}\u{e0001}\u{10ffff}",
];

fn printed(fill: impl FnOnce(&mut Yaml)) -> String {
    let mut yaml = Yaml::default();
    fill(&mut yaml);
    yaml.finish().unwrap().text().to_owned()
}

fn is_printable(text: &str) -> bool {
    text.chars().all(|c| foreign::is_visible(c) || HARMLESS.contains(&c))
}

#[test]
fn hostile_texts_are_values_and_nothing_else() {
    for text in HOSTILE {
        let value = json!({"kind": text, "list": [text, {"a": text}]});
        // `finish` compares what is read with what was written.
        let yaml = printed(|yaml| {
            yaml.comment(format_args!("of {text}"));
            yaml.document(&value).unwrap();
            yaml.separator();
            yaml.comment(text);
            yaml.document(&json!({"b": text})).unwrap();
        });
        assert!(is_printable(&yaml), "{yaml:?}");
        assert_eq!(yaml.lines().filter(|line| line.starts_with("---")).count(), 1, "{yaml}");
        let json = Document::json(&value).unwrap();
        assert_eq!(serde_json::from_str::<Value>(json.text()).unwrap(), value);
        assert!(json.text().chars().all(|c| c == '\n' || foreign::is_visible(c)), "{json:?}");
    }
}

#[test]
fn hostile_texts_as_names_of_members_are_names_and_nothing_else() {
    for text in HOSTILE {
        let mut members = Map::new();
        members.insert(text.to_owned(), json!({text: 1}));
        let yaml = printed(|yaml| yaml.document(&Value::Object(members)).unwrap());
        assert!(is_printable(&yaml), "{yaml:?}");
    }
}

#[test]
fn hostile_texts_in_a_list_with_comments_are_values_and_nothing_else() {
    for text in HOSTILE {
        let item = json!({"verbs": [text], "names": text}).as_object().cloned().unwrap();
        let head = json!({"kind": text}).as_object().cloned().unwrap();
        let yaml = printed(|yaml| {
            let items = [(text.to_owned(), item.clone()), ("plain".to_owned(), item)];
            yaml.document_with_list(&head, "rules", &items).unwrap();
        });
        assert!(is_printable(&yaml), "{yaml:?}");
    }
}

#[test]
fn texts_that_kubectl_reads_as_other_scalars_are_quoted() {
    for text in ["on", "No", "y", "null", "~", "1e3", "0x1f", "0777", "1_000", "0B1", "<<", "="] {
        let yaml = printed(|yaml| yaml.document(&json!({ "a": text })).unwrap());
        let value = yaml.split_once(':').unwrap().1.trim();
        assert!(value.starts_with(['\'', '"']), "{yaml}");
        let mut members = Map::new();
        members.insert(text.to_owned(), json!(1));
        let yaml = printed(|yaml| yaml.document(&Value::Object(members)).unwrap());
        assert!(yaml.starts_with(['\'', '"']), "{yaml}");
    }
}

#[test]
fn only_texts_about_which_readers_differ_are_quoted_where_the_serialiser_would_not() {
    let value = json!({"image": "app:1.2.3_4", "text": "a\nb\n", "cpu": "100m", "sign": "⚠\u{fe0f}",
        "flag": "on", "quoted0.": "quoted1.", "odd": "a\u{2028}b"});
    let yaml = printed(|yaml| yaml.document(&value).unwrap());
    expect_test::expect![[r#"
        cpu: 100m
        flag: "on"
        image: app:1.2.3_4
        odd: "a\u2028b"
        quoted0.: quoted1.
        sign: "⚠\ufe0f"
        text: |
          a
          b
    "#]]
    .assert_eq(&yaml);
}

#[test]
fn names_that_differ_by_a_joiner_or_a_selector_are_printed_differently() {
    for hidden in ['\u{200c}', '\u{200d}', '\u{fe0f}'] {
        let value = json!({"name": format!("ad{hidden}min")});
        let yaml = printed(|yaml| yaml.document(&value).unwrap());
        assert!(!yaml.contains(hidden) && yaml.contains("\\u"), "{yaml}");
        let json = Document::json(&value).unwrap();
        assert!(!json.text().contains(hidden), "{}", json.text());
    }
}

#[test]
fn document_is_refused_when_it_reads_as_another() {
    let mut yaml = Yaml::default();
    yaml.document(&json!({"a": 1})).unwrap();
    yaml.text.push_str("---\nkind: X\n");
    assert!(yaml.finish().unwrap_err().to_string().contains("a reader would find other values"));
}

#[test]
fn texts_that_all_have_to_be_quoted_are_printed_in_linear_time() {
    let many = json!(vec!["y"; 100_000]);
    let began = cpu_time();
    let yaml = printed(|yaml| yaml.document(&many).unwrap());
    assert_eq!(yaml.lines().count(), 100_000);
    let took = cpu_time().saturating_sub(began);
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
}

#[test]
fn texts_that_look_like_marks_are_printed_in_linear_time() {
    let mut texts = vec!["quoted".to_owned() + &"q".repeat(1 << 20), "quoted0.".to_owned()];
    texts.extend((0..10_000).map(|number| format!("quoted{number}n{number}. quoted")));
    texts.extend(std::iter::repeat_n("y".to_owned(), 10_000));
    let began = cpu_time();
    printed(|yaml| yaml.document(&json!(texts)).unwrap());
    let took = cpu_time().saturating_sub(began);
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
}
