//! `windlass fleet …`: one project on several machines.

mod entry;
mod local_servers;
mod progress_line;
mod report;

use clap::Subcommand;
use windlass_app::context::CommandContext;

use crate::output::{CommandResult, EarlyExit, Output};

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  windlass fleet up --nodes 3                        start servers to try it
  windlass fleet create nats://127.0.0.1:4222/shop   where the project is
  windlass fleet join nats://127.0.0.1:4222/shop     on every other machine
  windlass fleet status                              machines and lag

The address ends with the name of the project. docs/how-to/run-a-fleet.md sets up servers of your own.")]
pub enum Command {
    /// Publish the log of this project, for other machines to join
    Create(entry::CreateArgs),
    /// Make this project a copy of a fleet's log
    Join(entry::JoinArgs),
    /// Leave the fleet, and keep the whole project in this store
    Leave(entry::LeaveArgs),
    /// Show machines, their processes, lag and weaknesses
    Status(report::StatusArgs),
    /// Check the service, this copy and the other machines
    Doctor(report::DoctorArgs),
    /// Publish again what the service has lost
    Repair(entry::RepairArgs),
    /// Start servers on this machine, for trying it
    Up(local_servers::Args),
}

pub fn run_fleet_command(context: &CommandContext, command: Command, out: &mut Output) -> Result<u8, EarlyExit> {
    let done: CommandResult = match command {
        Command::Create(args) => entry::run_create(context, args, out),
        Command::Join(args) => entry::run_join(context, args, out),
        Command::Leave(args) => entry::run_leave(context, &args, out),
        Command::Status(args) => report::run_status(context, &args, out),
        Command::Doctor(args) => return report::run_doctor(context, &args, out),
        Command::Repair(args) => entry::run_repair(context, &args, out),
        Command::Up(args) => local_servers::run_up(context, &args, out),
    };
    done.map(|()| 0)
}
