//! A model provider that follows a script, on a free local port, so that real agents run without a model.
//!
//! ```text
//! request ─► ModelApi (by its path) ─► ModelQuestion ─► ScriptProgress::next_step ─► ModelReply ─► body, or events
//! ```
//!
//! The provider supports OpenAI's chat completions and responses, Anthropic's messages and Google's generateContent. A question
//! without tools asks for a title or a summary. Its answer is a short text, or a minimal value for its schema, and the script
//! stays at its step.

mod chat;
mod gemini;
pub(crate) mod http;
mod messages;
mod model_api;
mod responses;
mod script;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

pub use http::HttpRequest;
pub use model_api::{CACHED_TOKENS, OUTPUT_TOKENS, TITLE_TEXT, UNCACHED_TOKENS};
pub use script::{
    END_OF_SCRIPT_TEXT, HttpFailure, ModelStep, REFUSAL_TEXT, StepRepetition, TRUNCATED_TEXT, ToolInvocation,
};

use http::HttpResponse;
use model_api::{ModelApi, ModelQuestion, ModelReply, ProviderError, ReplyEnd, ReplyToolCall};
use script::ScriptProgress;

/// A server that runs until it is dropped.
pub struct ScriptedProvider {
    address: SocketAddr,
    server: Arc<ProviderServer>,
    thread: Option<JoinHandle<()>>,
}

struct ProviderServer {
    state: Mutex<ProviderState>,
    request_arrived: Condvar,
}

struct ProviderState {
    progress: ScriptProgress,
    requests: Vec<HttpRequest>,
    /// Connections of stalled clients.
    stalled: Vec<TcpStream>,
    is_stopped: bool,
}

impl ScriptedProvider {
    pub fn start(steps: Vec<ModelStep>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let state = ProviderState {
            progress: ScriptProgress::new(steps),
            requests: Vec::new(),
            stalled: Vec::new(),
            is_stopped: false,
        };
        let server = Arc::new(ProviderServer { state: Mutex::new(state), request_arrived: Condvar::new() });
        let thread = thread::spawn({
            let server = Arc::clone(&server);
            move || serve(&listener, &server)
        });
        Ok(Self { address, server, thread: Some(thread) })
    }

    /// Returns the address without a path, which agents add.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests so far, including those for titles.
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.server.state().requests.clone()
    }

    /// Waits for the request with this number and returns it.
    pub fn request(&self, number: usize) -> HttpRequest {
        let is_missing = |state: &mut ProviderState| state.requests.len() <= number;
        let state = self.server.request_arrived.wait_while(self.server.state(), is_missing);
        state.unwrap_or_else(PoisonError::into_inner).requests[number].clone()
    }
}

impl Drop for ScriptedProvider {
    fn drop(&mut self) {
        self.server.state().is_stopped = true;
        // Wakes the server, which waits for a connection.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for stream in self.server.state().stalled.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl ProviderServer {
    fn state(&self) -> MutexGuard<'_, ProviderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a client waiting until the provider is dropped or the client closes the connection.
    fn keep_waiting(&self, stream: &TcpStream) {
        let mut state = self.state();
        if state.is_stopped {
            let _ = stream.shutdown(Shutdown::Both);
        } else {
            state.stalled.extend(stream.try_clone());
        }
    }
}

fn serve(listener: &TcpListener, server: &Arc<ProviderServer>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if server.state().is_stopped {
            return;
        }
        let server = Arc::clone(server);
        // A stalled connection must not block the others.
        thread::spawn(move || serve_connection(stream, &server));
    }
}

/// Answers one connection, which the client may close at any time.
fn serve_connection(mut stream: TcpStream, server: &ProviderServer) {
    let Ok(request) = HttpRequest::read(&stream) else { return };
    let response = match find_model_api(&request) {
        Some(model_api) => server.respond(model_api, request),
        None => Some(answer_auxiliary_request(&request)),
    };
    match response {
        Some(response) => drop(response.write(&mut stream)),
        None => server.keep_waiting(&stream),
    }
    http::drain(&stream);
}

/// Returns the API of a request, unless the request is not about the conversation.
fn find_model_api(request: &HttpRequest) -> Option<&'static dyn ModelApi> {
    let path = request.path.split('?').next().unwrap_or_default();
    match path {
        _ if request.method != "POST" => None,
        _ if path.ends_with("/chat/completions") => Some(&chat::ChatCompletions),
        _ if path.ends_with("/responses") => Some(&responses::OpenAiResponses),
        _ if path.ends_with("/messages") => Some(&messages::AnthropicMessages),
        _ if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") => {
            Some(&gemini::GenerateContent)
        }
        _ => None,
    }
}

/// Answers requests beside the conversation, such as the list of models.
fn answer_auxiliary_request(request: &HttpRequest) -> HttpResponse {
    let path = request.path.split('?').next().unwrap_or_default();
    if path.ends_with("/models") {
        let model = json!({"id": "stub", "object": "model", "created": 0, "owned_by": "script"});
        return HttpResponse::json(200, &json!({"object": "list", "data": [model], "models": []}));
    }
    if path.ends_with("/count_tokens") {
        return HttpResponse::json(200, &json!({"input_tokens": UNCACHED_TOKENS}));
    }
    if path.ends_with(":countTokens") {
        return HttpResponse::json(200, &json!({"totalTokens": UNCACHED_TOKENS}));
    }
    if path == "/" {
        return HttpResponse::json(200, &json!({}));
    }
    HttpResponse::json(404, &json!({"error": {"message": "there is nothing here"}}))
}

impl ProviderServer {
    /// Returns the response, or `None` if the model does not answer.
    fn respond(&self, model_api: &dyn ModelApi, request: HttpRequest) -> Option<HttpResponse> {
        let mut question = model_api.parse_question(&request.body);
        if let Some((_, name)) = request.path.split_once("/models/") {
            question.model = name.split(':').next().unwrap_or_default().to_owned();
        }
        let streams = request.body["stream"] == Value::Bool(true) || request.path.contains(":stream");
        let mut state = self.state();
        state.requests.push(request);
        self.request_arrived.notify_all();
        let number = state.requests.len();
        let step =
            question.answer_without_tools().map(ModelStep::Say).or_else(|| state.progress.next_step(question.answers));
        drop(state);
        match play_step(&question, step.unwrap_or_else(|| ModelStep::say(END_OF_SCRIPT_TEXT))) {
            StepOutcome::Says(text, call, end) => {
                let reply = ModelReply { model: question.model, number, text, call, end };
                Some(if streams {
                    HttpResponse::events(&model_api.stream_events(&reply))
                } else {
                    HttpResponse::json(200, &model_api.complete_body(&reply))
                })
            }
            StepOutcome::Fails(error) => {
                let mut response = HttpResponse::json(error.status, &model_api.error_body(&error));
                response.headers.extend(error.retry_after.map(|seconds| ("Retry-After", seconds.to_string())));
                Some(response)
            }
            StepOutcome::Stalls => None,
        }
    }
}

enum StepOutcome {
    Says(String, Option<ReplyToolCall>, ReplyEnd),
    Fails(ProviderError),
    Stalls,
}

/// Returns the outcome of a step, with the tools that the agent has.
fn play_step(question: &ModelQuestion, step: ModelStep) -> StepOutcome {
    let tool_outcome = |call: Option<ReplyToolCall>| match call {
        Some(call) => StepOutcome::Says(String::new(), Some(call), ReplyEnd::Done),
        None => StepOutcome::Fails(ProviderError {
            status: 400,
            retry_after: None,
            message: "no tool for this step is offered",
        }),
    };
    match step {
        ModelStep::Say(text) => StepOutcome::Says(text, None, ReplyEnd::Done),
        ModelStep::Run(command) => tool_outcome(question.command_call(&command)),
        ModelStep::Call(ToolInvocation { tool, input }) => tool_outcome(question.tool_call(&tool, &input)),
        ModelStep::Insist(ToolInvocation { tool, input }) => tool_outcome(Some(ReplyToolCall { tool, input })),
        ModelStep::Cut(_) => StepOutcome::Says(TRUNCATED_TEXT.to_owned(), None, ReplyEnd::Cut),
        ModelStep::Refuse(_) => StepOutcome::Says(REFUSAL_TEXT.to_owned(), None, ReplyEnd::Refused),
        ModelStep::Empty(_) => StepOutcome::Says(String::new(), None, ReplyEnd::Done),
        ModelStep::Stall(_) => StepOutcome::Stalls,
        ModelStep::Fail(HttpFailure { status, retry_after, .. }) => {
            StepOutcome::Fails(ProviderError { status, retry_after, message: error_message(status) })
        }
    }
}

/// Returns an error message in the words of the real providers.
fn error_message(status: u16) -> &'static str {
    match status {
        401 => "Incorrect API key provided: dummy.",
        429 => "Rate limit reached for requests. Please try again later.",
        _ => "The server had an error while processing your request.",
    }
}
