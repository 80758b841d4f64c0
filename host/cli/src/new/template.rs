//! The files that `innkeeper new` writes.

use super::language::Language;
use super::purpose::Purpose;

/// The files of a guest: the path of each, and its text with placeholders like `@name@`. A line
/// that begins with flags, as in `@cluster@` or `@python_decorator@`, is only for guests that have
/// all of them.
pub(super) type Files = &'static [(&'static str, &'static str)];

/// The files of a guest in a language, for what it does.
pub(super) fn files(language: Language, purpose: Purpose) -> Vec<(&'static str, &'static str)> {
    if purpose == Purpose::Reviews {
        return [RUST_POLICY, &[("module.yaml", include_str!("template/module.yaml"))]].concat();
    }
    let decorates = purpose == Purpose::Decorates;
    let (logic, definition): (Files, Files) = match (language, decorates) {
        (Language::Rust, false) => (RUST, &[]),
        (Language::Rust, true) => (RUST_DECORATOR, &[]),
        (Language::Python, false) => (PYTHON, &[("crd.py", CRD_PY)]),
        (Language::Python, true) => (PYTHON, &[]),
        (Language::Javascript, false) => (JAVASCRIPT, &[("crd.js", CRD_JS)]),
        (Language::Javascript, true) => (JAVASCRIPT, &[]),
        (Language::Typescript, false) => (TYPESCRIPT, &[("src/crd.ts", CRD_JS)]),
        (Language::Typescript, true) => (TYPESCRIPT, &[]),
        (Language::Go, false) => (GO, &[("crd.json", include_str!("template/crd.json"))]),
        (Language::Go, true) => (GO, &[]),
    };
    let others = match language {
        Language::Rust => Vec::new(),
        Language::Python => [&[WIT], PYTHON_SDK].concat(),
        Language::Javascript => [&[WIT], CONTRACT].concat(),
        Language::Typescript => [&[WIT], TYPESCRIPT_SDK].concat(),
        Language::Go => SDK_GO.to_vec(),
    };
    let sample = if decorates {
        include_str!("template/decorator/sample.yaml")
    } else {
        include_str!("template/sample.yaml")
    };
    let common = [("module.yaml", include_str!("template/module.yaml")), ("sample.yaml", sample)];
    [logic, definition, &others, &common].concat()
}

const RUST: Files = &[
    ("Cargo.toml", include_str!("template/manifest.toml")),
    (".cargo/config.toml", include_str!("template/config.toml")),
    (".gitignore", include_str!("template/gitignore")),
    ("README.md", include_str!("template/README.md")),
    ("crd.json", include_str!("template/crd.json")),
    ("src/lib.rs", include_str!("template/lib.rs")),
    ("tests/guest.rs", include_str!("template/tests.rs")),
];

const RUST_DECORATOR: Files = &[
    ("Cargo.toml", include_str!("template/manifest.toml")),
    (".cargo/config.toml", include_str!("template/config.toml")),
    (".gitignore", include_str!("template/gitignore")),
    ("README.md", include_str!("template/decorator/README.md")),
    ("src/lib.rs", include_str!("template/decorator/lib.rs")),
    ("tests/guest.rs", include_str!("template/decorator/tests.rs")),
];

const RUST_POLICY: Files = &[
    ("Cargo.toml", include_str!("template/manifest.toml")),
    (".cargo/config.toml", include_str!("template/config.toml")),
    (".gitignore", include_str!("template/gitignore")),
    ("README.md", include_str!("template/policy/README.md")),
    ("sample.yaml", include_str!("template/policy/sample.yaml")),
    ("src/lib.rs", include_str!("template/policy/lib.rs")),
    ("tests/policy.rs", include_str!("template/policy/tests.rs")),
    ("tests/scenarios/modules/module.yaml", include_str!("template/policy/scenarios/module.yaml")),
    (
        "tests/scenarios/replicas/00-install.yaml",
        include_str!("template/policy/scenarios/install.yaml"),
    ),
    (
        "tests/scenarios/replicas/00-assert.yaml",
        include_str!("template/policy/scenarios/assert.yaml"),
    ),
    (
        "tests/scenarios/replicas/01-denied.yaml",
        include_str!("template/policy/scenarios/denied.yaml"),
    ),
];

/// Files that the example guest in the same language has too come from it: CI builds it.
macro_rules! example {
    ($path:literal) => {
        include_str!(concat!("../../../../guests/examples/", $path))
    };
}

const PYTHON: Files = &[
    (".gitignore", "/.venv\n__pycache__\n*.wasm\n"),
    ("README.md", include_str!("template/script-readme.md")),
    ("guest.py", example!("quota-py/guest.py")),
    ("logic.py", include_str!("template/python/logic.py")),
    ("mypy.ini", example!("quota-py/mypy.ini")),
    ("requirements.txt", example!("quota-py/requirements.txt")),
    ("test_logic.py", include_str!("template/python/test_logic.py")),
];

/// Files of an SDK, in the folder `innkeeper` of the guest.
macro_rules! sdk {
    ($folder:literal: $($path:literal),* $(,)?) => {
        &[$((
            concat!("innkeeper/", $path),
            include_str!(concat!("../../../../guests/", $folder, "/", $path)),
        )),*]
    };
}

const PYTHON_SDK: Files = sdk![
    "sdk-py/src/innkeeper":
    "__init__.py",
    "component.py",
    "condition.py",
    "context.py",
    "decode.py",
    "describe.py",
    "desired.py",
    "documents.py",
    "errors.py",
    "guest.py",
    "kind.py",
    "observed.py",
    "py.typed",
    "run.py",
    "schema/desired.json",
    "schema/failure.json",
    "schema/manifest.json",
    "schema/observed-list.json",
    "schema/observed-object.json",
    "schema/observed.json",
    "schema/review-request.json",
    "schema/verdict.json",
    "template_hash.py",
    "testing.py",
    "update_group.py",
    "value_source.py",
];

const CRD_PY: &str = concat!(
    "\"\"\"The CustomResourceDefinition of a @kind@.\"\"\"\n\nimport json\nfrom typing import Any\n\nCRD: dict[str, Any] = json.loads(\n    \"\"\"\n",
    include_str!("template/crd.json"),
    "\"\"\"\n)\n"
);

const JAVASCRIPT: Files = &[
    (".gitignore", "/node_modules\n*.wasm\n"),
    ("README.md", include_str!("template/script-readme.md")),
    ("build.mjs", example!("labels-js/build.mjs")),
    ("guest.js", example!("labels-js/guest.js")),
    ("innkeeper.d.ts", include_str!("template/javascript/innkeeper.d.ts")),
    ("innkeeper.js", example!("labels-js/innkeeper.js")),
    ("logic.js", include_str!("template/javascript/logic.js")),
    ("logic.test.js", include_str!("template/javascript/logic.test.js")),
    ("package-lock.json", example!("labels-js/package-lock.json")),
    ("package.json", example!("labels-js/package.json")),
];

const TYPESCRIPT: Files = &[
    (".gitignore", "/node_modules\n/build\n*.wasm\n"),
    ("README.md", include_str!("template/script-readme.md")),
    ("build.mjs", example!("pages-ts/build.mjs")),
    ("package-lock.json", example!("pages-ts/package-lock.json")),
    ("package.json", example!("pages-ts/package.json")),
    ("src/guest.ts", example!("pages-ts/src/guest.ts")),
    ("src/logic.ts", include_str!("template/typescript/logic.ts")),
    ("test.mjs", example!("pages-ts/test.mjs")),
    ("test/logic.test.ts", include_str!("template/typescript/logic.test.ts")),
    ("tsconfig.json", example!("pages-ts/tsconfig.json")),
];

const TYPESCRIPT_SDK: Files = sdk![
    "sdk-ts":
    "schema/desired.json",
    "schema/failure.json",
    "schema/manifest.json",
    "schema/observed-list.json",
    "schema/observed-object.json",
    "schema/observed.json",
    "schema/review-request.json",
    "schema/verdict.json",
    "src/component.ts",
    "src/condition.ts",
    "src/context.ts",
    "src/describe.ts",
    "src/desired.ts",
    "src/documents.ts",
    "src/errors.ts",
    "src/guest.ts",
    "src/index.ts",
    "src/kind.ts",
    "src/observed.ts",
    "src/run.ts",
    "src/template-hash.ts",
    "src/testing.ts",
    "src/update-group.ts",
    "src/value-source.ts",
    "src/wit.d.ts",
];

const CRD_JS: &str = concat!(
    "// The CustomResourceDefinition of a @kind@.\nexport const CRD = ",
    include_str!("template/crd.json"),
    ";\n"
);

const GO: Files = &[
    (".gitignore", "/target\n"),
    ("README.md", include_str!("template/script-readme.md")),
    ("go.mod", include_str!("template/go/module.txt")),
    ("logic.go", include_str!("template/go/logic.go")),
    ("logic_test.go", include_str!("template/go/logic_test.go")),
    ("main.go", include_str!("template/go/main.go")),
];

// No proxy has the module.
const SDK_GO: Files = sdk!["sdk-go":
    "README.md",
    "go.mod",
    "guest/abi_other.go",
    "guest/abi_wasip1.go",
    "guest/context.go",
    "guest/describe.go",
    "guest/desired.go",
    "guest/documents.go",
    "guest/encode.go",
    "guest/failure.go",
    "guest/guest.go",
    "guest/kind.go",
    "guest/object_option.go",
    "guest/observed.go",
    "guest/read.go",
    "guest/revision_history.go",
    "guest/template_hash.go",
    "guest/update_group.go",
    "guest/value_source.go",
    "guesttest/guesttest.go",
    "guesttest/host.go",
    "guesttest/parameter_kinds.go",
    "guesttest/result.go",
    "guesttest/schema.go",
    "guesttest/schema/desired.json",
    "guesttest/schema/failure.json",
    "guesttest/schema/manifest.json",
    "guesttest/schema/observed-list.json",
    "guesttest/schema/observed-object.json",
    "guesttest/schema/observed.json",
    "guesttest/schema/review-request.json",
    "guesttest/schema/verdict.json",
];

/// The names in the files of the examples, and the ones that take their place.
pub(super) const RENAMED: [(&str, &str, &str); 16] = [
    ("guest.py", "from quota import Quota", "from logic import @kind@Guest"),
    ("guest.py", "export(Quota)", "export(@kind@Guest)"),
    ("guest.js", "import * as labels from './labels.js'", "import * as logic from './logic.js'"),
    ("guest.js", "exported(labels, write)", "exported(logic, write)"),
    ("build.mjs", "'../../../wit/guest.wit'", "'wit/guest.wit'"),
    ("build.mjs", "labels-js", "@name@"),
    ("package.json", "Labels on every Namespace: a guest in JavaScript", "A guest in JavaScript"),
    ("package.json", "labels-js", "@name@"),
    ("package-lock.json", "labels-js", "@name@"),
    ("src/guest.ts", "import { pages } from './pages.js'", "import { guest } from './logic.js'"),
    ("src/guest.ts", "exported(pages)", "exported(guest)"),
    ("build.mjs", "pages-ts", "@name@"),
    ("package.json", "A ConfigMap for every Page: a guest in TypeScript", "A guest in TypeScript"),
    ("package.json", "pages-ts", "@name@"),
    ("package-lock.json", "pages-ts", "@name@"),
    ("tsconfig.json", "../../sdk-ts/src/", "./innkeeper/src/"),
];

/// The contract, for the tools of the guest.
const WIT: (&str, &str) = ("wit/guest.wit", include_str!("../../../../wit/guest.wit"));

/// The contract, for the tests of a guest in JavaScript and for its editor.
const CONTRACT: Files = &[
    ("wit/documents.d.ts", include_str!("../../../../guests/sdk-ts/src/documents.ts")),
    ("wit/schema/desired.json", include_str!("../../../../wit/schema/desired.json")),
    ("wit/schema/failure.json", include_str!("../../../../wit/schema/failure.json")),
    ("wit/schema/manifest.json", include_str!("../../../../wit/schema/manifest.json")),
    ("wit/schema/observed.json", include_str!("../../../../wit/schema/observed.json")),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn collect(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in folder.read_dir().unwrap() {
            let entry = entry.unwrap();
            let path = format!("{prefix}/{}", entry.file_name().to_str().unwrap());
            // An interpreter may have left its own form of the sources.
            if path.ends_with("_test.go") || path.ends_with("__pycache__") {
                continue;
            }
            if entry.path().is_dir() {
                collect(&entry.path(), &path, found);
            } else {
                found.push(path);
            }
        }
    }

    #[test]
    fn guest_has_all_files_of_the_sdk_of_its_language() {
        let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests");
        for (sdk, folders) in [
            (SDK_GO, &[("sdk-go", "innkeeper")][..]),
            (PYTHON_SDK, &[("sdk-py/src/innkeeper", "innkeeper")]),
            (
                TYPESCRIPT_SDK,
                &[("sdk-ts/schema", "innkeeper/schema"), ("sdk-ts/src", "innkeeper/src")],
            ),
        ] {
            let mut all = Vec::new();
            for (folder, path) in folders {
                collect(&guests.join(folder), path, &mut all);
            }
            all.sort();
            let mut given: Vec<&str> = sdk.iter().map(|(path, _)| *path).collect();
            given.sort_unstable();
            assert_eq!(given, all);
        }
    }
}
