//! Methods of JavaScript that mean the same as something here.

use super::tokens::{Kind, Token, closing};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Includes,
    Get,
    StartsWith,
    EndsWith,
    Lower,
    Upper,
}

impl Method {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "includes" | "has" => Self::Includes,
            "get" => Self::Get,
            "startsWith" => Self::StartsWith,
            "endsWith" => Self::EndsWith,
            "toLowerCase" => Self::Lower,
            "toUpperCase" => Self::Upper,
            _ => return None,
        })
    }

    /// Whether it answers yes or no.
    fn asks(self) -> bool {
        matches!(self, Self::Includes | Self::StartsWith | Self::EndsWith)
    }

    /// Whether it is given something: one thing then, and nothing otherwise.
    fn is_given(self) -> bool {
        !matches!(self, Self::Lower | Self::Upper)
    }

    /// In our language.
    pub fn ours(self, value: &str, given: &str) -> String {
        match self {
            Self::Includes => format!("{given} in {value}"),
            Self::Get => format!("{value}[{given}]"),
            Self::StartsWith => format!("{value} is startingwith({given})"),
            Self::EndsWith => format!("{value} is endingwith({given})"),
            Self::Lower => format!("{value} | lower"),
            Self::Upper => format!("{value} | upper"),
        }
    }
}

/// A method that is called on a value with what it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub method: Method,
    /// Its brackets.
    pub open: usize,
    pub close: usize,
}

impl Call {
    /// The call that begins at a token, if it can be read.
    pub fn at(tokens: &[Token<'_>], place: usize) -> Option<Self> {
        let name = tokens.get(place).filter(|token| token.kind == Kind::Field)?;
        let (method, open) = (Method::named(name.text)?, place + 1);
        tokens.get(open).filter(|token| token.is("("))?;
        let close = closing(tokens, open);
        tokens.get(close).filter(|token| token.is(")"))?;
        let given = &tokens[open + 1..close];
        let is_given = given.iter().any(|token| token.kind != Kind::Space);
        let fits = is_given == method.is_given() && !outside_brackets(given).any(|(_, token)| token.is(","));
        (fits && has_value(tokens, place)).then_some(Self { method, open, close })
    }
}

/// Whether something is called in these tokens that answers yes or no.
pub fn asks(tokens: &[Token<'_>]) -> bool {
    outside_brackets(tokens).any(|(place, _)| Call::at(tokens, place).is_some_and(|call| call.method.asks()))
}

fn outside_brackets<'a, 't>(tokens: &'a [Token<'t>]) -> impl Iterator<Item = (usize, &'a Token<'t>)> {
    let mut depth = 0_usize;
    tokens.iter().enumerate().filter(move |(_, token)| {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    })
}

/// Whether a field is one of something.
fn has_value(tokens: &[Token<'_>], field: usize) -> bool {
    let mut before = tokens[..field].iter().rev().filter(|token| token.kind != Kind::Space);
    before.next().is_some_and(|token| token.is(".")) && before.next().is_some_and(Token::ends_a_value)
}
