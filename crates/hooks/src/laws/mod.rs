//! Laws of all code here that reads text from outside, for any input. For tests and fuzzing only.
//!
//! Each law takes bytes, and panics if it does not hold. Where a law needs several texts, a byte that occurs in no text
//! separates them.

mod pieces;
mod shell;

use std::time::Duration;

use serde_json::Value;
use windlass_engine::{EngineLimits, EventContext, HookOutcome, HookReport};
use windlass_process::{CapturedOutput, ProgramExit, ProgramOutcome};

use crate::mask::{MIN_SECRET_BYTES, MaskedStream as MaskStream};
use crate::secret_encodings::encode_secret_value;
use crate::{
    HookRole, HookScript, InputChannel, MaskedDisplayStream, PipeOutput, RunnableHook, RunnableKind, ScriptValues,
    SecretMask, clean_output, excerpt_text, report, response,
};

pub use shell::shell;

/// Separates the texts of an input.
const BETWEEN: u8 = 0xff;

/// Cleaned text contains nothing that a terminal obeys, clean text does not change, and cut text is never longer than asked for.
pub fn clean_text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let cleaned = clean_output(&text);
    let obeyed = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    assert!(!cleaned.contains(obeyed), "{cleaned:?}");
    assert_eq!(clean(&cleaned), cleaned, "cleaning twice is cleaning once");
    if !text.contains(obeyed) {
        assert_eq!(cleaned, text, "what is clean stays as it is");
    }
    for most in [0, 1, 20, 40, 100, 1000, text.len(), text.len() + 1] {
        let kept = excerpt_text(&text, most);
        assert!(kept.len() <= most, "{} bytes, not {most}", kept.len());
        if text.len() <= most {
            assert_eq!(kept, text, "what fits is not touched");
        }
    }
}

/// The mask covers every encoding of a value and changes nothing else, however the text is split into chunks. In shown text
/// it also covers values that appear only after cleaning.
pub fn mask(bytes: &[u8]) {
    let mut parts = bytes.splitn(3, |byte| *byte == BETWEEN);
    let mut next = || parts.next().unwrap_or_default();
    let (one, two, text) = (next(), next(), next());
    let mask = SecretMask::new([("ONE", one), ("TWO", two)]);
    let values = Forms::of([("ONE", one), ("TWO", two)]);
    let plain = in_pieces(text, text.len(), (mask.stream(), MaskStream::push, MaskStream::finish));
    values.check(text, &plain);
    let cleaned = clean_output(&String::from_utf8_lossy(&plain));
    let shown_text = in_pieces(
        text,
        text.len(),
        (mask.open_display_stream(), MaskedDisplayStream::push, MaskedDisplayStream::finish),
    );
    match values.0.is_empty() {
        true => assert_eq!(shown_text, text, "nothing to look for"),
        false => values.check(cleaned.as_bytes(), &shown_text),
    }
    // Bytes stay as they are, unless they hide a value.
    let hides = values.0.iter().any(|(_, form)| is_in(form, cleaned.as_bytes()));
    let masked = mask.mask_bytes(text);
    assert_eq!(shown(&masked), shown(if hides { &shown_text } else { &plain }));
    for size in [1, 3, 7, 64] {
        let streamed = in_pieces(text, size, (mask.stream(), MaskStream::push, MaskStream::finish));
        assert_eq!(shown(&streamed), shown(&plain), "in pieces of {size}");
        let streamed =
            in_pieces(text, size, (mask.open_display_stream(), MaskedDisplayStream::push, MaskedDisplayStream::finish));
        assert_eq!(shown(&streamed), shown(&shown_text), "shown in pieces of {size}");
    }
    let named = format!("Mask {{ markers: [{:?}, {:?}], .. }}", values.marker("ONE"), values.marker("TWO"));
    assert!(named.len() >= format!("{mask:?}").len(), "only names are printed: {mask:?}");
    gap(&mask, text, &values);
}

/// Returns the result for a text that comes in chunks of a size.
fn in_pieces<S>(
    text: &[u8],
    size: usize,
    (mut stream, push, finish): (S, impl Fn(&mut S, &[u8]) -> Vec<u8>, impl FnOnce(S) -> Vec<u8>),
) -> Vec<u8> {
    let mut streamed: Vec<u8> = text.chunks(size.max(1)).flat_map(|piece| push(&mut stream, piece)).collect();
    streamed.extend(finish(stream));
    streamed
}

/// At a gap in the output, no part of a value is left at the edges.
fn gap(mask: &SecretMask, text: &[u8], values: &Forms) {
    let (head, tail) = text.split_at(text.len() / 2);
    let total = text.len() as u64 + 1000;
    let stdout = CapturedOutput { head: head.to_vec(), tail: tail.to_vec(), total, spilled: None };
    let kept = mask.mask_run(finished(ProgramExit::Code(0), stdout)).stdout;
    let missing = kept.omitted_byte_count();
    assert!(missing >= 1000 || values.0.is_empty(), "{missing} bytes are missing");
    for (_, form) in values.0.iter().filter(|(_, form)| *form == text) {
        assert!(kept.head.is_empty() && kept.tail.is_empty(), "a part of {} is left", shown(form));
    }
}

/// All encodings of some values, each with the value's name.
struct Forms(Vec<(&'static str, Vec<u8>)>);

impl Forms {
    fn of(values: [(&'static str, &[u8]); 2]) -> Self {
        let long = values.map(|(name, value)| (name, value.trim_ascii())).into_iter();
        let long = long.filter(|(_, value)| value.len() >= MIN_SECRET_BYTES);
        Self(
            long.flat_map(|(name, value)| encode_secret_value(value).into_iter().map(move |form| (name, form)))
                .collect(),
        )
    }

    fn marker(&self, name: &str) -> String {
        let all = [format!("[secret {name}]"), "[secret]".to_owned(), "[***]".to_owned(), "[...]".to_owned()];
        let tells = |marker: &String| self.0.iter().any(|(_, form)| is_in(form, marker.as_bytes()));
        all.into_iter().find(|marker| !tells(marker)).unwrap_or_default()
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
        assert_eq!(shown(masked), shown(&text[at..]), "what is no value is not changed");
    }
}

fn is_in(part: &[u8], whole: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn finished(exit: ProgramExit, stdout: CapturedOutput) -> ProgramOutcome {
    ProgramOutcome { exit, stdout, stderr: CapturedOutput::default(), leaky: false, took: Duration::ZERO }
}

/// A response that cannot be parsed is never a success, a block in any dialect counts, and all texts are clean and bounded.
pub fn answer_object(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let parsed = response::parse_response(&text);
    let _ = response::explain_near_miss(&text);
    let object = serde_json::from_str::<Value>(text.trim()).ok().filter(Value::is_object);
    match (&parsed, &object) {
        (Ok(None), Some(object)) => panic!("an object was taken for text: {object}"),
        (Ok(Some(_)), Some(object)) => heeded(object),
        _ => {}
    }
    for exit in [ProgramExit::Code(0), ProgramExit::Code(2), ProgramExit::Code(1)] {
        for role in [HookRole::Stop, HookRole::Pipeline, HookRole::Observer] {
            let report = ended(&text, exit, role);
            let passed = matches!(report.outcome, HookOutcome::Success | HookOutcome::Skip);
            assert!(!passed || exit == ProgramExit::Code(0), "{exit:?} is a no");
            assert!(!passed || parsed.is_ok(), "what cannot be understood is a no");
            if let (true, Some(object)) = (passed && role.is_gate(), &object) {
                assert_eq!(no(object), None, "{role:?} lets it pass");
            }
            assert!(
                exit == ProgramExit::Code(0) || report.actions.is_empty(),
                "only who says yes may ask for something"
            );
        }
    }
}

/// Returns a field of the object that blocks, in any dialect.
fn no(object: &Value) -> Option<&str> {
    let says = |value: &Value, words: &[&'static str]| words.iter().copied().find(|word| value == *word);
    let specific = ["hookSpecificOutput", "hook_specific_output"].map(|name| &object[name]);
    let permission =
        specific.iter().flat_map(|inner| ["permissionDecision", "permission_decision"].map(|name| &inner[name]));
    says(&object["status"], &["failure"])
        .or_else(|| says(&object["action"], &["continue", "escalate"]))
        .or_else(|| says(&object["decision"], &["block", "deny"]))
        .or_else(|| permission.into_iter().find_map(|value| says(value, &["deny", "ask"])))
        .or_else(|| (object["continue"] == false).then_some("continue: false"))
}

/// Checks that every known field of an accepted response has a meaning.
fn heeded(object: &Value) {
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

fn ended(stdout: &str, exit: ProgramExit, role: HookRole) -> HookReport {
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
    let report = answer(&hook, role, &Ok(finished(exit, captured)), &EventContext::empty_values());
    let (message, feedback) = (report.message.as_deref(), report.feedback.as_deref());
    assert!(
        message.is_none_or(|message| message.len() <= EngineLimits::REASON_BYTES && clean_output(message) == message),
        "{message:?}"
    );
    assert!(feedback.is_none_or(|told| told.len() <= 400 && clean_output(told) == told), "{feedback:?}");
    report
}

/// An accepted script is filled at its placeholders and nowhere else: a placeholder of free text becomes a reference to its
/// variable, or the script is refused.
pub fn script(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match HookScript::parse(&text) {
        Err(refused) => {
            assert!(text.contains("error") || text.contains("task_content"), "{refused}: nothing in it is free text");
            assert!(!refused.to_string().is_empty());
        }
        Ok(script) => {
            assert_eq!(script.text(), text);
            for carrier in [InputChannel::Variable, InputChannel::File] {
                let (task_content, error) = (carrier, carrier);
                let filled = script.fill_values(&ScriptValues {
                    session: "s1",
                    iteration: "7",
                    task_id: "T9",
                    task_content,
                    error,
                });
                check_filled(&text, &filled, carrier);
            }
        }
    }
}

/// Walks through both texts at once.
fn check_filled(mut text: &str, mut filled: &str, carrier: InputChannel) {
    let reference = |name: &str| match carrier {
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
        let named = names.iter().find_map(|(name, forms)| Some((after_name(text, name)?, *forms)));
        let becomes =
            named.and_then(|(after, forms)| Some((after, forms.iter().find_map(|form| filled.strip_prefix(form))?)));
        (text, filled) = match becomes {
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

/// Returns the text behind `{{ name }}`, with any blanks in it.
fn after_name<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let blank = [' ', '\t'];
    let inner = text.strip_prefix("{{")?.trim_start_matches(blank);
    inner.strip_prefix(name)?.trim_start_matches(blank).strip_prefix("}}")
}

#[cfg(test)]
mod tests {
    use windlass_testkit::hostile::check;

    #[test]
    fn cleaned_text_is_harmless() {
        check("clean", super::clean_text);
    }

    #[test]
    fn no_secret_is_left() {
        check("mask", super::mask);
    }

    #[test]
    fn no_answer_is_misread() {
        check("answer", super::answer_object);
    }

    #[test]
    fn no_shell_runs_free_text() {
        check("shell", super::shell);
    }

    #[test]
    fn scripts_are_filled_in_their_places() {
        check("script", super::script);
    }
}
