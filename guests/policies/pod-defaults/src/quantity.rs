/// The smallest unit of a quantity: 10^-9.
const NANO_DIGITS: u32 = 9;

/// An amount of a resource, in units of 10^-9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Quantity(i128);

impl Quantity {
    /// Parses a quantity of Kubernetes, such as `1.5`, `250m`, `128Mi` or `1e3`. What is less than
    /// 10^-9 is left out. `None`: the text is no quantity, or too large a one.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-');
        let end = text.find(|c| !is_number(c)).unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let (is_negative, whole) = match whole.as_bytes().first() {
            Some(b'-') => (true, &whole[1..]),
            Some(b'+') => (false, &whole[1..]),
            _ => (false, whole),
        };
        let digits = format!("{whole}{fraction}");
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits: i128 = digits.parse().ok()?;
        let (factor, exponent) = scale(suffix)?;
        let fraction = i32::try_from(fraction.len()).ok()?;
        let exponent = exponent.checked_add_unsigned(NANO_DIGITS)?.checked_sub(fraction)?;
        let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
        let scaled = digits.checked_mul(factor)?;
        let nano = if exponent < 0 { scaled / power } else { scaled.checked_mul(power)? };
        Some(Self(if is_negative { -nano } else { nano }))
    }
}

/// Returns the factor and the power of ten of a suffix.
fn scale(suffix: &str) -> Option<(i128, i32)> {
    let binary = |power: u32| Some((1 << (10 * power), 0));
    match suffix {
        "n" => Some((1, -9)),
        "u" => Some((1, -6)),
        "m" => Some((1, -3)),
        "" => Some((1, 0)),
        "k" => Some((1, 3)),
        "M" => Some((1, 6)),
        "G" => Some((1, 9)),
        "T" => Some((1, 12)),
        "P" => Some((1, 15)),
        "E" => Some((1, 18)),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => suffix.strip_prefix(['e', 'E'])?.parse().ok().map(|exponent| (1, exponent)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_of_different_notations_are_compared() {
        let parse = |text: &str| Quantity::parse(text).unwrap();
        for (one, other) in [
            ("1", "1000m"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.", "1"),
            ("+1", "1"),
            ("1Ki", "1024"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1k"),
            ("1E3", "1k"),
            ("12E-1", "1200m"),
            ("1E", "1000P"),
            ("1000n", "1u"),
        ] {
            assert_eq!(parse(one), parse(other), "{one} and {other}");
        }
        assert!(parse("100m") < parse("1"));
        assert!(parse("128M") < parse("128Mi"));
        assert!(parse("-1") < parse("0"));
        assert!(parse("16Ei") > parse("15Ei"));
    }

    #[test]
    fn text_that_is_no_quantity_is_none() {
        for text in ["", "m", "-", ".", "1.2.3", "1 Gi", "1gi", "1-1", "e3", "1e", "1e99", "--1"] {
            assert_eq!(Quantity::parse(text), None, "{text:?}");
        }
        assert_eq!(Quantity::parse(&"9".repeat(60)), None);
    }
}
