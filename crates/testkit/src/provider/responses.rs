//! OpenAI's responses.

use serde_json::{Value, json};

use super::chat::failed;
use super::dialect::{
    CACHED, Dialect, End, FRESH, ProviderError, Question, Reply, Tool, WRITTEN, is_answer, list, text_of,
};
use super::http::Event;

pub struct Responses;

/// The separator between a namespace and a tool name. No name contains it.
const SPACE: char = '.';

fn function(tool: &Value, space: &str) -> Option<Tool> {
    Some(Tool { name: format!("{space}{}", tool["name"].as_str()?), schema: tool["parameters"].clone() })
}

impl Dialect for Responses {
    fn question(&self, body: &Value) -> Question {
        let is_answer = |item: &&Value| match item["type"].as_str() {
            Some("message") | None => item["role"] == "assistant" && is_answer(&text_of(&item["content"]), false),
            Some(kind) => kind.ends_with("_call"),
        };
        let tools = list(&body["tools"]).iter().flat_map(|tool| match tool["type"].as_str() {
            Some("function") => function(tool, "").into_iter().collect(),
            Some("namespace") => {
                let space = format!("{}{SPACE}", tool["name"].as_str().unwrap_or_default());
                list(&tool["tools"]).iter().filter_map(|tool| function(tool, &space)).collect()
            }
            _ => Vec::new(),
        });
        Question {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            tools: tools.collect(),
            answers: list(&body["input"]).iter().filter(is_answer).count(),
            schema: body.pointer("/text/format/schema").cloned(),
        }
    }

    fn whole(&self, reply: &Reply) -> Value {
        let output: Vec<_> = item(reply).into_iter().collect();
        let mut whole = response(reply, end(reply).1);
        whole["output"] = json!(output);
        whole["usage"] = usage();
        if let End::Cut | End::Refused = reply.end {
            let reason = if reply.end == End::Cut { "max_output_tokens" } else { "content_filter" };
            whole["incomplete_details"] = json!({"reason": reason});
        }
        whole
    }

    fn stream(&self, reply: &Reply) -> Vec<Event> {
        let mut events = Vec::new();
        let mut push = |kind: &'static str, mut data: Value| {
            data["type"] = json!(kind);
            data["sequence_number"] = json!(events.len());
            events.push(Event::named(kind, &data));
        };
        push("response.created", json!({"response": response(reply, "in_progress")}));
        if let Some(item) = item(reply) {
            let mut begun = item.clone();
            begun["status"] = json!("in_progress");
            push("response.output_item.added", json!({"output_index": 0, "item": begun}));
            let place = |data: Value| {
                let mut place = json!({"item_id": item["id"], "output_index": 0, "content_index": 0});
                place.as_object_mut().expect("an object").extend(data.as_object().cloned().unwrap_or_default());
                place
            };
            if reply.call.is_some() {
                push("response.function_call_arguments.done", place(json!({"arguments": item["arguments"]})));
            } else {
                let (delta, done, key) = match reply.end {
                    End::Refused => ("response.refusal.delta", "response.refusal.done", "refusal"),
                    End::Done | End::Cut => ("response.output_text.delta", "response.output_text.done", "text"),
                };
                let mut part = item["content"][0].clone();
                part[key] = json!("");
                push("response.content_part.added", place(json!({"part": part})));
                for piece in reply.pieces() {
                    push(delta, place(json!({"delta": piece})));
                }
                push(done, place(json!({key: reply.text})));
                push("response.content_part.done", place(json!({"part": item["content"][0]})));
            }
            push("response.output_item.done", json!({"output_index": 0, "item": item}));
        }
        push(end(reply).0, json!({"response": self.whole(reply)}));
        events
    }

    fn failure(&self, failure: &ProviderError) -> Value {
        failed(failure)
    }
}

fn response(reply: &Reply, status: &str) -> Value {
    json!({
        "id": format!("resp_{}", reply.number), "object": "response", "created_at": 0, "status": status,
        "model": reply.model, "output": [], "error": null, "incomplete_details": null, "usage": null,
    })
}

fn item(reply: &Reply) -> Option<Value> {
    let number = reply.number;
    if let Some(call) = &reply.call {
        let mut item = json!({
            "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
            "name": call.tool, "arguments": call.input.to_string(), "status": "completed",
        });
        if let Some((space, name)) = call.tool.split_once(SPACE) {
            (item["namespace"], item["name"]) = (json!(space), json!(name));
        }
        return Some(item);
    }
    let part = match reply.end {
        End::Refused => json!({"type": "refusal", "refusal": reply.text}),
        End::Done | End::Cut => json!({"type": "output_text", "text": reply.text, "annotations": []}),
    };
    (!reply.text.is_empty()).then(|| {
        json!({
            "type": "message", "id": format!("msg_{number}"), "role": "assistant", "status": "completed",
            "content": [part],
        })
    })
}

/// Returns the name of the last event, and the status in it.
fn end(reply: &Reply) -> (&'static str, &'static str) {
    match reply.end {
        End::Done => ("response.completed", "completed"),
        End::Cut | End::Refused => ("response.incomplete", "incomplete"),
    }
}

fn usage() -> Value {
    json!({
        "input_tokens": FRESH + CACHED, "input_tokens_details": {"cached_tokens": CACHED},
        "output_tokens": WRITTEN, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": FRESH + CACHED + WRITTEN,
    })
}
