//! The path of a walk through a document, written as a text only for an error.

use std::fmt;

/// One step on the way.
#[derive(Clone, Copy)]
pub(crate) enum Step<'a> {
    /// A member of a map.
    Member(&'a str),
    /// An item of a list, by its place.
    Item(usize),
    /// Written as it is.
    Text(&'a dyn fmt::Display),
}

/// The last step, and where it was made from.
#[derive(Clone, Copy)]
pub(crate) struct FieldPath<'a> {
    above: Option<&'a FieldPath<'a>>,
    step: Step<'a>,
}

impl<'a> FieldPath<'a> {
    /// The document itself, or what has this name.
    pub(crate) fn root(name: &'a str) -> Self {
        Self { above: None, step: Step::Member(name) }
    }

    /// A step further.
    pub(crate) fn then(&'a self, step: Step<'a>) -> Self {
        Self { above: Some(self), step }
    }

    /// A member further.
    pub(crate) fn member(&'a self, name: &'a str) -> Self {
        self.then(Step::Member(name))
    }

    /// An item further.
    pub(crate) fn item(&'a self, index: usize) -> Self {
        self.then(Step::Item(index))
    }

    fn is_root(&self) -> bool {
        self.above.is_none() && matches!(self.step, Step::Member(""))
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(f)?;
        }
        match self.step {
            Step::Member(name) if self.above.is_none_or(FieldPath::is_root) => f.write_str(name),
            Step::Member(name) => write!(f, ".{name}"),
            Step::Item(index) => write!(f, "[{index}]"),
            Step::Text(text) => write!(f, "{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_printed_as_in_field_errors() {
        let root = FieldPath::root("");
        let spec = root.member("spec");
        let ports = spec.member("ports");
        let first = ports.item(0);
        assert_eq!(first.member("name").to_string(), "spec.ports[0].name");
        assert_eq!(ports.then(Step::Text(&"[port=80]")).to_string(), "spec.ports[port=80]");
        assert_eq!(FieldPath::root("metadata").member("name").to_string(), "metadata.name");
        assert_eq!(root.to_string(), "");
    }
}
