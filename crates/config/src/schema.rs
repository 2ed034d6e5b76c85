//! The JSON Schema of the configuration, for editors: what the structs say, plus what only the reader knows.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Value, json};

use super::file::Settings;

/// Other spellings that are read: the type, its key, and the key's other spelling.
const ALIASES: &[(&str, &str, &str)] = &[
    ("Limits", "max_hook_retries", "maxHookRetries"),
    ("Rule", "nextPrompt", "next_prompt"),
    ("Rule", "checkpointData", "checkpoint_data"),
];

/// Sections that may be there without a value.
const SECTIONS: &[&str] = &["TaskType", "Roles", "Agent", "Limits"];

/// The JSON Schema of the file.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().with_transform(EmptyLists).into_generator();
    let mut schema = generator.into_root_schema_for::<Settings>().to_value();
    if let Some(types) = schema.get_mut("$defs") {
        for (name, key, alias) in ALIASES {
            types[name]["properties"][alias] = types[name]["properties"][key].clone();
        }
        for name in SECTIONS {
            types[name]["type"] = json!(["object", "null"]);
        }
    }
    schema["type"] = json!(["object", "null"]);
    schema
}

/// A list or a map of the file may be there without a value; only a point may not.
#[derive(Clone)]
struct EmptyLists;

impl Transform for EmptyLists {
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
