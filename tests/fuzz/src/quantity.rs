//! Quantities: those of a Module's limits, and those of the simulator.

use innkeeper_modules::module::Quantity;
use innkeeper_simulator::quantity::{billionths, canonical};

/// Reads quantities, one a line. Each is printed in one way only and keeps its order; the two
/// readers agree on what both understand.
pub fn fuzz_entry(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let quantities: Vec<(&str, i128)> = text.lines().take(16).filter_map(check).collect();
    // The same order as that of the canonical texts' amounts, whatever the suffixes are.
    for (one, amount) in &quantities {
        for (other, more) in &quantities {
            if let (Some(one), Some(other)) = (exact(one), exact(other)) {
                assert_eq!(one.cmp(&other), amount.cmp(more), "{one} and {other}");
            }
        }
    }
}

/// Gives the amount that a quantity has by its canonical text, in billionths.
fn check(text: &str) -> Option<(&str, i128)> {
    let bytes = Quantity::Text(text.to_owned()).bytes();
    let printed = canonical(text);
    if let Some(bytes) = bytes {
        let amount = exact(text).expect("a number of bytes is a quantity");
        assert_eq!(i128::from(bytes) * 1_000_000_000, amount, "{text}");
        assert!(printed.is_some(), "{text} is a number of bytes and no quantity");
    }
    let printed = printed?;
    assert_eq!(canonical(&printed).as_deref(), Some(printed.as_str()), "of {text}");
    assert!(printed.len() <= 64, "{text} is printed as {printed}");
    let amount = billionths(&printed)?;
    if let Some(exact) = exact(text) {
        assert_eq!(amount, exact, "{text} is printed as {printed}");
    }
    Some((text, amount))
}

/// The amount in billionths, read the slow way; `None` if it is not a whole number of them, has an
/// exponent, or is too large.
fn exact(text: &str) -> Option<i128> {
    let text = text.trim();
    let (negative, text) = match text.split_at_checked(1) {
        Some(("-", rest)) => (true, rest),
        Some(("+", rest)) => (false, rest),
        _ => (false, text),
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let factor: i128 = match suffix {
        "n" => 1,
        "u" => 1_000,
        "m" => 1_000_000,
        "" => 1_000_000_000,
        _ => {
            let (base, letter) =
                suffix.strip_suffix('i').map_or((1000_i128, suffix), |letter| (1024, letter));
            let letters = if base == 1000 { "kMGTPE" } else { "KMGTPE" };
            let power = (letter.len() == 1).then(|| letters.find(letter)).flatten()?;
            1_000_000_000_i128.checked_mul(base.pow(u32::try_from(power).ok()? + 1))?
        }
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let amount = digits.checked_mul(factor)?;
    let amount = (amount % scale == 0).then_some(amount / scale)?;
    Some(if negative { -amount } else { amount })
}
