//! Writes imported hooks as YAML.

use std::time::Duration;

use serde_json::json;
use windlass_engine::HookPoint;
use windlass_text as text;

use super::{ConfigAdditions, ImportedAction, ImportedHook, ImportedSetting};

/// Writes additions as a configuration fragment.
pub fn write_fragment(additions: &ConfigAdditions) -> String {
    let mut points: Vec<(HookPoint, String)> = Vec::new();
    for hook in &additions.hooks {
        match points.iter_mut().find(|(point, _)| *point == hook.point) {
            Some((_, lines)) => *lines += &write_hook(hook),
            None => points.push((hook.point.clone(), write_hook(hook))),
        }
    }
    let mut text = if points.is_empty() { String::new() } else { "hooks:\n".to_owned() };
    text.extend(points.into_iter().map(|(point, lines)| format!("  {point}:\n{lines}")));
    text.extend(additions.settings.iter().map(|setting| match setting {
        ImportedSetting::MaxHookRetries(most) => format!("limits:\n  max_hook_retries: {most}\n"),
        ImportedSetting::NotStrict => "strict: false\n".to_owned(),
        ImportedSetting::CompleteAtLimit => "on_retry_limit: complete\n".to_owned(),
    }));
    text
}

/// Writes a hook as an entry of the list of a point.
fn write_hook(hook: &ImportedHook) -> String {
    let mut fields = Vec::new();
    let mut field = |name: &str, value: Option<String>| fields.extend(value.map(|value| format!("{name}: {value}")));
    match &hook.what {
        ImportedAction::Command(command) => {
            field("name", Some(write_scalar(&hook.name)));
            field("command", Some(write_block_scalar(command).unwrap_or_else(|| write_scalar(command))));
        }
        ImportedAction::Use(builtin) => field("use", Some(builtin.to_string())),
    }
    field("matcher", hook.matcher.as_deref().map(write_scalar));
    field("timeout", hook.timeout.map(write_duration));
    field("pipe_output", hook.pipe_output.then(|| "true".to_owned()));
    field("priority", hook.priority.map(|priority| priority.to_string()));
    field("enabled", hook.enabled.map(|enabled| enabled.to_string()));
    field("description", hook.description.as_deref().map(write_scalar));
    if !hook.metadata.is_empty() {
        let pairs = hook.metadata.iter().map(|(name, value)| format!("\n        {}: {}", scalar(name), scalar(value)));
        fields.push(format!("metadata:{}", pairs.collect::<String>()));
    }
    format!("    - {}\n", fields.join("\n      "))
}

/// Writes a duration with its unit.
fn write_duration(time: Duration) -> String {
    match time.subsec_nanos() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_micros().div_ceil(1000)),
    }
}

/// Writes a text on one line.
fn write_scalar(text: &str) -> String {
    match text {
        _ if is_plain_scalar(text) => text.to_owned(),
        _ if text.contains('\'') || text.chars().any(needs_escape) => quote_with_escapes(text),
        _ => format!("'{text}'"),
    }
}

/// Returns whether YAML reads the unquoted text as this text.
fn is_plain_scalar(text: &str) -> bool {
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/') || text.starts_with("./");
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '/' | ' ' | '-');
    let word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    begins && text.chars().all(plain) && !text.ends_with(' ') && !word.contains(&text.to_ascii_lowercase().as_str())
}

/// Writes a text of several lines as a block scalar, if that is possible.
fn write_block_scalar(text: &str) -> Option<String> {
    let (body, sign) = match text.strip_suffix('\n') {
        Some(body) => (body, "|"),
        None => (text, "|-"),
    };
    let odd = |letter: char| letter != '\n' && letter != '\t' && needs_escape(letter);
    if !body.contains('\n') || body.ends_with('\n') || body.starts_with([' ', '\t', '\n']) || body.chars().any(odd) {
        return None;
    }
    let lines =
        body.split('\n').map(|line| if line.is_empty() { "\n".to_owned() } else { format!("\n        {line}") });
    Some(format!("{sign}{}", lines.collect::<String>()))
}

/// Returns whether a character is invisible or not allowed in YAML. Escaped, it is the same in the file and on a terminal.
fn needs_escape(letter: char) -> bool {
    text::is_unsafe_character(letter) || matches!(letter, '\u{fffe}' | '\u{ffff}')
}

fn quote_with_escapes(text: &str) -> String {
    let mut quoted = String::new();
    for letter in json!(text).to_string().chars() {
        match needs_escape(letter) {
            true => quoted.push_str(&format!("\\U{:08x}", u32::from(letter))),
            false => quoted.push(letter),
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeValue;

    #[test]
    fn written_scalar_parses_to_same_text() {
        for text in [
            "./check.sh --all",
            "npm test",
            "true",
            "Yes",
            "12",
            "1e3",
            "0x1",
            "~",
            "null",
            "- a",
            "a: b",
            "a #b",
            "#a",
            "'",
            "\"",
            "a'b\"c\\d",
            "it's",
            "\ta",
            " a ",
            "a ",
            "",
            "a\nb",
            "a\nb\n",
            "a\n\n  b\n",
            "a\nb\n\n",
            "\na\nb",
            "  a\nb",
            "a\n\tb",
            "a\r\nb",
            "é 😀",
            "\u{1b}[31m",
            "\u{85}\u{2028}",
            "\u{feff}a",
            "a\u{202e}b\u{200b}",
            "\u{e0041}",
            "{a: b}",
            "[a]",
            "*a",
            "&a",
            "!a",
            "|",
            "> x",
            "%a",
            "@a",
            "`a`",
            "a\n# b\n#c",
            "---",
            "...",
            "a\n---\nb",
            "? a",
            ": a",
            "-",
            "if true; then\n  echo 'x: y'\nfi",
        ] {
            let command = write_block_scalar(text).unwrap_or_else(|| write_scalar(text));
            let yaml = format!("hooks:\n    - command: {command}\n      {}: 1\n", scalar(text));
            let tree = crate::tree(&yaml).unwrap_or_else(|problem| panic!("{text:?}: {problem}\n{yaml}"));
            let NodeValue::Map(top) = &tree.value else { panic!() };
            let NodeValue::List(list) = &top[0].1.value else { panic!("{yaml}") };
            let NodeValue::Map(fields) = &list[0].value else { panic!("{yaml}") };
            assert!(
                matches!(&fields[0].1.value, NodeValue::Text(read) if read == text),
                "{text:?}\n{yaml}\n{:?}",
                fields[0].1
            );
            assert_eq!(fields.len(), 2, "{yaml}");
        }
    }

    #[test]
    fn times_have_their_unit() {
        assert_eq!(span(Duration::from_secs(30)), "30s");
        assert_eq!(span(Duration::from_millis(500)), "500ms");
        assert_eq!(span(Duration::from_millis(1500)), "1500ms");
        assert_eq!(span(Duration::from_secs_f64(0.0001)), "1ms");
    }
}
