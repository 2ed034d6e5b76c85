//! Hooks as lines of YAML.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Additions, Setting, Wanted, What};
use crate::config::Point;
use crate::text;

/// What is to be added, as if there were nothing yet.
pub fn fragment(additions: &Additions) -> String {
    let mut text = String::new();
    if !additions.hooks.is_empty() {
        text.push_str("hooks:\n");
        for (point, hooks) in by_point(additions) {
            text.push_str(&point_lines(point, &hooks, 2));
        }
    }
    for setting in &additions.settings {
        text.push_str(&setting_lines(*setting));
    }
    text
}

/// The hooks of each point, in the order in which the points come up.
pub fn by_point(additions: &Additions) -> Vec<(Point, Vec<&Wanted>)> {
    let mut points: Vec<(Point, Vec<&Wanted>)> = Vec::new();
    for hook in &additions.hooks {
        match points.iter_mut().find(|(point, _)| *point == hook.point) {
            Some((_, hooks)) => hooks.push(hook),
            None => points.push((hook.point, vec![hook])),
        }
    }
    points
}

/// A point and its list.
pub fn point_lines(point: Point, hooks: &[&Wanted], indent: usize) -> String {
    let mut text = format!("{:indent$}{point}:\n", "");
    for hook in hooks {
        text.push_str(&hook_lines(hook, indent + 2));
    }
    text
}

/// A hook as an entry of a list.
pub fn hook_lines(hook: &Wanted, indent: usize) -> String {
    let inner = indent + 2;
    let mut fields = Vec::new();
    match &hook.what {
        What::Command(command) => {
            fields.push(format!("name: {}", scalar(&hook.name, inner)));
            fields.push(format!("command: {}", scalar(command, inner)));
        }
        What::Http { url, headers } => {
            fields.push(format!("name: {}", scalar(&hook.name, inner)));
            let mut request = format!("http:\n{:1$}url: {url}", "", inner + 2, url = scalar(url, inner));
            if !headers.is_empty() {
                write!(request, "\n{:1$}headers:", "", inner + 2).expect("a string takes all text");
            }
            for (name, value) in headers {
                let line = format!("{}: {}", scalar(name, inner), scalar(value, inner));
                write!(request, "\n{:1$}{line}", "", inner + 4).expect("a string takes all text");
            }
            fields.push(request);
        }
        What::Use(builtin) => fields.push(format!("use: {builtin}")),
    }
    let field = |name: &str, value: Option<String>| value.map(|value| format!("{name}: {value}"));
    fields.extend(field("matcher", hook.matcher.as_deref().map(|text| scalar(text, inner))));
    fields.extend(field("timeout", hook.timeout.map(span)));
    fields.extend(field("pipe_output", hook.pipe_output.then(|| "true".to_owned())));
    fields.extend(field("priority", hook.priority.map(|priority| priority.to_string())));
    fields.extend(field("enabled", hook.enabled.map(|enabled| enabled.to_string())));
    fields.extend(field("description", hook.description.as_deref().map(|text| scalar(text, inner))));
    if !hook.metadata.is_empty() {
        let pairs = hook.metadata.iter().map(|(name, value)| {
            format!("\n{:1$}{name}: {value}", "", inner + 2, name = double_quoted(name), value = double_quoted(value))
        });
        fields.push(format!("metadata:{}", pairs.collect::<String>()));
    }
    let lines = fields.join(&format!("\n{:inner$}", ""));
    format!("{:indent$}- {lines}\n", "")
}

/// A setting at the top of the file.
pub fn setting_lines(setting: Setting) -> String {
    match setting {
        Setting::MaxHookRetries(_) => format!("limits:\n  {}", limit_line(setting)),
        Setting::NotStrict => "strict: false\n".to_owned(),
        Setting::CompleteAtLimit => "on_retry_limit: complete\n".to_owned(),
    }
}

/// A setting where its section is there.
pub fn limit_line(setting: Setting) -> String {
    match setting {
        Setting::MaxHookRetries(most) => format!("max_hook_retries: {most}\n"),
        other => setting_lines(other),
    }
}

/// A length of time with its unit.
fn span(time: Duration) -> String {
    match time.subsec_nanos() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_micros().div_ceil(1000)),
    }
}

/// A text as YAML writes it, at the end of a line whose map is indented so far.
fn scalar(text: &str, indent: usize) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    if let Some(block) = block(text, indent + 2) {
        return block;
    }
    let count = |signs: &[char]| text.chars().filter(|letter| signs.contains(letter)).count();
    // Whichever needs less of what nobody likes to read.
    match !text.chars().any(needs_escape) && count(&['\'']) <= count(&['"', '\\']) {
        true => format!("'{}'", text.replace('\'', "''")),
        false => double_quoted(text),
    }
}

/// Whether nobody could take it for anything but this text.
fn is_plain(text: &str) -> bool {
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/') || text.starts_with("./");
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '/' | ' ' | '-');
    let word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    begins && text.chars().all(plain) && !text.ends_with(' ') && !word.contains(&text.to_ascii_lowercase().as_str())
}

/// Several lines as they are.
fn block(text: &str, indent: usize) -> Option<String> {
    let (body, sign) = match text.strip_suffix('\n') {
        Some(body) => (body, "|"),
        None => (text, "|-"),
    };
    let odd = |letter: char| letter != '\n' && letter != '\t' && needs_escape(letter);
    let starts = |line: &str| line.starts_with([' ', '\t']) || line.is_empty();
    if !body.contains('\n') || body.ends_with('\n') || text.chars().any(odd) || body.lines().next().is_none_or(starts) {
        return None;
    }
    let lines = body.split('\n').map(|line| match line.is_empty() {
        true => "\n".to_owned(),
        false => format!("\n{:indent$}{line}", ""),
    });
    Some(format!("{sign}{}", lines.collect::<String>()))
}

/// What nobody can see, or YAML cannot hold: shown and written it is the same then.
fn needs_escape(letter: char) -> bool {
    text::is_treacherous(letter) || matches!(letter, '\u{fffe}' | '\u{ffff}')
}

fn double_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            letter if needs_escape(letter) && u32::from(letter) > 0xffff => {
                write!(quoted, "\\U{:08x}", u32::from(letter)).expect("a string takes all text");
            }
            letter if needs_escape(letter) => {
                write!(quoted, "\\u{:04x}", u32::from(letter)).expect("a string takes all text")
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Value};

    #[test]
    fn what_is_written_is_read_as_it_was() {
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
            let yaml = format!("hooks:\n    - command: {}\n      next: 1\n", scalar(text, 6));
            let tree = config::tree(&yaml).unwrap_or_else(|problem| panic!("{text:?}: {problem}\n{yaml}"));
            let Value::Map(top) = &tree.value else { panic!() };
            let Value::List(list) = &top[0].1.value else { panic!("{yaml}") };
            let Value::Map(fields) = &list[0].value else { panic!("{yaml}") };
            assert!(
                matches!(&fields[0].1.value, Value::Text(read) if read == text),
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
