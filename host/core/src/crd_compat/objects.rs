//! Whether objects that are stored fit a new definition.
//!
//! Patterns, formats and rules are not asked: [`super::breaking`] lets none of them come or change.

use serde_json::{Map, Value};

use super::normal::{number, with_head};
use super::versions;

/// What an object does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// A place of the object and what is wrong with it: `.spec.size is no integer`.
    At(String),
    /// The steps given were not enough to look at all of the object.
    TooManySteps,
}

/// The objects of one definition as they are stored, to be held against the next definition.
#[derive(Clone, Debug)]
pub struct StoredObjects {
    /// The version to read them in.
    version: String,
    /// What they must fit: the version that keeps its name, and those that newly take them.
    targets: Vec<TargetVersion>,
}

/// A version that must take the objects.
#[derive(Clone, Debug)]
struct TargetVersion {
    schema: Value,
    /// Paths of the figures of a scale.
    figures: Vec<Vec<String>>,
}

impl StoredObjects {
    /// The objects of `before` against the definition `after`; `None` if `before` stores or serves
    /// no version, so that none can be read.
    pub fn new(before: &Value, after: &Value) -> Option<Self> {
        let stored = versions::stored_now(before)?;
        let is_served = |version: &&Value| versions::is_set(version, "served");
        let read = versions::named(before, stored)
            .filter(is_served)
            .or_else(|| versions::all(before).find(is_served))?;
        let mut targets: Vec<TargetVersion> =
            versions::named(after, stored).map(target).into_iter().collect();
        for version in versions::entered(before, after) {
            if versions::text(version) != stored {
                targets.push(target(version));
            }
        }
        Some(Self { version: versions::text(read).to_owned(), targets })
    }

    /// The version in which the objects are to be read: the one that they are stored in, if it is
    /// served.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Checks one object in at most `steps` steps; a step is a value under a schema.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn check(&self, object: &Value, steps: u64) -> Result<(), Misfit> {
        let mut check = Check { left: steps };
        for target in &self.targets {
            let mut object = object.clone();
            check.fill(&target.schema, &mut object)?;
            check.value(&target.schema, &object, true)?;
            for path in &target.figures {
                check.figure(path, &object)?;
            }
        }
        Ok(())
    }
}

fn target(version: &Value) -> TargetVersion {
    let scale = &version["subresources"]["scale"];
    let figures = ["specReplicasPath", "statusReplicasPath"].into_iter().filter_map(|name| {
        let path = scale[name].as_str()?.strip_prefix('.')?;
        Some(path.split('.').map(str::to_owned).collect())
    });
    TargetVersion { schema: with_head(versions::schema_of(version)), figures: figures.collect() }
}

/// One check of one object.
struct Check {
    left: u64,
}

impl Check {
    fn step(&mut self, steps: usize) -> Result<(), Misfit> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        self.left = self.left.checked_sub(steps).ok_or(Misfit::TooManySteps)?;
        Ok(())
    }

    /// Fills in defaults, as the API server does when it reads an object.
    fn fill(&mut self, schema: &Value, value: &mut Value) -> Result<(), Misfit> {
        self.step(1)?;
        let is_lack = |schema: &Value, value: Option<&Value>| match value {
            None => true,
            Some(Value::Null) => !versions::is_set(schema, "nullable"),
            Some(_) => false,
        };
        match value {
            Value::Object(members) => {
                let properties = schema.get("properties").and_then(Value::as_object);
                self.step(properties.map_or(0, Map::len))?;
                for (name, inner) in properties.into_iter().flatten() {
                    if let Some(default) = inner.get("default")
                        && is_lack(inner, members.get(name))
                    {
                        self.step(default_size(default))?;
                        members.insert(name.clone(), default.clone());
                    }
                }
                for (name, member) in members.iter_mut() {
                    if let Some(inner) = inner(schema, name) {
                        if let Some(default) = inner.get("default")
                            && is_lack(inner, Some(member))
                        {
                            self.step(default_size(default))?;
                            *member = default.clone();
                        }
                        self.fill(inner, member)?;
                    }
                }
            }
            Value::Array(items) => {
                if let Some(inner) = schema.get("items") {
                    for item in items {
                        self.fill(inner, item)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// `prunes`: what the schema does not name is lost; a schema within a logical keyword loses
    /// nothing.
    fn value(&mut self, schema: &Value, value: &Value, prunes: bool) -> Result<(), Misfit> {
        self.step(1)?;
        if value.is_null() && versions::is_set(schema, "nullable") {
            return Ok(());
        }
        has_type(schema, value)?;
        self.within_values(schema, value)?;
        within_bounds(schema, value)?;
        match value {
            Value::Object(members) => self.members(schema, members, prunes)?,
            Value::Array(items) => {
                if let Some(inner) = schema.get("items") {
                    for (index, item) in items.iter().enumerate() {
                        self.value(inner, item, prunes)
                            .map_err(|misfit| below(&format!("[{index}]"), misfit))?;
                    }
                }
            }
            _ => {}
        }
        self.logical(schema, value)
    }

    fn within_values(&mut self, schema: &Value, value: &Value) -> Result<(), Misfit> {
        let Some(values) = schema.get("enum").and_then(Value::as_array) else { return Ok(()) };
        self.step(values.len())?;
        let value = number(value);
        if values.contains(&value) {
            Ok(())
        } else {
            misfit("is none of the values that are taken")
        }
    }

    fn members(
        &mut self,
        schema: &Value,
        members: &Map<String, Value>,
        prunes: bool,
    ) -> Result<(), Misfit> {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            self.step(1)?;
            if !members.contains_key(name) {
                return misfit(&format!("lacks {name}"));
            }
        }
        let is_object = versions::is_set(schema, "x-kubernetes-embedded-resource");
        for (name, member) in members {
            self.step(1)?;
            let result = match inner(schema, name) {
                Some(inner) => self.value(inner, member, prunes),
                None if !prunes || keeps_unknown(schema) => Ok(()),
                None if is_object && HEAD.contains(&name.as_str()) => Ok(()),
                None => misfit("would be lost: the schema does not name it"),
            };
            result.map_err(|misfit| below(&format!(".{name}"), misfit))?;
        }
        Ok(())
    }

    fn logical(&mut self, schema: &Value, value: &Value) -> Result<(), Misfit> {
        for keyword in ["allOf", "anyOf", "oneOf", "not"] {
            let Some(given) = schema.get(keyword) else { continue };
            // What is not asked must not decide.
            if !self.is_decidable(given)? {
                continue;
            }
            let schemas = given.as_array().map_or(std::slice::from_ref(given), Vec::as_slice);
            let mut holding = 0;
            for one in schemas {
                match self.value(one, value, false) {
                    Ok(()) => holding += 1,
                    Err(Misfit::At(_)) => {}
                    Err(Misfit::TooManySteps) => return Err(Misfit::TooManySteps),
                }
            }
            let fits = match keyword {
                "allOf" => holding == schemas.len(),
                "anyOf" => holding > 0,
                "oneOf" => holding == 1,
                _ => holding == 0,
            };
            if !fits {
                return misfit(&format!("does not fit {keyword}"));
            }
        }
        Ok(())
    }

    /// Whether all that a schema says is asked here.
    fn is_decidable(&mut self, schema: &Value) -> Result<bool, Misfit> {
        self.step(1)?;
        match schema {
            Value::Object(members) => {
                if UNASKED.iter().any(|keyword| members.contains_key(*keyword)) {
                    return Ok(false);
                }
                for member in members.values() {
                    if !self.is_decidable(member)? {
                        return Ok(false);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    if !self.is_decidable(item)? {
                        return Ok(false);
                    }
                }
            }
            _ => {}
        }
        Ok(true)
    }

    /// A figure of a scale is a whole number that a scale can have.
    fn figure(&mut self, path: &[String], object: &Value) -> Result<(), Misfit> {
        self.step(path.len())?;
        let found = path.iter().try_fold(object, |value, name| value.get(name));
        let fits = |value: &Value| {
            value.as_i64().is_some_and(|one| i32::try_from(one).is_ok_and(|one| one >= 0))
        };
        match found {
            Some(value) if !value.is_null() && !fits(value) => {
                Err(Misfit::At(format!(".{} is not a replica count", path.join("."))))
            }
            _ => Ok(()),
        }
    }
}

/// Keywords that are not asked of stored objects.
const UNASKED: [&str; 3] = ["pattern", "format", "x-kubernetes-validations"];

/// What the API server keeps of any object.
const HEAD: [&str; 3] = ["apiVersion", "kind", "metadata"];

fn default_size(default: &Value) -> usize {
    match default {
        Value::Object(members) => 1 + members.values().map(default_size).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(default_size).sum::<usize>(),
        _ => 1,
    }
}

fn inner<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let named = schema.get("properties").and_then(|properties| properties.get(name));
    named.or_else(|| schema.get("additionalProperties").filter(|others| others.is_object()))
}

fn keeps_unknown(schema: &Value) -> bool {
    versions::is_set(schema, "x-kubernetes-preserve-unknown-fields")
        || versions::is_set(schema, "additionalProperties")
}

fn misfit(what: &str) -> Result<(), Misfit> {
    Err(Misfit::At(format!(" {what}")))
}

fn below(place: &str, misfit: Misfit) -> Misfit {
    match misfit {
        Misfit::At(what) => Misfit::At(format!("{place}{what}")),
        Misfit::TooManySteps => Misfit::TooManySteps,
    }
}

fn has_type(schema: &Value, value: &Value) -> Result<(), Misfit> {
    let is_whole = value.is_i64()
        || value.is_u64()
        || value.as_f64().is_some_and(|number| number.fract() == 0.0);
    if versions::is_set(schema, "x-kubernetes-int-or-string") {
        return if is_whole || value.is_string() {
            Ok(())
        } else {
            misfit("is neither an integer nor a string")
        };
    }
    let Some(kind) = schema.get("type").and_then(Value::as_str) else { return Ok(()) };
    let fits = match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => is_whole,
        _ => false,
    };
    if fits { Ok(()) } else { misfit(&format!("is not of type {kind}")) }
}

fn within_bounds(schema: &Value, value: &Value) -> Result<(), Misfit> {
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    let within = |figure: f64, least: &str, most: &str| {
        let too_small = bound(least).is_some_and(|least| figure < least);
        let too_great = bound(most).is_some_and(|most| figure > most);
        match (too_small, too_great) {
            (true, _) => misfit(&format!("is less than {least}")),
            (_, true) => misfit(&format!("is more than {most}")),
            _ => Ok(()),
        }
    };
    #[allow(clippy::cast_precision_loss, reason = "a length is far below 2^53")]
    let count = |count: usize| count as f64;
    match value {
        Value::Number(given) => {
            let figure = given.as_f64().unwrap_or_default();
            within(figure, "minimum", "maximum")?;
            for (flag, keyword) in
                [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")]
            {
                if versions::is_set(schema, flag)
                    && bound(keyword).is_some_and(|bound| bound.total_cmp(&figure).is_eq())
                {
                    return misfit(&format!("is {keyword} itself, which is excluded"));
                }
            }
            match bound("multipleOf") {
                Some(of) if (figure / of).fract() != 0.0 => misfit("is no multiple of multipleOf"),
                _ => Ok(()),
            }
        }
        Value::String(text) => within(count(text.chars().count()), "minLength", "maxLength"),
        Value::Array(items) => within(count(items.len()), "minItems", "maxItems"),
        Value::Object(members) => within(count(members.len()), "minProperties", "maxProperties"),
        Value::Null | Value::Bool(_) => Ok(()),
    }
}
