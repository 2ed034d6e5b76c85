//! The generated files: the description of the API, its page, and the types of the web page.

#![expect(clippy::disallowed_methods, reason = "tests read and write generated files")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::*;

fn project_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Compares a generated text with the file that has it, or writes the file with `UPDATE=1`.
#[track_caller]
fn check_generated_file(name: &str, text: &str) {
    let file = project_file(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, text).expect("the file can be written");
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(written, text, "{name} is out of date; UPDATE=1 writes it");
}

#[test]
fn openapi_file_matches_server() {
    let text = serde_json::to_string_pretty(&build_document()).expect("it is JSON") + "\n";
    check_generated_file("docs/reference/http-api.json", &text);
}

#[test]
fn page_types_match_server() {
    check_generated_file("crates/web/page/src/api_types.ts", &typescript::write_types(&build_document()));
}

#[test]
fn api_page_lists_every_operation() {
    let page = std::fs::read_to_string(project_file("docs/reference/http-api.md")).expect("the page exists");
    let mut table = "| request | role | |\n| --- | --- | --- |\n".to_owned();
    for operation in read_operations().iter().chain(&write_operations()) {
        let method = if operation.body.is_some() { "POST" } else { "GET" };
        let role = operation.role.map_or("none", ViewerRole::name);
        let _ = writeln!(table, "| `{method} /api{}` | {role} | {} |", operation.path, operation.summary);
    }
    let (head, rest) = page.split_once("<!-- operations -->\n").expect("the page has a place for the table");
    let (_, tail) = rest.split_once("<!-- end of operations -->").expect("the place ends");
    let expected = format!("{head}<!-- operations -->\n{table}<!-- end of operations -->{tail}");
    check_generated_file("docs/reference/http-api.md", &expected);
}
