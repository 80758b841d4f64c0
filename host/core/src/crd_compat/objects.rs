//! Whether stored objects are valid under a new definition.
//!
//! The check skips patterns, formats and rules. [`unchecked_changes`](super::unchecked_changes)
//! names those that are new, for the user who approves the adoption of a foreign definition; a
//! definition of the module's own may not get such a constraint at all.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::lost_fields::{
    LostFields, Misfit, OBJECT_MEMBERS, item_schema, keeps_unknown, member_schema,
};
use super::normal::{number, with_type_and_object_meta};
use super::versions;

/// A check of the objects that one definition has stored against the next definition.
#[derive(Clone, Debug)]
pub struct StoredObjects {
    /// The version in which to read the objects.
    version: String,
    /// The versions under which the objects must be valid: the one with the name of the storage
    /// version, and those that are newly served or stored, or narrower than before.
    targets: Vec<TargetVersion>,
}

/// A version under which the objects must be valid.
#[derive(Clone, Debug)]
struct TargetVersion {
    schema: Value,
    /// Paths of the replica counts of the subresource `scale`.
    replica_paths: Vec<Vec<String>>,
}

impl StoredObjects {
    /// Prepares the check of objects of `before` against `after`; `None` if `before` stores or
    /// serves no version, so that nobody can read its objects.
    pub fn new(before: &Value, after: &Value) -> Option<Self> {
        let stored = versions::storage_version(before)?;
        let is_served = |version: &&Value| versions::is_set(version, "served");
        let read = versions::named(before, stored)
            .filter(is_served)
            .or_else(|| versions::all(before).find(is_served))?;
        let mut targets: Vec<TargetVersion> =
            versions::named(after, stored).map(target).into_iter().collect();
        let mut names = BTreeSet::from([stored]);
        let others = versions::newly_used(before, after).chain(versions::narrowed(before, after));
        for version in others {
            if names.insert(versions::name_of(version)) {
                targets.push(target(version));
            }
        }
        Some(Self { version: versions::name_of(read).to_owned(), targets })
    }

    /// The version in which to read the objects: the storage version if it is served.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The fields of an object that the API server would prune, as in `.spec.items[].color`, in
    /// order; at most 20.
    ///
    /// # Errors
    /// [`Misfit::TooManySteps`] if the object has more than `steps` values.
    pub fn lost_fields(&self, object: &Value, steps: u64) -> Result<BTreeSet<String>, Misfit> {
        let mut search = LostFields::new(steps);
        for target in &self.targets {
            search.search(&target.schema, object, "")?;
        }
        Ok(search.into_fields())
    }

    /// Checks one object in at most `steps` steps; a step is a value under a schema.
    ///
    /// # Errors
    /// Returns the first place where the object is not valid, or [`Misfit::TooManySteps`].
    pub fn check(&self, object: &Value, steps: u64) -> Result<(), Misfit> {
        let mut check = Check { steps_left: steps };
        for target in &self.targets {
            let mut object = object.clone();
            check.fill(&target.schema, &mut object)?;
            check.value(&target.schema, &object, true)?;
            for path in &target.replica_paths {
                check.replica_count(path, &object)?;
            }
        }
        Ok(())
    }
}

fn target(version: &Value) -> TargetVersion {
    let scale = &version["subresources"]["scale"];
    let replica_paths = ["specReplicasPath", "statusReplicasPath"].into_iter().filter_map(|name| {
        let path = scale[name].as_str()?.strip_prefix('.')?;
        Some(path.split('.').map(str::to_owned).collect())
    });
    TargetVersion {
        schema: with_type_and_object_meta(versions::schema_of(version)),
        replica_paths: replica_paths.collect(),
    }
}

/// One check of one object.
struct Check {
    steps_left: u64,
}

impl Check {
    fn step(&mut self, steps: usize) -> Result<(), Misfit> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(Misfit::TooManySteps)?;
        Ok(())
    }

    /// Fills in defaults, as the API server does when it reads an object.
    fn fill(&mut self, schema: &Value, value: &mut Value) -> Result<(), Misfit> {
        self.step(1)?;
        let is_missing = |schema: &Value, value: Option<&Value>| match value {
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
                        && is_missing(inner, members.get(name))
                    {
                        self.step(default_size(default))?;
                        members.insert(name.clone(), default.clone());
                    }
                }
                for (name, member) in members.iter_mut() {
                    if let Some(inner) = member_schema(schema, name) {
                        if let Some(default) = inner.get("default")
                            && is_missing(inner, Some(member))
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

    /// Checks a value. `prunes`: members that the schema does not name are lost; a schema within a
    /// logical keyword prunes nothing.
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
                if let Some(inner) = item_schema(schema) {
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
            let result = match member_schema(schema, name) {
                Some(inner) => self.value(inner, member, prunes),
                None if !prunes || keeps_unknown(schema) => Ok(()),
                None if is_object && OBJECT_MEMBERS.contains(&name.as_str()) => Ok(()),
                None => misfit("would be lost: the schema does not name it"),
            };
            result.map_err(|misfit| below(&format!(".{name}"), misfit))?;
        }
        Ok(())
    }

    fn logical(&mut self, schema: &Value, value: &Value) -> Result<(), Misfit> {
        for keyword in ["allOf", "anyOf", "oneOf", "not"] {
            let Some(given) = schema.get(keyword) else { continue };
            // A keyword that this check skips must not decide.
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

    /// Whether this check covers all keywords of a schema.
    fn is_decidable(&mut self, schema: &Value) -> Result<bool, Misfit> {
        self.step(1)?;
        match schema {
            Value::Object(members) => {
                if UNCHECKED.iter().any(|(keyword, _)| members.contains_key(*keyword)) {
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

    /// Checks that a value is a replica count: an integer from 0 to 2^31 - 1.
    fn replica_count(&mut self, path: &[String], object: &Value) -> Result<(), Misfit> {
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

/// Keywords that the check skips, each with the word for users.
pub(super) const UNCHECKED: [(&str, &str); 3] =
    [("pattern", "pattern"), ("format", "format"), ("x-kubernetes-validations", "rules")];

fn default_size(default: &Value) -> usize {
    match default {
        Value::Object(members) => 1 + members.values().map(default_size).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(default_size).sum::<usize>(),
        _ => 1,
    }
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
    let within = |number: f64, least: &str, most: &str| {
        let too_small = bound(least).is_some_and(|least| number < least);
        let too_great = bound(most).is_some_and(|most| number > most);
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
            let number = given.as_f64().unwrap_or_default();
            within(number, "minimum", "maximum")?;
            for (flag, keyword) in
                [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")]
            {
                if versions::is_set(schema, flag)
                    && bound(keyword).is_some_and(|bound| bound.total_cmp(&number).is_eq())
                {
                    return misfit(&format!("is {keyword} itself, which is excluded"));
                }
            }
            match bound("multipleOf") {
                Some(of) if (number / of).fract() != 0.0 => misfit("is no multiple of multipleOf"),
                _ => Ok(()),
            }
        }
        Value::String(text) => within(count(text.chars().count()), "minLength", "maxLength"),
        Value::Array(items) => within(count(items.len()), "minItems", "maxItems"),
        Value::Object(members) => within(count(members.len()), "minProperties", "maxProperties"),
        Value::Null | Value::Bool(_) => Ok(()),
    }
}
