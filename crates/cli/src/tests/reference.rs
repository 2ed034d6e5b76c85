//! Tests that keep the reference pages equal to the program: the command line (`docs/reference/commands/`), the schema of the
//! configuration, and tables between markers in other pages.
//!
//! `UPDATE=1 cargo nextest run -p windlass-cli reference` writes them, and every other run checks them.

#![expect(clippy::disallowed_methods, reason = "UPDATE=1 asks a test to write")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory, Parser};
use serde_json::Value;
use windlass_config as config;
use windlass_engine::{EventType, HookPoint, TASK_TRANSITIONS, TaskState};
use windlass_tools::FieldPresence;

use crate::args::{self, CliInvocation, MAX_HELP_WIDTH};

fn reference_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference")
}

fn is_update() -> bool {
    std::env::var_os("UPDATE").is_some()
}

/// Compares a page with its expected text, or writes it.
fn check_page(page: &str, expected: &str) {
    let file = reference_directory().join(page);
    if is_update() {
        return fs::write(&file, expected).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    let stale = "is stale: `UPDATE=1 cargo nextest run -p windlass-cli reference` writes it anew";
    assert!(found == expected, "docs/reference/{page} {stale}");
}

/// Compares a table between the markers `<!-- NAME -->` and `<!-- /NAME -->` of a page with its expected text, or writes it.
fn check_table(page: &str, name: &str, table: &str) {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n"));
    let text = fs::read_to_string(reference_directory().join(page)).unwrap();
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{page} has no place for the table {name}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("the table {name} in {page} has no end"));
    check_page(page, &format!("{before}{begin}{table}{end}{after}"));
}

#[test]
fn table_of_transitions_matches_engine() {
    let names = |states: &[TaskState]| states.iter().map(|state| format!("`{state}`")).collect::<Vec<_>>().join(" ");
    let mut table = String::from("| event | from | to | forced, also from |\n| --- | --- | --- | --- |\n");
    for row in TASK_TRANSITIONS {
        let (from, to, forced) = (names(row.from), row.to, names(row.forced_from));
        writeln!(table, "| `{}` | {from} | `{to}` | {forced} |", row.on).unwrap();
    }
    check_table("tasks.md", "transitions", &table);
}

#[test]
fn table_of_tools_matches_catalogue() {
    let mut table = String::from("| tool | what it does | takes |\n| --- | --- | --- |\n");
    for tool in windlass_tools::tool_catalogue() {
        let field = |field: &windlass_tools::ToolField| match field.need {
            FieldPresence::Required => format!("`{}`", field.name),
            FieldPresence::Optional => format!("[`{}`]", field.name),
        };
        let fields = tool.fields.iter().map(field).collect::<Vec<_>>().join(" ");
        let about = tool.description;
        writeln!(table, "| `{}` | {about} | {fields} |", tool.name).unwrap();
    }
    check_table("mcp-tools.md", "tools", &table);
}

#[test]
fn table_of_points_matches_engine() {
    let mark = |is: bool| if is { "yes" } else { "" };
    let mut table =
        String::from("| point | its events | gate | a calling agent gets refusals |\n| --- | --- | --- | --- |\n");
    for point in HookPoint::NAMED {
        let events: Vec<_> = point.event_types().iter().map(|event| format!("`{event}`")).collect();
        let (gate, hears) = (mark(point.is_gate()), mark(point.hears_refusal()));
        writeln!(table, "| `{point}` | {} | {gate} | {hears} |", events.join(" ")).unwrap();
    }
    check_table("hook-points.md", "points", &table);
}

/// Returns a table of the keys in a part of the configuration's schema, with their descriptions and numbers as defaults.
fn key_table(properties: &Value) -> String {
    let mut table = String::from("| key | meaning |\n| --- | --- |\n");
    for (key, property) in properties.as_object().expect("this part of the schema has keys") {
        // Other spellings of a key are in the schema, too.
        if key.chars().any(char::is_uppercase) {
            continue;
        }
        let about = property["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
        let default = property["default"].as_i64().map(|number| format!(" Default: {number}.")).unwrap_or_default();
        writeln!(table, "| `{key}` | {about}{default} |").unwrap();
    }
    table
}

#[test]
fn tables_of_keys_match_schema() {
    let schema = config::config_schema();
    // The part of the schema that has this key.
    let part = |key: &str| {
        let mut parts = schema["$defs"].as_object().expect("the schema has parts").values();
        let part = parts.find(|part| part["properties"].get(key).is_some());
        key_table(&part.unwrap_or_else(|| panic!("no part of the schema has {key}"))["properties"])
    };
    check_table("configuration.md", "keys", &key_table(&schema["properties"]));
    check_table("configuration.md", "limits", &part("max_iterations"));
    check_table("hooks.md", "fields", &part("on_failure"));
    check_table("agents/README.md", "keys", &part("mcp_servers"));
}

#[test]
fn every_event_type_is_explained() {
    let page = fs::read_to_string(reference_directory().join("events.md")).unwrap();
    for kind in EventType::ALL {
        assert!(page.contains(&format!("`{kind}`")), "docs/reference/events.md does not mention {kind}");
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
    let root = args::build_clap_command();
    let mut found = Vec::new();
    walk("windlass", &root, &mut found);
    found
}

/// `defer` adds the arguments of a command later, and a doc comment above them would replace the description of the command.
#[test]
fn deferred_arguments_do_not_replace_command_description() {
    fn check(listed: &Command, built: &Command) {
        let name = listed.get_name();
        let same = listed.get_about().map(ToString::to_string) == built.get_about().map(ToString::to_string);
        assert!(same, "{name}: write `//` instead of `///` above its arguments, as a type");
        for child in listed.get_subcommands() {
            check(child, built.find_subcommand(child.get_name()).unwrap());
        }
    }
    check(&CliInvocation::command(), &args::build_clap_command());
}

/// Returns the help of a command as a page shows it, without the options that every command has.
fn help_block(name: &str, command: Command) -> String {
    let everywhere = if name == "windlass" { &[][..] } else { &["project", "json", "help"] };
    let command = everywhere.iter().fold(command, |command, name| command.mut_arg(name, |arg| arg.hide(true)));
    let help = command.term_width(MAX_HELP_WIDTH).render_long_help().to_string();
    let help: Vec<_> = help.trim().lines().map(str::trim_end).collect();
    format!("```text\n{}\n```\n", help.join("\n"))
}

/// The maximum length of the description of a command in characters.
const MAX_ABOUT_LENGTH: usize = 70;

#[test]
fn help_fits_eighty_columns() {
    let is_long = |line: &&str| line.chars().count() > MAX_HELP_WIDTH;
    for (name, command) in commands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let length = about.chars().count();
        assert!((1..=MAX_ABOUT_LENGTH).contains(&length), "{name}: the description has {length} characters");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{name}: {} has no help text", argument.get_id());
        }
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        // clap wraps lines, and a wrapped example cannot be copied.
        let example = after.lines().filter(|line| line.starts_with("  ")).find(is_long);
        assert_eq!(example, None, "{name}: an example has more than {MAX_HELP_WIDTH} characters");
        let mut command = command.term_width(MAX_HELP_WIDTH);
        for help in [command.render_help(), command.render_long_help()] {
            let help = help.to_string();
            assert_eq!(help.lines().find(is_long), None, "{name}: the help has more than {MAX_HELP_WIDTH} columns");
        }
    }
}

#[test]
fn command_line_reference_matches_program() {
    let mut index = String::from(
        "# Command line\n\nThe program writes the pages of this part from its own help. Every command also takes `--project DIR`, \
         `--json` and `--help`.\n\n| command | what it does |\n| --- | --- |\n",
    );
    let mut pages: Vec<(String, String)> = Vec::new();
    let mut root = String::new();
    for (name, command) in commands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let block = help_block(&name, command);
        match name.split(' ').collect::<Vec<_>>()[..] {
            [_] => root = block,
            [_, top] => {
                writeln!(index, "| [`{name}`]({top}.md) | {about} |").unwrap();
                pages.push((format!("{top}.md"), format!("# {name}\n\n{block}")));
            }
            _ => {
                let (_, page) = pages.last_mut().expect("a command comes before its own commands");
                write!(page, "\n## {name}\n\n{block}").unwrap();
            }
        }
    }
    write!(index, "\n## windlass\n\n{root}").unwrap();
    pages.push(("README.md".to_owned(), index));
    for (page, text) in &pages {
        check_page(&format!("commands/{page}"), text);
    }
    let expected: BTreeSet<String> = pages.into_iter().map(|(page, _)| page).collect();
    let there = fs::read_dir(reference_directory().join("commands")).unwrap();
    let there: BTreeSet<String> = there.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(there, expected, "pages of commands that are gone have to be removed");
}

#[test]
fn configuration_schema_matches_program() {
    let schema = serde_json::to_string_pretty(&config::config_schema()).unwrap();
    check_page("config.schema.json", &format!("{schema}\n"));
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
            if let Err(error) = CliInvocation::try_parse_from(words(example)) {
                panic!("{name}: `{example}` does not parse: {error}");
            }
        }
    }
}
