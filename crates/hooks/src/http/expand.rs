//! Values from the environment in addresses and headers: `${NAME}` stands for a value, `$$` for a dollar.
//!
//! Invariants:
//! - Text from the environment is inserted as it is, and is never expanded again.
//! - An error names the variable, never a value.

use std::ffi::{OsStr, OsString};

use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExpandError {
    #[error("cannot fill in `${{{0}}}`: there is no such environment variable; set it where windlass is started")]
    Unset(String),
    #[error("cannot fill in `${{{0}}}`: the environment variable is empty; set it where windlass is started")]
    Empty(String),
    #[error("cannot fill in `${{{0}}}`: the environment variable is not valid UTF-8")]
    NotText(String),
    #[error("cannot read `${{{0}}}`: write only the name of an environment variable between the braces")]
    BadName(String),
    #[error("cannot read `${{`: its `}}` is missing; write `$$` for a dollar")]
    Unclosed,
    #[error("cannot read a single `$`: write `${{NAME}}` for an environment variable, or `$$` for a dollar")]
    SingleDollar,
}

/// Returns the text with its variables expanded.
pub fn expand_variables(text: &str, environment: &[(OsString, OsString)]) -> Result<String, ExpandError> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        rest = if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            after
        } else {
            let inner = after.strip_prefix('{').ok_or(ExpandError::SingleDollar)?;
            let (name, after) = inner.split_once('}').ok_or(ExpandError::Unclosed)?;
            expanded.push_str(lookup_variable(name, environment)?);
            after
        };
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn lookup_variable<'a>(name: &str, environment: &'a [(OsString, OsString)]) -> Result<&'a str, ExpandError> {
    let letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) || !name.chars().all(letter) {
        return Err(ExpandError::BadName(name.to_owned()));
    }
    // If a name is given twice, the later value overrides the earlier one.
    let (_, value) = environment
        .iter()
        .rfind(|(key, _)| key == OsStr::new(name))
        .ok_or_else(|| ExpandError::Unset(name.to_owned()))?;
    match value.to_str() {
        Some("") => Err(ExpandError::Empty(name.to_owned())),
        Some(value) => Ok(value),
        None => Err(ExpandError::NotText(name.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, ExpandError>) {
        let mut environment: Vec<(OsString, OsString)> =
            [("HOST", "hooks.test"), ("TOKEN", "first"), ("TOKEN", "s3${HOST}$"), ("EMPTY", "")]
                .map(|(name, value)| (name.into(), value.into()))
                .into();
        environment.push(("BYTES".into(), OsString::from_vec(vec![0xff])));
        assert_eq!(expand_variables(text, &environment), expected.map(str::to_owned), "{text}");
    }

    #[test]
    fn variables_are_expanded_once() {
        check("", Ok(""));
        check("plain", Ok("plain"));
        check("https://${HOST}/a", Ok("https://hooks.test/a"));
        check("Bearer ${TOKEN}", Ok("Bearer s3${HOST}$"));
        check("${HOST}${HOST}", Ok("hooks.testhooks.test"));
        check("$$5, $${HOST}, $$$$", Ok("$5, ${HOST}, $$"));
        check("$$${HOST}", Ok("$hooks.test"));
        check("a } and { b", Ok("a } and { b"));
    }

    #[test]
    fn expansion_error_names_variable() {
        check("${NONE}", Err(ExpandError::Unset("NONE".to_owned())));
        check("${EMPTY}", Err(ExpandError::Empty("EMPTY".to_owned())));
        check("${BYTES}", Err(ExpandError::NotText("BYTES".to_owned())));
        check("${}", Err(ExpandError::BadName(String::new())));
        check("${HOST:-x}", Err(ExpandError::BadName("HOST:-x".to_owned())));
        check("${1}", Err(ExpandError::BadName("1".to_owned())));
        check("${HOST", Err(ExpandError::Unclosed));
        check("$HOST", Err(ExpandError::SingleDollar));
        check("costs 5$", Err(ExpandError::SingleDollar));
    }

    #[test]
    fn messages_name_the_variable() {
        let error = expand_variables("${NONE}", &[]).expect_err("it is not there");
        assert!(error.to_string().starts_with("cannot fill in `${NONE}`: "), "{error}");
    }
}
