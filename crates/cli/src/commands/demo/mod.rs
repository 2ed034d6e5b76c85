//! `windlass demo`: the real loop, in a temporary directory.
//!
//! The demo runs every command that it shows, with the real binary and real processes. `tour` holds the sentences.

mod stage;
mod tour;

use std::time::Duration;

use windlass_app::{Code, Failure, execution};
use windlass_process::{Control, Exit};
use windlass_text as text;

use self::stage::Stage;
use self::tour::{FILES, NEXT, PROJECT, REPOSITORY, Step, TOUR};
use crate::output::{Done, Messages, Output, Stop, Tone};

/// The time to read a sentence, on a terminal.
const PAUSE: Duration = Duration::from_millis(500);
/// The greatest width of a sentence.
const WIDTH: usize = 100;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass demo
  windlass demo --keep     and look around in its directory afterwards

Without --keep nothing of it is left, also if it is interrupted.")]
pub struct Args {
    /// Keep the directory, and say where it is
    #[arg(long)]
    keep: bool,
}

pub fn run(args: Args, out: &mut Output) -> Result<u8, Stop> {
    if out.is_json() {
        return Err(Failure::new(Code::Usage, "the demo is for people; it has no --json").into());
    }
    let (control, received) = execution::listen()?;
    let stage = Stage::new(args.keep, out.has_color())?;
    let toured = Tour { stage: &stage, control: &control, out }.show();
    match (toured, received.first()) {
        (_, Some(signal)) => Ok(128 + u8::try_from(signal).unwrap_or(2)),
        (toured, None) => toured.and_then(|()| end(&stage, args.keep, out)).map(|()| 0),
    }
}

fn end(stage: &Stage, keep: bool, out: &mut Output) -> Done {
    if keep {
        out.line(format_args!("\nThe project is in {}", stage.project.display()))?;
    }
    out.line(format_args!("\n{}", out.paint(Tone::Strong, "Now in a project of your own:")))?;
    NEXT.iter().try_for_each(|line| out.line(format_args!("  {line}")))
}

struct Tour<'a> {
    stage: &'a Stage,
    control: &'a Control,
    out: &'a mut Output,
}

impl Tour<'_> {
    fn show(&mut self) -> Done {
        for (name, content) in FILES {
            self.stage.write(name, content)?;
        }
        self.stage.run(PROJECT, self.control, &mut |_| {})?;
        let made = self.stage.run(REPOSITORY, self.control, &mut |_| {})?;
        if made != Exit::Code(0) && !self.control.is_cancelled() {
            Messages::new().note("git is not here or does not work: the demo goes on without a repository");
        }
        for (sentence, steps) in TOUR {
            if self.control.is_cancelled() {
                break;
            }
            self.say(sentence)?;
            steps.iter().try_for_each(|step| self.step(step))?;
            if self.out.columns().is_some() {
                self.control.wait(PAUSE);
            }
        }
        Ok(())
    }

    fn say(&mut self, sentence: &str) -> Done {
        let width = self.out.columns().unwrap_or(WIDTH).clamp(40, WIDTH) - 2;
        self.out.line("")?;
        for row in text::wrap(sentence, width, width) {
            self.out.line(self.out.paint(Tone::Strong, format_args!("# {row}")))?;
        }
        self.out.flush()
    }

    fn step(&mut self, step: &Step) -> Done {
        match step {
            Step::Shell(command) => self.command(command, command),
            Step::Killed(command) => self.command(command, &format!("echo $$ > .windlass/demo.pid; exec {command}")),
            Step::Show(file) => self.command(&format!("cat {file}"), &format!("cat {file}")),
        }
    }

    /// Runs a command, and shows what it prints as it prints it.
    fn command(&mut self, shown: &str, script: &str) -> Done {
        self.out.line(self.out.paint(Tone::Name, format_args!("$ {shown}")))?;
        self.out.flush()?;
        let (mut rest, mut done) = (Vec::new(), Ok(()));
        let out = &mut *self.out;
        let exit = self.stage.run(script, self.control, &mut |bytes| {
            rest.extend_from_slice(bytes);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                let shown = out.line(String::from_utf8_lossy(&line[..end])).and_then(|()| out.flush());
                done = std::mem::replace(&mut done, Ok(())).and(shown);
            }
        })?;
        done?;
        match exit {
            Exit::Signal(9) if !self.control.is_cancelled() => self.out.line("Killed"),
            _ => Ok(()),
        }
    }
}
