//! An expression in CEL of a definition or a policy, which may be hostile: its size, its depth and
//! the cost of its evaluation have limits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, operators,
};
use kube_cel::cel::objects::Key;
use kube_cel::cel::{Context, ExecutionError, FunctionContext, Program, Value as Cel};

use crate::types::crd::cel_regex;

/// The maximum length of an expression in bytes.
const LENGTH_MAX: usize = 16 << 10;
/// The maximum depth of an expression: its evaluation recurses.
const DEPTH_MAX: usize = 128;
/// The depth up to which the stack of any thread suffices.
const DEPTH_SHALLOW: usize = 12;
/// The maximum cost of all evaluations of one context: each copied value costs its size. A value
/// has 1, with those of its items, 8 more for each member of a map, and 1 for 16 bytes of a text.
const COST_MAX: u64 = 4_000_000;
/// The stack in bytes for the parser and for deep expressions. Only the used part takes memory.
const STACK: usize = 256 << 20;

/// The function that evaluates its first argument and counts the cost of the result and of the
/// other arguments. No expression can call it: its name is no identifier.
const COST: &str = "@cost";
/// The same with the square of the cost, of which a list has a part: its items are compared.
const SQUARE: &str = "@square";
/// The function that counts its second argument, a number, and evaluates the first.
const STEP: &str = "@step";
/// The function that evaluates its first argument, the text of `format`, and checks its precisions.
const FORMAT: &str = "@format";
/// The maximum precision of a number in `format`. The library panics at those of more than 16 bits.
const PRECISION_MAX: usize = 1_000;
/// The message of Kubernetes.
const TOO_EXPENSIVE: &str = "operation cancelled: actual cost limit exceeded";
const TOO_PRECISE: &str = "the precision of a number is too large";
const FAILED: &str = "the evaluator of expressions panicked";

/// Functions whose cost, or result, may be the product of their arguments. Those of `sets` too.
const SUPERLINEAR: [&str; 6] = ["distinct", "find", "findAll", "join", "matches", "replace"];
/// The first parts of qualified functions, which look like variables.
const PREFIXES: [&str; 9] =
    ["base64", "format", "ip", "jsonpatch", "lists", "math", "optional", "sets", "strings"];

/// A parsed expression.
pub(crate) struct CelExpression {
    root: IdedExpr,
    is_deep: bool,
    uses_old_self: bool,
}

impl CelExpression {
    /// Parses one.
    ///
    /// # Errors
    /// The message, if it cannot be parsed, is too long or too deep, or has a struct literal.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        if text.len() > LENGTH_MAX {
            return Err(format!("the expression has more than {LENGTH_MAX} bytes"));
        }
        // The parser recurses over a text of any shape.
        on_large_stack(|| Self::parse(text)).unwrap_or_else(|why| Err(why.to_owned()))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let program = Program::compile(text).map_err(|error| error.to_string())?;
        let uses_old_self = program.references().has_variable("oldSelf");
        let mut root = program.expression().clone();
        limit(&mut root, DEPTH_MAX)?;
        let is_deep = limit(&mut program.expression().clone(), DEPTH_SHALLOW).is_err();
        Ok(Self { root: cost(COST, root, None), is_deep, uses_old_self })
    }

    /// Whether the expression is about changes: it uses `oldSelf`.
    pub(crate) fn uses_old_self(&self) -> bool {
        self.uses_old_self
    }

    /// Evaluates the expression in a context of [`context`], or one within it.
    ///
    /// # Errors
    /// If the evaluation fails or costs too much.
    pub(crate) fn execute(&self, context: &Context<'_>) -> Result<Cel, ExecutionError> {
        // The library panics on some arguments, such as a long precision.
        let evaluate = || {
            catch_unwind(AssertUnwindSafe(|| Cel::resolve(&self.root, context))).map_err(|_| FAILED)
        };
        let result = if self.is_deep { on_large_stack(evaluate).flatten() } else { evaluate() };
        let result = result.unwrap_or_else(|why| Err(ExecutionError::function_error(COST, why)));
        // Functions and operators may hide that the limit was reached.
        let probe = Expr::Literal(LiteralValue::Null);
        Cel::resolve(&cost(COST, IdedExpr { id: 0, expr: probe }, None), context)?;
        result
    }
}

fn on_large_stack<T: Send>(run: impl FnOnce() -> T + Send) -> Result<T, &'static str> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        thread.map_err(|_| "the host cannot start a thread")?.join().map_err(|_| FAILED)
    })
}

/// A context with the functions of Kubernetes, whose evaluations share one limit of the cost.
pub(crate) fn context() -> Context<'static> {
    let mut context = Context::default().with_all();
    let rest = Arc::new(AtomicU64::new(COST_MAX));
    let budget = Arc::clone(&rest);
    context.add_function(COST, move |call: &FunctionContext<'_, '_>| {
        evaluate(call, |value| spend(&budget, size(value)))
    });
    let budget = Arc::clone(&rest);
    context.add_function(SQUARE, move |call: &FunctionContext<'_, '_>| {
        evaluate(call, |value| {
            let size = size(value);
            let part = if matches!(value, Cel::List(_)) { size / 16 } else { size };
            spend(&budget, size.saturating_mul(part))
        })
    });
    let budget = Arc::clone(&rest);
    context.add_function(FORMAT, move |call: &FunctionContext<'_, '_>| {
        evaluate(call, |value| match value {
            Cel::String(text) if has_long_precision(text) => {
                Err(ExecutionError::function_error(COST, TOO_PRECISE))
            }
            value => spend(&budget, size(value)),
        })
    });
    let budget = Arc::clone(&rest);
    context.add_function(STEP, move |call: &FunctionContext<'_, '_>| {
        if let Some(Expr::Literal(LiteralValue::Int(nodes))) = call.args.get(1).map(|one| &one.expr)
        {
            spend(&budget, nodes.inner().unsigned_abs())?;
        }
        call.args.first().map_or(Err(ExecutionError::NoSuchOverload), |inner| {
            let value = Cel::resolve(inner, call.ptx)?;
            spend(&budget, size(&value))?;
            Ok(value)
        })
    });
    let budget = Arc::clone(&rest);
    cel_regex::add_functions(&mut context, move |cost| spend(&budget, cost));
    context.add_function("lists.range", move |count: i64| {
        spend(&rest, u64::try_from(count).unwrap_or_default())?;
        Ok(Cel::List(Arc::new((0..count).map(Cel::Int).collect())))
    });
    context
}

/// The message of an error of this module's functions.
pub(crate) fn cost_message(error: &ExecutionError) -> Option<&str> {
    match error {
        ExecutionError::FunctionError { function, message } if function == COST => Some(message),
        _ => None,
    }
}

fn evaluate(
    call: &FunctionContext<'_, '_>,
    spend: impl Fn(&Cel) -> Result<(), ExecutionError>,
) -> Result<Cel, ExecutionError> {
    let (first, others) = call.args.split_first().ok_or(ExecutionError::NoSuchOverload)?;
    for other in others {
        // The prefix of a qualified function is no variable.
        if let Ok(value) = Cel::resolve(other, call.ptx) {
            spend(&value)?;
        }
    }
    let value = Cel::resolve(first, call.ptx)?;
    spend(&value)?;
    Ok(value)
}

fn spend(rest: &AtomicU64, cost: u64) -> Result<(), ExecutionError> {
    let left = rest.load(Ordering::Relaxed).checked_sub(cost);
    rest.store(left.unwrap_or(0), Ordering::Relaxed);
    // The last unit stays: with nothing left each further cost is refused, also one of zero.
    match left {
        Some(left) if left > 0 => Ok(()),
        _ => Err(ExecutionError::function_error(COST, TOO_EXPENSIVE)),
    }
}

/// Whether a text for `format` has a precision (`%.2f`) beyond the maximum.
fn has_long_precision(text: &str) -> bool {
    text.split("%.").skip(1).any(|rest| {
        let end = rest.find(|one: char| !one.is_ascii_digit()).unwrap_or(rest.len());
        end > 0 && rest[..end].parse().map_or(true, |precision: usize| precision > PRECISION_MAX)
    })
}

fn size(value: &Cel) -> u64 {
    let bytes = |length: usize| 1 + (length / 16) as u64;
    match value {
        Cel::List(items) => 1 + items.iter().map(size).sum::<u64>(),
        Cel::Map(map) => {
            let key = |key: &Key| match key {
                Key::String(text) => bytes(text.len()),
                _ => 1,
            };
            8 + map.map.iter().map(|(name, value)| 8 + key(name) + size(value)).sum::<u64>()
        }
        Cel::String(text) => bytes(text.len()),
        Cel::Bytes(data) => bytes(data.len()),
        _ => 1,
    }
}

/// Makes an expression count its costs. Returns the number of its nodes.
///
/// # Errors
/// If it is too deep, or has a node that the library cannot evaluate.
fn limit(expression: &mut IdedExpr, depth: usize) -> Result<i64, String> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!("the expression is nested more than {DEPTH_MAX} levels deep"));
    };
    let mut nodes = 1;
    let mut also = None;
    let is_counted = match &mut expression.expr {
        Expr::Unspecified => return Err("the expression is incomplete".to_owned()),
        Expr::Struct(one) => {
            return Err(format!("unknown type '{}' of a struct literal", one.type_name));
        }
        Expr::Literal(_) => false,
        // The macros name their variables so.
        Expr::Ident(name) => !name.starts_with('@'),
        Expr::Select(select) => {
            nodes += limit_operand(&mut select.operand, depth)?;
            !select.test
        }
        Expr::List(list) => {
            for element in &mut list.elements {
                nodes += limit(element, depth)?;
            }
            true
        }
        Expr::Map(map) => {
            for IdedEntryExpr { expr, .. } in &mut map.entries {
                let EntryExpr::MapEntry(entry) = expr else {
                    return Err("a map has a field of a struct literal".to_owned());
                };
                nodes += limit(&mut entry.key, depth)? + limit(&mut entry.value, depth)?;
            }
            true
        }
        Expr::Comprehension(one) => {
            nodes += limit_comprehension(one, depth)?;
            false
        }
        Expr::Call(call) => {
            nodes += limit_call(call, depth)?;
            also = prefix(call);
            !is_scalar(&call.func_name)
        }
    };
    if is_counted {
        let inner = std::mem::take(expression);
        *expression = cost(COST, inner, also);
    }
    Ok(nodes)
}

/// The same for a value of which only a member is read: a variable is not copied.
fn limit_operand(operand: &mut IdedExpr, depth: usize) -> Result<i64, String> {
    match &operand.expr {
        Expr::Ident(_) => Ok(1),
        _ => limit(operand, depth),
    }
}

fn limit_call(call: &mut CallExpr, depth: usize) -> Result<i64, String> {
    let is_of_sets = matches!(call.target.as_deref(),
        Some(IdedExpr { expr: Expr::Ident(name), .. }) if name == "sets");
    let is_superlinear = is_of_sets || SUPERLINEAR.contains(&call.func_name.as_str());
    let is_index = [operators::INDEX, operators::OPT_INDEX, operators::OPT_SELECT]
        .contains(&call.func_name.as_str());
    let mut nodes = 0;
    let mut inputs: Vec<&mut IdedExpr> = call.args.iter_mut().collect();
    if let Some(target) = &mut call.target {
        let is_prefix = match &target.expr {
            Expr::Ident(name) => {
                (is_of_sets || !is_superlinear) && PREFIXES.contains(&name.as_str())
            }
            _ => false,
        };
        if !is_prefix {
            inputs.push(target);
        }
    }
    for (index, input) in inputs.into_iter().enumerate() {
        if is_index && index == 0 {
            nodes += limit_operand(input, depth)?;
            continue;
        }
        nodes += limit(input, depth)?;
        if is_superlinear {
            let inner = std::mem::take(input);
            *input = cost(SQUARE, inner, None);
        }
    }
    if let Some(target) = call.target.as_deref_mut().filter(|_| call.func_name == "format") {
        let inner = std::mem::take(target);
        *target = cost(FORMAT, inner, None);
    }
    Ok(nodes)
}

/// A target that may be a variable or the first part of a qualified function.
fn prefix(call: &CallExpr) -> Option<IdedExpr> {
    let target = call.target.as_deref()?;
    matches!(target.expr, Expr::Ident(_)).then(|| target.clone())
}

fn limit_comprehension(one: &mut ComprehensionExpr, depth: usize) -> Result<i64, String> {
    let mut nodes = limit(&mut one.iter_range, depth)? + limit(&mut one.accu_init, depth)?;
    nodes += limit(&mut one.result, depth)?;
    let each = limit(&mut one.loop_cond, depth)? + limit(&mut one.loop_step, depth)?;
    // Each step costs the nodes that it evaluates and the copy of the result so far.
    let step = std::mem::take(&mut one.loop_step);
    let literal = Expr::Literal(LiteralValue::Int(each.into()));
    one.loop_step = cost(STEP, step, Some(IdedExpr { id: 0, expr: literal }));
    Ok(nodes + each)
}

/// Whether a function is an operator whose result is no text and no collection, or one of its
/// operands.
fn is_scalar(function: &str) -> bool {
    let is_operator = !function.starts_with(|first: char| first.is_ascii_alphabetic());
    let copies = [operators::ADD, operators::INDEX, operators::OPT_INDEX, operators::OPT_SELECT];
    is_operator && !copies.contains(&function)
}

fn cost(function: &str, inner: IdedExpr, also: Option<IdedExpr>) -> IdedExpr {
    let args = std::iter::once(inner).chain(also).collect();
    let call = CallExpr { func_name: function.to_owned(), target: None, args };
    IdedExpr { id: 0, expr: Expr::Call(call) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluated(text: &str) -> Result<Cel, String> {
        let expression = CelExpression::compile(text)?;
        let message = |error| cost_message(&error).map_or_else(|| error.to_string(), str::to_owned);
        expression.execute(&context()).map_err(message)
    }

    #[test]
    fn expression_is_refused_when_it_has_a_struct_literal() {
        for text in ["Foo{}", "Foo{a: 1}.a == 1", "[1].all(x, a.b.Foo{c: x} == 1)"] {
            let error = evaluated(text).unwrap_err();
            assert!(error.contains("struct literal"), "{text}: {error}");
        }
    }

    #[test]
    fn expression_is_refused_when_it_is_long_or_deep() {
        let depths = [
            "1+".repeat(8_000) + "1",
            "(".repeat(90) + "1" + &")".repeat(90),
            "[".repeat(90) + &"]".repeat(90) + " == 1",
            "a.".repeat(8_000) + "a",
            "-".repeat(8_001) + "1",
            "!".repeat(8_001) + "true",
            "true ? 1 : ".repeat(90) + "1",
            "1 + ".repeat(8_000) + "1",
        ];
        for text in depths {
            // The parser may remove a pair of signs or parentheses.
            match evaluated(&text) {
                Ok(Cel::Int(_) | Cel::Bool(_)) => {}
                Ok(other) => panic!("{}: {other:?}", &text[..20]),
                Err(error) => assert!(!error.is_empty()),
            }
        }
        let error = evaluated(&format!("1{}", "+1".repeat(DEPTH_MAX))).unwrap_err();
        assert!(error.contains("levels deep"), "{error}");
        assert!(evaluated(&" ".repeat(LENGTH_MAX + 1)).unwrap_err().contains("bytes"));
    }

    #[test]
    fn deepest_expression_is_evaluated_on_a_small_stack() {
        let sum = format!("1{}", "+1".repeat(DEPTH_MAX - 1));
        assert_eq!(evaluated(&sum), Ok(Cel::Int(128)));
        let map = "[1].map(a, ".repeat(25) + "1" + &")".repeat(25);
        evaluated(&map).unwrap();
    }

    #[test]
    fn evaluation_is_cancelled_when_it_costs_too_much() {
        let nested = |depth: usize, last: &str| {
            let range = "lists.range(1000)";
            format!("{}{last}{}", format!("{range}.all(x, ").repeat(depth), ")".repeat(depth))
        };
        let doubled = |value: &str, body: &str| {
            let mut text = value.to_owned();
            for _ in 0..15 {
                text = format!("[{text}].map(v, {body})[0]");
            }
            text
        };
        let long = format!("'{}'", "a".repeat(4_000));
        let texts = [
            nested(4, "x >= 0"),
            nested(2, &format!("{}1 > 1", "1 + ".repeat(30))),
            format!("size({})", doubled("[1, 2, 3, 4]", "v + v + v + v")),
            format!("size({})", doubled("'abcdefghijklmnop'", "v + v + v + v")),
            format!("size({})", doubled("[1]", "[v, v, v, v]")),
            format!("size({})", doubled("{'a': 1}", "{'a': v, 'b': v, 'c': v}")),
            "lists.range(1000000000000).size() > 0".to_owned(),
            format!("size({})", doubled("'aaaaaaaaaaaaaaaa'", "v.replace('a', v)")),
            format!("lists.range(20000).map(x, {long}).join({long})"),
            "lists.range(100000).map(x, x).size() > 0".to_owned(),
            r"lists.range(1000).all(x, !'a'.matches('(\\w{4}){4}' + string(x)))".to_owned(),
            format!("lists.range(1000).all(x, {long}.find('(a|aa)*b{{0,9}}c') == '')"),
            "[lists.range(1000000)].all(format, lists.range(1000).all(x, format.size() > 0))"
                .to_owned(),
        ];
        for text in texts {
            let error = evaluated(&text).unwrap_err();
            assert_eq!(error, TOO_EXPENSIVE, "{text}");
        }
    }

    #[test]
    fn evaluation_fails_when_the_library_panics() {
        let mut context = context();
        context.add_function("panics", |_: &FunctionContext<'_, '_>| -> Result<Cel, _> {
            panic!("as a function of the library may")
        });
        let error = CelExpression::compile("panics() == 1").unwrap().execute(&context);
        assert_eq!(cost_message(&error.unwrap_err()), Some(FAILED));
    }

    #[test]
    fn format_is_refused_when_a_precision_is_long() {
        for text in [
            "'%.100000f'.format([1.0])",
            "['%.1f %.99999999999999999999f'].map(x, x.format([1.0, 1.0]))",
            "('%.' + string(65536) + 'e').format([1.0])",
        ] {
            assert_eq!(evaluated(text).unwrap_err(), TOO_PRECISE, "{text}");
        }
        assert_eq!(evaluated("'%.2f'.format([1.0]) == '1.00'"), Ok(Cel::Bool(true)));
    }

    #[test]
    fn cost_is_shared_by_all_evaluations_of_a_context() {
        let expression = CelExpression::compile("lists.range(1000).map(x, x).size() > 0").unwrap();
        let context = context();
        let count = (0..100).take_while(|_| expression.execute(&context).is_ok()).count();
        assert!((2..50).contains(&count), "{count}");
    }

    #[test]
    fn ordinary_expressions_are_evaluated() {
        for text in [
            "lists.range(1000).map(x, 'a text of some length').size() == 1000",
            "lists.range(1000).filter(x, x % 2 == 0).all(x, x < 1000)",
            "sets.contains([1, 2], [2])",
            r"lists.range(1000).all(x, string(x).matches('^[0-9]{1,9}$') && matches('a', '^\\w{1,63}$'))",
            "'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22']",
            "'a1b22'.findAll('[0-9]+', 1) == ['1'] && 'a1'.findAll('[0-9]', -1) == ['1']",
            "sets.intersects(lists.range(1000), [999])",
            "lists.range(1000).distinct().size() == 1000",
            "'a,b'.split(',').map(x, x + '!').join(';') == 'a!;b!'",
            "has({'a': {'b': 1}}.a.b) && {'a': {'b': 1}}.a.b == 1",
            "['a.b'].all(format, format.contains('.') && format.size() == 3)",
            "optional.of(1).orValue(2) == 1 && optional.none().orValue(2) == 2",
            "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
            "duration('60s') < duration('2m') && url('https://a.b/c').getHost() == 'a.b'",
            "!format.dns1123Label().validate('ab').hasValue()",
            "math.greatest(1, 2) == 2 && base64.decode(base64.encode(b'a')) == b'a'",
            "[1, 2].exists_one(x, x == 1) && [3, 1].sort() == [1, 3] && {'a': 1}.all(k, k == 'a')",
        ] {
            assert_eq!(evaluated(text), Ok(Cel::Bool(true)), "{text}");
        }
    }
}
