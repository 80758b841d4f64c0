//! Making a case that shows a difference small.

use serde_json::Value;

use crate::case::Case;

/// The smallest case found that still `fails`, by leaving out steps and members of bodies.
pub fn shrink(mut case: Case, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    loop {
        let before = case.clone();
        let mut index = 0;
        while index < case.steps.len() {
            let mut smaller = case.clone();
            smaller.steps.remove(index);
            if fails(&smaller) {
                case = smaller;
            } else {
                index += 1;
            }
        }
        for index in 0..case.steps.len() {
            let mut tried = 0;
            loop {
                let options = smaller_bodies(&case.steps[index].body);
                let mut found = false;
                for body in options.into_iter().skip(tried) {
                    tried += 1;
                    let mut smaller = case.clone();
                    smaller.steps[index].body = body;
                    if fails(&smaller) {
                        case = smaller;
                        found = true;
                        tried = tried.saturating_sub(1);
                        break;
                    }
                }
                if !found {
                    break;
                }
            }
        }
        if case == before {
            return case;
        }
    }
}

/// The body with one thing less, in all ways; what names the object stays.
fn smaller_bodies(body: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    match body {
        Value::Object(map) => {
            for (name, value) in map {
                if matches!(name.as_str(), "apiVersion" | "kind" | "name" | "metadata") {
                    if name == "metadata" {
                        for inner in smaller_bodies(value) {
                            let mut smaller = map.clone();
                            smaller.insert(name.clone(), inner);
                            found.push(Value::Object(smaller));
                        }
                    }
                    continue;
                }
                let mut smaller = map.clone();
                smaller.remove(name);
                found.push(Value::Object(smaller));
                for inner in smaller_bodies(value) {
                    let mut smaller = map.clone();
                    smaller.insert(name.clone(), inner);
                    found.push(Value::Object(smaller));
                }
            }
        }
        Value::Array(items) => {
            for index in 0..items.len() {
                let mut smaller = items.clone();
                smaller.remove(index);
                found.push(Value::Array(smaller));
            }
            for (index, item) in items.iter().enumerate() {
                for inner in smaller_bodies(item) {
                    let mut smaller = items.clone();
                    smaller[index] = inner;
                    found.push(Value::Array(smaller));
                }
            }
        }
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Step;
    use serde_json::json;

    #[test]
    fn shrunk_case_keeps_only_the_steps_that_matter() {
        let step = |body: Value| Step { body, ..Step::default() };
        let case = Case {
            steps: vec![
                step(json!({"a": 1})),
                step(json!({"kind": "K", "b": {"x": [1, 2], "y": 2}, "c": 3})),
            ],
            ..Case::default()
        };
        let small =
            shrink(case, &mut |case| case.steps.iter().any(|step| step.body["b"]["x"].is_array()));
        assert_eq!(small.steps.len(), 1);
        assert_eq!(small.steps[0].body, json!({"kind": "K", "b": {"x": []}}));
    }
}
