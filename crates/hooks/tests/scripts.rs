//! Filled scripts in real shells: free text arrives byte for byte, and no shell runs it.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "the tests run scripts in real shells")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use proptest::prelude::*;
use tempfile::TempDir;
use windlass_hooks::{HookScript, InputChannel, ScriptValues};

#[path = "../src/laws/shell_pieces.rs"]
mod shell_pieces;
use shell_pieces::{COMMANDS, PAYLOADS, PIECES, executes_variable};

const SCRIPT_VALUES: ScriptValues<'static> = ScriptValues {
    session: "demo",
    iteration: "3",
    task_id: "T12",
    task_content: InputChannel::Variable,
    error: InputChannel::Variable,
};

/// A command that prints the text, with its output before and after the text.
type PrintCommand = (&'static str, &'static str, &'static str);

const PRINT_COMMANDS: &[PrintCommand] = &[
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

/// Slower commands, which start a process.
const SLOW_PRINT_COMMANDS: &[PrintCommand] = &[
    ("{ printf '%s' \\\n {{error}}; } | cat", "", ""),
    ("(printf '%s' \"$NOTHING{{error}}\") # {{error}}, it's a comment", "", ""),
    ("env printf '%s' x{{error}}", "x", ""),
    ("until true && printf -- '%s' {{error}}; do true; done", "", ""),
];

static SHELLS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let is_available = |shell: &&str| Command::new(shell).args(["-c", "true"]).status().is_ok();
    let shells: Vec<_> = ["dash", "bash"].into_iter().filter(is_available).collect();
    if shells.is_empty() { vec!["/bin/sh"] } else { shells }
});

/// A working directory and an output directory for scripts.
struct ScriptDirectories {
    work: TempDir,
    out: TempDir,
}

impl ScriptDirectories {
    fn new() -> Self {
        Self { work: tempfile::tempdir().expect("a directory"), out: tempfile::tempdir().expect("a directory") }
    }

    fn run_script(&self, shell: &str, script: &str, value: &[u8]) -> Output {
        let file = self.out.path().join("value");
        fs::write(&file, value).expect("a file");
        let mut command = Command::new(shell);
        command.args(["-c", script]).current_dir(self.work.path()).stdin(Stdio::null());
        // Linux limits one variable to 128 KiB.
        if value.len() < 100_000 {
            command
                .env("WINDLASS_ERROR", OsStr::from_bytes(value))
                .env("WINDLASS_TASK_CONTENT", OsStr::from_bytes(value));
        }
        command.env("WINDLASS_ERROR_FILE", file).env("OUT", self.out.path());
        command.output().expect("a shell")
    }

    fn leftover_files(&self) -> Vec<String> {
        let names = fs::read_dir(self.work.path()).expect("a directory");
        names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }

    fn read_printed(&self, index: usize) -> Vec<u8> {
        fs::read(self.out.path().join(index.to_string())).unwrap_or_default()
    }
}

/// Combines all commands into one script, in which each command has its own output file.
fn combine_commands(commands: &[PrintCommand]) -> HookScript {
    let redirected =
        commands.iter().enumerate().map(|(index, (command, ..))| format!("exec >\"$OUT/{index}\"\n{command}\n"));
    HookScript::parse(&redirected.collect::<String>()).expect("every shape is safe")
}

#[track_caller]
fn check_printed_text(commands: &[PrintCommand], values: &ScriptValues<'_>, value: &[u8], inserted: &[u8]) {
    let directories = ScriptDirectories::new();
    let script = &combine_commands(commands).fill_values(values);
    for shell in &*SHELLS {
        let output = directories.run_script(shell, script, value);
        let shown = String::from_utf8_lossy(value);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell} with {shown:?}");
        for (index, (command, before, after)) in commands.iter().enumerate() {
            let expected = [before.as_bytes(), inserted, after.as_bytes()].concat();
            let printed = directories.read_printed(index);
            assert!(
                printed == expected,
                "{shell}: {command} with {shown:?} prints {:?}",
                String::from_utf8_lossy(&printed)
            );
        }
        assert_eq!(directories.leftover_files(), Vec::<String>::new(), "{shell} with {shown:?}");
    }
}

const HOSTILE_TEXTS: &[&str] = &[
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

fn hostile_values() -> Vec<Vec<u8>> {
    let mut values: Vec<_> = HOSTILE_TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect();
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
    for (index, value) in hostile_values().into_iter().enumerate() {
        check_printed_text(PRINT_COMMANDS, &SCRIPT_VALUES, &value, &value);
        if index % 8 == 0 {
            check_printed_text(SLOW_PRINT_COMMANDS, &SCRIPT_VALUES, &value, &value);
        }
    }
}

#[test]
fn text_from_a_file_arrives_but_for_newlines_at_its_end() {
    let values = ScriptValues { error: InputChannel::File, ..SCRIPT_VALUES };
    let long = b"'\"$(touch pwned)`\n".repeat(5_000);
    let short = hostile_values().into_iter().filter(|value| value.len() > 2).step_by(9);
    for value in short.chain([b"lines\n\n\n".to_vec()]) {
        let end = value.iter().rposition(|byte| *byte != b'\n').map_or(0, |last| last + 1);
        check_printed_text(&PRINT_COMMANDS[..4], &values, &value, &value[..end]);
    }
    // The text is too long for an argument of a program, but not for the shell.
    let directories = ScriptDirectories::new();
    let script = HookScript::parse("text={{error}}; printf '%s' \"$text\" >\"$OUT/0\"").expect("is safe");
    directories.run_script(SHELLS[0], &script.fill_values(&values), &long.repeat(3));
    assert!(directories.read_printed(0) == long.repeat(3)[..long.len() * 3 - 1]);
}

/// Pieces that occur more often than others.
const FREQUENT_PIECES: &[&str] = &["{{error}}", "{{error}}", "{{error}}", " ", " ", "echo ", "'", "\""];

fn arbitrary_scripts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![13 => prop::sample::select(PIECES), 1 => prop::sample::select(FREQUENT_PIECES)];
    let pieces = prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat());
    let command = prop::sample::select(COMMANDS).prop_map(str::to_owned);
    let lines = prop::collection::vec(prop_oneof![2 => command, 3 => pieces], 1..5);
    let between = prop::sample::select(&["", " ", "\n", "; ", " | ", " && ", " \\\n "][..]);
    (lines, between).prop_map(|(lines, between)| lines.join(between))
}

fn has_pwned_file(place: &Path) -> bool {
    let entries = fs::read_dir(place).expect("a directory");
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("pwned"))
}

#[test]
fn refused_commands_would_run_free_text() {
    for text in ["eval \"${WINDLASS_ERROR}\"", "echo \"${WINDLASS_ERROR}\" | sh", "sh -c \"${WINDLASS_ERROR}\""] {
        let directories = ScriptDirectories::new();
        directories.run_script(SHELLS[0], text, b"touch pwned");
        assert!(has_pwned_file(directories.work.path()), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_free_text_arrives_byte_for_byte(value in prop::collection::vec(1..=255u8, 0..200)) {
        check_printed_text(PRINT_COMMANDS, &SCRIPT_VALUES, &value, &value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: case_count(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn accepted_script_never_executes_free_text(
        text in arbitrary_scripts(),
        payload in prop::sample::select(PAYLOADS),
        in_bash in prop::bool::weighted(0.3),
        from_file in prop::bool::weighted(0.1),
    ) {
        if !text.contains("{{error}}") || executes_variable(&text) {
            return Ok(());
        }
        let Ok(script) = HookScript::parse(&text) else { return Ok(()) };
        let directories = ScriptDirectories::new();
        let shell = if in_bash { SHELLS[SHELLS.len() - 1] } else { SHELLS[0] };
        let channel = if from_file { InputChannel::File } else { InputChannel::Variable };
        let filled = script.fill_values(&ScriptValues { error: channel, task_id: "", ..SCRIPT_VALUES });
        directories.run_script(shell, &filled, payload.as_bytes());
        prop_assert!(!has_pwned_file(directories.work.path()), "{} ran {:?}", shell, filled);
    }
}

/// The number of cases; `PROPTEST_CASES=100000` raises it.
fn case_count() -> u32 {
    ProptestConfig::default().cases.max(3_000)
}
