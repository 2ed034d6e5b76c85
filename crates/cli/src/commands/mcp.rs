//! `windlass mcp`: serves the tools to agents.

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::tool_host::{ProjectToolHost, to_tool_error};
use windlass_app::{Failure, FailureCode, environment, execution};
use windlass_mcp::{AccessToken, AddressError, AgentDriverKind, BoundAddress, StopHandle as End, ToolServer};
use windlass_process::{RunControl, signals};
use windlass_tools::{ToolRouter, tool_catalogue};

use crate::output::{EarlyExit, MessageWriter, Output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass mcp                           an agent starts this in its directory
  windlass mcp --project ~/shop          serve this project, from any directory
  windlass mcp --http                    use any free port and a new token
  WINDLASS_MCP_TOKEN=$(cat token) windlass mcp --http 127.0.0.1:8137
  windlass mcp --http --json             print address and token as JSON")]
pub struct Args {
    /// Serve streamable HTTP at this local HOST:PORT or PORT; 0: a free port
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:0")]
    http: Option<String>,
}

pub fn run_mcp_server(context: &CommandContext, args: Args, out: &mut Output) -> Result<u8, EarlyExit> {
    // A missing project is an error at once. The first call opens the store, so that the client need not wait for it.
    let mut context = context.clone();
    context.project = Some(context.find_project()?.root);
    let control = RunControl::new();
    let end = End::new(control.clone());
    let told_to_end = end.clone();
    let _received = signals::install_handlers(&control, move |signal| {
        if let signals::SignalEvent::End(_) = signal {
            told_to_end.stop_server();
        }
    })
    .map_err(|error| Failure::new(FailureCode::System, "cannot listen to signals").with_cause(error))?;
    let open = move || Ok(ToolRouter::new(ProjectToolHost::open_for_server(&context).map_err(to_tool_error)?));
    let driven =
        if environment::run_variable().is_some() { AgentDriverKind::ByWindlass } else { AgentDriverKind::ByItself };
    let server = ToolServer::new(tool_catalogue(), open, end).with_driver(driven);
    let served = match args.http {
        Some(address) => serve_over_http(server, &address, out)?,
        None if out.is_json() => {
            let failure =
                Failure::new(FailureCode::Usage, "the tools speak a protocol of their own; they have no --json");
            return Err(failure.with_hint("with --http, --json says where to connect").into());
        }
        None => server.serve_stdio(),
    };
    served.map_err(|error| Failure::new(FailureCode::System, "cannot serve the tools").with_cause(error))?;
    Ok(0)
}

fn serve_over_http(
    server: ToolServer<ToolRouter<ProjectToolHost>>,
    address: &str,
    out: &mut Output,
) -> Result<std::io::Result<()>, EarlyExit> {
    let (token, text, is_ours) = load_or_create_token()?;
    let listening = BoundAddress::bind_loopback(address).map_err(|error| address_failure(&error))?;
    let url = listening.url();
    if out.is_json() {
        out.print_json(&json!({"url": url, "token": is_ours.then_some(&text)}))?;
        out.flush()?;
    } else {
        // An address with a generated token is all that a client needs. A given token is a secret and is not printed.
        let below = if is_ours { format!("/{text}") } else { String::new() };
        MessageWriter::new().print_plain(&format!("serving at {url}{below}"));
    }
    Ok(server.serve_http(listening, token))
}

/// Returns the token, its text, and whether it was generated here.
fn load_or_create_token() -> Result<(AccessToken, String, bool), Failure> {
    let given = environment::mcp_token();
    let is_ours = given.is_none();
    let text = match given {
        Some(given) => given,
        None => format!("{:032x}", execution::random_u128()?),
    };
    let token = AccessToken::new(&text).map_err(|error| {
        Failure::new(FailureCode::Usage, "WINDLASS_MCP_TOKEN is not a valid token")
            .with_cause(error)
            .with_hint("unset it to generate a token, or set it to the output of `openssl rand -hex 16`")
    })?;
    Ok((token, text, is_ours))
}

fn address_failure(error: &AddressError) -> Failure {
    match error {
        AddressError::Malformed(_) => {
            Failure::from_error(FailureCode::Usage, error).with_hint("--http 127.0.0.1:8137, or --http alone")
        }
        AddressError::NotLoopback(_) => Failure::from_error(FailureCode::Usage, error)
            .with_hint("listen at 127.0.0.1; `ssh -L PORT:127.0.0.1:PORT HOST` brings it to another machine"),
        AddressError::Taken { .. } => Failure::from_error(FailureCode::System, error)
            .with_hint("give another port, or none: --http alone finds a free one"),
    }
}
