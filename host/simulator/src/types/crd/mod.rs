//! Kinds of CustomResourceDefinitions: schemas, pruning, defaults, validation, rules in CEL,
//! versions.

pub(crate) mod cel;
pub(crate) mod cel_expression;
mod cel_regex;
pub(crate) mod cel_rule;
pub(crate) mod conversion;
pub(crate) mod default;
pub(crate) mod definition;
pub(crate) mod prune;
pub(crate) mod structural;
pub(crate) mod validate;
