//! One webhook of a configuration, and the requests that it selects.

use serde_json::Value;

use crate::admission::attributes::Attributes;
use crate::types::object::meta;
use crate::types::selector::Selector;

/// One webhook.
#[derive(Clone, Debug)]
pub(crate) struct Webhook {
    pub(crate) name: String,
    /// Its URL.
    pub(crate) url: String,
    /// The namespace and the name of its Service, if it has one.
    pub(crate) service: Option<(String, String)>,
    /// Whether a failed call is ignored (`failurePolicy`).
    pub(crate) ignored: bool,
    /// Whether it may be called for a dry run (`sideEffects`).
    pub(crate) dry: bool,
    /// Whether it is called again after later changes (`reinvocationPolicy`).
    pub(crate) reinvoked: bool,
    /// Its conditions in CEL: name and expression.
    pub(crate) conditions: Vec<(String, String)>,
    /// How long the call may take, in seconds.
    pub(crate) timeout_s: i64,
    /// `Exact`; otherwise rules match other versions of a kind too.
    policy: String,
    rules: Vec<Value>,
    namespaces: Selector,
    objects: Selector,
}

/// How a webhook is called.
pub(crate) struct WebhookCall {
    /// The version of the kind in its review.
    pub(crate) version: String,
}

impl Webhook {
    /// The webhooks of a configuration, in order.
    pub(crate) fn all(configuration: &Value) -> Vec<Self> {
        configuration["webhooks"].as_array().into_iter().flatten().map(Self::read).collect()
    }

    fn read(value: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let client = &value["clientConfig"];
        let service = client["service"]
            .is_object()
            .then(|| (text(&client["service"]["namespace"]), text(&client["service"]["name"])));
        let url = match &service {
            Some((namespace, name)) => {
                let port = client["service"]["port"].as_i64().unwrap_or(443);
                let path = client["service"]["path"].as_str().unwrap_or("/");
                format!("https://{name}.{namespace}.svc:{port}{path}")
            }
            None => text(&client["url"]),
        };
        let conditions = value["matchConditions"].as_array().into_iter().flatten();
        Self {
            name: text(&value["name"]),
            url,
            service,
            ignored: value["failurePolicy"] == "Ignore",
            dry: matches!(value["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")),
            reinvoked: value["reinvocationPolicy"] == "IfNeeded",
            conditions: conditions
                .map(|one| (text(&one["name"]), text(&one["expression"])))
                .collect(),
            timeout_s: value["timeoutSeconds"].as_i64().unwrap_or(10),
            policy: text(&value["matchPolicy"]),
            rules: value["rules"].as_array().cloned().unwrap_or_default(),
            namespaces: Selector::of(&value["namespaceSelector"]),
            objects: Selector::of(&value["objectSelector"]),
        }
    }

    /// The message for a call that failed.
    pub(crate) fn unanswered(&self, why: &str) -> String {
        let Self { url, timeout_s, .. } = self;
        format!("failed to call webhook: Post \"{url}?timeout={timeout_s}s\": {why}")
    }

    /// How the webhook is called for the request; `None` if it does not select it. `namespace` is
    /// that of the object, if it has one.
    pub(crate) fn call_for(
        &self,
        attributes: &Attributes<'_>,
        namespace: Option<&Value>,
    ) -> Option<WebhookCall> {
        if namespace.is_some_and(|namespace| !self.namespaces.fits(namespace)) {
            return None;
        }
        let fits = |object: Option<&Value>| object.is_some_and(|one| self.objects.fits(one));
        if !self.objects.is_all() && !fits(attributes.object) && !fits(attributes.old) {
            return None;
        }
        let kind = &attributes.context.kind;
        let in_version =
            |version: &str| self.rules.iter().any(|rule| covers(rule, attributes, version));
        if in_version(attributes.version()) {
            return Some(WebhookCall { version: attributes.version().to_owned() });
        }
        let custom = kind.custom.as_ref().filter(|_| self.policy != "Exact")?;
        let mut others = custom.versions.iter().filter(|version| version.served);
        let version = others.find(|version| in_version(&version.name))?;
        Some(WebhookCall { version: version.name.clone() })
    }
}

/// Whether a rule matches the request.
fn covers(rule: &Value, attributes: &Attributes<'_>, version: &str) -> bool {
    let any = |name: &str, wanted: &str| {
        let list = rule[name].as_array().into_iter().flatten().filter_map(Value::as_str);
        list.into_iter().any(|one| one == "*" || one == wanted)
    };
    let context = attributes.context;
    let (group, plural) = attributes.resource();
    let sub = context.target.subresource.as_str();
    let mut resources =
        rule["resources"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let resource = resources.any(|one| {
        let (resource, of) = one.split_once('/').unwrap_or((one, ""));
        (resource == "*" || resource == plural) && (of == "*" || of == sub)
    });
    let object = attributes.object.or(attributes.old);
    let inside = !context.namespace().is_empty()
        && !context.kind.is("", "Namespace")
        && object.is_none_or(|object| !meta(object, "namespace").is_empty());
    let scope = match rule["scope"].as_str() {
        Some("Namespaced") => inside,
        Some("Cluster") => !inside,
        _ => true,
    };
    resource
        && scope
        && any("operations", attributes.operation.text())
        && any("apiGroups", group)
        && any("apiVersions", version)
}
