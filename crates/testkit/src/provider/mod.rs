//! A model provider that follows a script, on a free local port, so that real agents run without a model.
//!
//! ```text
//! request ─► api (by its path) ─► Question ─► Play::next(answers so far) ─► Reply ─► body, or events
//! ```
//!
//! It speaks OpenAI's chat completions and responses, Anthropic's messages and Google's generateContent. A question without
//! tools asks for a title or a summary: it gets a short text, or a minimal value for its schema, and the script stays at its
//! step.

mod chat;
mod dialect;
mod gemini;
pub(crate) mod http;
mod messages;
mod responses;
mod script;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

pub use dialect::{CACHED, FRESH, TITLE, WRITTEN};
pub use http::Request;
pub use script::{CUT, Failure, Mishap, NOTHING_LEFT, REFUSED, Step, Use};

use dialect::{Call, Dialect, End, ProviderError, Question, Reply};
use http::Response;
use script::Play;

/// A server that runs until it is dropped.
pub struct Provider {
    address: SocketAddr,
    stage: Arc<ProviderServer>,
    thread: Option<JoinHandle<()>>,
}

struct ProviderServer {
    scene: Mutex<ProviderState>,
    asked: Condvar,
}

struct ProviderState {
    play: Play,
    requests: Vec<Request>,
    /// Connections of stalled clients.
    stalled: Vec<TcpStream>,
    is_over: bool,
}

impl Provider {
    pub fn start(steps: Vec<Step>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let scene = ProviderState { play: Play::new(steps), requests: Vec::new(), stalled: Vec::new(), is_over: false };
        let stage = Arc::new(ProviderServer { scene: Mutex::new(scene), asked: Condvar::new() });
        let thread = thread::spawn({
            let stage = Arc::clone(&stage);
            move || serve(&listener, &stage)
        });
        Ok(Self { address, stage, thread: Some(thread) })
    }

    /// Returns the address without a path, which agents add.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests so far, including those for titles.
    pub fn requests(&self) -> Vec<Request> {
        self.stage.scene().requests.clone()
    }

    /// Waits for the request with this number and returns it.
    pub fn request(&self, number: usize) -> Request {
        let is_missing = |scene: &mut ProviderState| scene.requests.len() <= number;
        let scene = self.stage.asked.wait_while(self.stage.scene(), is_missing);
        scene.unwrap_or_else(PoisonError::into_inner).requests[number].clone()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.stage.scene().is_over = true;
        // Wakes the server, which waits for a connection.
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for stream in self.stage.scene().stalled.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl ProviderServer {
    fn scene(&self) -> MutexGuard<'_, ProviderState> {
        self.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a client waiting until the provider is dropped or the client closes the connection.
    fn keep_waiting(&self, stream: &TcpStream) {
        let mut scene = self.scene();
        if scene.is_over {
            let _ = stream.shutdown(Shutdown::Both);
        } else {
            scene.stalled.extend(stream.try_clone());
        }
    }
}

fn serve(listener: &TcpListener, stage: &Arc<ProviderServer>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if stage.scene().is_over {
            return;
        }
        let stage = Arc::clone(stage);
        // A stalled connection must not block the others.
        thread::spawn(move || answer(stream, &stage));
    }
}

/// Answers one connection, which the client may close at any time.
fn answer(mut stream: TcpStream, stage: &ProviderServer) {
    let Ok(request) = Request::read(&stream) else { return };
    let response = match dialect_of(&request) {
        Some(dialect) => stage.response(dialect, request),
        None => Some(probe(&request)),
    };
    match response {
        Some(response) => drop(response.write(&mut stream)),
        None => stage.keep_waiting(&stream),
    }
    http::drain(&stream);
}

/// Returns the API of a request, unless the request is not about the conversation.
fn dialect_of(request: &Request) -> Option<&'static dyn Dialect> {
    let path = request.path.split('?').next().unwrap_or_default();
    match path {
        _ if request.method != "POST" => None,
        _ if path.ends_with("/chat/completions") => Some(&chat::Chat),
        _ if path.ends_with("/responses") => Some(&responses::Responses),
        _ if path.ends_with("/messages") => Some(&messages::Messages),
        _ if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") => Some(&gemini::Gemini),
        _ => None,
    }
}

/// Answers requests beside the conversation, such as the list of models.
fn probe(request: &Request) -> Response {
    let path = request.path.split('?').next().unwrap_or_default();
    if path.ends_with("/models") {
        let model = json!({"id": "stub", "object": "model", "created": 0, "owned_by": "script"});
        return Response::json(200, &json!({"object": "list", "data": [model], "models": []}));
    }
    if path.ends_with("/count_tokens") {
        return Response::json(200, &json!({"input_tokens": FRESH}));
    }
    if path.ends_with(":countTokens") {
        return Response::json(200, &json!({"totalTokens": FRESH}));
    }
    if path == "/" {
        return Response::json(200, &json!({}));
    }
    Response::json(404, &json!({"error": {"message": "there is nothing here"}}))
}

impl ProviderServer {
    /// Returns the response, or `None` if the model does not answer.
    fn response(&self, dialect: &dyn Dialect, request: Request) -> Option<Response> {
        let mut question = dialect.question(&request.body);
        if let Some((_, name)) = request.path.split_once("/models/") {
            question.model = name.split(':').next().unwrap_or_default().to_owned();
        }
        let streams = request.body["stream"] == Value::Bool(true) || request.path.contains(":stream");
        let mut scene = self.scene();
        scene.requests.push(request);
        self.asked.notify_all();
        let number = scene.requests.len();
        let step = question.aside().map(Step::Say).or_else(|| scene.play.next(question.answers));
        drop(scene);
        match play_step(&question, step.unwrap_or_else(|| Step::say(NOTHING_LEFT))) {
            Turn::Says(text, call, end) => {
                let reply = Reply { model: question.model, number, text, call, end };
                Some(if streams {
                    Response::events(&dialect.stream(&reply))
                } else {
                    Response::json(200, &dialect.whole(&reply))
                })
            }
            Turn::Fails(trouble) => {
                let mut response = Response::json(trouble.status, &dialect.failure(&trouble));
                response.headers.extend(trouble.retry_after.map(|seconds| ("Retry-After", seconds.to_string())));
                Some(response)
            }
            Turn::Stalls => None,
        }
    }
}

enum Turn {
    Says(String, Option<Call>, End),
    Fails(ProviderError),
    Stalls,
}

/// Returns the outcome of a step, with the tools that the agent has.
fn play_step(question: &Question, step: Step) -> Turn {
    let calls = |call: Option<Call>| match call {
        Some(call) => Turn::Says(String::new(), Some(call), End::Done),
        None => {
            Turn::Fails(ProviderError { status: 400, retry_after: None, message: "no tool for this step is offered" })
        }
    };
    match step {
        Step::Say(text) => Turn::Says(text, None, End::Done),
        Step::Run(command) => calls(question.running(&command)),
        Step::Call(Use { tool, input }) => calls(question.using(&tool, &input)),
        Step::Insist(Use { tool, input }) => calls(Some(Call { tool, input })),
        Step::Cut(_) => Turn::Says(CUT.to_owned(), None, End::Cut),
        Step::Refuse(_) => Turn::Says(REFUSED.to_owned(), None, End::Refused),
        Step::Empty(_) => Turn::Says(String::new(), None, End::Done),
        Step::Stall(_) => Turn::Stalls,
        Step::Fail(Failure { status, retry_after, .. }) => {
            Turn::Fails(ProviderError { status, retry_after, message: message(status) })
        }
    }
}

/// Returns an error message in the words of the real providers.
fn message(status: u16) -> &'static str {
    match status {
        401 => "Incorrect API key provided: dummy.",
        429 => "Rate limit reached for requests. Please try again later.",
        _ => "The server had an error while processing your request.",
    }
}
