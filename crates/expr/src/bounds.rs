//! Size limits of expressions, checked before parsing: the parser and the compiler recurse without a limit of their own on what
//! this module counts.

use minijinja::machinery::{Token, tokenize};

use crate::error::{ExpressionError, span_range};

/// The maximum length of an expression or a template.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;
/// The maximum length of a rendered template and of a filter's result.
pub const MAX_OUTPUT_BYTES: usize = 256 * 1024;
/// The maximum number of steps of one evaluation, metering marks included.
pub const MAX_EVALUATION_STEPS: u64 = 100_000;
/// The maximum number of tokens of one expression. Every operator except a prefix brings two.
pub const MAX_EXPRESSION_TOKENS: usize = 512;
/// The maximum number of square brackets of one expression: metering marks for index lookups nest as deep, and the compiler has a
/// limit.
pub const MAX_SUBSCRIPTS: usize = 64;
/// The maximum number of statements of one template.
pub const MAX_TEMPLATE_STATEMENTS: usize = 256;
/// The maximum number of elements of a `range`.
pub const MAX_RANGE_ELEMENTS: usize = 10_000;
/// The largest factor of `*`, which also repeats texts and lists.
pub const MAX_FACTOR: i64 = 1_000;

/// How expressions stand in a text: the text is one expression, or a template contains some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceSyntax {
    Expression,
    Template,
}

/// Refuses a text that is too long, has too many parts, or does not tokenize.
pub fn check_bounds(text: &str, form: SourceSyntax) -> Result<(), ExpressionError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(ExpressionError::new(format!("has {} bytes; at most {MAX_TEXT_BYTES} are allowed", text.len())));
    }
    let (mut tokens, mut subscripts, mut statements) = (0, 0, 0);
    for token in tokenize(text, form == SourceSyntax::Expression, Default::default()) {
        let (token, span) = token.map_err(|error| ExpressionError::from_parser_error(&error, text))?;
        match token {
            Token::VariableStart | Token::BlockStart => (tokens, subscripts) = (0, 0),
            _ => tokens += 1,
        }
        subscripts += usize::from(matches!(token, Token::BracketOpen));
        statements += usize::from(matches!(token, Token::BlockStart));
        let message = if tokens > MAX_EXPRESSION_TOKENS {
            format!("too intricate: an expression has at most {MAX_EXPRESSION_TOKENS} names, values and signs")
        } else if subscripts > MAX_SUBSCRIPTS {
            format!("too intricate: an expression has at most {MAX_SUBSCRIPTS} square brackets")
        } else if statements > MAX_TEMPLATE_STATEMENTS {
            format!("too intricate: a template has at most {MAX_TEMPLATE_STATEMENTS} statements")
        } else {
            continue;
        };
        return Err(ExpressionError::new(message).with_range(span_range(span)));
    }
    Ok(())
}
