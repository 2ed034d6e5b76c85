//! Filled commands in real shells: free text arrives byte for byte, and no shell runs any of it.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "what a shell makes of a text is the question here")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use proptest::prelude::*;
use tempfile::TempDir;
use windlass_hooks::{HookScript, InputChannel, ScriptValues};

#[path = "../src/laws/pieces.rs"]
mod pieces;
use pieces::{COMMANDS, PAYLOADS, PIECES, runs_a_variable};

const VALUES: ScriptValues<'static> = ScriptValues {
    session: "demo",
    iteration: "3",
    task_id: "T12",
    task_content: InputChannel::Variable,
    error: InputChannel::Variable,
};

/// A command that prints the text, with its output before and after the text.
type Shape = (&'static str, &'static str, &'static str);

const SHAPES: &[Shape] = &[
    ("printf '%s' {{error}}", "", ""),
    ("printf '%s' \"{{error}}\"", "", ""),
    ("printf '%s' \"a $(echo 2) {{error}} b\"", "a 2 ", " b"),
    ("printf '%s' a{{error}}'b c'", "a", "b c"),
    ("printf '%s' {{{error}}}", "{", "}"),
    ("printf '%s' --x={{error}}", "--x=", ""),
    ("printf '%s' \"\\\\{{error}}\\\"\"", "\\", "\""),
    ("text={{error}}; printf '%s' \"$text\"", "", ""),
    ("text=\"<{{error}}>\" && printf '%s' \"$text\"", "<", ">"),
    ("if [ {{error}} = \"{{error}}\" ]; then printf '%s' {{ error }}; fi", "", ""),
];

/// Shapes that start a process, which takes time.
const SLOW_SHAPES: &[Shape] = &[
    ("{ printf '%s' \\\n {{error}}; } | cat", "", ""),
    ("(printf '%s' \"$NOTHING{{error}}\") # {{error}}, it's a comment", "", ""),
    ("env printf '%s' x{{error}}", "x", ""),
    ("until true && printf -- '%s' {{error}}; do true; done", "", ""),
];

static SHELLS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let runs = |shell: &&str| Command::new(shell).args(["-c", "true"]).status().is_ok();
    let shells: Vec<_> = ["dash", "bash"].into_iter().filter(runs).collect();
    if shells.is_empty() { vec!["/bin/sh"] } else { shells }
});

/// A directory to run in, and one for printed text.
struct Place {
    work: TempDir,
    out: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { work: tempfile::tempdir().expect("a directory"), out: tempfile::tempdir().expect("a directory") }
    }

    fn run(&self, shell: &str, script: &str, value: &[u8]) -> Output {
        let file = self.out.path().join("value");
        fs::write(&file, value).expect("a file");
        let mut command = Command::new(shell);
        command.args(["-c", script]).current_dir(self.work.path()).stdin(Stdio::null());
        // Linux takes at most 128 KiB for one variable.
        if value.len() < 100_000 {
            command
                .env("WINDLASS_ERROR", OsStr::from_bytes(value))
                .env("WINDLASS_TASK_CONTENT", OsStr::from_bytes(value));
        }
        command.env("WINDLASS_ERROR_FILE", file).env("OUT", self.out.path());
        command.output().expect("a shell")
    }

    fn left_behind(&self) -> Vec<String> {
        let names = fs::read_dir(self.work.path()).expect("a directory");
        names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    fn printed(&self, index: usize) -> Vec<u8> {
        fs::read(self.out.path().join(index.to_string())).unwrap_or_default()
    }
}

/// All shapes as one command, each with an output file of its own.
fn together(shapes: &[Shape]) -> HookScript {
    let redirected = shapes.iter().enumerate().map(|(index, (shape, ..))| format!("exec >\"$OUT/{index}\"\n{shape}\n"));
    HookScript::parse(&redirected.collect::<String>()).expect("every shape is safe")
}

#[track_caller]
fn check(shapes: &[Shape], values: &ScriptValues<'_>, value: &[u8], arrives: &[u8]) {
    let place = Place::new();
    let script = &together(shapes).fill_values(values);
    for shell in &*SHELLS {
        let output = place.run(shell, script, value);
        let shown = String::from_utf8_lossy(value);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell} with {shown:?}");
        for (index, (shape, before, after)) in shapes.iter().enumerate() {
            let expected = [before.as_bytes(), arrives, after.as_bytes()].concat();
            let printed = place.printed(index);
            assert!(
                printed == expected,
                "{shell}: {shape} with {shown:?} prints {:?}",
                String::from_utf8_lossy(&printed)
            );
        }
        assert_eq!(place.left_behind(), Vec::<String>::new(), "{shell} with {shown:?}");
    }
}

const TEXTS: &[&str] = &[
    "",
    " ",
    "plain",
    "two words",
    "  padded  ",
    "line\nline\n\n",
    "\r\n",
    "'",
    "\"",
    "'; touch pwned; '",
    "\"; touch pwned; \"",
    "\\\"; touch pwned; \\\"",
    "$(touch pwned)",
    "\"$(touch pwned)\"",
    "`touch pwned`",
    "${x:-$(touch pwned)}",
    "$((a[$(touch pwned)]))",
    "a[$(touch pwned)]",
    "-va[$(touch pwned)]",
    "x; rm -rf .",
    "; touch pwned #",
    "&& touch pwned",
    "|| touch pwned",
    "| touch pwned",
    "& touch pwned &",
    "> pwned",
    "\n> pwned\n",
    "<<EOF\ntouch pwned\nEOF\n",
    "END\ntouch pwned\n",
    "<(touch pwned)",
    ") ; touch pwned",
    "} ; touch pwned",
    ";; esac; touch pwned",
    "done; touch pwned",
    "fi; touch pwned",
    "*",
    "?",
    "/*",
    "[a-z]*",
    "{a,b}",
    "{1..9}",
    "~",
    "~root",
    "!!",
    "!",
    "(",
    "-n",
    "-e",
    "-v",
    "--",
    "--help",
    "-rf",
    "%s%n%d",
    "%",
    "\\",
    "\\\\",
    "\\n\\c\\0",
    "\\'",
    "\\$(touch pwned)",
    "$HOME",
    "${HOME}",
    "$'\\x41'",
    "$$",
    "$",
    "${WINDLASS_ERROR}",
    "{{error}}",
    "{{session}}",
    "() { :; }; touch pwned",
    "ünï¢ödé \u{202e} \u{1f980}",
    "\u{a0}\u{2028}\u{feff}",
    "\u{1b}[31m\u{7}",
    "# comment",
    "a=b",
    "PATH=/nowhere",
    "=",
];

fn hostile() -> Vec<Vec<u8>> {
    let mut values: Vec<_> = TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect();
    values.extend((1..=127u8).flat_map(|byte| [vec![byte], vec![byte; 2]]));
    values.extend([
        vec![0xff, 0xfe, b'\'', 0x80],
        (1..=255).collect(),
        vec![b'\''; 65_536],
        b"$(touch pwned)".repeat(4_000),
    ]);
    values
}

#[test]
fn hostile_text_arrives_byte_for_byte() {
    for (index, value) in hostile().into_iter().enumerate() {
        check(SHAPES, &VALUES, &value, &value);
        if index % 8 == 0 {
            check(SLOW_SHAPES, &VALUES, &value, &value);
        }
    }
}

#[test]
fn text_from_a_file_arrives_but_for_newlines_at_its_end() {
    let values = ScriptValues { error: InputChannel::File, ..VALUES };
    let long = b"'\"$(touch pwned)`\n".repeat(5_000);
    let short = hostile().into_iter().filter(|value| value.len() > 2).step_by(9);
    for value in short.chain([b"lines\n\n\n".to_vec()]) {
        let end = value.iter().rposition(|byte| *byte != b'\n').map_or(0, |last| last + 1);
        check(&SHAPES[..4], &values, &value, &value[..end]);
    }
    // Too long for an argument of a program, but not for the shell itself.
    let place = Place::new();
    let script = HookScript::parse("text={{error}}; printf '%s' \"$text\" >\"$OUT/0\"").expect("is safe");
    place.run(SHELLS[0], &script.fill_values(&values), &long.repeat(3));
    assert!(place.printed(0) == long.repeat(3)[..long.len() * 3 - 1]);
}

/// Pieces that occur more often than others.
const OFTEN: &[&str] = &["{{error}}", "{{error}}", "{{error}}", " ", " ", "echo ", "'", "\""];

fn compositions() -> impl Strategy<Value = String> {
    let piece = prop_oneof![13 => prop::sample::select(PIECES), 1 => prop::sample::select(OFTEN)];
    let pieces = prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat());
    let command = prop::sample::select(COMMANDS).prop_map(str::to_owned);
    let row = prop::collection::vec(prop_oneof![2 => command, 3 => pieces], 1..5);
    let between = prop::sample::select(&["", " ", "\n", "; ", " | ", " && ", " \\\n "][..]);
    (row, between).prop_map(|(row, between)| row.join(between))
}

fn is_pwned(place: &Path) -> bool {
    let entries = fs::read_dir(place).expect("a directory");
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("pwned"))
}

#[test]
fn refused_commands_would_run_free_text() {
    for text in ["eval \"${WINDLASS_ERROR}\"", "echo \"${WINDLASS_ERROR}\" | sh", "sh -c \"${WINDLASS_ERROR}\""] {
        let place = Place::new();
        place.run(SHELLS[0], text, b"touch pwned");
        assert!(is_pwned(place.work.path()), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_arrives_byte_for_byte(value in prop::collection::vec(1..=255u8, 0..200)) {
        check(SHAPES, &VALUES, &value, &value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_is_accepted_runs_the_text(
        text in compositions(),
        payload in prop::sample::select(PAYLOADS),
        in_bash in prop::bool::weighted(0.3),
        from_file in prop::bool::weighted(0.1),
    ) {
        if !text.contains("{{error}}") || runs_a_variable(&text) {
            return Ok(());
        }
        let Ok(script) = HookScript::parse(&text) else { return Ok(()) };
        let place = Place::new();
        let shell = if in_bash { SHELLS[SHELLS.len() - 1] } else { SHELLS[0] };
        let carrier = if from_file { InputChannel::File } else { InputChannel::Variable };
        let filled = script.fill_values(&ScriptValues { error: carrier, task_id: "", ..VALUES });
        place.run(shell, &filled, payload.as_bytes());
        prop_assert!(!is_pwned(place.work.path()), "{} ran {:?}", shell, filled);
    }
}

/// The number of cases; `PROPTEST_CASES=100000` raises it.
fn cases() -> u32 {
    ProptestConfig::default().cases.max(3_000)
}
