//! Filled commands in real shells: nothing of a free text is ever run.
//!
//! Each byte of an input chooses a piece of shell text, so that whatever comes together does no harm: the pieces name no
//! file outside of the directory that they are run in.
#![allow(clippy::disallowed_methods, reason = "what a shell makes of a text is the question here")]

use std::fs;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::{Carrier, Script, Values};

/// Pieces in one script.
const MOST: usize = 40;

const PIECES: &[&str] = &[
    "{{error}}",
    "\"{{error}}\"",
    " ",
    "\n",
    ";",
    "; ",
    " && ",
    " || ",
    " | ",
    " & ",
    "echo ",
    "printf '%s' ",
    "printf ",
    "true",
    "cat",
    "eval ",
    "sh -c ",
    "sh",
    "env ",
    "command ",
    "exec ",
    "test ",
    "[ ",
    " ]",
    "[[ ",
    " ]]",
    " = ",
    " -eq ",
    "-v ",
    "x=",
    "y[1]=",
    "a",
    "1",
    "$",
    "${x",
    "${x:-",
    "}",
    "{ ",
    "; }",
    "(",
    ")",
    "((",
    "))",
    "$(",
    "$((",
    "`",
    "'",
    "\"",
    "\\",
    "\\\n",
    "#",
    " #",
    "<",
    ">f",
    ">",
    "<<EOF\n",
    "<<'EOF'\n",
    "\nEOF\n",
    "<<-",
    "<<<",
    "2>&1",
    "&>f",
    "<(",
    "if true; then ",
    "else ",
    "fi",
    "for x in ",
    "; do ",
    "done",
    "while false; do ",
    "case ",
    "case a in ",
    " in ",
    "a) ",
    "*) ",
    ";; ",
    "esac",
    "! ",
    "*",
    "?",
    "~",
    ",",
    "=",
    "$'",
    "$\"",
    "let ",
    "declare -i x",
    "alias e=eval",
    "trap ",
    "read ",
    "xargs ",
    "$x",
    "\"$x\"",
    "{{task_id}}",
    "{{session}}",
    "find . -exec ",
    "f() ",
    "python3 ",
    ". ",
    "export ",
    "local ",
    "set ",
    "-- ",
    "echo {{error}}",
    "echo \"{{error}}\" x",
    "x={{error}} true",
    "printf '%s' {{error}}",
    "[ {{error}} = x ]",
    "echo a | cat",
    "for x in {{error}}; do echo a; done",
    "case {{error}} in a) echo ;; esac",
    "{ echo {{error}}; }",
    "(echo {{error}})",
    "cat <<EOF\nx\nEOF\n",
    "echo '",
    "echo \"",
    "echo `",
    "echo $(",
    "echo ${x:-",
    "if true; then echo {{error}}; fi",
    "eval",
    "sh -c",
    "env sh",
];

/// What each of them would do is leave a file.
const PAYLOADS: &[&str] = &[
    "$(>pwned);>pwned2;\"'`>pwned3`",
    "\n>pwned\n'\n>pwned\n\"\n>pwned\n",
    "a[$(>pwned)]",
    "-va[$(>pwned)]",
    ">pwned",
    "touch pwned",
    ")); >pwned; ((",
    "EOF\n>pwned\n",
];

static SHELLS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let runs = |shell: &&str| Command::new(shell).args(["-c", ":"]).status().is_ok();
    ["/bin/dash", "/bin/bash", "/bin/sh"].into_iter().filter(runs).take(2).collect()
});

static PLACE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));

/// A script that is taken runs nothing of a free text. The first byte chooses text, shell and carrier.
pub fn shell(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let pieces = rest.iter().take(MOST).map(|byte| PIECES[usize::from(*byte) % PIECES.len()]);
    let text: String = pieces.collect();
    if !text.contains("{{error}}") {
        return;
    }
    let Ok(script) = Script::parse(&text) else { return };
    let first = usize::from(*first);
    let (payload, shell) = (PAYLOADS[first % PAYLOADS.len()], SHELLS[first / PAYLOADS.len() % SHELLS.len()]);
    let carrier = if first >= 224 { Carrier::File } else { Carrier::Variable };
    let values = Values { session: "s", iteration: "1", task_id: "", task_content: carrier, error: carrier };
    let filled = script.fill(&values);
    let left = run(shell, &filled, payload);
    assert!(!left.iter().any(|name| name.starts_with("pwned")), "{shell} has run {payload:?} in {filled:?}");
}

/// Runs a script, and answers which files it has left.
fn run(shell: &str, script: &str, payload: &str) -> Vec<String> {
    let place = PLACE.path();
    let value = place.join(".value");
    fs::write(&value, payload).expect("a file");
    let mut command = Command::new(shell);
    command.args(["-c", script]).current_dir(place).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env_clear().env("PATH", "/usr/bin:/bin").env("WINDLASS_ERROR", payload).env("WINDLASS_ERROR_FILE", &value);
    command.status().expect("a shell");
    let mut left = Vec::new();
    for entry in fs::read_dir(place).expect("a directory").flatten() {
        left.push(entry.file_name().to_string_lossy().into_owned());
        let _ = fs::remove_file(entry.path());
    }
    left
}
