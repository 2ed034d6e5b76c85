//! Laws of the code in this crate that reads external text, for any input. For tests and fuzzing only.
//!
//! Each law takes bytes and panics if the law does not hold. Some laws need several texts: a byte that occurs in no text
//! separates them.

mod shell;
mod shell_pieces;

use std::time::Duration;

use serde_json::Value;
use windlass_engine::{EngineLimits, EventContext, HookOutcome, HookReport};
use windlass_process::{CapturedOutput, ProgramExit, ProgramOutcome};

use crate::mask::{MIN_SECRET_BYTES, MaskedStream as MaskStream};
use crate::secret_encodings::encode_secret_value;
use crate::{
    HookRole, HookScript, InputChannel, MaskedDisplayStream, PipeOutput, RunnableHook, RunnableKind, ScriptValues,
    SecretMask, build_report, clean_output, excerpt_text, response,
};

pub use shell::check_shell_safety;

/// The separator between the texts of an input.
const TEXT_SEPARATOR: u8 = 0xff;

/// Checks that cleaned text contains no terminal control characters, that clean text does not change, and that an excerpt is
/// not longer than its limit.
pub fn check_clean_text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let cleaned = clean_output(&text);
    let is_terminal_control = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    assert!(!cleaned.contains(is_terminal_control), "{cleaned:?}");
    assert_eq!(clean_output(&cleaned), cleaned, "cleaning twice is cleaning once");
    if !text.contains(is_terminal_control) {
        assert_eq!(cleaned, text, "what is clean stays as it is");
    }
    for limit in [0, 1, 20, 40, 100, 1000, text.len(), text.len() + 1] {
        let excerpt = excerpt_text(&text, limit);
        assert!(excerpt.len() <= limit, "{} bytes, not {limit}", excerpt.len());
        if text.len() <= limit {
            assert_eq!(excerpt, text, "what fits is not touched");
        }
    }
}

/// Checks that the mask replaces every encoding of a value and no other text, for any split of the text into chunks. In
/// displayed text, the mask also replaces values that appear only after cleaning.
pub fn check_secret_mask(bytes: &[u8]) {
    let mut parts = bytes.splitn(3, |byte| *byte == TEXT_SEPARATOR);
    let mut next = || parts.next().unwrap_or_default();
    let (one, two, text) = (next(), next(), next());
    let mask = SecretMask::new([("ONE", one), ("TWO", two)]);
    let values = EncodedSecrets::encode([("ONE", one), ("TWO", two)]);
    let plain = stream_in_chunks(text, text.len(), (mask.stream(), MaskStream::push, MaskStream::finish));
    values.check(text, &plain);
    let cleaned = clean_output(&String::from_utf8_lossy(&plain));
    let shown_text = stream_in_chunks(
        text,
        text.len(),
        (mask.open_display_stream(), MaskedDisplayStream::push, MaskedDisplayStream::finish),
    );
    match values.0.is_empty() {
        true => assert_eq!(shown_text, text, "nothing to look for"),
        false => values.check(cleaned.as_bytes(), &shown_text),
    }
    // Bytes stay as they are, unless they hide a value. A value that only a marker and the text beside it spell is not hidden.
    let hides = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\t') || *byte == 0xc2;
    let can_hide = plain.iter().any(hides) || str::from_utf8(&plain).is_err();
    let hides_value = can_hide && values.0.iter().any(|(_, form)| contains_bytes(form, cleaned.as_bytes()));
    let masked = mask.mask_bytes(text);
    assert_eq!(escape_bytes(&masked), escape_bytes(if hides_value { &shown_text } else { &plain }));
    for size in [1, 3, 7, 64] {
        let streamed = stream_in_chunks(text, size, (mask.stream(), MaskStream::push, MaskStream::finish));
        assert_eq!(escape_bytes(&streamed), escape_bytes(&plain), "in pieces of {size}");
        let streamed = stream_in_chunks(
            text,
            size,
            (mask.open_display_stream(), MaskedDisplayStream::push, MaskedDisplayStream::finish),
        );
        assert_eq!(escape_bytes(&streamed), escape_bytes(&shown_text), "shown in pieces of {size}");
    }
    let named = format!("Mask {{ markers: [{:?}, {:?}], .. }}", values.marker("ONE"), values.marker("TWO"));
    assert!(named.len() >= format!("{mask:?}").len(), "only names are printed: {mask:?}");
    check_gap(&mask, text, &values);
}

/// Returns the result for a text that comes in chunks of a size.
fn stream_in_chunks<S>(
    text: &[u8],
    size: usize,
    (mut stream, push, finish): (S, impl Fn(&mut S, &[u8]) -> Vec<u8>, impl FnOnce(S) -> Vec<u8>),
) -> Vec<u8> {
    let mut streamed: Vec<u8> = text.chunks(size.max(1)).flat_map(|piece| push(&mut stream, piece)).collect();
    streamed.extend(finish(stream));
    streamed
}

/// Checks that no part of a value remains at the edges of a gap in the output.
fn check_gap(mask: &SecretMask, text: &[u8], values: &EncodedSecrets) {
    let (head, tail) = text.split_at(text.len() / 2);
    let total = text.len() as u64 + 1000;
    let stdout = CapturedOutput { head: head.to_vec(), tail: tail.to_vec(), total, spilled: None };
    let kept = mask.mask_run(program_outcome(ProgramExit::Code(0), stdout)).stdout;
    let missing = kept.omitted_byte_count();
    assert!(missing >= 1000 || values.0.is_empty(), "{missing} bytes are missing");
    for (_, form) in values.0.iter().filter(|(_, form)| *form == text) {
        assert!(kept.head.is_empty() && kept.tail.is_empty(), "a part of {} is left", escape_bytes(form));
    }
}

/// All encodings of two secret values, each with the name of its value.
struct EncodedSecrets(Vec<(&'static str, Vec<u8>)>);

impl EncodedSecrets {
    fn encode(values: [(&'static str, &[u8]); 2]) -> Self {
        let long = values.map(|(name, value)| (name, value.trim_ascii())).into_iter();
        let long = long.filter(|(_, value)| value.len() >= MIN_SECRET_BYTES);
        Self(
            long.flat_map(|(name, value)| encode_secret_value(value).into_iter().map(move |form| (name, form)))
                .collect(),
        )
    }

    fn marker(&self, name: &str) -> String {
        let all = [format!("[secret {name}]"), "[secret]".to_owned(), "[***]".to_owned(), "[...]".to_owned()];
        let contains_marker = |marker: &String| self.0.iter().any(|(_, form)| contains_bytes(form, marker.as_bytes()));
        all.into_iter().find(|marker| !contains_marker(marker)).unwrap_or_default()
    }

    /// Searches for every encoding in the simplest way, and checks that a marker replaces each match.
    fn check(&self, text: &[u8], mut masked: &[u8]) {
        let mut found: Vec<(usize, usize, &str)> = Vec::new();
        for (name, form) in &self.0 {
            let places = text.windows(form.len()).enumerate().filter(|(_, window)| window == form);
            found.extend(places.map(|(at, _)| (at, at + form.len(), *name)));
        }
        found.sort_by_key(|(start, end, _)| (*start, usize::MAX - end));
        let mut at = 0;
        for (index, (start, end, name)) in found.iter().enumerate() {
            if *start >= at {
                masked = masked.strip_prefix(&text[at..*start]).expect("what is no value is not changed");
                // If two values look the same, either may give its name.
                let same = found[index + 1..].iter().take_while(|other| (other.0, other.1) == (*start, *end));
                let names = std::iter::once(*name).chain(same.map(|other| other.2));
                let rest = names.into_iter().find_map(|name| masked.strip_prefix(self.marker(name).as_bytes()));
                masked = rest.expect("a marker stands for a value");
            }
            at = at.max(*end);
        }
        assert_eq!(escape_bytes(masked), escape_bytes(&text[at..]), "what is no value is not changed");
    }
}

fn contains_bytes(part: &[u8], whole: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}

fn escape_bytes(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn program_outcome(exit: ProgramExit, stdout: CapturedOutput) -> ProgramOutcome {
    ProgramOutcome { exit, stdout, stderr: CapturedOutput::default(), leaky: false, took: Duration::ZERO }
}

/// Checks that a response with a parse error is never a success, that a block in any dialect counts, and that all texts are
/// clean and bounded.
pub fn check_hook_response(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let parsed = response::parse_response(&text);
    let _ = response::explain_near_miss(&text);
    let object = serde_json::from_str::<Value>(text.trim()).ok().filter(Value::is_object);
    match (&parsed, &object) {
        (Ok(None), Some(object)) => panic!("an object was taken for text: {object}"),
        (Ok(Some(_)), Some(object)) => check_known_fields(object),
        _ => {}
    }
    for exit in [ProgramExit::Code(0), ProgramExit::Code(2), ProgramExit::Code(1)] {
        for role in [HookRole::Stop, HookRole::Pipeline, HookRole::Observer] {
            let report = build_test_report(&text, exit, role);
            let passed = matches!(report.outcome, HookOutcome::Success | HookOutcome::Skip);
            assert!(!passed || exit == ProgramExit::Code(0), "{exit:?} is a no");
            assert!(!passed || parsed.is_ok(), "what cannot be understood is a no");
            if let (true, Some(object)) = (passed && role.is_gate(), &object) {
                assert_eq!(find_blocking_field(object), None, "{role:?} lets it pass");
            }
            assert!(
                exit == ProgramExit::Code(0) || report.actions.is_empty(),
                "only who says yes may ask for something"
            );
        }
    }
}

/// Returns a field of the object that blocks, in any dialect.
fn find_blocking_field(object: &Value) -> Option<&str> {
    let find_word = |value: &Value, words: &[&'static str]| words.iter().copied().find(|word| value == *word);
    let specific = ["hookSpecificOutput", "hook_specific_output"].map(|name| &object[name]);
    let permission =
        specific.iter().flat_map(|inner| ["permissionDecision", "permission_decision"].map(|name| &inner[name]));
    find_word(&object["status"], &["failure"])
        .or_else(|| find_word(&object["action"], &["continue", "escalate"]))
        .or_else(|| find_word(&object["decision"], &["block", "deny"]))
        .or_else(|| permission.into_iter().find_map(|value| find_word(value, &["deny", "ask"])))
        .or_else(|| (object["continue"] == false).then_some("continue: false"))
}

/// Checks that every known field of an accepted response has a meaning.
fn check_known_fields(object: &Value) {
    let known: [(&str, &[&str]); 3] = [
        ("status", &["success", "failure", "skip"]),
        ("action", &["complete", "continue", "escalate"]),
        ("decision", &["allow", "approve", "block", "deny"]),
    ];
    for (field, words) in known {
        let value = &object[field];
        assert!(value.is_null() || words.iter().any(|word| value == *word), "`{field}` says {value}");
    }
    assert!(object["continue"].is_null() || object["continue"].is_boolean());
}

fn build_test_report(stdout: &str, exit: ProgramExit, role: HookRole) -> HookReport {
    let kind = RunnableKind::Command(HookScript::parse("make test").expect("it names nothing"));
    let timeout = Duration::from_secs(30);
    let hook = RunnableHook {
        name: "tests".to_owned(),
        kind,
        timeout,
        pipes: Some(PipeOutput::Always),
        max_output: 400,
        retry: None,
        feedback: None,
    };
    let captured =
        CapturedOutput { head: stdout.as_bytes().to_vec(), total: stdout.len() as u64, ..CapturedOutput::default() };
    let report = build_report(&hook, role, &Ok(program_outcome(exit, captured)), &EventContext::empty_values());
    let (message, feedback) = (report.message.as_deref(), report.feedback.as_deref());
    assert!(
        message.is_none_or(|message| message.len() <= EngineLimits::REASON_BYTES && clean_output(message) == message),
        "{message:?}"
    );
    assert!(
        feedback.is_none_or(|feedback| feedback.len() <= 400 && clean_output(feedback) == feedback),
        "{feedback:?}"
    );
    report
}

/// Checks that filling changes an accepted script only at its placeholders. A placeholder of free text becomes a reference to
/// its variable, or Windlass refuses the script.
pub fn check_script_filling(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match HookScript::parse(&text) {
        Err(error) => {
            assert!(text.contains("error") || text.contains("task_content"), "{error}: nothing in it is free text");
            assert!(!error.to_string().is_empty());
        }
        Ok(script) => {
            assert_eq!(script.text(), text);
            for channel in [InputChannel::Variable, InputChannel::File] {
                let (task_content, error) = (channel, channel);
                let filled = script.fill_values(&ScriptValues {
                    session: "s1",
                    iteration: "7",
                    task_id: "T9",
                    task_content,
                    error,
                });
                check_filled_script(&text, &filled, channel);
            }
        }
    }
}

/// Compares a script with its filled text, from the start to the end of both.
fn check_filled_script(mut text: &str, mut filled: &str, channel: InputChannel) {
    let reference = |name: &str| match channel {
        InputChannel::Variable => format!("${{WINDLASS_{name}}}"),
        InputChannel::File => format!("$(cat \"$WINDLASS_{name}_FILE\")"),
    };
    let (content, error) = (reference("TASK_CONTENT"), reference("ERROR"));
    let (content_word, error_word) = (format!("\"{content}\""), format!("\"{error}\""));
    let names: [(&str, &[&str]); 5] = [
        ("session", &["s1"]),
        ("iteration", &["7"]),
        ("task_id", &["T9"]),
        ("task_content", &[&content, &content_word]),
        ("error", &[&error, &error_word]),
    ];
    while let Some(letter) = text.chars().next() {
        let named = names.iter().find_map(|(name, forms)| Some((strip_placeholder(text, name)?, *forms)));
        let replaced =
            named.and_then(|(after, forms)| Some((after, forms.iter().find_map(|form| filled.strip_prefix(form))?)));
        (text, filled) = match replaced {
            Some(both) => both,
            // Text without a placeholder, and a placeholder in a comment, stay as they are.
            None => {
                let same = filled.strip_prefix(letter);
                (&text[letter.len_utf8()..], same.expect("everything else arrives byte for byte"))
            }
        };
    }
    assert_eq!(filled, "", "nothing is added at the end");
}

/// Returns the text after the placeholder `{{ name }}`, which may contain blanks.
fn strip_placeholder<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let blank = [' ', '\t'];
    let inner = text.strip_prefix("{{")?.trim_start_matches(blank);
    inner.strip_prefix(name)?.trim_start_matches(blank).strip_prefix("}}")
}

#[cfg(test)]
mod tests {
    use windlass_testkit::hostile::check_law;

    #[test]
    fn cleaned_text_is_harmless() {
        check_law("clean_text", super::check_clean_text);
    }

    #[test]
    fn masked_text_contains_no_secret_for_hostile_input() {
        check_law("mask", super::check_secret_mask);
    }

    #[test]
    fn hostile_response_is_never_misread_as_success() {
        check_law("hook_response", super::check_hook_response);
    }

    #[test]
    fn accepted_script_never_executes_hostile_text_in_shell() {
        check_law("shell", super::check_shell_safety);
    }

    #[test]
    fn scripts_are_filled_in_their_places() {
        check_law("script", super::check_script_filling);
    }
}
