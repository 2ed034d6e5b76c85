//! Test that a tool's fields and its input type agree.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::catalogue::catalogue;
use crate::shape::{Field, Id, Kind, Need, read};
use crate::tool::Tool;
use crate::{checkpoint, hook, iteration, note, session, task};

/// Maximum size of the list of all tools.
const LISTED: usize = 9_000;

/// Returns a value of a kind.
fn example(kind: &Kind) -> Value {
    match kind {
        Kind::Text(_) | Kind::Words(_) => json!("words"),
        Kind::Id(Id::Task) => json!("T1"),
        Kind::Id(Id::Type) => json!("feature"),
        Kind::Id(Id::Series) => json!("IT-1"),
        Kind::Id(Id::Checkpoint) => json!("CP-1"),
        Kind::Id(Id::Hook) => json!("HOOK-1"),
        Kind::Promise => json!("COMPLETE"),
        Kind::Own(_) => json!([]),
        Kind::OneOf(names) => json!(names[0]),
        Kind::Whole(from, _) => json!(from),
        Kind::Flag => json!(true),
        Kind::List(of, least, _) => Value::Array(vec![example(of); (*least).max(1)]),
        Kind::Object(fields) => Value::Object(all(fields)),
        Kind::Map => json!({"a": 1}),
    }
}

fn all(fields: &[Field]) -> Map<String, Value> {
    fields.iter().map(|field| (field.name.to_owned(), example(&field.kind))).collect()
}

/// Returns the fields of a type, read from its error for an unknown field.
fn known<T: DeserializeOwned>() -> BTreeSet<String> {
    let Err(error) = T::deserialize(json!({"no such field": 1})) else { panic!("an unknown field is taken") };
    let error = error.to_string();
    let expected = error.split_once("expected").map_or("", |(_, expected)| expected);
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[track_caller]
fn agree<T: DeserializeOwned>(tool: &Tool) -> &'static str {
    let name = tool.name;
    let names: BTreeSet<String> = tool.fields.iter().map(|field| field.name.to_owned()).collect();
    assert_eq!(names, known::<T>(), "{name}");
    let example = serde_json::from_str(tool.example).unwrap();
    assert!(read::<T>(tool, example).is_ok(), "{name} takes its own example");
    let whole = all(tool.fields);
    assert!(read::<T>(tool, Value::Object(whole.clone())).is_ok(), "{name} takes all of its fields");
    for field in tool.fields {
        let mut less = whole.clone();
        less.remove(field.name);
        let bare = T::deserialize(Value::Object(less.clone()));
        assert_eq!(bare.is_ok(), field.need == Need::Optional, "{name} without {}", field.name);
        assert_eq!(read::<T>(tool, Value::Object(less)).is_ok(), field.need == Need::Optional);
        if let Kind::OneOf(words) = field.kind {
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
        agree::<iteration::start::Start>(&iteration::START),
        agree::<iteration::validate::Validate>(&iteration::VALIDATE),
        agree::<iteration::next::Next>(&iteration::NEXT),
        agree::<iteration::complete::Complete>(&iteration::COMPLETE),
        agree::<hook::register::Register>(&hook::REGISTER),
        agree::<hook::evaluate::Evaluate>(&hook::EVALUATE),
        agree::<hook::list::List>(&hook::LIST),
        agree::<hook::clear::Clear>(&hook::CLEAR),
        agree::<checkpoint::create::Create>(&checkpoint::CREATE),
        agree::<checkpoint::list::List>(&checkpoint::LIST),
        agree::<checkpoint::resume::Resume>(&checkpoint::RESUME),
        agree::<task::create::Create>(&task::CREATE),
        agree::<task::get::Get>(&task::GET),
        agree::<task::list::List>(&task::LIST),
        agree::<task::update::Update>(&task::UPDATE),
        agree::<task::next::Next>(&task::NEXT),
        agree::<note::Add>(&note::ADD),
        agree::<session::Complete>(&session::COMPLETE),
    ];
    let listed: Vec<&str> = catalogue().iter().map(|tool| tool.name).collect();
    assert_eq!(listed, agreed);
}

#[test]
fn a_list_of_all_tools_is_short() {
    let list = |tool: &Tool| json!({"name": tool.name, "description": tool.description, "inputSchema": tool.schema()});
    let listed = serde_json::to_string(&catalogue().iter().map(list).collect::<Vec<_>>()).unwrap();
    assert!(listed.len() <= LISTED, "{} bytes", listed.len());
}

/// Models know these schema keywords.
#[test]
fn schemas_are_what_models_are_used_to() {
    let schema = task::CREATE.schema();
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["properties"]["priority"]["maximum"], 4);
    assert_eq!(schema["properties"]["dependsOn"]["items"]["pattern"], r"^T\d+$");
    assert_eq!(task::GET.schema()["required"], json!(["taskId"]));
}
