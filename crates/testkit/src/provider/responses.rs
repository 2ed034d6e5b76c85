//! OpenAI's responses.

use serde_json::{Value, json};

use super::chat::openai_error;
use super::http::ServerSentEvent;
use super::model_api::{
    CACHED_TOKENS, ModelApi, ModelQuestion, ModelReply, OUTPUT_TOKENS, OfferedTool, ProviderError, ReplyEnd,
    UNCACHED_TOKENS, is_answer, list_items, text_of,
};

pub struct OpenAiResponses;

/// The separator between a namespace and a tool name. No name contains it.
const NAMESPACE_SEPARATOR: char = '.';

fn function_tool(tool: &Value, namespace: &str) -> Option<OfferedTool> {
    Some(OfferedTool { name: format!("{namespace}{}", tool["name"].as_str()?), schema: tool["parameters"].clone() })
}

impl ModelApi for OpenAiResponses {
    fn parse_question(&self, body: &Value) -> ModelQuestion {
        let is_answer = |item: &&Value| match item["type"].as_str() {
            Some("message") | None => item["role"] == "assistant" && is_answer(&text_of(&item["content"]), false),
            Some(kind) => kind.ends_with("_call"),
        };
        let tools = list_items(&body["tools"]).iter().flat_map(|tool| match tool["type"].as_str() {
            Some("function") => function_tool(tool, "").into_iter().collect(),
            Some("namespace") => {
                let namespace = format!("{}{NAMESPACE_SEPARATOR}", tool["name"].as_str().unwrap_or_default());
                list_items(&tool["tools"]).iter().filter_map(|tool| function_tool(tool, &namespace)).collect()
            }
            _ => Vec::new(),
        });
        ModelQuestion {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            tools: tools.collect(),
            answers: list_items(&body["input"]).iter().filter(is_answer).count(),
            schema: body.pointer("/text/format/schema").cloned(),
        }
    }

    fn complete_body(&self, reply: &ModelReply) -> Value {
        let output: Vec<_> = output_item(reply).into_iter().collect();
        let mut body = response_json(reply, final_event(reply).1);
        body["output"] = json!(output);
        body["usage"] = usage_json();
        if let ReplyEnd::Cut | ReplyEnd::Refused = reply.end {
            let reason = if reply.end == ReplyEnd::Cut { "max_output_tokens" } else { "content_filter" };
            body["incomplete_details"] = json!({"reason": reason});
        }
        body
    }

    fn stream_events(&self, reply: &ModelReply) -> Vec<ServerSentEvent> {
        let mut events = Vec::new();
        let mut push = |kind: &'static str, mut data: Value| {
            data["type"] = json!(kind);
            data["sequence_number"] = json!(events.len());
            events.push(ServerSentEvent::named(kind, &data));
        };
        push("response.created", json!({"response": response_json(reply, "in_progress")}));
        if let Some(item) = output_item(reply) {
            let mut started_item = item.clone();
            started_item["status"] = json!("in_progress");
            push("response.output_item.added", json!({"output_index": 0, "item": started_item}));
            let with_location = |data: Value| {
                let mut fields = json!({"item_id": item["id"], "output_index": 0, "content_index": 0});
                fields.as_object_mut().expect("an object").extend(data.as_object().cloned().unwrap_or_default());
                fields
            };
            if reply.call.is_some() {
                push("response.function_call_arguments.done", with_location(json!({"arguments": item["arguments"]})));
            } else {
                let (delta, done, key) = match reply.end {
                    ReplyEnd::Refused => ("response.refusal.delta", "response.refusal.done", "refusal"),
                    ReplyEnd::Done | ReplyEnd::Cut => {
                        ("response.output_text.delta", "response.output_text.done", "text")
                    }
                };
                let mut part = item["content"][0].clone();
                part[key] = json!("");
                push("response.content_part.added", with_location(json!({"part": part})));
                for piece in reply.pieces() {
                    push(delta, with_location(json!({"delta": piece})));
                }
                push(done, with_location(json!({key: reply.text})));
                push("response.content_part.done", with_location(json!({"part": item["content"][0]})));
            }
            push("response.output_item.done", json!({"output_index": 0, "item": item}));
        }
        push(final_event(reply).0, json!({"response": self.complete_body(reply)}));
        events
    }

    fn error_body(&self, failure: &ProviderError) -> Value {
        openai_error(failure)
    }
}

fn response_json(reply: &ModelReply, status: &str) -> Value {
    json!({
        "id": format!("resp_{}", reply.number), "object": "response", "created_at": 0, "status": status,
        "model": reply.model, "output": [], "error": null, "incomplete_details": null, "usage": null,
    })
}

fn output_item(reply: &ModelReply) -> Option<Value> {
    let number = reply.number;
    if let Some(call) = &reply.call {
        let mut item = json!({
            "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
            "name": call.tool, "arguments": call.input.to_string(), "status": "completed",
        });
        if let Some((namespace, name)) = call.tool.split_once(NAMESPACE_SEPARATOR) {
            (item["namespace"], item["name"]) = (json!(namespace), json!(name));
        }
        return Some(item);
    }
    let part = match reply.end {
        ReplyEnd::Refused => json!({"type": "refusal", "refusal": reply.text}),
        ReplyEnd::Done | ReplyEnd::Cut => json!({"type": "output_text", "text": reply.text, "annotations": []}),
    };
    (!reply.text.is_empty()).then(|| {
        json!({
            "type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed",
            "content": [part],
        })
    })
}

/// Returns the name of the last event, and the status in it.
fn final_event(reply: &ModelReply) -> (&'static str, &'static str) {
    match reply.end {
        ReplyEnd::Done => ("response.completed", "completed"),
        ReplyEnd::Cut | ReplyEnd::Refused => ("response.incomplete", "incomplete"),
    }
}

fn usage_json() -> Value {
    json!({
        "input_tokens": UNCACHED_TOKENS + CACHED_TOKENS, "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "output_tokens": OUTPUT_TOKENS, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": UNCACHED_TOKENS + CACHED_TOKENS + OUTPUT_TOKENS,
    })
}
