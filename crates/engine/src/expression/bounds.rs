//! How large an expression may be. What is counted here is what the parser and the compiler recurse on without a limit
//! of their own, so this comes before them.

use minijinja::machinery::{Token, tokenize};

use super::error::{ExpressionError, range};

/// Bytes of an expression or a template.
pub const TEXT: usize = 64 * 1024;
/// Bytes that a template may become, and that a filter may return.
pub const OUTPUT: usize = 256 * 1024;
/// Steps of one evaluation, marks included.
pub const STEPS: u64 = 100_000;
/// Operators, dots and opening brackets of one expression.
pub const OPERATORS: usize = 256;
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

/// Refuses a text that is too long or too intricate.
pub fn check(text: &str, form: Form) -> Result<(), ExpressionError> {
    if text.len() > TEXT {
        return Err(ExpressionError::new(format!("has {} bytes; at most {TEXT} are taken", text.len())));
    }
    let (mut operators, mut statements) = (0, 0);
    // What is not a token at all is the parser's to complain about.
    for (token, span) in tokenize(text, form == Form::Expression, Default::default()).map_while(Result::ok) {
        match token {
            Token::VariableStart => operators = 0,
            Token::BlockStart => (operators, statements) = (0, statements + 1),
            token if nests(&token) => operators += 1,
            _ => {}
        }
        if operators > OPERATORS {
            let message = format!("too intricate: an expression has at most {OPERATORS} operators");
            return Err(ExpressionError::new(message).at(range(span)));
        }
        if statements > STATEMENTS {
            let message = format!("too intricate: a template has at most {STATEMENTS} statements");
            return Err(ExpressionError::new(message).at(range(span)));
        }
    }
    Ok(())
}

/// Refuses what has been parsed and is not all of the language: behind a text the parser forgets what is no token.
pub fn check_end(text: &str, form: Form) -> Result<(), ExpressionError> {
    let bad = tokenize(text, form == Form::Expression, Default::default()).find_map(Result::err);
    bad.map_or(Ok(()), |error| Err(ExpressionError::syntax(&error, text)))
}

fn nests(token: &Token<'_>) -> bool {
    match token {
        Token::Ident(word) => matches!(*word, "and" | "or" | "not" | "is" | "in" | "if" | "else"),
        Token::TemplateData(_)
        | Token::VariableStart
        | Token::VariableEnd
        | Token::BlockStart
        | Token::BlockEnd
        | Token::Str(_)
        | Token::String(_)
        | Token::Int(_)
        | Token::Int128(_)
        | Token::Float(_)
        | Token::Comma
        | Token::Colon
        | Token::Assign
        | Token::BracketClose
        | Token::ParenClose
        | Token::BraceClose => false,
        _ => true,
    }
}
