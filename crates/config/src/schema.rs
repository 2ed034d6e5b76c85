//! The JSON Schema of the configuration, for editors: derived from the structs, with additions that only the reader knows.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Value, json};

use super::settings::Settings;

/// Alternative spellings of keys: the type, its key, and the key's other spelling.
const KEY_ALIASES: &[(&str, &str, &str)] = &[
    ("Limits", "max_hook_retries", "maxHookRetries"),
    ("Rule", "nextPrompt", "next_prompt"),
    ("Rule", "checkpointData", "checkpoint_data"),
];

/// Sections that may have no value.
const NULLABLE_SECTIONS: &[&str] = &["TaskType", "Roles", "Agent", "Limits"];

/// Returns the JSON Schema of the file.
pub fn config_schema() -> Value {
    let generator = SchemaSettings::draft2020_12().with_transform(NullableCollections).into_generator();
    let mut schema = generator.into_root_schema_for::<Settings>().to_value();
    if let Some(types) = schema.get_mut("$defs") {
        for (name, key, alias) in KEY_ALIASES {
            types[name]["properties"][alias] = types[name]["properties"][key].clone();
        }
        for name in NULLABLE_SECTIONS {
            types[name]["type"] = json!(["object", "null"]);
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
