//! The files that `innkeeper new` writes.

/// The files of a new crate: the path of each, and its text with placeholders like `@name@`.
pub(super) const FILES: [(&str, &str); 9] = [
    ("Cargo.toml", include_str!("template/manifest.toml")),
    (".cargo/config.toml", include_str!("template/config.toml")),
    (".gitignore", include_str!("template/gitignore")),
    ("README.md", include_str!("template/README.md")),
    ("crd.json", include_str!("template/crd.json")),
    ("module.yaml", include_str!("template/module.yaml")),
    ("sample.yaml", include_str!("template/sample.yaml")),
    ("src/lib.rs", include_str!("template/lib.rs")),
    ("tests/guest.rs", include_str!("template/tests.rs")),
];
