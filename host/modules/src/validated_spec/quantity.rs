//! Quantities of bytes as users write them.

use std::fmt;

use crate::module::Quantity;

impl Quantity {
    /// The number of bytes; `None` if it is not one.
    pub fn bytes(&self) -> Option<u64> {
        let text = match self {
            Self::Number(bytes) => return Some(*bytes),
            Self::Text(text) => text.as_str(),
        };
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, suffix) = text.split_at(digits);
        let unit: u64 = match suffix {
            "" => 1,
            "k" => 1_000,
            "M" => 1_000_000,
            "G" => 1_000_000_000,
            "Ki" => 1 << 10,
            "Mi" => 1 << 20,
            "Gi" => 1 << 30,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(unit)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(bytes) => bytes.fmt(f),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}
