//! Quantities as the server writes them: `1000m` is `1`.

/// The canonical form of a quantity; `None` if it is none, or too much.
pub fn canonical(text: &str) -> Option<String> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|(index, one)| {
            !(one.is_ascii_digit() || *one == '.' || (*index == 0 && (*one == '+' || *one == '-')))
        })
        .map_or(text.len(), |(index, _)| index);
    let (number, suffix) = text.split_at(end);
    let negative = number.starts_with('-');
    let number = number.trim_start_matches(['+', '-']);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let mut mantissa: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let mut exponent = -i32::try_from(fraction.len()).ok()?;
    let form = match suffix {
        "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" => Form::Binary,
        "n" | "u" | "m" | "" | "k" | "M" | "G" | "T" | "P" | "E" => Form::Decimal,
        other => {
            exponent = exponent.checked_add(other.strip_prefix(['e', 'E'])?.parse().ok()?)?;
            Form::Exponent
        }
    };
    match suffix {
        "n" => exponent -= 9,
        "u" => exponent -= 6,
        "m" => exponent -= 3,
        "k" => exponent += 3,
        "M" => exponent += 6,
        "G" => exponent += 9,
        "T" => exponent += 12,
        "P" => exponent += 15,
        "E" => exponent += 18,
        _ => {}
    }
    if form == Form::Binary {
        let power = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|one| *one == suffix)?;
        mantissa = mantissa.checked_mul(1i128 << (10 * (power + 1)))?;
    }
    // Finer than a billionth is rounded up, by as many digits as 128 bits have.
    let digits_max = 39;
    if exponent < -9 - digits_max {
        mantissa = i128::from(mantissa != 0);
        exponent = -9 - digits_max;
    }
    while exponent < -9 {
        mantissa = mantissa / 10 + i128::from(mantissa % 10 != 0);
        exponent += 1;
    }
    let text = match form {
        Form::Binary => binary(mantissa, exponent),
        form => decimal(mantissa, exponent, form),
    }?;
    Some(if negative && mantissa != 0 { format!("-{text}") } else { text })
}

/// How many billionths a quantity in its canonical form is; `None` if it is none, or too much.
pub fn billionths(text: &str) -> Option<i128> {
    let end = text.find(|one: char| !(one.is_ascii_digit() || one == '-')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let number: i128 = number.parse().ok()?;
    let factor = match suffix {
        "n" => 1,
        "u" => 1_000,
        "m" => 1_000_000,
        "" => 1_000_000_000,
        other => {
            let decimal = ["k", "M", "G", "T", "P", "E"].iter().position(|one| *one == other);
            let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|one| *one == other);
            let power = |base: i128, index: usize| base.pow(u32::try_from(index + 1).unwrap_or(1));
            1_000_000_000
                * decimal
                    .map(|index| power(1000, index))
                    .or(binary.map(|index| power(1024, index)))?
        }
    };
    number.checked_mul(factor)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Binary,
    Decimal,
    Exponent,
}

fn binary(mut mantissa: i128, mut exponent: i32) -> Option<String> {
    while exponent < 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    if exponent < 0 {
        // Not whole: written in decimal.
        return decimal(mantissa, exponent, Form::Decimal);
    }
    if mantissa < 1024 {
        return Some(mantissa.to_string());
    }
    let mut power = 0;
    while mantissa % 1024 == 0 && power < 6 {
        mantissa /= 1024;
        power += 1;
    }
    Some(format!("{mantissa}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]))
}

fn decimal(mut mantissa: i128, mut exponent: i32, form: Form) -> Option<String> {
    if mantissa == 0 {
        return Some("0".to_owned());
    }
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent = exponent.checked_add(1)?;
    }
    while exponent.rem_euclid(3) != 0 || exponent > 18 {
        mantissa = mantissa.checked_mul(10)?;
        exponent -= 1;
    }
    if form == Form::Exponent {
        return Some(match exponent {
            0 => mantissa.to_string(),
            _ => format!("{mantissa}e{exponent}"),
        });
    }
    let suffix = match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    };
    Some(format!("{mantissa}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn quantities_are_printed_in_canonical_form() {
        for (given, wanted) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("100m", "100m"),
            ("1", "1"),
            ("1024Mi", "1Gi"),
            ("128Mi", "128Mi"),
            ("1000", "1k"),
            ("1500M", "1500M"),
            ("2000M", "2G"),
            ("0", "0"),
            ("1e3", "1e3"),
            ("0.1", "100m"),
            ("1.5Gi", "1536Mi"),
            ("-1500m", "-1500m"),
            ("512", "512"),
            ("1.0", "1"),
            ("10Ki", "10Ki"),
            ("1023", "1023"),
        ] {
            assert_eq!(canonical(given).as_deref(), Some(wanted), "{given}");
        }
        // Anything that is not zero is a billionth at least.
        assert_eq!(canonical("1.5e-2147483647").as_deref(), Some("1e-9"));
        assert_eq!(canonical("0e-400").as_deref(), Some("0"));
        for too_much in
            ["1e2147483647", "1.5e-2147483648", "340282366920938463463374607431768211455"]
        {
            assert_eq!(canonical(too_much), None, "{too_much}");
        }
        assert_eq!(canonical("abc"), None);
        assert_eq!(canonical("1x"), None);
    }
}
