//! OpenAI's chat completions, which most other providers support too.

use serde_json::{Value, json};

use super::dialect::{
    CACHED, Dialect, End, FRESH, ProviderError, Question, Reply, Tool, WRITTEN, is_answer, list, text_of,
};
use super::http::Event;

pub struct Chat;

impl Dialect for Chat {
    fn question(&self, body: &Value) -> Question {
        let is_answer = |message: &&Value| {
            message["role"] == "assistant"
                && is_answer(&text_of(&message["content"]), !list(&message["tool_calls"]).is_empty())
        };
        let tool = |tool: &Value| {
            let function = &tool["function"];
            Some(Tool { name: function["name"].as_str()?.to_owned(), schema: function["parameters"].clone() })
        };
        Question {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            tools: list(&body["tools"]).iter().filter_map(tool).collect(),
            answers: list(&body["messages"]).iter().filter(is_answer).count(),
            schema: body.pointer("/response_format/json_schema/schema").cloned(),
        }
    }

    fn whole(&self, reply: &Reply) -> Value {
        let refused = reply.end == End::Refused;
        let mut message = json!({"role": "assistant", "content": null, "refusal": null});
        message[if refused { "refusal" } else { "content" }] = json!(reply.text);
        if let Some(call) = call(reply) {
            message["tool_calls"] = json!([call]);
        }
        json!({
            "id": id(reply), "object": "chat.completion", "created": 0, "model": reply.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish(reply)}],
            "usage": usage(),
        })
    }

    fn stream(&self, reply: &Reply) -> Vec<Event> {
        let chunk = |choices: Value, usage: Value| {
            Event::plain(&json!({
                "id": id(reply), "object": "chat.completion.chunk", "created": 0, "model": reply.model,
                "choices": choices, "usage": usage,
            }))
        };
        let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null);
        let key = if reply.end == End::Refused { "refusal" } else { "content" };
        let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
        events.extend(reply.pieces().into_iter().map(|piece| delta(json!({key: piece}))));
        if let Some(mut call) = call(reply) {
            call["index"] = json!(0);
            events.push(delta(json!({"tool_calls": [call]})));
        }
        events.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish(reply)}]), Value::Null));
        events.push(chunk(json!([]), usage()));
        events.push(Event { name: None, data: "[DONE]".to_owned() });
        events
    }

    fn failure(&self, failure: &ProviderError) -> Value {
        failed(failure)
    }
}

/// Returns an error, which has the same form in both of OpenAI's APIs.
pub fn failed(failure: &ProviderError) -> Value {
    let (kind, code) = match failure.status {
        401 => ("invalid_request_error", "invalid_api_key"),
        429 => ("requests", "rate_limit_exceeded"),
        400..=499 => ("invalid_request_error", "invalid_value"),
        _ => ("server_error", "server_error"),
    };
    json!({"error": {"message": failure.message, "type": kind, "param": null, "code": code}})
}

fn id(reply: &Reply) -> String {
    format!("chatcmpl-{}", reply.number)
}

fn call(reply: &Reply) -> Option<Value> {
    let call = reply.call.as_ref()?;
    let function = json!({"name": call.tool, "arguments": call.input.to_string()});
    Some(json!({"id": format!("call_{}", reply.number), "type": "function", "function": function}))
}

fn finish(reply: &Reply) -> &'static str {
    match reply.end {
        End::Cut => "length",
        End::Refused => "content_filter",
        End::Done if reply.call.is_some() => "tool_calls",
        End::Done => "stop",
    }
}

fn usage() -> Value {
    json!({
        "prompt_tokens": FRESH + CACHED, "completion_tokens": WRITTEN, "total_tokens": FRESH + CACHED + WRITTEN,
        "prompt_tokens_details": {"cached_tokens": CACHED},
    })
}
