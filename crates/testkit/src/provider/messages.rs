//! Anthropic's messages.

use serde_json::{Value, json};

use super::http::ServerSentEvent;
use super::model_api::{
    CACHED_TOKENS, ModelApi, ModelQuestion, ModelReply, OUTPUT_TOKENS, OfferedTool, ProviderError, ReplyEnd,
    UNCACHED_TOKENS, is_answer, list_items, text_of,
};

pub struct AnthropicMessages;

impl ModelApi for AnthropicMessages {
    fn parse_question(&self, body: &Value) -> ModelQuestion {
        let is_answer = |message: &&Value| {
            let content = &message["content"];
            let calls = list_items(content).iter().any(|block| block["type"] == "tool_use");
            message["role"] == "assistant" && is_answer(&text_of(content), calls)
        };
        let tool = |tool: &Value| {
            Some(OfferedTool { name: tool["name"].as_str()?.to_owned(), schema: tool["input_schema"].clone() })
        };
        ModelQuestion {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            tools: list_items(&body["tools"]).iter().filter_map(tool).collect(),
            answers: list_items(&body["messages"]).iter().filter(is_answer).count(),
            schema: body.pointer("/output_config/format/schema").cloned(),
        }
    }

    fn complete_body(&self, reply: &ModelReply) -> Value {
        let content: Vec<_> = content_block(reply).into_iter().collect();
        let mut body = message_json(reply);
        body["content"] = json!(content);
        body["stop_reason"] = json!(stop_reason(reply));
        body["usage"] = usage_json(OUTPUT_TOKENS);
        body
    }

    fn stream_events(&self, reply: &ModelReply) -> Vec<ServerSentEvent> {
        let mut events = Vec::new();
        let mut push = |kind: &'static str, mut data: Value| {
            data["type"] = json!(kind);
            events.push(ServerSentEvent::named(kind, &data));
        };
        push("message_start", json!({"message": message_json(reply)}));
        if let Some(mut block) = content_block(reply) {
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
        let delta = json!({"stop_reason": stop_reason(reply), "stop_sequence": null});
        push("message_delta", json!({"delta": delta, "usage": {"output_tokens": OUTPUT_TOKENS}}));
        push("message_stop", json!({}));
        events
    }

    fn error_body(&self, failure: &ProviderError) -> Value {
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

fn message_json(reply: &ModelReply) -> Value {
    json!({
        "id": format!("msg_{}", reply.number), "type": "message", "role": "assistant", "model": reply.model,
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage_json(1),
    })
}

fn content_block(reply: &ModelReply) -> Option<Value> {
    if let Some(call) = &reply.call {
        let id = format!("toolu_{}", reply.number);
        return Some(json!({"type": "tool_use", "id": id, "name": call.tool, "input": call.input}));
    }
    (!reply.text.is_empty()).then(|| json!({"type": "text", "text": reply.text}))
}

fn stop_reason(reply: &ModelReply) -> &'static str {
    match reply.end {
        ReplyEnd::Cut => "max_tokens",
        ReplyEnd::Refused => "refusal",
        ReplyEnd::Done if reply.call.is_some() => "tool_use",
        ReplyEnd::Done => "end_turn",
    }
}

fn usage_json(output_tokens: u64) -> Value {
    json!({
        "input_tokens": UNCACHED_TOKENS, "cache_read_input_tokens": CACHED_TOKENS, "cache_creation_input_tokens": 0,
        "output_tokens": output_tokens,
    })
}
