//! The JSON Schema of the configuration, for editors: derived from the structs, with additions that only the reader knows.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::hook_settings::RuleSettings;
use super::settings::{AgentSettings, LimitSettings, RoleSettings, Settings, TaskType};

/// Returns the JSON Schema of the file.
pub fn config_schema() -> Value {
    let generator = SchemaSettings::draft2020_12().with_transform(NullableCollections).into_generator();
    let mut schema = generator.into_root_schema_for::<Settings>().to_value();
    let (limits, rule) = (LimitSettings::schema_name(), RuleSettings::schema_name());
    // Alternative spellings of keys: the type, its key, and the key's other spelling.
    let aliases = [
        (&limits, "max_hook_retries", "maxHookRetries"),
        (&rule, "nextPrompt", "next_prompt"),
        (&rule, "checkpointData", "checkpoint_data"),
    ];
    // Sections that may have no value.
    let nullable = [TaskType::schema_name(), RoleSettings::schema_name(), AgentSettings::schema_name(), limits.clone()];
    if let Some(types) = schema.get_mut("$defs") {
        for (name, key, alias) in aliases {
            types[&**name]["properties"][alias] = types[&**name]["properties"][key].clone();
        }
        for name in &nullable {
            types[&**name]["type"] = json!(["object", "null"]);
        }
    }
    schema["type"] = json!(["object", "null"]);
    schema
}

/// Allows lists and maps without a value, except for points.
#[derive(Clone)]
struct NullableCollections;

impl Transform for NullableCollections {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let is_points = schema.get("propertyNames").is_some();
        let Some(Value::Object(properties)) = schema.get_mut("properties").filter(|_| !is_points) else { return };
        for property in properties.values_mut() {
            let empty = match property["type"].as_str() {
                Some(kind @ ("array" | "object")) => json!([kind, "null"]),
                _ => continue,
            };
            property["type"] = empty;
        }
    }
}
