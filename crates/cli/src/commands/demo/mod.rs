//! `windlass demo`: the real loop, in a temporary directory.
//!
//! The demo runs every command that it shows, with the real binary and real processes. `tour` holds the sentences.

mod directory;
mod tour;

use std::time::Duration;

use windlass_app::{Failure, FailureCode, execution};
use windlass_process::{ProgramExit, RunControl};
use windlass_text as text;

use self::directory::DemoDirectory;
use self::tour::{GIT_SETUP_COMMAND, INIT_COMMAND, NEXT_COMMANDS, PROJECT_FILES, TOUR_STOPS, TourStep};
use crate::output::{CommandResult, EarlyExit, MessageWriter, Output, Tone};

/// The time to read a sentence, on a terminal.
const READING_PAUSE: Duration = Duration::from_millis(500);
/// The greatest width of a sentence.
const MAX_SENTENCE_WIDTH: usize = 100;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass demo
  windlass demo --keep     keep the directory to look around in

Without --keep, the directory is removed at the end, also after an interruption.")]
pub struct Args {
    /// Keep the directory, and print its path
    #[arg(long)]
    keep: bool,
}

pub fn run_demo(args: Args, out: &mut Output) -> Result<u8, EarlyExit> {
    if out.is_json() {
        return Err(Failure::new(FailureCode::Usage, "the demo is for people; it has no --json").into());
    }
    let (control, received) = execution::listen_to_signals()?;
    let stage = DemoDirectory::new(args.keep, out.has_color())?;
    let toured = DemoTour { stage: &stage, control: &control, out }.run_all_stops();
    match (toured, received.first_signal()) {
        (_, Some(signal)) => Ok(128 + u8::try_from(signal).unwrap_or(2)),
        (toured, None) => toured.and_then(|()| show_next_commands(&stage, args.keep, out)).map(|()| 0),
    }
}

fn show_next_commands(stage: &DemoDirectory, keep: bool, out: &mut Output) -> CommandResult {
    if keep {
        out.print_line(format_args!("\nThe project is in {}", stage.project.display()))?;
    }
    out.print_line(format_args!("\n{}", out.paint(Tone::Strong, "Now in a project of your own:")))?;
    NEXT_COMMANDS.iter().try_for_each(|line| out.print_line(format_args!("  {line}")))
}

struct DemoTour<'a> {
    stage: &'a DemoDirectory,
    control: &'a RunControl,
    out: &'a mut Output,
}

impl DemoTour<'_> {
    fn run_all_stops(&mut self) -> CommandResult {
        for (name, content) in PROJECT_FILES {
            self.stage.write_project_file(name, content)?;
        }
        self.stage.run_shell_command(INIT_COMMAND, self.control, &mut |_| {})?;
        let made = self.stage.run_shell_command(GIT_SETUP_COMMAND, self.control, &mut |_| {})?;
        if made != ProgramExit::Code(0) && !self.control.is_cancelled() {
            MessageWriter::new().print_note("git is missing or does not work: the demo continues without a repository");
        }
        for (sentence, steps) in TOUR_STOPS {
            if self.control.is_cancelled() {
                break;
            }
            self.print_sentence(sentence)?;
            steps.iter().try_for_each(|step| self.run_tour_step(step))?;
            if self.out.columns().is_some() {
                self.control.wait_unless_cancelled(READING_PAUSE);
            }
        }
        Ok(())
    }

    fn print_sentence(&mut self, sentence: &str) -> CommandResult {
        let width = self.out.columns().unwrap_or(MAX_SENTENCE_WIDTH).clamp(40, MAX_SENTENCE_WIDTH) - 2;
        self.out.print_line("")?;
        for row in text::wrap_to_width(sentence, width, width) {
            self.out.print_line(self.out.paint(Tone::Strong, format_args!("# {row}")))?;
        }
        self.out.flush()
    }

    fn run_tour_step(&mut self, step: &TourStep) -> CommandResult {
        match step {
            TourStep::Shell(command) => self.run_shown_command(command, command),
            TourStep::KilledShell(command) => {
                self.run_shown_command(command, &format!("echo $$ > .windlass/demo.pid; exec {command}"))
            }
            TourStep::Show(file) => self.run_shown_command(&format!("cat {file}"), &format!("cat {file}")),
        }
    }

    /// Runs a command, and shows what it prints as it prints it.
    fn run_shown_command(&mut self, shown: &str, script: &str) -> CommandResult {
        self.out.print_line(self.out.paint(Tone::Name, format_args!("$ {shown}")))?;
        self.out.flush()?;
        let (mut rest, mut done) = (Vec::new(), Ok(()));
        let out = &mut *self.out;
        let exit = self.stage.run_shell_command(script, self.control, &mut |bytes| {
            rest.extend_from_slice(bytes);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                let shown = out.print_line(String::from_utf8_lossy(&line[..end])).and_then(|()| out.flush());
                done = std::mem::replace(&mut done, Ok(())).and(shown);
            }
        })?;
        done?;
        match exit {
            ProgramExit::Signal(9) if !self.control.is_cancelled() => self.out.print_line("Killed"),
            _ => Ok(()),
        }
    }
}
