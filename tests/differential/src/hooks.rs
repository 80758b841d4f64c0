//! A webhook that does what the path says, behind HTTPS for the real server and in process for the
//! simulator.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::server::Failure;

/// The paths at which it answers.
pub const PATHS: [&str; 14] = [
    "/allow", "/deny", "/reason", "/mute", "/tell", "/warn", "/label", "/second", "/broken",
    "/absent", "/other", "/untyped", "/silent", "/seven",
];

/// Below this path it answers with the HTTP status that follows: `/status/404`.
pub const STATUS_PATH: &str = "/status";

/// The webhook for a real server: it lives as long as the process.
pub struct Hooks {
    /// Where it is, without a path.
    pub url: String,
    /// Its certificate, as configurations have it.
    pub bundle: String,
}

impl Hooks {
    /// Begins to listen.
    ///
    /// # Errors
    /// If no certificate can be made or no port is free.
    pub fn start() -> Result<Self, Failure> {
        let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()])?;
        let certificate = CertificateDer::from(own.cert.der().to_vec());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("https://{}", listener.local_addr()?);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let config = config.clone();
                // Who hangs up ends his thread.
                std::thread::spawn(move || serve(config, stream).ok());
            }
        });
        Ok(Self { url, bundle: STANDARD.encode(own.cert.pem()) })
    }
}

/// Answers the requests of one connection.
fn serve(config: Arc<ServerConfig>, stream: TcpStream) -> Result<(), Failure> {
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(config)?, stream));
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
        let path = path.split('?').next().unwrap_or_default().to_owned();
        let mut length = 0;
        loop {
            let mut header = String::new();
            stream.read_line(&mut header)?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let status = path.strip_prefix(STATUS_PATH).and_then(status);
        let (head, answer) = if let Some((code, text)) = status {
            (format!("{code} Other\r\nContent-Type: text/plain; charset=utf-8"), text)
        } else if let Some(review) = answer(&path, &serde_json::from_slice(&body)?) {
            ("200 OK\r\nContent-Type: application/json".to_owned(), review.to_string())
        } else {
            // Until the client has enough of waiting.
            stream.read_line(&mut String::new())?;
            return Ok(());
        };
        let length = answer.len();
        let out = stream.get_mut();
        write!(out, "HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n{answer}")?;
        out.flush()?;
    }
}

/// The HTTP status and the body that it answers with at a path below [`STATUS_PATH`], which may
/// have a query.
pub fn status(path: &str) -> Option<(u16, String)> {
    let path = path.split('?').next().unwrap_or_default();
    let code = path.strip_prefix('/')?.parse().ok()?;
    Some((code, format!(" it is \"{code}\",\tsince é\n")))
}

/// What it answers at a path; nothing, if it does not.
pub fn answer(path: &str, review: &Value) -> Option<Value> {
    let request = &review["request"];
    let mut response = json!({"uid": request["uid"], "allowed": true});
    let mut change = |operations: Value| {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(operations.to_string()).into();
    };
    match path {
        "/silent" => return None,
        "/label" => change(label(request, "label")),
        "/second" => change(label(request, "second")),
        "/broken" => change(json!([{"op": "remove", "path": "/none/at/all"}])),
        "/seven" => change(json!([{"op": "replace", "path": "/spec/replicas", "value": 7}])),
        "/untyped" => response["patch"] = STANDARD.encode("[]").into(),
        "/other" => response["uid"] = "another".into(),
        "/warn" => response["warnings"] = json!(["take care", "of this too"]),
        "/deny" => {
            response["allowed"] = false.into();
            response["status"] =
                json!({"message": "not this one", "code": 403, "reason": "Forbidden"});
        }
        "/reason" => {
            response["allowed"] = false.into();
            response["status"] = json!({"reason": "Because", "details": {"causes": [{"field": "metadata.name", "message": "so"}]}});
        }
        "/mute" => response["allowed"] = false.into(),
        "/tell" => {
            response["allowed"] = false.into();
            response["status"] = json!({"message": shown(request)});
        }
        _ => {}
    }
    let mut answer = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"});
    if path != "/absent" {
        answer["response"] = response;
    }
    Some(answer)
}

/// Puts a label, with how many there were before.
fn label(request: &Value, name: &str) -> Value {
    let labels = &request["object"]["metadata"]["labels"];
    let count = labels.as_object().map_or(0, serde_json::Map::len);
    let value = format!("n{count}");
    if labels.is_object() {
        json!([{"op": "add", "path": format!("/metadata/labels/{name}"), "value": value}])
    } else {
        json!([{"op": "add", "path": "/metadata/labels", "value": {name: value}}])
    }
}

/// What is asked, but for what is another on each server.
fn shown(request: &Value) -> String {
    let mut shown = request.clone();
    for name in ["uid", "userInfo"] {
        shown[name] = Value::Null;
    }
    for name in ["object", "oldObject"] {
        let Some(metadata) = shown[name]["metadata"].as_object_mut() else { continue };
        metadata.remove("managedFields");
        // Only that they are there is shown.
        for name in ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"] {
            if let Some(value) = metadata.get_mut(name) {
                *value = (!value.is_null()).into();
            }
        }
    }
    shown.to_string()
}
