//! The types of the API in TypeScript, for the page.

use std::fmt::Write as _;

use serde_json::{Map, Value};

const HEADER: &str = "// Generated from the types of the server by the test `page_types_match_server`. Do not edit.\n";

/// The types of which the page also needs the list of values.
const LISTED_TYPES: [&str; 4] = ["AnswerChoice", "EventType", "TaskState", "ViewerRole"];

/// Writes all schemas of a description as types.
pub fn write_types(document: &Value) -> String {
    let mut text = HEADER.to_owned();
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    for (name, schema) in schemas.into_iter().flatten() {
        text.push('\n');
        write_comment(schema, "", &mut text);
        let _ = match schema.get("properties").and_then(Value::as_object) {
            Some(properties) => writeln!(text, "export interface {name} {}", write_fields(schema, properties)),
            None if LISTED_TYPES.contains(&name.as_str()) => writeln!(text, "{}", write_listed_type(name, schema)),
            None => writeln!(text, "export type {name} = {};", write_type(schema)),
        };
    }
    text
}

/// Writes a union of names as a constant with all names, and its type.
fn write_listed_type(name: &str, schema: &Value) -> String {
    let mut constant = String::new();
    for (at, c) in name.char_indices() {
        if at > 0 && c.is_ascii_uppercase() {
            constant.push('_');
        }
        constant.push(c.to_ascii_uppercase());
    }
    let names = write_type(schema).replace(" | ", ", ");
    let meanings = write_meanings(&constant, name, schema).unwrap_or_default();
    let list = format!("export const {constant}S = [{names}] as const;");
    format!("{list}\nexport type {name} = (typeof {constant}S)[number];{meanings}")
}

/// Writes a constant with the meaning of each name of a union, if all of them have one.
fn write_meanings(constant: &str, name: &str, schema: &Value) -> Option<String> {
    let choices = schema.get("oneOf")?.as_array()?.iter();
    let lines = choices.map(|choice| Some(format!("  {}: {},\n", choice.get("const")?, choice.get("description")?)));
    let lines: String = lines.collect::<Option<_>>()?;
    Some(format!("\nexport const {constant}_MEANINGS: Record<{name}, string> = {{\n{lines}}};"))
}

fn write_comment(schema: &Value, indent: &str, text: &mut String) {
    if let Some(about) = schema.get("description").and_then(Value::as_str) {
        let _ = writeln!(text, "{indent}/** {} */", about.replace('\n', " "));
    }
}

fn write_fields(schema: &Value, properties: &Map<String, Value>) -> String {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut text = "{\n".to_owned();
    for (name, field) in properties {
        write_comment(field, "  ", &mut text);
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        let _ = writeln!(text, "  {name}{mark}: {};", write_type(field));
    }
    text + "}"
}

fn write_type(schema: &Value) -> String {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return reference.rsplit('/').next().unwrap_or(reference).to_owned();
    }
    if let Some(literal) = schema.get("const") {
        return literal.to_string();
    }
    if let Some(literals) = list("enum") {
        return join_union(literals.iter().map(Value::to_string));
    }
    if let Some(choices) = list("anyOf").or(list("oneOf")) {
        return join_union(choices.iter().map(write_type));
    }
    match schema.get("type") {
        Some(Value::Array(names)) => {
            join_union(names.iter().filter_map(Value::as_str).map(|name| write_kind(name, schema)))
        }
        Some(Value::String(name)) => write_kind(name, schema),
        _ => "unknown".to_owned(),
    }
}

fn join_union(choices: impl Iterator<Item = String>) -> String {
    choices.collect::<Vec<_>>().join(" | ")
}

fn write_kind(name: &str, schema: &Value) -> String {
    match name {
        "integer" | "number" => "number".to_owned(),
        "array" => {
            let item = schema.get("items").map_or_else(|| "unknown".to_owned(), write_type);
            if item.contains(' ') { format!("({item})[]") } else { format!("{item}[]") }
        }
        "object" => match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => format!("Record<string, {}>", write_type(values)),
            _ => "Record<string, unknown>".to_owned(),
        },
        other => other.to_owned(),
    }
}
