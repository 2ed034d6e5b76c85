//! Test that a tool's fields and its input type agree.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::catalogue::tool_catalogue;
use crate::schema::{FieldKind, FieldPresence, IdKind, ToolField, parse_arguments};
use crate::tool::ToolDefinition;
use crate::{checkpoint, hook, iteration, note, session, task};

/// Maximum size of the list of all tools.
const MAX_TOOL_LIST_BYTES: usize = 9_000;

/// Returns a value of a kind.
fn example_value(kind: &FieldKind) -> Value {
    match kind {
        FieldKind::Text(_) | FieldKind::Words(_) => json!("words"),
        FieldKind::Id(IdKind::Task) => json!("T1"),
        FieldKind::Id(IdKind::Type) => json!("feature"),
        FieldKind::Id(IdKind::Series) => json!("IT-1"),
        FieldKind::Id(IdKind::Checkpoint) => json!("CP-1"),
        FieldKind::Id(IdKind::Hook) => json!("HOOK-1"),
        FieldKind::Promise => json!("COMPLETE"),
        FieldKind::Own(_) => json!([]),
        FieldKind::OneOf(names) => json!(names[0]),
        FieldKind::Whole(from, _) => json!(from),
        FieldKind::Flag => json!(true),
        FieldKind::List(of, least, _) => Value::Array(vec![example(of); (*least).max(1)]),
        FieldKind::Object(fields) => Value::Object(example_object(fields)),
        FieldKind::Map => json!({"a": 1}),
    }
}

fn example_object(fields: &[ToolField]) -> Map<String, Value> {
    fields.iter().map(|field| (field.name.to_owned(), example_value(&field.kind))).collect()
}

/// Returns the fields of a type, read from its error for an unknown field.
fn known_fields<T: DeserializeOwned>() -> BTreeSet<String> {
    let Err(error) = T::deserialize(json!({"no such field": 1})) else { panic!("an unknown field is taken") };
    let error = error.to_string();
    let expected = error.split_once("expected").map_or("", |(_, expected)| expected);
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[track_caller]
fn check_agreement<T: DeserializeOwned>(tool: &ToolDefinition) -> &'static str {
    let name = tool.name;
    let names: BTreeSet<String> = tool.fields.iter().map(|field| field.name.to_owned()).collect();
    assert_eq!(names, known::<T>(), "{name}");
    let example = serde_json::from_str(tool.example).unwrap();
    assert!(parse_arguments::<T>(tool, example).is_ok(), "{name} takes its own example");
    let whole = example_object(tool.fields);
    assert!(parse_arguments::<T>(tool, Value::Object(whole.clone())).is_ok(), "{name} takes all of its fields");
    for field in tool.fields {
        let mut less = whole.clone();
        less.remove(field.name);
        let bare = T::deserialize(Value::Object(less.clone()));
        assert_eq!(bare.is_ok(), field.need == Need::Optional, "{name} without {}", field.name);
        assert_eq!(read::<T>(tool, Value::Object(less)).is_ok(), field.need == Need::Optional);
        if let FieldKind::OneOf(words) = field.kind {
            for word in words {
                let mut other = whole.clone();
                other.insert(field.name.to_owned(), json!(word));
                assert!(T::deserialize(Value::Object(other)).is_ok(), "{name} with {} {word}", field.name);
            }
        }
    }
    name
}

#[test]
fn every_tool_reads_what_its_schema_says() {
    let agreed = [
        check_agreement::<iteration::start::StartSeriesInput>(&iteration::START),
        check_agreement::<iteration::validate::ValidateIterationInput>(&iteration::VALIDATE),
        check_agreement::<iteration::next::NextIterationInput>(&iteration::NEXT),
        check_agreement::<iteration::complete::CompleteSeriesInput>(&iteration::COMPLETE),
        check_agreement::<hook::register::RegisterHookInput>(&hook::REGISTER),
        check_agreement::<hook::evaluate::EvaluateHooksInput>(&hook::EVALUATE),
        check_agreement::<hook::list::ListHooksInput>(&hook::LIST),
        check_agreement::<hook::clear::ClearHooksInput>(&hook::CLEAR),
        check_agreement::<checkpoint::create::CreateCheckpointInput>(&checkpoint::CREATE),
        check_agreement::<checkpoint::list::ListCheckpointsInput>(&checkpoint::LIST),
        check_agreement::<checkpoint::resume::ResumeCheckpointInput>(&checkpoint::RESUME),
        check_agreement::<task::create::CreateTaskInput>(&task::CREATE),
        check_agreement::<task::get::GetTaskInput>(&task::GET),
        check_agreement::<task::list::ListTasksInput>(&task::LIST),
        check_agreement::<task::update::UpdateTaskInput>(&task::UPDATE),
        check_agreement::<task::next::NextTaskInput>(&task::NEXT),
        check_agreement::<note::AddNoteInput>(&note::ADD),
        check_agreement::<session::CompleteSessionInput>(&session::COMPLETE),
    ];
    let listed: Vec<&str> = tool_catalogue().iter().map(|tool| tool.name).collect();
    assert_eq!(listed, agreed);
}

#[test]
fn list_of_all_tools_fits_into_budget() {
    let list = |tool: &ToolDefinition| json!({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema()});
    let listed = serde_json::to_string(&tool_catalogue().iter().map(list).collect::<Vec<_>>()).unwrap();
    assert!(listed.len() <= MAX_TOOL_LIST_BYTES, "{} bytes", listed.len());
}

/// Models know these schema keywords.
#[test]
fn schemas_use_common_keywords() {
    let schema = task::CREATE.input_schema();
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["properties"]["priority"]["maximum"], 4);
    assert_eq!(schema["properties"]["dependsOn"]["items"]["pattern"], r"^T\d+$");
    assert_eq!(task::GET.schema()["required"], json!(["taskId"]));
}
