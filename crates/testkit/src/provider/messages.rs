//! Anthropic's messages.

use serde_json::{Value, json};

use super::dialect::{
    CACHED, Dialect, End, FRESH, ProviderError, Question, Reply, Tool, WRITTEN, is_answer, list, text_of,
};
use super::http::Event;

pub struct Messages;

impl Dialect for Messages {
    fn question(&self, body: &Value) -> Question {
        let is_answer = |message: &&Value| {
            let content = &message["content"];
            let calls = list(content).iter().any(|block| block["type"] == "tool_use");
            message["role"] == "assistant" && is_answer(&text_of(content), calls)
        };
        let tool =
            |tool: &Value| Some(Tool { name: tool["name"].as_str()?.to_owned(), schema: tool["input_schema"].clone() });
        Question {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            tools: list(&body["tools"]).iter().filter_map(tool).collect(),
            answers: list(&body["messages"]).iter().filter(is_answer).count(),
            schema: body.pointer("/output_config/format/schema").cloned(),
        }
    }

    fn whole(&self, reply: &Reply) -> Value {
        let content: Vec<_> = block(reply).into_iter().collect();
        let mut whole = message(reply);
        whole["content"] = json!(content);
        whole["stop_reason"] = json!(stop(reply));
        whole["usage"] = usage(WRITTEN);
        whole
    }

    fn stream(&self, reply: &Reply) -> Vec<Event> {
        let mut events = Vec::new();
        let mut push = |kind: &'static str, mut data: Value| {
            data["type"] = json!(kind);
            events.push(Event::named(kind, &data));
        };
        push("message_start", json!({"message": message(reply)}));
        if let Some(mut block) = block(reply) {
            let deltas: Vec<Value> = match &reply.call {
                Some(call) => {
                    block["input"] = json!({});
                    vec![json!({"type": "input_json_delta", "partial_json": call.input.to_string()})]
                }
                None => {
                    block["text"] = json!("");
                    reply.pieces().iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect()
                }
            };
            push("content_block_start", json!({"index": 0, "content_block": block}));
            for delta in deltas {
                push("content_block_delta", json!({"index": 0, "delta": delta}));
            }
            push("content_block_stop", json!({"index": 0}));
        }
        let delta = json!({"stop_reason": stop(reply), "stop_sequence": null});
        push("message_delta", json!({"delta": delta, "usage": {"output_tokens": WRITTEN}}));
        push("message_stop", json!({}));
        events
    }

    fn failure(&self, failure: &ProviderError) -> Value {
        let kind = match failure.status {
            401 => "authentication_error",
            429 => "rate_limit_error",
            400..=499 => "invalid_request_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        json!({"type": "error", "error": {"type": kind, "message": failure.message}})
    }
}

fn message(reply: &Reply) -> Value {
    json!({
        "id": format!("msg_{}", reply.number), "type": "message", "role": "assistant", "model": reply.model,
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(1),
    })
}

fn block(reply: &Reply) -> Option<Value> {
    if let Some(call) = &reply.call {
        let id = format!("toolu_{}", reply.number);
        return Some(json!({"type": "tool_use", "id": id, "name": call.tool, "input": call.input}));
    }
    (!reply.text.is_empty()).then(|| json!({"type": "text", "text": reply.text}))
}

fn stop(reply: &Reply) -> &'static str {
    match reply.end {
        End::Cut => "max_tokens",
        End::Refused => "refusal",
        End::Done if reply.call.is_some() => "tool_use",
        End::Done => "end_turn",
    }
}

fn usage(written: u64) -> Value {
    json!({
        "input_tokens": FRESH, "cache_read_input_tokens": CACHED, "cache_creation_input_tokens": 0,
        "output_tokens": written,
    })
}
