//! Running a case against both servers.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, header};
use serde_json::{Value, json};

use crate::case::{Case, Step};
use crate::normal::Names;
use crate::outcome::{ATTEMPTS, is_unknown};
use crate::place::{Known, Place, fill, fill_value};
use crate::server::{Failure, Reply, Server, Wait};
use crate::watching::{LONG, SHORT};

/// How long a real server's controllers may take.
const BOUND: Duration = Duration::from_mins(1);
/// How often it is asked whether they are done.
const PAUSE: Duration = Duration::from_millis(20);
/// For how long it must be the same, if it was not at once when they had finished.
const CALM: Duration = Duration::from_millis(300);

/// Where the servers answered differently.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Which step.
    pub step: usize,
    /// What the real server answered, comparable.
    pub real: (u16, Value),
    /// What the simulator answered.
    pub simulated: (u16, Value),
    /// What the real answer was not that the case says, in sentences.
    pub unmet: Vec<String>,
}

/// One side of a run.
#[derive(Clone)]
struct Side<'a> {
    server: &'a dyn Server,
    names: Names,
    known: Known,
    /// The object that was answered last.
    last: Value,
    /// Whether the last write was refused.
    refused: bool,
}

impl<'a> Side<'a> {
    fn new(server: &'a dyn Server) -> Self {
        Self {
            server,
            names: Names::default(),
            known: Known::new(),
            last: Value::Null,
            refused: false,
        }
    }

    fn step(&mut self, step: &Step, place: &Place) -> Result<(Reply, (u16, Value)), Failure> {
        let mut path = fill(&step.path, place, &self.known);
        if !step.until.is_empty() && self.refused {
            // Nothing bears the mark.
            path = path.replace(LONG, SHORT);
        }
        let request = self.request(step, place, &path)?;
        if step.path.contains("watch=true") || step.path.contains("resourceVersion=") {
            let collection = path.split('?').next().unwrap_or_default();
            self.server.refresh(collection)?;
        }
        let until = fill(&step.until, place, &self.known);
        let reply = self.server.send_until(request, &until)?;
        if step.method != "GET" {
            self.refused = reply.code >= 300;
            if let Some((path, version)) = written(&path, &reply.body) {
                self.server.catch_up(&path, &version)?;
            }
        }
        self.learn(&reply.body, &place.word);
        let answer = self.comparable(step, &reply);
        Ok((reply, answer))
    }

    fn request(&self, step: &Step, place: &Place, path: &str) -> Result<Request<Bytes>, Failure> {
        let mut request = Request::builder()
            .method(step.method.as_str())
            .uri(path)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, "differential/1");
        if !step.user.is_empty() {
            request = request.header("impersonate-user", fill(&step.user, place, &self.known));
        }
        for group in &step.groups {
            request = request.header("impersonate-group", group.as_str());
        }
        let content = match step.text.as_str() {
            "" => match self.content(step, place)? {
                Value::Null => return Ok(request.body(Bytes::new())?),
                content => content.to_string(),
            },
            text => fill(text, place, &self.known),
        };
        let kind = match step.content_type.as_str() {
            "" => "application/json",
            kind => kind,
        };
        let request = request.header(header::CONTENT_TYPE, kind);
        Ok(request.body(Bytes::from(content))?)
    }

    /// The body of a request: as given, or an edit of the object that was answered last.
    fn content(&self, step: &Step, place: &Place) -> Result<Value, Failure> {
        if step.edit.is_null() {
            return Ok(fill_value(&step.body, place, &self.known));
        }
        let mut content = self.last.clone();
        let edit = fill_value(&step.edit, place, &self.known);
        json_patch::patch(&mut content, &serde_json::from_value::<json_patch::Patch>(edit)?)?;
        Ok(content)
    }

    /// The part of an answer that both servers must have in common.
    fn comparable(&mut self, step: &Step, reply: &Reply) -> (u16, Value) {
        if reply.code == 500 && has_many_directives(step) {
            return (500, Value::from("a strategic patch that does not fit"));
        }
        let is_watch = step.path.contains("watch=true");
        let body = if is_watch { events(reply.body.clone()) } else { reply.body.clone() };
        let mut normal = self.names.normal(&body);
        // Which of several unknown members is reported first depends on how the server keeps texts.
        let warnings: BTreeSet<&String> =
            reply.warnings.iter().filter(|text| !is_of_content(text)).collect();
        if normal.is_object() && !warnings.is_empty() {
            normal["warnings"] = json!(warnings);
        }
        (reply.code, normal)
    }

    fn learn(&mut self, body: &Value, word: &str) {
        let metadata = &body["metadata"];
        if body["items"].is_array() {
            let next = metadata["continue"].as_str().unwrap_or_default();
            let version = metadata["resourceVersion"].as_str().unwrap_or_default();
            self.known.insert("list".to_owned(), (String::new(), version.to_owned()));
            self.known.insert("continue".to_owned(), (next.to_owned(), String::new()));
        }
        if let (Some(name), Some(uid)) = (metadata["name"].as_str(), metadata["uid"].as_str()) {
            let version = metadata["resourceVersion"].as_str().unwrap_or_default();
            let name = name.replace(word, "");
            self.known.insert(name, (uid.to_owned(), version.to_owned()));
            self.last.clone_from(body);
        }
    }
}

/// Whether a strategic patch says how to merge in several places. If it is wrong in two of them,
/// the real server tells of the one that it meets first, in the random order of a Go map.
fn has_many_directives(step: &Step) -> bool {
    fn count(value: &Value) -> usize {
        match value {
            Value::Object(map) => map
                .iter()
                .map(|(name, value)| usize::from(name.starts_with('$')) + count(value))
                .sum(),
            Value::Array(items) => items.iter().map(count).sum(),
            _ => 0,
        }
    }
    step.content_type == "application/strategic-merge-patch+json" && count(&step.body) > 1
}

/// Whether a warning is about the content of an object: `299 - "spec.containers[0].env[1]: ..."`.
/// The simulator reports mistakes in built-in kinds in fewer words, see docs/simulator.md.
fn is_of_content(warning: &str) -> bool {
    warning.strip_prefix("299 - \"").is_some_and(|text| text.starts_with("spec."))
}

/// The events of a watch that are compared.
fn events(mut body: Value) -> Value {
    // One event alone is no list of lines.
    if body["type"].is_string() {
        body = Value::Array(vec![body]);
    }
    for event in body.as_array_mut().into_iter().flatten() {
        // It counts what others write too.
        if event["type"] == "BOOKMARK" {
            event["object"]["metadata"]["resourceVersion"] = Value::Null;
            // Apart from that it is an object of nothing: see docs/simulator.md.
            if let Some(object) = event["object"].as_object_mut() {
                object
                    .retain(|name, _| matches!(name.as_str(), "kind" | "apiVersion" | "metadata"));
            }
        }
    }
    if let Some(events) = body.as_array_mut() {
        // When a server sends further bookmarks depends on the time.
        events.retain(|event| {
            event["type"] != "BOOKMARK" || event["object"]["metadata"]["annotations"].is_object()
        });
    }
    body
}

/// Where the object lies that a write was answered by, and its version.
fn written(path: &str, body: &Value) -> Option<(String, String)> {
    let name = body["metadata"]["name"].as_str()?;
    let version = body["metadata"]["resourceVersion"].as_str()?;
    let path = path.split('?').next().unwrap_or_default();
    let part = format!("/{name}");
    // The path ends with the collection, the name, or a subresource.
    let object = match path.find(&format!("{part}/")) {
        Some(start) => path[..start + part.len()].to_owned(),
        None if path.ends_with(&part) => path.to_owned(),
        None => format!("{path}{part}"),
    };
    Some((object, version.to_owned()))
}

/// Runs a case, again in another place if the outcome of a write on the real server is unknown, and
/// at most [`ATTEMPTS`] times. `enter` makes the place of an attempt, counted from 0.
///
/// # Errors
/// If a server does not answer.
pub fn run_in_places(
    case: &Case,
    real: &dyn Server,
    simulated: &dyn Server,
    enter: &mut dyn FnMut(usize) -> Place,
) -> Result<Option<Difference>, Failure> {
    let mut attempt = 0;
    loop {
        let found = run(case, &enter(attempt), real, simulated, &mut |_, _| {});
        attempt += 1;
        match found {
            Err(failure) if is_unknown(&failure) && attempt < ATTEMPTS => {}
            found => return found,
        }
    }
}

/// Runs a case in a place where none was run. `seen` gets each step with the real answer.
///
/// # Errors
/// If a server does not answer, or the outcome of a write on the real one is unknown.
pub fn run(
    case: &Case,
    place: &Place,
    real: &dyn Server,
    simulated: &dyn Server,
    seen: &mut dyn FnMut(&Step, &Reply),
) -> Result<Option<Difference>, Failure> {
    let (mut one, mut other) = (Side::new(real), Side::new(simulated));
    // What the real controllers may not have looked at yet, and what they look at from here on.
    let (mut written, mut concerns) = (None, Wait::Owners);
    for (index, step) in case.steps.iter().enumerate() {
        if step.settled {
            if let Some(wait) = written.take() {
                one.server.settle(wait)?;
            }
            if let Some(difference) = settled(&mut one, &mut other, (index, step), place, seen)? {
                return Ok(Some(difference));
            }
            continue;
        }
        let before = step.expect.is_some().then(|| one.known.clone());
        if step.method != "GET" {
            if step.method == "DELETE" && is_namespace(&step.path) {
                concerns = Wait::Namespaces;
            }
            written = Some(concerns);
        }
        let (reply, left) = one.step(step, place)?;
        // Which of many managers are counted as of old depends on the seconds in which they wrote.
        if let Some(time) = reply.latest() {
            simulated.reach(time);
        }
        let (simulated, right) = other.step(step, place)?;
        seen(step, &reply);
        let mut unmet = unmet(step, &reply, place, before.as_ref());
        let unwarned = step.expect.as_ref().and_then(|expect| expect.unwarned(&simulated));
        unmet.extend(unwarned.map(|line| format!("{line} (simulated)")));
        if left != right || !unmet.is_empty() {
            return Ok(Some(Difference { step: index, real: left, simulated: right, unmet }));
        }
    }
    Ok(None)
}

/// What a case says of a step that the real answer is not.
fn unmet(step: &Step, reply: &Reply, place: &Place, known: Option<&Known>) -> Vec<String> {
    let expect = step.expect.as_ref().zip(known);
    let mut unmet =
        expect.map_or_else(Vec::new, |(expect, known)| expect.unmet(reply, place, known));
    // What a person wrote down is accepted, if he does not say otherwise.
    if expect.is_some_and(|(expect, _)| expect.code.is_none()) && reply.code >= 300 {
        unmet.push(format!("it should be accepted: {} {}", reply.code, reply.body));
    }
    unmet
}

fn is_namespace(path: &str) -> bool {
    path.strip_prefix("/api/v1/namespaces/").is_some_and(|name| !name.contains('/'))
}

/// A step after which both must be the same once all is done.
fn settled(
    one: &mut Side<'_>,
    other: &mut Side<'_>,
    (index, step): (usize, &Step),
    place: &Place,
    seen: &mut dyn FnMut(&Step, &Reply),
) -> Result<Option<Difference>, Failure> {
    other.server.settle(Wait::Owners)?;
    let (_, right) = other.step(step, place)?;
    let before = one.clone();
    let deadline = Instant::now() + BOUND;
    let (mut since, mut first) = (None, true);
    loop {
        // What an answer taught that was too early is forgotten.
        *one = before.clone();
        let (reply, left) = one.step(step, place)?;
        let same = left == right;
        since = same.then(|| since.unwrap_or_else(Instant::now));
        let calm = since.is_some_and(|since: Instant| first || since.elapsed() >= CALM);
        first = false;
        if calm || Instant::now() > deadline {
            seen(step, &reply);
            let unmet = unmet(step, &reply, place, Some(&before.known));
            let wrong = !same || !unmet.is_empty();
            let difference = Difference { step: index, real: left, simulated: right, unmet };
            return Ok(wrong.then_some(difference));
        }
        std::thread::sleep(PAUSE);
    }
}

/// The members in which two documents differ, a line each.
pub fn differing(path: &str, one: &Value, other: &Value, lines: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let (a, b) = (a.get(name), b.get(name));
                if a != b {
                    let path = format!("{path}.{name}");
                    match (a, b) {
                        (Some(a), Some(b)) => differing(&path, a, b, lines),
                        _ => lines.push(format!(
                            "{path}: real {} simulated {}",
                            a.map_or("absent".to_owned(), Value::to_string),
                            b.map_or("absent".to_owned(), Value::to_string)
                        )),
                    }
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                if a != b {
                    differing(&format!("{path}[{index}]"), a, b, lines);
                }
            }
        }
        _ if one != other => lines.push(format!("{path}: real {one} simulated {other}")),
        _ => {}
    }
}

impl Difference {
    /// For people.
    pub fn describe(&self, case: &Case) -> String {
        let mut lines = Vec::new();
        for (index, step) in case.steps.iter().enumerate().take(self.step + 1) {
            lines.push(format!(
                "{index}: {} {} {} {}{}",
                step.method, step.path, step.content_type, step.body, step.text
            ));
        }
        lines.push(format!("codes: real {} simulated {}", self.real.0, self.simulated.0));
        differing("", &self.real.1, &self.simulated.1, &mut lines);
        lines.extend(self.unmet.iter().map(|line| format!("real: {line}")));
        lines.join("\n")
    }
}
