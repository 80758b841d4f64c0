//! What the members of an object may be, and the kinds that random requests are about.

use fastrand::Rng;
use serde_json::{Map, Value};

/// What a member may be.
#[derive(Clone, Debug)]
pub enum Shape {
    /// One of these.
    One(Vec<Value>),
    /// A list of these.
    List(Box<Shape>),
    /// A list whose items have these keys, and more.
    Keyed(Vec<(&'static str, Shape)>, Vec<(&'static str, Shape)>),
    /// A map with any of these keys.
    Map(Vec<&'static str>, Box<Shape>),
    /// Some of these members.
    Some(Vec<(&'static str, Shape)>),
    /// These members and some of the others.
    Must(Vec<(&'static str, Shape)>, Vec<(&'static str, Shape)>),
}

/// A kind.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Of the API version.
    pub api_version: &'static str,
    /// Its name in objects.
    pub kind: &'static str,
    /// Where its collection is.
    pub path: String,
    /// Members but metadata.
    pub content: Shape,
    /// Of the status, if it is a subresource.
    pub status: Option<Shape>,
    /// Whether strategic merge patches are served.
    pub strategic: bool,
}

/// A value of a shape.
pub fn value(shape: &Shape, rng: &mut Rng) -> Value {
    match shape {
        Shape::One(values) => values[rng.usize(..values.len())].clone(),
        Shape::List(inner) => (0..rng.usize(..4)).map(|_| value(inner, rng)).collect(),
        Shape::Keyed(keys, rest) => {
            let mut items: Vec<Value> = Vec::new();
            for _ in 0..rng.usize(..4) {
                let mut item = Map::new();
                for (name, shape) in keys {
                    // A key that has a default may be left out.
                    if keys.len() == 1 || *name == keys[0].0 || rng.u8(..3) > 0 {
                        item.insert((*name).to_owned(), value(shape, rng));
                    }
                }
                let key = |item: &Value| {
                    keys.iter().map(|(name, _)| item[*name].to_string()).collect::<Vec<_>>()
                };
                some(rest, &mut item, rng);
                let item = Value::Object(item);
                // The same item twice is a mistake, and made now and then.
                if rng.u8(..40) == 0 || !items.iter().any(|known| key(known) == key(&item)) {
                    items.push(item);
                }
            }
            items.into()
        }
        Shape::Map(keys, inner) => {
            let mut map = Map::new();
            for key in keys {
                if rng.bool() {
                    map.insert((*key).to_owned(), value(inner, rng));
                }
            }
            map.into()
        }
        Shape::Some(members) => {
            let mut map = Map::new();
            some(members, &mut map, rng);
            map.into()
        }
        Shape::Must(must, rest) => {
            let mut map = Map::new();
            for (name, shape) in must {
                map.insert((*name).to_owned(), value(shape, rng));
            }
            some(rest, &mut map, rng);
            map.into()
        }
    }
}

fn some(members: &[(&'static str, Shape)], map: &mut Map<String, Value>, rng: &mut Rng) {
    for (name, shape) in members {
        if rng.u8(..3) == 0 {
            map.insert((*name).to_owned(), value(shape, rng));
        }
    }
}
