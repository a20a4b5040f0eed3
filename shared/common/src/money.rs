//! Money: US dollars, exact to the cent.

use std::fmt;
use std::str::FromStr;

use rust_decimal::{Decimal, prelude::ToPrimitive};
use thiserror::Error;

use super::names::text_or_packed;

/// An amount in US dollars, exact to the cent and never negative.
///
/// It is written as a string with exactly two decimals (specification 1.2.2), and read with at most two
/// (specification 1.2.3). It has at most twelve digits before the point, so an amount in cents fits in 47 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(Decimal);

const MAX_WHOLE_DIGITS: usize = 12;
const MAX_CENTS: u64 = 10_u64.pow(MAX_WHOLE_DIGITS as u32 + 2) - 1;

/// Why a text is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UsdError {
    /// Not `[0-9]{1,12}(\.[0-9]{1,2})?`.
    #[error("must be a decimal string with at most twelve digits and two decimals, such as \"12.50\"")]
    Malformed,
    /// An amount, but below zero.
    #[error("must be 0.00 or more")]
    Negative,
    /// An amount, but above [`Usd::MAX`].
    #[error("must be {} or less", Usd::MAX)]
    TooLarge,
}

impl Usd {
    pub const ZERO: Self = Self(Decimal::ZERO);
    /// The smallest amount above zero.
    pub const CENT: Self = Self(Decimal::from_parts(1, 0, 0, false, 2));

    /// The largest amount: 999999999999.99.
    pub const MAX: Self = Self(Decimal::from_parts(MAX_CENTS as u32, (MAX_CENTS >> 32) as u32, 0, false, 2));

    pub fn from_cents(cents: u64) -> Self {
        Self(Decimal::from_i128_with_scale(i128::from(cents), 2))
    }

    /// The amount in cents.
    pub fn cents(self) -> u64 {
        (self.0 * Decimal::ONE_HUNDRED).to_u64().unwrap_or(u64::MAX)
    }

    /// The amount as a plain decimal, for arithmetic with fractions of a cent (means, medians).
    pub fn decimal(self) -> Decimal {
        self.0
    }

    /// Rounds a computed amount half-even to cents. A negative amount becomes zero.
    pub fn rounded(amount: Decimal) -> Self {
        Self(amount.round_dp(2).max(Decimal::ZERO))
    }
}

impl FromStr for Usd {
    type Err = UsdError;

    fn from_str(text: &str) -> Result<Self, UsdError> {
        match text.strip_prefix('-') {
            None => amount(text).map(Self),
            Some(rest) => Err(match amount(rest) {
                Err(UsdError::Malformed) => UsdError::Malformed,
                _ => UsdError::Negative,
            }),
        }
    }
}

fn amount(text: &str) -> Result<Decimal, UsdError> {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(w, f)| (w, Some(f)));
    let digits = |s: &str, max: usize| (1..=max).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole, usize::MAX) || !fraction.is_none_or(|f| digits(f, 2)) {
        return Err(UsdError::Malformed);
    }
    if whole.trim_start_matches('0').len() > MAX_WHOLE_DIGITS {
        return Err(UsdError::TooLarge);
    }
    if whole.len() > MAX_WHOLE_DIGITS {
        return Err(UsdError::Malformed);
    }
    Decimal::from_str_exact(text).map_err(|_| UsdError::Malformed)
}

impl TryFrom<String> for Usd {
    type Error = UsdError;

    fn try_from(text: String) -> Result<Self, UsdError> {
        text.parse()
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}", self.0)
    }
}

text_or_packed!(Usd, u64, |usd| usd.cents(), Usd::from_cents);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_grammar_is_accepted() {
        for bad in ["", "1e3", "NaN", "1.234", "+1", ".5", "1.", "1,5", " 1", "1 ", "١", "0000000000001", "--1", "-"] {
            assert_eq!(bad.parse::<Usd>(), Err(UsdError::Malformed), "{bad}");
        }
        for below in ["-1", "-0.01", "-0", "-1234567890123"] {
            assert_eq!(below.parse::<Usd>(), Err(UsdError::Negative), "{below}");
        }
        for above in ["1000000000000", "1000000000000.00", "01234567890123.5", &"9".repeat(100)] {
            assert_eq!(above.parse::<Usd>(), Err(UsdError::TooLarge), "{above}");
        }
        assert_eq!("999999999999.99".parse::<Usd>(), Ok(Usd::MAX));
        assert_eq!((Usd::MAX.cents(), Usd::MAX.to_string()), (99_999_999_999_999, "999999999999.99".to_owned()));
        assert_eq!("007.5".parse::<Usd>().unwrap().to_string(), "7.50");
    }

    #[test]
    fn rounding_is_half_even() {
        let rounded = |text: &str| Usd::rounded(Decimal::from_str_exact(text).unwrap()).to_string();
        assert_eq!(rounded("0.005"), "0.00");
        assert_eq!(rounded("0.015"), "0.02");
        assert_eq!(rounded("0.025"), "0.02");
        assert_eq!(rounded("-0.01"), "0.00");
    }

    proptest! {
        #[test]
        fn cents_survive_the_wire(cents in 0u64..=99_999_999_999_999) {
            let text = Usd::from_cents(cents).to_string();
            prop_assert_eq!(&text, &format!("{}.{:02}", cents / 100, cents % 100));
            prop_assert_eq!(text.parse::<Usd>().unwrap().cents(), cents);
            prop_assert_eq!(serde_json::to_string(&Usd::from_cents(cents)).unwrap(), format!("\"{text}\""));
        }

        #[test]
        fn order_is_that_of_the_cents(a in 0u64..10_000, b in 0u64..10_000) {
            prop_assert_eq!(Usd::from_cents(a).cmp(&Usd::from_cents(b)), a.cmp(&b));
        }

        #[test]
        fn any_text_is_refused_or_shown_as_two_decimals(text in "\\PC{0,16}") {
            if let Ok(usd) = text.parse::<Usd>() {
                let shown = usd.to_string();
                let (_, decimals) = shown.split_once('.').unwrap();
                prop_assert_eq!(decimals.len(), 2);
            }
        }
    }
}
