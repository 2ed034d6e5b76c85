//! `windlass sandbox run`: a program in a sandbox. `windlass sandbox-launch`: the process inside that becomes the program. Its helpers
//! are `sandbox-forward` and `sandbox-proxy`.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use clap::Subcommand;
use windlass_app::context::CommandContext;
use windlass_app::sandbox::{PolicyRequest, create_temporary_directory, default_policy};
use windlass_app::{Failure, FailureCode, environment};
use windlass_process::replace_process;
use windlass_sandbox::{
    ForwarderSetup, HostPattern, NetworkPolicy, PROXY_COMMAND, ProxyListener, ProxyProcessSetup, ResourceLimits,
    SandboxBackend, SandboxWrapper, find_backend, launch_program, proxy_environment, run_forward_command,
    run_proxy_command, start_proxy_process,
};

use crate::output::{EarlyExit, MessageWriter, Output};

/// The socket of a proxy, in the directory for temporary files of the program.
const PROXY_SOCKET_NAME: &str = ".windlass-proxy";
/// The port of 127.0.0.1 on which a forwarder listens, in a network without other programs.
const FORWARDER_PORT: u16 = 3128;
/// Exit code of a launcher that could not start the program, as in a shell.
const EXIT_CODE_NOT_STARTED: u8 = 126;

#[derive(Debug, Subcommand)]
#[command(
    defer = true,
    after_help = "Examples:
  windlass sandbox run -- cargo test
  windlass sandbox run --network all -- npm install"
)]
pub enum Command {
    /// Run a program with the default policy
    #[command(after_help = "Examples:
  windlass sandbox run -- cargo test
  windlass sandbox run --network all -- npm install
  windlass sandbox run --write ~/.cache --hide .env -- make
  windlass sandbox run --memory 2G --cpu 600 -- ./build.sh

The program may write the current directory, or that of the project. The exit
code is that of the program. With bubblewrap, all that it has started
ends with it.")]
    Run(RunArguments),
}

#[derive(Debug, clap::Args)]
pub struct RunArguments {
    /// Use this back end: bubblewrap or landlock [default: the first that works]
    #[arg(long, value_name = "NAME", value_parser = SandboxBackend::from_str)]
    backend: Option<SandboxBackend>,
    /// Let the program write this path, too
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// Hide this path, too
    #[arg(long, value_name = "PATH")]
    hide: Vec<PathBuf>,
    /// Allow the network: none, all, or hosts as in example.com,*.example.org
    #[arg(long, value_name = "HOSTS", default_value = "none", value_parser = parse_network)]
    network: NetworkPolicy,
    /// Limit the memory of each process, as in 512M or 2G
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
    /// Limit the number of processes (bubblewrap, not as root)
    #[arg(long, value_name = "COUNT")]
    processes: Option<u64>,
    /// Limit the number of open files of each process
    #[arg(long, value_name = "COUNT")]
    open_files: Option<u64>,
    /// Limit the processor time of each process, in seconds
    #[arg(long, value_name = "SECONDS")]
    cpu: Option<u64>,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

pub fn run_sandbox_command(context: &CommandContext, command: Command, out: &mut Output) -> Result<u8, EarlyExit> {
    let Command::Run(arguments) = command;
    if out.is_json() {
        return Err(Failure::new(FailureCode::Usage, "the program has its own output; it has no --json").into());
    }
    Err(run_in_sandbox(context, arguments).into())
}

/// Replaces this process with the program in its sandbox. Returns only if that fails.
fn run_in_sandbox(context: &CommandContext, arguments: RunArguments) -> Failure {
    let (words, variables) = match wrap_program(context, arguments) {
        Ok(wrapped) => wrapped,
        Err(failure) => return failure,
    };
    let error = replace_process(&words[0], &words[1..], &variables);
    Failure::new(FailureCode::System, format!("cannot start `{}`", words[0].display())).with_cause(error)
}

/// A command line, and the variables that it needs besides those of this process.
type WrappedProgram = (Vec<OsString>, Vec<(OsString, OsString)>);

fn wrap_program(context: &CommandContext, arguments: RunArguments) -> Result<WrappedProgram, Failure> {
    let to_failure = |error: &dyn Error| Failure::from_error(FailureCode::System, error);
    let backend = find_backend(arguments.backend).map_err(|error| to_failure(&error))?;
    let project = match context.find_project() {
        Ok(project) => Some(project),
        // A named project has to exist; without one, the directory alone counts.
        Err(failure) if context.project.is_some() || failure.code != FailureCode::NoProject => return Err(failure),
        Err(_) => None,
    };
    let policy = default_policy(PolicyRequest {
        backend,
        directory: &context.directory,
        project: project.as_ref(),
        write: &arguments.write,
        hide: &arguments.hide,
        network: arguments.network,
        limits: ResourceLimits {
            memory_bytes: arguments.memory,
            processes: arguments.processes,
            open_files: arguments.open_files,
            cpu_seconds: arguments.cpu,
        },
        temporary: create_temporary_directory()?,
    })?;
    let launcher = environment::own_program().map_err(|error| {
        Failure::new(FailureCode::System, "cannot find the program `windlass` itself").with_cause(error)
    })?;
    let proxy = match &policy.network {
        NetworkPolicy::Hosts(hosts) if backend == SandboxBackend::Bubblewrap => {
            Some(start_proxy(hosts.clone(), &policy.temporary)?)
        }
        _ => None,
    };
    let (forwarder, variables) = proxy.unzip();
    let sandbox = SandboxWrapper { backend, policy, launcher, forwarder };
    let words = sandbox.wrap_program(&arguments.program).map_err(|error| to_failure(&error))?;
    Ok((words, variables.unwrap_or_default()))
}

/// Starts the proxy that is the only way out, and returns how the sandbox reaches it, with the variables that lead programs to it.
fn start_proxy(
    hosts: Vec<HostPattern>,
    directory: &Path,
) -> Result<(ForwarderSetup, Vec<(OsString, OsString)>), Failure> {
    let socket = directory.join(PROXY_SOCKET_NAME);
    let listen = ProxyListener::UnixSocket(socket.clone());
    start_proxy_process(&ProxyProcessSetup { hosts, listen }).map_err(|error| {
        Failure::new(FailureCode::System, "cannot start the proxy of the sandbox").with_cause(error)
    })?;
    let variables = proxy_environment(FORWARDER_PORT, "").into_iter().map(|(name, value)| (name.into(), value.into()));
    Ok((ForwarderSetup { socket, port: FORWARDER_PORT }, variables.collect()))
}

/// Runs a helper of a sandbox: its forwarder, or its proxy.
pub fn serve_sandbox(words: &[OsString]) -> ExitCode {
    let [_, command, setup] = words else { return ExitCode::from(EXIT_CODE_NOT_STARTED) };
    let setup = setup.to_string_lossy();
    let served = match command.to_str() {
        Some(PROXY_COMMAND) => run_proxy_command(&setup, |host, port, reason| {
            let text = format!("the sandbox denies {host}:{port}: {reason}");
            MessageWriter::new().print_warning(&text);
        }),
        _ => run_forward_command(&setup),
    };
    ExitCode::from(u8::from(served.is_err()))
}

/// Becomes the program of a sandbox: `windlass sandbox-launch SETUP PROGRAM ARGS…`.
pub fn launch_sandboxed_program(words: &[OsString]) -> ExitCode {
    let failure = match words {
        [_, _, setup, program, arguments @ ..] => {
            let setup = setup.to_string_lossy();
            let error = launch_program(&setup, program, arguments);
            Failure::from_error(FailureCode::System, &error).with_hint(error.remedy())
        }
        _ => Failure::new(FailureCode::Usage, "expected a setup and a program")
            .with_hint("`windlass sandbox run -- PROGRAM` starts a program in a sandbox"),
    };
    MessageWriter::new().print_failure(&failure);
    ExitCode::from(EXIT_CODE_NOT_STARTED)
}

fn parse_network(text: &str) -> Result<NetworkPolicy, String> {
    match text {
        "none" => Ok(NetworkPolicy::None),
        "all" => Ok(NetworkPolicy::All),
        hosts => {
            let hosts: Result<Vec<HostPattern>, _> = hosts.split(',').map(str::parse).collect();
            hosts.map(NetworkPolicy::Hosts).map_err(|error| error.to_string())
        }
    }
}

/// Parses a number of bytes, with K, M, G or T for powers of 1024.
fn parse_size(text: &str) -> Result<u64, String> {
    let error = || format!("`{text}` is no size: write a number with K, M, G or T, as in 512M");
    let units = ["K", "M", "G", "T"];
    let unit = units.iter().position(|unit| text.ends_with(unit));
    let digits = &text[..text.len() - usize::from(unit.is_some())];
    let scale = unit.map_or(1, |unit| 1024_u64.pow(unit as u32 + 1));
    let size = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(scale));
    size.filter(|size| *size > 0).ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_has_a_number_and_a_unit() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("512M"), Ok(512 * 1024 * 1024));
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        for wrong in ["", "M", "0", "-1", "1.5G", "2g", "99999999999T"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
