//! `windlass mcp`: serves the tools to agents.

use serde_json::json;
use windlass_app::context::Context;
use windlass_app::tool_host::{ProjectToolHost, told};
use windlass_app::{Code, Failure, environment, execution};
use windlass_mcp::{AddressError, Driven, Listening, Server, Stop as End, Token};
use windlass_process::{Control, signals};
use windlass_store::Lifetime;
use windlass_tools::{ToolRouter, catalogue};

use crate::output::{Messages, Output, Stop};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass mcp                           what an agent starts, in its working directory
  windlass mcp --project ~/shop          wherever the agent works
  windlass mcp --http                    at any free port, with a new token; both are in the line that it prints
  WINDLASS_MCP_TOKEN=$(cat token) windlass mcp --http 127.0.0.1:8137
  windlass mcp --http --json             where to connect and with which token, for a program")]
pub struct Args {
    /// Serve over streamable HTTP at this address of this machine: HOST:PORT or PORT; port 0 is any free one
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:0")]
    http: Option<String>,
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Result<u8, Stop> {
    // A missing project is an error at once. The first call opens the store, so that the client need not wait for it.
    let mut context = context.clone();
    context.project = Some(context.project()?.root);
    let control = Control::new();
    let end = End::new(control.clone());
    let told_to_end = end.clone();
    let _received = signals::install(&control, move |signal| {
        if let signals::Signalled::End(_) = signal {
            told_to_end.now();
        }
    })
    .map_err(|error| Failure::new(Code::System, "cannot listen to signals").caused_by(error))?;
    let open = move || Ok(ToolRouter::new(ProjectToolHost::new(context.open_for(Lifetime::Service).map_err(told)?)));
    let driven = if environment::run().is_some() { Driven::ByWindlass } else { Driven::ByItself };
    let server = Server::new(catalogue(), open, end).driven(driven);
    let served = match args.http {
        Some(address) => over_http(server, &address, out)?,
        None if out.is_json() => {
            let failure = Failure::new(Code::Usage, "the tools speak a protocol of their own; they have no --json");
            return Err(failure.hint("with --http, --json says where to connect").into());
        }
        None => server.serve_stdio(),
    };
    served.map_err(|error| Failure::new(Code::System, "cannot serve the tools").caused_by(error))?;
    Ok(0)
}

fn over_http(
    server: Server<ToolRouter<ProjectToolHost>>,
    address: &str,
    out: &mut Output,
) -> Result<std::io::Result<()>, Stop> {
    let (token, text, is_ours) = token()?;
    let listening = Listening::at(address).map_err(|error| not_there(&error))?;
    let url = listening.url();
    if out.is_json() {
        out.object(&json!({"url": url, "token": is_ours.then_some(&text)}))?;
        out.flush()?;
    } else {
        // An address with a generated token is all that a client needs. A given token is a secret and is not printed.
        let below = if is_ours { format!("/{text}") } else { String::new() };
        Messages::new().plain(&format!("serving at {url}{below}"));
    }
    Ok(server.serve_http(listening, token))
}

/// Returns the token, its text, and whether it was generated here.
fn token() -> Result<(Token, String, bool), Failure> {
    let given = environment::mcp_token();
    let is_ours = given.is_none();
    let text = match given {
        Some(given) => given,
        None => format!("{:032x}", execution::random()?),
    };
    let token = Token::new(&text).map_err(|error| {
        Failure::new(Code::Usage, "WINDLASS_MCP_TOKEN is no token")
            .caused_by(error)
            .hint("unset it, and a token is made; or set it to what `openssl rand -hex 16` prints")
    })?;
    Ok((token, text, is_ours))
}

fn not_there(error: &AddressError) -> Failure {
    match error {
        AddressError::Malformed(_) => {
            Failure::from_error(Code::Usage, error).hint("--http 127.0.0.1:8137, or --http alone")
        }
        AddressError::NotLoopback(_) => Failure::from_error(Code::Usage, error)
            .hint("listen at 127.0.0.1; `ssh -L PORT:127.0.0.1:PORT HOST` brings it to another machine"),
        AddressError::Taken { .. } => {
            Failure::from_error(Code::System, error).hint("give another port, or none: --http alone finds a free one")
        }
    }
}
