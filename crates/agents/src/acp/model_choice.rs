//! The choice of a conversation's model, as far as the agent offers one.
//!
//! Agents offer models as an option of the conversation (`configOptions`), older agents in a list of their own
//! (`models`).

use serde_json::{Value, json};

/// How many models the notice about an unknown model lists.
const MAX_NAMED_MODELS: usize = 12;

/// The step that makes the agent use a model.
#[derive(Debug, PartialEq)]
pub enum ModelChoice {
    /// The conversation uses the model already.
    AlreadyCurrent,
    /// The agent needs this request.
    Ask { method: &'static str, params: Value },
    /// The model cannot be chosen, for this reason.
    Impossible(String),
}

/// Returns how to choose a model in a conversation. `answer` is the agent's answer to the request that opened it.
pub fn choose_model(model: &str, conversation: &str, answer: &Value) -> ModelChoice {
    let is_model = |option: &&Value| option["category"] == "model" || option["id"] == "model";
    let option = value_as_slice(&answer["configOptions"]).iter().find(is_model);
    let (models, key, current) = match option {
        Some(option) => (flatten_options(&option["options"]), "value", &option["currentValue"]),
        None => {
            let models = &answer["models"];
            (value_as_slice(&models["availableModels"]).iter().collect(), "modelId", &models["currentModelId"])
        }
    };
    // The protocol's id takes precedence over the display name.
    let by = |field: &str| models.iter().find(|one| one[field] == model);
    let found = by(key).or_else(|| by("name")).and_then(|one| one[key].as_str());
    match (found, option) {
        (found, _) if current == found.unwrap_or(model) => ModelChoice::AlreadyCurrent,
        (Some(found), Some(option)) => ModelChoice::Ask {
            method: "session/set_config_option",
            params: json!({"sessionId": conversation, "configId": option["id"], "value": found}),
        },
        (Some(found), None) => ModelChoice::Ask {
            method: "session/set_model",
            params: json!({"sessionId": conversation, "modelId": found}),
        },
        (None, None) if models.is_empty() => ModelChoice::Impossible(format!(
            "the model `{model}` cannot be chosen: the agent offers no choice of models here; choose it in the agent's own settings"
        )),
        (None, _) => {
            let names = models.iter().take(MAX_NAMED_MODELS).filter_map(|one| one[key].as_str());
            let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
            let more = if models.len() > MAX_NAMED_MODELS { " and others" } else { "" };
            ModelChoice::Impossible(format!("the agent has no model `{model}`: it offers {}{more}", names.join(", ")))
        }
    }
}

/// Returns the choices of an option, with groups expanded.
fn flatten_options(options: &Value) -> Vec<&Value> {
    fn expand_group(option: &Value) -> Vec<&Value> {
        match value_as_slice(&option["options"]) {
            [] => vec![option],
            group => group.iter().collect(),
        }
    }
    value_as_slice(options).iter().flat_map(expand_group).collect()
}

fn value_as_slice(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(current: &str, options: &Value) -> Value {
        let mode = json!({"id": "mode", "category": "mode", "type": "select", "currentValue": "x", "options": []});
        let model =
            json!({"id": "m", "category": "model", "type": "select", "currentValue": current, "options": options});
        json!({"sessionId": "s", "configOptions": [mode, model]})
    }

    #[test]
    fn model_choice_matches_options_offered_by_agent() {
        let flat = json!([{"value": "big-1", "name": "Big"}, {"value": "small-1", "name": "Small"}]);
        let groups = json!([{"group": "g", "name": "G", "options": flat}]);
        let ask = |value: &str| ModelChoice::Ask {
            method: "session/set_config_option",
            params: json!({"sessionId": "s", "configId": "m", "value": value}),
        };
        assert_eq!(choose_model("small-1", "s", &option("big-1", &flat)), ask("small-1"));
        assert_eq!(choose_model("Small", "s", &option("big-1", &flat)), ask("small-1"));
        assert_eq!(choose_model("small-1", "s", &option("big-1", &groups)), ask("small-1"));
        assert_eq!(choose_model("big-1", "s", &option("big-1", &flat)), ModelChoice::AlreadyCurrent);
        let impossible = |why: &str| ModelChoice::Impossible(why.to_owned());
        let other = impossible("the agent has no model `huge`: it offers `big-1`, `small-1`");
        assert_eq!(choose_model("huge", "s", &option("big-1", &groups)), other);
        let models =
            json!({"models": {"currentModelId": "a", "availableModels": [{"modelId": "a"}, {"modelId": "b"}]}});
        let set = ModelChoice::Ask { method: "session/set_model", params: json!({"sessionId": "s", "modelId": "b"}) };
        assert_eq!(choose_model("b", "s", &models), set);
        assert_eq!(choose_model("a", "s", &models), ModelChoice::AlreadyCurrent);
        assert!(
            matches!(choose_model("a", "s", &Value::Null), ModelChoice::Impossible(why) if why.contains("offers no choice"))
        );
    }
}
