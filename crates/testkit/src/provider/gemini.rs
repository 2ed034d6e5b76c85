//! Google's generateContent.

use serde_json::{Value, json};

use super::dialect::{
    CACHED, Dialect, End, FRESH, ProviderError, Question, Reply, Tool, WRITTEN, is_answer, list, text_of,
};
use super::http::Event;

pub struct Gemini;

impl Dialect for Gemini {
    fn question(&self, body: &Value) -> Question {
        let is_answer = |content: &&Value| {
            let parts = &content["parts"];
            let calls = list(parts).iter().any(|part| part.get("functionCall").is_some());
            content["role"] == "model" && is_answer(&text_of(parts), calls)
        };
        let tool = |tool: &Value| {
            let schema = tool.get("parametersJsonSchema").or_else(|| tool.get("parameters"));
            Some(Tool { name: tool["name"].as_str()?.to_owned(), schema: schema.cloned().unwrap_or_default() })
        };
        let asked = |name: &str| body["generationConfig"].get(name).cloned();
        let declared = |tool: &Value| list(&tool["functionDeclarations"]).to_vec();
        Question {
            // Only the address names the model.
            model: String::new(),
            tools: list(&body["tools"]).iter().flat_map(declared).filter_map(|declared| tool(&declared)).collect(),
            answers: list(&body["contents"]).iter().filter(is_answer).count(),
            schema: asked("responseJsonSchema").or_else(|| asked("responseSchema")),
        }
    }

    fn whole(&self, reply: &Reply) -> Value {
        let parts = match &reply.call {
            Some(call) => vec![json!({"functionCall": {"name": call.tool, "args": call.input}})],
            None => reply.pieces().iter().map(|piece| json!({"text": piece})).collect(),
        };
        last(reply, &parts)
    }

    fn stream(&self, reply: &Reply) -> Vec<Event> {
        let Some(call) = &reply.call else {
            let piece = |piece: &&str| Event::plain(&chunk(reply, &[json!({"text": piece})]));
            let mut events: Vec<_> = reply.pieces().iter().map(piece).collect();
            events.push(Event::plain(&last(reply, &[])));
            return events;
        };
        vec![Event::plain(&last(reply, &[json!({"functionCall": {"name": call.tool, "args": call.input}})]))]
    }

    fn failure(&self, failure: &ProviderError) -> Value {
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

fn chunk(reply: &Reply, parts: &[Value]) -> Value {
    json!({
        "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}}],
        "modelVersion": reply.model, "responseId": format!("response-{}", reply.number),
    })
}

fn last(reply: &Reply, parts: &[Value]) -> Value {
    let mut last = chunk(reply, parts);
    last["candidates"][0]["finishReason"] = json!(match reply.end {
        End::Done => "STOP",
        End::Cut => "MAX_TOKENS",
        End::Refused => "SAFETY",
    });
    last["usageMetadata"] = json!({
        "promptTokenCount": FRESH + CACHED, "cachedContentTokenCount": CACHED, "candidatesTokenCount": WRITTEN,
        "totalTokenCount": FRESH + CACHED + WRITTEN,
    });
    last
}
