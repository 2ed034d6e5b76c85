//! Tests that keep the reference documents equal to the program: `docs/cli.md`, `docs/config.schema.json`, the table of
//! moves in `docs/tasks.md`, and the table of tools in `docs/mcp.md`.
//!
//! `UPDATE=1 cargo nextest run -p windlass-cli reference` writes them, and every other run checks them.

#![expect(clippy::disallowed_methods, reason = "UPDATE=1 asks a test to write")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory, Parser};
use windlass_config as config;
use windlass_engine::{EventType, MOVES, State};
use windlass_tools::Need;

use crate::args::{self, Invocation};

const BEGIN: &str = "<!-- moves -->\n";
const END: &str = "<!-- /moves -->\n";
const TOOLS: &str = "<!-- tools -->\n";
const TOOLS_END: &str = "<!-- /tools -->\n";

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Compares a document with its expected text, or writes it.
fn check(document: &str, expected: &str) {
    let file = documents().join(document);
    if std::env::var_os("UPDATE").is_some() {
        return fs::write(&file, expected).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    let stale = "is stale: `UPDATE=1 cargo nextest run -p windlass-cli reference` writes it anew";
    assert!(found == expected, "docs/{document} {stale}");
}

/// Compares the table of moves in the guide to tasks.
#[test]
fn moves() {
    let names = |states: &[State]| states.iter().map(|state| format!("`{state}`")).collect::<Vec<_>>().join(" ");
    let mut table = String::from("| event | from | to | forced, also from |\n| --- | --- | --- | --- |\n");
    for row in MOVES {
        let (from, to, forced) = (names(row.from), row.to, names(row.forced_from));
        writeln!(table, "| `{}` | {from} | `{to}` | {forced} |", row.on).unwrap();
    }
    let guide = fs::read_to_string(documents().join("tasks.md")).unwrap();
    let (before, rest) = guide.split_once(BEGIN).expect("the guide has a place for the table");
    let (_, after) = rest.split_once(END).expect("the table has an end");
    check("tasks.md", &format!("{before}{BEGIN}{table}{END}{after}"));
}

/// Compares the table of tools in the guide to MCP.
#[test]
fn tools() {
    let mut table = String::from("| tool | what it does | takes |\n| --- | --- | --- |\n");
    for tool in windlass_tools::catalogue() {
        let field = |field: &windlass_tools::Field| match field.need {
            Need::Required => format!("`{}`", field.name),
            Need::Optional => format!("[`{}`]", field.name),
        };
        let fields = tool.fields.iter().map(field).collect::<Vec<_>>().join(" ");
        let about = tool.description;
        writeln!(table, "| `{}` | {about} | {fields} |", tool.name).unwrap();
    }
    let guide = fs::read_to_string(documents().join("mcp.md")).unwrap();
    let (before, rest) = guide.split_once(TOOLS).expect("the guide has a place for the table");
    let (_, after) = rest.split_once(TOOLS_END).expect("the table has an end");
    check("mcp.md", &format!("{before}{TOOLS}{table}{TOOLS_END}{after}"));
}

#[test]
fn every_event_type_is_explained() {
    let guide = fs::read_to_string(documents().join("events.md")).unwrap();
    for kind in EventType::ALL {
        assert!(guide.contains(&format!("`{kind}`")), "docs/events.md does not mention {kind}");
    }
}

/// Returns every command; a command comes before its subcommands.
fn commands() -> Vec<(String, Command)> {
    fn walk(name: &str, command: &Command, found: &mut Vec<(String, Command)>) {
        found.push((name.to_owned(), command.clone()));
        for child in command.get_subcommands() {
            walk(&format!("{name} {}", child.get_name()), child, found);
        }
    }
    let root = args::command();
    let mut found = Vec::new();
    walk("windlass", &root, &mut found);
    found
}

/// `defer` adds the arguments of a command later, and a doc comment above them would replace the description of the command.
#[test]
fn a_command_is_described_where_it_is_listed() {
    fn check(listed: &Command, built: &Command) {
        let name = listed.get_name();
        let same = listed.get_about().map(ToString::to_string) == built.get_about().map(ToString::to_string);
        assert!(same, "{name}: write `//` instead of `///` above its arguments, as a type");
        for child in listed.get_subcommands() {
            check(child, built.find_subcommand(child.get_name()).unwrap());
        }
    }
    check(&Invocation::command(), &args::command());
}

#[test]
fn command_line() {
    let mut text = String::from(
        "# The command line\n\nWritten from the program itself. Every command also takes `--project DIR`, `--json` and \
         `--help`.\n",
    );
    for (name, command) in commands() {
        let everywhere = if name == "windlass" { &[][..] } else { &["project", "json", "help"] };
        let command = everywhere.iter().fold(command, |command, name| command.mut_arg(name, |arg| arg.hide(true)));
        let help = command.term_width(100).render_long_help().to_string();
        let help: Vec<_> = help.trim().lines().map(str::trim_end).collect();
        write!(text, "\n## {name}\n\n```text\n{}\n```\n", help.join("\n")).unwrap();
    }
    check("cli.md", &text);
}

#[test]
fn schema_of_the_configuration() {
    let schema = serde_json::to_string_pretty(&config::schema()).unwrap();
    check("config.schema.json", &format!("{schema}\n"));
}

/// Splits an example into words, without a redirection of its output and without the remark beside it.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut blanks) = (Vec::new(), None::<String>, None, 0);
    for c in line.chars() {
        match c {
            '|' | '<' | '>' if quote.is_none() => break,
            ' ' if quote.is_none() => {
                words.extend(word.take());
                blanks += 1;
                continue;
            }
            _ if blanks > 1 => break,
            '"' | '\'' if quote.is_none_or(|quote| quote == c) => {
                quote = if quote.is_none() { Some(c) } else { None };
                word.get_or_insert_default();
            }
            c => word.get_or_insert_default().push(c),
        }
        blanks = 0;
    }
    words.extend(word);
    words
}

#[test]
fn every_command_has_examples_that_parse() {
    for (name, command) in commands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples: Vec<_> = help.lines().filter_map(|line| line.strip_prefix("  ")).collect();
        let examples: Vec<_> = examples.into_iter().filter(|line| line.starts_with("windlass ")).collect();
        assert!(!examples.is_empty(), "{name} has no example");
        for example in examples {
            if let Err(error) = Invocation::try_parse_from(words(example)) {
                panic!("{name}: `{example}` does not parse: {error}");
            }
        }
    }
}
