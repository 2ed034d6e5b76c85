//! `windlass serve`: serves the web page of a project.

mod invite;
mod qr_code;
mod question;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::hook_switch::refuse_agent_caller;
use windlass_app::web_access::ViewerRole;
use windlass_app::{Failure, FailureCode, environment};
use windlass_process::{RunControl, open_in_browser, signals};
use windlass_web::{ServerOptions, TlsFiles, WebServer};

use crate::output::{EarlyExit, MessageWriter, Output};

/// How long the link to the first login is valid.
const LOGIN_LINK_MILLIS: i64 = 60_000;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  windlass serve --open                        serve here, and open the browser
  windlass serve --listen 8137                 always use this port
  windlass serve invite ann --may answer       print a link for another person
  windlass serve --listen 8137 --behind-proxy --host build.example

The page shows open questions, current work, live sessions, changes, hooks and cost. It listens on this \
machine only, unless --listen names another address; that address needs TLS. The printed link logs in once, \
within a minute.")]
pub struct Args {
    #[command(subcommand)]
    command: Option<ServeCommand>,
    /// Listen at this HOST:PORT or PORT [default: 127.0.0.1, the last port]
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    listen: Option<SocketAddr>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// A name under which the page is opened; repeatable
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// The TLS certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A reverse proxy in front of this server speaks TLS
    #[arg(long, requires = "host", conflicts_with = "tls_cert")]
    behind_proxy: bool,
}

#[derive(Debug, Subcommand)]
enum ServeCommand {
    /// Print a link or a token for a person or a program
    Invite(invite::Args),
    /// Print a link to one question, which answers it once
    Question(question::Args),
}

/// Parses an address; a port alone stands for this machine.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    let text = text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    text.parse().map_err(|_| "expected an address such as 127.0.0.1:8137, [::1]:8137 or 8137".to_owned())
}

pub fn run_serve(context: &CommandContext, args: Args, out: &mut Output) -> Result<u8, EarlyExit> {
    let project = context.find_project()?;
    refuse_agent_caller(context, &project, "serve the page")?;
    match args.command {
        Some(ServeCommand::Invite(args)) => {
            return invite::run_invite(&project, &args, out).map(|()| 0);
        }
        Some(ServeCommand::Question(args)) => {
            return question::run_question(context, &args, out).map(|()| 0);
        }
        None => {}
    }
    let tls = args.tls_cert.zip(args.tls_key).map(|(certificate, key)| TlsFiles { certificate, key });
    let options =
        ServerOptions { address: args.listen, tls, behind_proxy: args.behind_proxy, hosts: args.host.clone() };
    let server = WebServer::bind(context, options)?;
    let url = server.url();
    let link = server.access().create_login_link(&environment::user_name(), ViewerRole::Manage, LOGIN_LINK_MILLIS)?;
    let login = format!("{url}/#code={}", link.code.text());
    let (control, stop) = (RunControl::new(), server.stop_handle());
    let received = signals::install_handlers(&control, move |signal| {
        if let signals::SignalEvent::End(_) = signal {
            stop.stop_server();
        }
    })
    .map_err(|error| Failure::new(FailureCode::System, "cannot listen to signals").with_cause(error))?;
    if out.is_json() {
        out.print_json(&json!({"url": url, "login": login}))?;
        out.flush()?;
    } else {
        out.print_line(format_args!("serving {} at {url}", project.root.display()))?;
        out.print_line(format_args!("log in within a minute: {login}"))?;
        out.print_line("for others, and later: windlass serve invite NAME; Ctrl-C ends the server")?;
        out.flush()?;
    }
    if args.open {
        open_login_page(&login);
    }
    server.serve_page()?;
    Ok(received.first_signal().map_or(0, |signal| 128 + u8::try_from(signal).unwrap_or(2)))
}

/// Opens the link to the login in the browser, or shows it again.
fn open_login_page(login: &str) {
    let warn = |login: &str, error: &io::Error| {
        MessageWriter::new().print_warning(&format!("no browser could be started: {error}; open {login}"));
    };
    let shown = login.to_owned();
    if let Err(error) = open_in_browser(login.to_owned(), move |error| warn(&shown, &error)) {
        warn(login, &error);
    }
}
