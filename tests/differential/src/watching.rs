//! Random watches. What follows a watch's beginning is over at the event of a mark that was written
//! last: so no watch need run out, and none is cut short on a slow machine.

use serde_json::{Value, json};

use crate::case::Step;
use crate::maker::Maker;
use crate::query::encoded;
use crate::shapes::Shape;

/// How long a watch may take that gets no mark.
pub(crate) const SHORT: &str = "timeoutSeconds=2";
/// The same of one that gets a mark, if what bears it is accepted.
pub(crate) const LONG: &str = "timeoutSeconds=60";
/// What a watch that begins with what is there sends after that.
const END: &str = "k8s.io/initial-events-end";
/// The object that is made last. No name is behind it.
const LAST: &str = "zed";

/// Where a watch begins.
#[derive(Clone, Copy, PartialEq)]
enum From {
    /// At the version of a list.
    List,
    /// With what is there.
    Present(&'static str),
    /// The same, with a word about where that ends.
    Initial(&'static str),
    /// It does not: what is asked for is wrong.
    Nowhere(&'static str),
}

impl Maker<'_> {
    fn from(&mut self) -> From {
        match self.rng.u8(..20) {
            8 => From::Present(""),
            9 => From::Present("&resourceVersion=0"),
            10 => From::Present("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
            11 | 12 => From::Initial(""),
            13 => From::Initial("&resourceVersion=0"),
            14 | 15 => From::Initial("&resourceVersion={rv:list}"),
            16 => From::Nowhere(
                [
                    "&sendInitialEvents=true",
                    "&sendInitialEvents=false&resourceVersionMatch=Exact",
                    "&resourceVersionMatch=NotOlderThan",
                    "&resourceVersion=x",
                    "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x",
                ][self.rng.usize(..5)],
            ),
            _ => From::List,
        }
    }

    /// What comes after the steps of a case that is watched: the last writes and the watch. The
    /// list where it begins is put among the steps.
    pub(crate) fn watch(&mut self, steps: &mut Vec<Step>) {
        let collection = self.subject.path.clone();
        let first = format!("{collection}?labelSelector=run={{s}}");
        let place = self.rng.usize(..=steps.len());
        steps.insert(place, self.make("GET", first, "", Value::Null, "list"));
        // The last list is where the watch begins.
        let rest = steps.split_off(place + 1);
        steps.extend(
            rest.into_iter()
                .filter(|step| !step.path.starts_with(&format!("{collection}?labelSelector"))),
        );
        let from = self.from();
        let one_only = self.one_in(6) && from == From::List;
        let of_kind = !one_only && self.one_in(6);
        let fields = if one_only {
            "&fieldSelector=metadata.name=one{s}".to_owned()
        } else if of_kind {
            format!("&{}", self.field_selector())
        } else if self.one_in(6) {
            encoded("&fieldSelector=metadata.name!=two{s},metadata.namespace={n}")
        } else {
            String::new()
        };
        // What the last object has, whose labels all of these fit.
        let labels = ["", "", ",app=a", ",app in (a,b)", ",tier"][self.rng.usize(..5)];
        steps.push(self.last());
        if one_only {
            let body = json!({"metadata": {"labels": {"run": "{s}", "app": "a", "tier": "a"}, "annotations": {"mark": "{s}"}}});
            let path = self.path("one", "?fieldManager=last");
            steps.push(self.make(
                "PATCH",
                path,
                "application/merge-patch+json",
                body,
                "merge patch",
            ));
        }
        let bookmarks = if self.one_in(3) { "&allowWatchBookmarks=true" } else { "" };
        let (version, until) = match from {
            From::List => (format!("&resourceVersion={{rv:list}}{bookmarks}"), "\"mark\":\"{s}\""),
            From::Present(query) => (query.to_owned(), "\"mark\":\"{s}\""),
            From::Initial(query) => (
                format!(
                    "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true{query}"
                ),
                END,
            ),
            From::Nowhere(query) => (query.to_owned(), ""),
        };
        // The wait is short for a mark that may not arrive.
        let certain = until == END || one_only || fields.is_empty();
        let time = if certain { LONG } else { SHORT };
        let labels = encoded(&format!("labelSelector=run={{s}}{labels}"));
        let path = format!("{collection}?{labels}{fields}&watch=true&{time}{version}");
        let mut step = self.make("GET", path, "", Value::Null, "watch");
        until.clone_into(&mut step.until);
        steps.push(step);
    }

    /// Makes the last object.
    fn last(&mut self) -> Step {
        let mut object = self.right_object(LAST);
        // What need not be there cannot be wrong.
        if matches!(self.subject.content, Shape::Some(_)) {
            object = json!({"apiVersion": object["apiVersion"], "kind": object["kind"]});
        }
        object["metadata"] = json!({
            "name": format!("{LAST}{{s}}"),
            "labels": {"run": "{s}", "app": "a", "tier": "a"},
            "annotations": {"mark": "{s}"},
        });
        let path = format!("{}?fieldManager=last", self.subject.path);
        self.make("POST", path, "", object, "create")
    }
}
