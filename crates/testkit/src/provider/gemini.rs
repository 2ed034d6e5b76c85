//! Google's generateContent.

use serde_json::{Value, json};

use super::http::ServerSentEvent;
use super::model_api::{
    CACHED_TOKENS, ModelApi, ModelQuestion, ModelReply, OUTPUT_TOKENS, OfferedTool, ProviderError, ReplyEnd,
    UNCACHED_TOKENS, is_answer, list_items, text_of,
};

pub struct GenerateContent;

impl ModelApi for GenerateContent {
    fn parse_question(&self, body: &Value) -> ModelQuestion {
        let is_answer = |content: &&Value| {
            let parts = &content["parts"];
            let calls = list_items(parts).iter().any(|part| part.get("functionCall").is_some());
            content["role"] == "model" && is_answer(&text_of(parts), calls)
        };
        let tool = |tool: &Value| {
            let schema = tool.get("parametersJsonSchema").or_else(|| tool.get("parameters"));
            Some(OfferedTool { name: tool["name"].as_str()?.to_owned(), schema: schema.cloned().unwrap_or_default() })
        };
        let config_value = |name: &str| body["generationConfig"].get(name).cloned();
        let declaration = |tool: &Value| list_items(&tool["functionDeclarations"]).to_vec();
        ModelQuestion {
            // Only the address names the model.
            model: String::new(),
            tools: list_items(&body["tools"])
                .iter()
                .flat_map(declaration)
                .filter_map(|declaration| tool(&declaration))
                .collect(),
            answers: list_items(&body["contents"]).iter().filter(is_answer).count(),
            schema: config_value("responseJsonSchema").or_else(|| config_value("responseSchema")),
        }
    }

    fn complete_body(&self, reply: &ModelReply) -> Value {
        let parts = match &reply.call {
            Some(call) => vec![json!({"functionCall": {"name": call.tool, "args": call.input}})],
            None => reply.pieces().iter().map(|piece| json!({"text": piece})).collect(),
        };
        final_chunk(reply, &parts)
    }

    fn stream_events(&self, reply: &ModelReply) -> Vec<ServerSentEvent> {
        let Some(call) = &reply.call else {
            let piece = |piece: &&str| ServerSentEvent::plain(&candidate_chunk(reply, &[json!({"text": piece})]));
            let mut events: Vec<_> = reply.pieces().iter().map(piece).collect();
            events.push(ServerSentEvent::plain(&final_chunk(reply, &[])));
            return events;
        };
        vec![ServerSentEvent::plain(&final_chunk(
            reply,
            &[json!({"functionCall": {"name": call.tool, "args": call.input}})],
        ))]
    }

    fn error_body(&self, failure: &ProviderError) -> Value {
        let status = match failure.status {
            401 => "UNAUTHENTICATED",
            429 => "RESOURCE_EXHAUSTED",
            400..=499 => "INVALID_ARGUMENT",
            _ => "INTERNAL",
        };
        let mut error = json!({"code": failure.status, "message": failure.message, "status": status});
        if let Some(seconds) = failure.retry_after {
            let delay = format!("{seconds}s");
            error["details"] = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]);
        }
        json!({"error": error})
    }
}

fn candidate_chunk(reply: &ModelReply, parts: &[Value]) -> Value {
    json!({
        "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}],
        "modelVersion": reply.model, "responseId": format!("response-{}", reply.number),
    })
}

fn final_chunk(reply: &ModelReply, parts: &[Value]) -> Value {
    let mut chunk = candidate_chunk(reply, parts);
    chunk["candidates"][0]["finishReason"] = json!(match reply.end {
        ReplyEnd::Done => "STOP",
        ReplyEnd::Cut => "MAX_TOKENS",
        ReplyEnd::Refused => "SAFETY",
    });
    chunk["usageMetadata"] = json!({
        "promptTokenCount": UNCACHED_TOKENS + CACHED_TOKENS, "cachedContentTokenCount": CACHED_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS,
        "totalTokenCount": UNCACHED_TOKENS + CACHED_TOKENS + OUTPUT_TOKENS,
    });
    chunk
}
