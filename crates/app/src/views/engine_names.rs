//! JSON schemas of the names that the engine gives to states and events.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use windlass_engine::{EventType, TaskState};

/// The schema of the name of a task's state.
pub struct TaskStateName;

impl JsonSchema for TaskStateName {
    fn schema_name() -> Cow<'static, str> {
        "TaskState".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": TaskState::ALL.map(TaskState::name)})
    }
}

/// The schema of the name of an event type, without the types that hooks give to facts.
pub struct EventTypeName;

impl JsonSchema for EventTypeName {
    fn schema_name() -> Cow<'static, str> {
        "EventType".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = EventType::ALL.iter().map(|kind| kind.name()).collect();
        json_schema!({"type": "string", "enum": names})
    }
}
