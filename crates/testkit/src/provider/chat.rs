//! OpenAI's chat completions, which most other providers also support.

use serde_json::{Value, json};

use super::http::ServerSentEvent;
use super::model_api::{
    CACHED_TOKENS, ModelApi, ModelQuestion, ModelReply, OUTPUT_TOKENS, OfferedTool, ProviderError, ReplyEnd,
    UNCACHED_TOKENS, is_answer, list_items, text_of,
};

pub struct ChatCompletions;

impl ModelApi for ChatCompletions {
    fn parse_question(&self, body: &Value) -> ModelQuestion {
        let is_answer = |message: &&Value| {
            message["role"] == "assistant"
                && is_answer(&text_of(&message["content"]), !list_items(&message["tool_calls"]).is_empty())
        };
        let tool = |tool: &Value| {
            let function = &tool["function"];
            Some(OfferedTool { name: function["name"].as_str()?.to_owned(), schema: function["parameters"].clone() })
        };
        ModelQuestion {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            tools: list_items(&body["tools"]).iter().filter_map(tool).collect(),
            answers: list_items(&body["messages"]).iter().filter(is_answer).count(),
            schema: body.pointer("/response_format/json_schema/schema").cloned(),
        }
    }

    fn complete_body(&self, reply: &ModelReply) -> Value {
        let refused = reply.end == ReplyEnd::Refused;
        let mut message = json!({"role": "assistant", "content": null, "refusal": null});
        message[if refused { "refusal" } else { "content" }] = json!(reply.text);
        if let Some(call) = tool_call_json(reply) {
            message["tool_calls"] = json!([call]);
        }
        json!({
            "id": reply_id(reply), "object": "chat.completion", "created": 0, "model": reply.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(reply)}],
            "usage": usage_json(),
        })
    }

    fn stream_events(&self, reply: &ModelReply) -> Vec<ServerSentEvent> {
        let chunk = |choices: Value, usage: Value| {
            ServerSentEvent::plain(&json!({
                "id": reply_id(reply), "object": "chat.completion.chunk", "created": 0, "model": reply.model,
                "choices": choices, "usage": usage,
            }))
        };
        let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null);
        let key = if reply.end == ReplyEnd::Refused { "refusal" } else { "content" };
        let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
        events.extend(reply.pieces().into_iter().map(|piece| delta(json!({key: piece}))));
        if let Some(mut call) = tool_call_json(reply) {
            call["index"] = json!(0);
            events.push(delta(json!({"tool_calls": [call]})));
        }
        events.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish_reason(reply)}]), Value::Null));
        events.push(chunk(json!([]), usage_json()));
        events.push(ServerSentEvent { name: None, data: "[DONE]".to_owned() });
        events
    }

    fn error_body(&self, failure: &ProviderError) -> Value {
        openai_error(failure)
    }
}

/// Returns an error, which has the same form in both of OpenAI's APIs.
pub fn openai_error(failure: &ProviderError) -> Value {
    let (kind, code) = match failure.status {
        401 => ("invalid_request_error", "invalid_api_key"),
        429 => ("requests", "rate_limit_exceeded"),
        400..=499 => ("invalid_request_error", "invalid_value"),
        _ => ("server_error", "server_error"),
    };
    json!({"error": {"message": failure.message, "type": kind, "param": null, "code": code}})
}

fn reply_id(reply: &ModelReply) -> String {
    format!("chatcmpl-{}", reply.number)
}

fn tool_call_json(reply: &ModelReply) -> Option<Value> {
    let call = reply.call.as_ref()?;
    let function = json!({"name": call.tool, "arguments": call.input.to_string()});
    Some(json!({"id": format!("call_{}", reply.number), "type": "function", "function": function}))
}

fn finish_reason(reply: &ModelReply) -> &'static str {
    match reply.end {
        ReplyEnd::Cut => "length",
        ReplyEnd::Refused => "content_filter",
        ReplyEnd::Done if reply.call.is_some() => "tool_calls",
        ReplyEnd::Done => "stop",
    }
}

fn usage_json() -> Value {
    json!({
        "prompt_tokens": UNCACHED_TOKENS + CACHED_TOKENS, "completion_tokens": OUTPUT_TOKENS, "total_tokens": UNCACHED_TOKENS + CACHED_TOKENS + OUTPUT_TOKENS,
        "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
    })
}
