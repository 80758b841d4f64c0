//! Tiny policies that speak waPC, one behaviour each: core modules as text.

use std::fmt::Write as _;

/// Metadata of a policy that reads ConfigMaps.
pub const METADATA: &str = r#"{"protocolVersion":"v1","mutating":false,"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE","UPDATE"]}],"contextAwareResources":[{"apiVersion":"v1","kind":"ConfigMap"}],"annotations":{"io.kubewarden.policy.title":"Tiny policy","io.kubewarden.policy.version":"v1.2.3"}}"#;

/// The section of the metadata.
pub const METADATA_SECTION: &str = "io.kubewarden.metadata";

/// The answer that accepts a request.
pub const ACCEPTED: &str = r#"{"accepted":true}"#;

/// Where the name of the operation lies.
pub const OPERATION_AT: usize = 1024;
/// Where the answer of the host lies after [`Kubewarden::host_call`].
pub const ANSWER_AT: usize = 64 << 10;
/// Where the request lies.
pub const REQUEST_AT: usize = 128 << 10;
/// Where the first text of the policy lies.
const TEXTS_AT: usize = 2048;
/// Free for a test's own data.
pub const FREE_AT: usize = 1100;

/// The imports of waPC, by the names that the code uses.
const IMPORTS: &str = r#"
    (import "wapc" "__guest_request" (func $guest_request (param i32 i32)))
    (import "wapc" "__guest_response" (func $guest_response (param i32 i32)))
    (import "wapc" "__guest_error" (func $guest_error (param i32 i32)))
    (import "wapc" "__host_call" (func $host_call
        (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
    (import "wapc" "__host_response" (func $host_response (param i32)))
    (import "wapc" "__host_response_len" (func $host_response_len (result i32)))
    (import "wapc" "__host_error" (func $host_error (param i32)))
    (import "wapc" "__host_error_len" (func $host_error_len (result i32)))
    (import "wapc" "__console_log" (func $console_log (param i32 i32)))
"#;

/// A policy in the making. Its operations are wasm text that leaves their result (1, or 0 for an
/// error) on the stack.
#[derive(Clone, Debug)]
pub struct Kubewarden {
    sections: Vec<Vec<u8>>,
    imports: String,
    parts: String,
    validate: String,
    validate_settings: String,
    protocol_version: String,
    data: String,
    texts_end: usize,
}

impl Default for Kubewarden {
    fn default() -> Self {
        Self {
            sections: vec![METADATA.into()],
            imports: IMPORTS.to_owned(),
            parts: String::new(),
            validate: String::new(),
            validate_settings: String::new(),
            protocol_version: String::new(),
            data: String::new(),
            texts_end: TEXTS_AT,
        }
        .validate_with(ACCEPTED)
        .validate_settings_with(r#"{"valid":true}"#)
        .protocol_version_with(r#""v1""#)
    }
}

impl Kubewarden {
    /// Has this metadata instead.
    pub fn metadata(mut self, metadata: impl Into<Vec<u8>>) -> Self {
        self.sections = vec![metadata.into()];
        self
    }

    /// Has these sections of metadata, of any number.
    pub fn sections(mut self, sections: &[&[u8]]) -> Self {
        self.sections = sections.iter().map(|section| section.to_vec()).collect();
        self
    }

    /// Has another import (wasm text).
    pub fn importing(mut self, import: &str) -> Self {
        self.imports.push_str(import);
        self
    }

    /// Has another function or export (wasm text).
    pub fn with(mut self, part: &str) -> Self {
        self.parts.push_str(part);
        self
    }

    /// Has these bytes in its memory; returns where they lie.
    pub fn text(&mut self, text: &str) -> (usize, usize) {
        let at = self.texts_end;
        self.texts_end += text.len();
        let mut escaped = String::new();
        for byte in text.bytes() {
            write!(escaped, "\\{byte:02x}").unwrap();
        }
        writeln!(self.data, "(data (i32.const {at}) \"{escaped}\")").unwrap();
        (at, text.len())
    }

    /// Does this in `validate`.
    pub fn validate(mut self, code: &str) -> Self {
        code.clone_into(&mut self.validate);
        self
    }

    /// Answers `validate` with this text.
    pub fn validate_with(mut self, response: &str) -> Self {
        self.validate = self.respond(response);
        self
    }

    /// Does this in `validate` before it accepts the request.
    pub fn before_accepting(mut self, code: &str) -> Self {
        self.validate = format!("{code} {}", self.respond(ACCEPTED));
        self
    }

    /// Ends `validate` with this error.
    pub fn failing(mut self, error: &str) -> Self {
        let (at, length) = self.text(error);
        self.validate =
            format!("(call $guest_error (i32.const {at}) (i32.const {length})) (i32.const 0)");
        self
    }

    /// Does this in `validate_settings`.
    pub fn validate_settings(mut self, code: &str) -> Self {
        code.clone_into(&mut self.validate_settings);
        self
    }

    /// Answers `validate_settings` with this text.
    pub fn validate_settings_with(mut self, response: &str) -> Self {
        self.validate_settings = self.respond(response);
        self
    }

    /// Does this in `protocol_version`.
    pub fn protocol_version(mut self, code: &str) -> Self {
        code.clone_into(&mut self.protocol_version);
        self
    }

    /// Answers `protocol_version` with this text.
    pub fn protocol_version_with(mut self, response: &str) -> Self {
        self.protocol_version = self.respond(response);
        self
    }

    /// The code that answers with a text.
    pub fn respond(&mut self, response: &str) -> String {
        let (at, length) = self.text(response);
        format!("(call $guest_response (i32.const {at}) (i32.const {length})) (i32.const 1)")
    }

    /// The code of a host call, which leaves its result on the stack.
    pub fn host_call(&mut self, name: [&str; 3], payload: &str) -> String {
        let mut code = String::from("(call $host_call");
        for text in [name[0], name[1], name[2], payload] {
            let (at, length) = self.text(text);
            write!(code, " (i32.const {at}) (i32.const {length})").unwrap();
        }
        code + ")"
    }

    /// Makes a host call in `validate`, and answers with its answer, or fails with its error.
    pub fn answering_with_host_call(mut self, name: [&str; 3], payload: &str) -> Self {
        let call = self.host_call(name, payload);
        self.validate(&format!(
            "(if (result i32) {call}
                (then
                    (call $host_response (i32.const {ANSWER_AT}))
                    (call $guest_response (i32.const {ANSWER_AT}) (call $host_response_len))
                    (i32.const 1))
                (else
                    (call $host_error (i32.const {ANSWER_AT}))
                    (call $guest_error (i32.const {ANSWER_AT}) (call $host_error_len))
                    (i32.const 0)))"
        ))
    }

    /// The module.
    pub fn module(&self) -> Vec<u8> {
        let Self { imports, parts, validate, validate_settings, protocol_version, data, .. } = self;
        let text = format!(
            r#"(module {imports}
            (memory (export "memory") 8)
            {data} {parts}
            (func $validate (param $length i32) (result i32) {validate})
            (func $validate_settings (param $length i32) (result i32) {validate_settings})
            (func $protocol_version (result i32) {protocol_version})
            (func (export "__guest_call") (param $operation i32) (param $length i32) (result i32)
                (call $guest_request (i32.const {OPERATION_AT}) (i32.const {REQUEST_AT}))
                (if (i32.eq (local.get $operation) (i32.const {}))
                    (then (return (call $validate (local.get $length)))))
                (if (i32.eq (local.get $operation) (i32.const {}))
                    (then (return (call $validate_settings (local.get $length)))))
                (call $protocol_version)))"#,
            "validate".len(),
            "validate_settings".len(),
        );
        let mut module = wat::parse_str(&text).unwrap();
        for section in &self.sections {
            append_section(&mut module, METADATA_SECTION, section);
        }
        module
    }
}

/// Adds a custom section to a core module or a component.
pub fn append_section(module: &mut Vec<u8>, name: &str, data: &[u8]) {
    let mut section = leb128(name.len());
    section.extend(name.as_bytes());
    section.extend(data);
    module.push(0);
    module.extend(leb128(section.len()));
    module.extend(section);
}

fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = u8::try_from(number & 0x7f).unwrap();
        number >>= 7;
        if number == 0 {
            bytes.push(byte);
            return bytes;
        }
        bytes.push(byte | 0x80);
    }
}
