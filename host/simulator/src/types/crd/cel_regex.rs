//! The functions of CEL that take a regular expression. The library compiles it at each call, which
//! may take longer than all else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube_cel::cel::extractors::{Arguments, This};
use kube_cel::cel::{Context, ExecutionError, Value as Cel};
use regex::{Regex, RegexBuilder};

/// The sizes of a compiled expression: the maximum in bytes, the cost of the compilation, and the
/// cost of each byte of a text. Each letter of all scripts (`\w`) has some 50 KiB.
const SIZES: [(usize, u64, u64); 2] = [(64 << 10, 2_000, 1), (4 << 20, 200_000, 64)];

/// A compiled expression, and the cost of each byte of a text.
type Compiled = Result<(Regex, u64), String>;

/// The expressions that a context has compiled.
#[derive(Clone)]
struct Patterns<S> {
    compiled: Arc<Mutex<BTreeMap<Arc<String>, Compiled>>>,
    spend: S,
}

impl<S: Fn(u64) -> Result<(), ExecutionError>> Patterns<S> {
    /// The compiled expression, for a search in a text.
    fn get(&self, pattern: &Arc<String>, text: &str) -> Result<Regex, ExecutionError> {
        let mut all = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get(pattern).cloned();
        let compiled = match known {
            Some(compiled) => compiled,
            None => self.compile(pattern)?,
        };
        all.entry(Arc::clone(pattern)).or_insert_with(|| compiled.clone());
        match compiled {
            Ok((regex, cost)) => {
                (self.spend)(cost.saturating_mul(text.len() as u64))?;
                Ok(regex)
            }
            Err(why) => {
                let message = format!("'{pattern}' not a valid regex:\n{why}");
                Err(ExecutionError::function_error("matches", message))
            }
        }
    }

    fn compile(&self, pattern: &str) -> Result<Compiled, ExecutionError> {
        let mut compiled = Err(String::new());
        for (size, cost, each) in SIZES {
            (self.spend)(cost)?;
            match RegexBuilder::new(pattern).size_limit(size).build() {
                Ok(regex) => return Ok(Ok((regex, each))),
                Err(error @ regex::Error::CompiledTooBig(_)) => compiled = Err(error.to_string()),
                Err(error) => return Ok(Err(error.to_string())),
            }
        }
        Ok(compiled)
    }
}

/// Replaces the functions of the library. `spend` counts a cost.
pub(super) fn add_functions<S>(context: &mut Context<'_>, spend: S)
where
    S: Fn(u64) -> Result<(), ExecutionError> + Clone + Send + Sync + 'static,
{
    let patterns = Patterns { compiled: Arc::default(), spend };
    let all = patterns.clone();
    context.add_function("matches", move |This(text): This<Arc<String>>, regex: Arc<String>| {
        all.get(&regex, &text).map(|regex| regex.is_match(&text))
    });
    let all = patterns.clone();
    context.add_function("find", move |This(text): This<Arc<String>>, regex: Arc<String>| {
        let regex = all.get(&regex, &text)?;
        let found = regex.find(&text).map(|found| found.as_str().to_owned());
        Ok(Cel::String(Arc::new(found.unwrap_or_default())))
    });
    context.add_function(
        "findAll",
        move |This(text): This<Arc<String>>, Arguments(rest): Arguments| {
            let Some(Cel::String(regex)) = rest.first() else {
                return Err(ExecutionError::NoSuchOverload);
            };
            let regex = patterns.get(regex, &text)?;
            // A negative limit means all.
            let limit = match rest.get(1) {
                Some(Cel::Int(limit)) => usize::try_from(*limit).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            let found = regex.find_iter(&text).take(limit);
            let found = found.map(|one| Cel::String(Arc::new(one.as_str().to_owned())));
            Ok(Cel::List(Arc::new(found.collect())))
        },
    );
}
