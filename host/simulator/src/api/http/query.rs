//! The query of a request.

use percent_encoding::percent_decode_str;

/// The parameters of a request that the server knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

impl Query {
    /// Reads what follows the question mark.
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        Self { pairs: pairs.collect() }
    }

    /// The value of a parameter, empty if it is not there.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.pairs.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.pairs.iter().filter(move |(known, _)| known == name);
        named.map(|(_, value)| value.as_str())
    }

    /// Whether a parameter is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.pairs.iter().any(|(known, _)| known == name)
    }

    /// Changes the value of a parameter, if it is there.
    pub(crate) fn edit(&mut self, name: &str, change: impl Fn(&str) -> String) {
        for (_, value) in self.pairs.iter_mut().filter(|(known, _)| known == name) {
            *value = change(value);
        }
    }

    /// Whether a parameter is true, as Go parses a bool.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.has(name) && !matches!(self.get(name), "false" | "0" | "False" | "f" | "F")
    }

    /// Whether the request is a dry run.
    pub(crate) fn dry_run(&self) -> bool {
        self.get("dryRun") == "All"
    }
}
