//! How large an expression may be. What is counted here is what the parser and the compiler recurse on without a limit
//! of their own, so this comes before them.

use minijinja::machinery::{Token, tokenize};

use crate::error::{ExpressionError, range};

/// Bytes of an expression or a template.
pub const TEXT: usize = 64 * 1024;
/// Bytes that a template may become, and that a filter may return.
pub const OUTPUT: usize = 256 * 1024;
/// Steps of one evaluation, marks included.
pub const STEPS: u64 = 100_000;
/// Tokens of one expression: every operator but a prefix brings two.
pub const TOKENS: usize = 512;
/// Square brackets of one expression: marking what they look up by its place nests as deep, and the compiler has a limit.
pub const SUBSCRIPTS: usize = 64;
/// Statements of one template.
pub const STATEMENTS: usize = 256;
/// Elements of a `range`.
pub const RANGE: usize = 10_000;
/// The largest number that anything may be multiplied by: `*` also repeats texts and lists.
pub const FACTOR: i64 = 1_000;

/// Whether a text is all expression, or has expressions in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Expression,
    Template,
}

/// Refuses a text that is too long or too intricate, or that has something besides tokens.
pub fn check(text: &str, form: Form) -> Result<(), ExpressionError> {
    if text.len() > TEXT {
        return Err(ExpressionError::new(format!("has {} bytes; at most {TEXT} are taken", text.len())));
    }
    let (mut tokens, mut subscripts, mut statements) = (0, 0, 0);
    for token in tokenize(text, form == Form::Expression, Default::default()) {
        let (token, span) = token.map_err(|error| ExpressionError::syntax(&error, text))?;
        match token {
            Token::VariableStart | Token::BlockStart => (tokens, subscripts) = (0, 0),
            _ => tokens += 1,
        }
        subscripts += usize::from(matches!(token, Token::BracketOpen));
        statements += usize::from(matches!(token, Token::BlockStart));
        let message = if tokens > TOKENS {
            format!("too intricate: an expression has at most {TOKENS} names, values and signs")
        } else if subscripts > SUBSCRIPTS {
            format!("too intricate: an expression has at most {SUBSCRIPTS} square brackets")
        } else if statements > STATEMENTS {
            format!("too intricate: a template has at most {STATEMENTS} statements")
        } else {
            continue;
        };
        return Err(ExpressionError::new(message).at(range(span)));
    }
    Ok(())
}
