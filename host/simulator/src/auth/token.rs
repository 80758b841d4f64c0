//! Issues and reviews tokens of ServiceAccounts.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::api::request::Response;
use crate::api::request_context::{Outcome, RequestContext};
use crate::auth::user::User;
use crate::state::cluster::{Cluster, later};
use crate::state::tokens::IssuedToken;
use crate::types::object::{is_terminating, meta};
use crate::types::object_key::{Key, KindKey};
use crate::types::status_error::{FieldError, Named, StatusError};

/// The default audience of a token.
const AUDIENCE: &str = "https://kubernetes.default.svc.cluster.local";
const HOUR_S: i64 = 3600;
const MIN_S: i64 = 600;
const MAX_S: i64 = 1 << 32;

fn kind(plural: &str) -> KindKey {
    (String::new(), plural.to_owned())
}

fn texts(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The error in the requested duration of a token.
fn check_seconds(seconds: i64) -> Result<(), StatusError> {
    let why = if seconds < MIN_S {
        "may not specify a duration less than 10 minutes"
    } else if seconds > MAX_S {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let error = FieldError::invalid("spec.expirationSeconds", seconds, why);
    let named = Named { group: "authentication.k8s.io", what: "TokenRequest", name: "" };
    Err(StatusError::invalid(named, &[error]))
}

/// Issues a token of a ServiceAccount. Its signature is random: only a review can verify it.
pub(crate) fn create_token(cluster: &mut Cluster, context: &RequestContext<'_>) -> Outcome {
    let body = crate::api::request_body::parse(&context.request.body)
        .map_err(|error| StatusError::bad_request(format!("error decoding: {error}")))?;
    let key = context.key().clone();
    let Some(account) = cluster.object(&kind("serviceaccounts"), &key) else {
        return Err(StatusError::not_found(context.named(&key.1)));
    };
    let spec = &body["spec"];
    let audiences = match texts(&spec["audiences"]) {
        none if none.is_empty() => vec![AUDIENCE.to_owned()],
        some => some,
    };
    let seconds = spec["expirationSeconds"].as_i64().unwrap_or(HOUR_S);
    check_seconds(seconds)?;
    let uid = meta(&account, "uid").to_owned();
    let mut bound = vec![(kind("serviceaccounts"), key.clone(), uid.clone())];
    let mut claims = json!({"namespace": key.0, "serviceaccount": {"name": key.1, "uid": uid}});
    let id = cluster.uid();
    let mut extra = BTreeMap::new();
    let credential = "authentication.kubernetes.io/credential-id".to_owned();
    extra.insert(credential, vec![format!("JTI={id}")]);
    if spec["boundObjectRef"].is_object() {
        let (place, short) = bound_to(cluster, &key, &spec["boundObjectRef"])?;
        claims[short] = json!({"name": place.1.1, "uid": place.2});
        if short == "pod" {
            let of = |what: &str| format!("authentication.kubernetes.io/pod-{what}");
            extra.insert(of("name"), vec![place.1.1.clone()]);
            extra.insert(of("uid"), vec![place.2.clone()]);
        }
        bound.push(place);
    }
    let (now, ends) = (cluster.now(), later(cluster.now(), SignedDuration::from_secs(seconds)));
    let payload = json!({
        "aud": audiences, "exp": ends.as_second(), "iat": now.as_second(), "iss": AUDIENCE, "jti": id,
        "kubernetes.io": claims, "nbf": now.as_second(),
        "sub": format!("system:serviceaccount:{}:{}", key.0, key.1),
    });
    let part = |text: String| URL_SAFE_NO_PAD.encode(text);
    let token = format!(
        "{}.{}.{}",
        part(json!({"alg": "RS256", "kid": "simulator"}).to_string()),
        part(payload.to_string()),
        part(cluster.uid() + &cluster.uid())
    );
    let issued =
        IssuedToken { account: key.clone(), bound, extra, audiences: audiences.clone(), ends };
    cluster.tokens.insert(token.clone(), issued);
    let mut answer = json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": key.1, "namespace": key.0, "uid": uid, "creationTimestamp": cluster.time()},
        "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": spec["boundObjectRef"]},
        "status": {"token": token, "expirationTimestamp": ends.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()},
    });
    if context.query.dry_run() {
        cluster.tokens.remove(&token);
        answer["status"]["token"] = "".into();
    }
    Ok(Response::json(201, &answer))
}

/// The object that a token is bound to, and its name in the claims.
fn bound_to(
    cluster: &Cluster,
    account: &Key,
    reference: &Value,
) -> Result<((KindKey, Key, String), &'static str), StatusError> {
    let text = |name: &str| reference[name].as_str().unwrap_or_default();
    let (short, plural, namespace) = match (text("apiVersion"), text("kind")) {
        ("v1", "Pod") => ("pod", "pods", account.0.as_str()),
        ("v1", "Secret") => ("secret", "secrets", account.0.as_str()),
        ("v1", "Node") => ("node", "nodes", ""),
        (version, kind) => {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            return Err(StatusError::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let named = Named { group: "", what: plural, name: text("name") };
    let key = (namespace.to_owned(), text("name").to_owned());
    let Some(object) = cluster.object(&kind(plural), &key) else {
        return Err(StatusError::not_found(named));
    };
    if short == "pod" && object["spec"]["serviceAccountName"] != account.1.as_str() {
        return Err(StatusError::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            account.1
        )));
    }
    let (bound_uid, uid) = (text("uid"), meta(&object, "uid"));
    if !bound_uid.is_empty() && bound_uid != uid {
        let why = format!(
            "the UID in the bound object reference ({bound_uid}) does not match the UID in record. The object might have been deleted and then recreated"
        );
        return Err(StatusError::conflict(named, &why));
    }
    Ok(((kind(plural), key, uid.to_owned()), short))
}

/// The ServiceAccount and the audiences of a valid token.
fn issued<'c>(cluster: &'c Cluster, token: &str) -> Option<(User, &'c [String])> {
    let issued = cluster.tokens.get(token).filter(|issued| issued.ends > cluster.now())?;
    let is_there = issued.bound.iter().all(|(kind, key, uid)| {
        let object = cluster.object(kind, key);
        object.is_some_and(|object| meta(&object, "uid") == uid && !is_terminating(&object))
    });
    let (namespace, name) = &issued.account;
    let uid = issued.bound.first().map(|(_, _, uid)| uid.clone()).unwrap_or_default();
    let groups = vec![
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
        "system:authenticated".to_owned(),
    ];
    let user = User::new(format!("system:serviceaccount:{namespace}:{name}"), groups);
    is_there.then(|| (User { uid, extra: issued.extra.clone(), ..user }, &*issued.audiences))
}

/// The user of a token, if it is valid for the API server.
pub(crate) fn token_user(cluster: &Cluster, token: &str) -> Option<User> {
    let (user, audiences) = issued(cluster, token)?;
    audiences.iter().any(|one| one == AUDIENCE).then_some(user)
}

/// The response of a TokenReview.
pub(crate) fn review_token(cluster: &Cluster, spec: &Value) -> Result<Value, StatusError> {
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        let message = "token is required for TokenReview in authentication";
        return Err(StatusError::bad_request(message));
    }
    let wanted = match texts(&spec["audiences"]) {
        none if none.is_empty() => vec![AUDIENCE.to_owned()],
        some => some,
    };
    let Some((user, audiences)) = issued(cluster, token) else {
        return Ok(json!({"user": {}, "error": "invalid bearer token"}));
    };
    let both: Vec<&String> = wanted.iter().filter(|one| audiences.contains(one)).collect();
    if both.is_empty() {
        let why =
            format!("token audiences {audiences:?} is invalid for the target audiences {wanted:?}");
        return Ok(json!({"user": {}, "error": why}));
    }
    Ok(json!({
        "authenticated": true, "audiences": both,
        "user": {"username": user.name, "uid": user.uid, "groups": user.groups, "extra": user.extra},
    }))
}
