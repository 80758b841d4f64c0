//! The variables of the expressions of a policy.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Value as Cel};
use serde_json::Value;

use crate::types::crd::cel::{plain, words};
use crate::types::crd::cel_expression::{self, CelExpression};

/// The variables of the expressions: `object`, `oldObject`, `request`, `params`, `namespaceObject`
/// and `variables`.
pub(crate) struct PolicyScope<'a> {
    context: Context<'a>,
}

impl PolicyScope<'_> {
    /// The variables of a request, as a webhook would get it. `namespace` is that of the object.
    pub(crate) fn new(request: &Value, namespace: Option<&Value>, params: &Value) -> Self {
        let mut context = cel_expression::context();
        context.add_variable_from_value("object", plain(&request["object"]));
        context.add_variable_from_value("oldObject", plain(&request["oldObject"]));
        let is_namespace = request["resource"]["resource"] == "namespaces";
        let namespace = namespace.filter(|_| !is_namespace);
        context.add_variable_from_value("namespaceObject", namespace.map_or(Cel::Null, plain));
        context.add_variable_from_value("params", plain(params));
        let mut bare = request.clone();
        if let Some(bare) = bare.as_object_mut() {
            bare.retain(|name, _| !matches!(name.as_str(), "object" | "oldObject" | "uid"));
        }
        context.add_variable_from_value("request", plain(&bare));
        Self { context }
    }

    /// The same with the variables of the policy, each of which may use those before it. One that
    /// fails is absent: an expression that uses it fails.
    pub(crate) fn with_variables<'v>(
        &self,
        variables: impl Iterator<Item = &'v Value>,
    ) -> PolicyScope<'_> {
        let mut members = HashMap::new();
        let mut context = self.context.new_inner_scope();
        context.add_variable_from_value("variables", Cel::Map(Map { map: Arc::default() }));
        for variable in variables {
            let text = |name: &str| variable[name].as_str().unwrap_or_default();
            let program = CelExpression::compile(text("expression"));
            if let Some(Ok(value)) = program.ok().map(|program| program.execute(&context)) {
                members.insert(Key::String(Arc::new(text("name").to_owned())), value);
                let map = Cel::Map(Map { map: Arc::new(members.clone()) });
                context.add_variable_from_value("variables", map);
            }
        }
        PolicyScope { context }
    }

    /// Whether an expression is true.
    ///
    /// # Errors
    /// The message, if it cannot be evaluated.
    pub(crate) fn holds(&self, expression: &str) -> Result<bool, String> {
        let result = CelExpression::compile(expression)
            .and_then(|program| program.execute(&self.context).map_err(|error| words(&error)));
        match result {
            Ok(Cel::Bool(holds)) => Ok(holds),
            Ok(_) => Err(format!("expression '{expression}' gives no truth")),
            Err(why) => Err(format!("expression '{expression}' resulted in error: {why}")),
        }
    }

    /// The text that an expression gives, if it gives one of one line.
    pub(crate) fn message(&self, expression: &str) -> Option<String> {
        let program = CelExpression::compile(expression).ok().filter(|_| !expression.is_empty())?;
        match program.execute(&self.context) {
            Ok(Cel::String(text)) => {
                Some(text.trim().to_owned()).filter(|one| !one.is_empty() && !one.contains('\n'))
            }
            _ => None,
        }
    }
}
