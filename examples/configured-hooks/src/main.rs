//! Adds a task to the project in the working directory, and runs the hooks of its configuration.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::sync::Arc;

use windlass_app::context::CommandContext;
use windlass_app::{FrontEnd, Notice};
use windlass_engine::{Authority, Command, NewTask};
use windlass_store::Lifetime;

/// Shows on standard error what a person should hear.
#[derive(Debug)]
struct StandardError;

impl FrontEnd for StandardError {
    fn show_notice(&self, notice: Notice<'_>) {
        eprintln!("{notice}");
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let goal = std::env::args().nth(1).ok_or("expected a goal")?;
    // `trust`: a person has read this configuration, and it may run what it says.
    let context =
        CommandContext { trust: true, ..CommandContext::new(std::env::current_dir()?, Arc::new(StandardError)) };
    let mut project = context.open_or_create_project(Lifetime::Command)?;
    let command = Command::CreateTask(NewTask { goal, ..NewTask::default() });
    // When this returns, the events are durable and the configured hooks have run.
    for record in project.execute_command(&command, Authority::Person)? {
        println!("{}  {}  {}", record.seq, record.envelope.node, record.kind());
    }
    Ok(())
}
