//! `windlass demo`: the real loop, in a temporary directory.
//!
//! The demo runs every command that it shows, with the real binary and real processes. `tour` holds the sentences.

mod directory;
mod served_page;
mod tour;

use std::time::Duration;
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use windlass_app::{Failure, FailureCode, execution};
use windlass_process::{ProgramExit, RunControl};
use windlass_text as text;

use self::directory::DemoDirectory;
use self::tour::{GIT_SETUP_COMMAND, INIT_COMMAND, NEXT_COMMANDS, PROJECT_FILES, TOUR_STOPS, TourStep};
use crate::output::{CommandResult, EarlyExit, MessageWriter, Output, TextTone};

/// The time to read a sentence, on a terminal.
const READING_PAUSE: Duration = Duration::from_millis(500);
/// The time to read a sentence and to look at the page.
const SLOW_READING_PAUSE: Duration = Duration::from_secs(5);
const INPUT_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// A step of the scripted agent, and the same with a wait before it.
const SPOKEN_STEP: &str = "      - say:";
const SLOW_SPOKEN_STEP: &str = "      - wait: 3s\n      - say:";
/// The greatest width of a sentence.
const MAX_SENTENCE_WIDTH: usize = 100;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass demo
  windlass demo --step     wait for Enter before each part
  windlass demo --serve    play slowly, with the web page open
  windlass demo --keep     keep the directory to look around in

The project is in a temporary directory. Without --keep, it is removed at the
end, also after an interruption.")]
pub struct Args {
    /// Keep the directory, and print its path
    #[arg(long)]
    keep: bool,
    /// Wait for Enter before each part
    #[arg(long)]
    step: bool,
    /// Play slowly, with the web page of the project in the browser
    #[arg(long)]
    serve: bool,
}

pub fn run_demo(args: Args, out: &mut Output) -> Result<u8, EarlyExit> {
    if out.is_json() {
        return Err(Failure::new(FailureCode::Usage, "the demo is for people; it has no --json").into());
    }
    let (control, received) = execution::listen_to_signals()?;
    let stage = DemoDirectory::new(args.keep, out.has_color())?;
    let pace = match (args.step, args.serve) {
        (true, _) => TourPace::Step,
        (false, true) => TourPace::Slow,
        (false, false) => TourPace::Usual,
    };
    let page = RunControl::new();
    let toured = thread::scope(|scope| {
        let mut tour = DemoTour { stage: &stage, control: &control, out, pace };
        let toured = tour.prepare_project(args.serve).and_then(|()| {
            if args.serve {
                served_page::start_page(scope, &stage, (&control, &page), tour.out)?;
            }
            tour.run_all_stops()?;
            if args.serve && !control.is_cancelled() {
                tour.out.print_line("\nThe page is served until Ctrl-C.")?;
                tour.out.flush()?;
                while control.wait_unless_cancelled(READING_PAUSE) {}
            }
            Ok(())
        });
        page.cancel_runs();
        toured
    });
    match (toured, received.first_signal()) {
        (_, Some(signal)) => Ok(128 + u8::try_from(signal).unwrap_or(2)),
        (toured, None) => toured.and_then(|()| show_next_commands(&stage, args.keep, out)).map(|()| 0),
    }
}

fn show_next_commands(stage: &DemoDirectory, keep: bool, out: &mut Output) -> CommandResult {
    if keep {
        out.print_line(format_args!("\nThe project is in {}", stage.project.display()))?;
    }
    out.print_line(format_args!("\n{}", out.paint(TextTone::Strong, "Now in a project of your own:")))?;
    NEXT_COMMANDS.iter().try_for_each(|line| out.print_line(format_args!("  {line}")))
}

/// The waits between the parts of the tour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TourPace {
    Usual,
    /// Slow enough to read the page.
    Slow,
    /// The reader presses Enter.
    Step,
}

/// Waits for a line on standard input, or its end.
fn is_input_ready(time: Duration) -> bool {
    let input = io::stdin();
    let mut polled = [PollFd::new(&input, PollFlags::IN)];
    let timeout = Timespec::try_from(time).expect("the interval is short");
    matches!(poll(&mut polled, Some(&timeout)), Ok(1))
}

struct DemoTour<'a> {
    stage: &'a DemoDirectory,
    control: &'a RunControl,
    out: &'a mut Output,
    pace: TourPace,
}

impl DemoTour<'_> {
    /// Makes the project. For the page, each turn of the agent takes a few seconds.
    fn prepare_project(&mut self, is_served: bool) -> CommandResult {
        for (name, content) in PROJECT_FILES {
            let content =
                if is_served { content.replace(SPOKEN_STEP, SLOW_SPOKEN_STEP) } else { (*content).to_owned() };
            self.stage.write_project_file(name, &content)?;
        }
        self.stage.run_shell_command(INIT_COMMAND, self.control, &mut |_| {})?;
        let made = self.stage.run_shell_command(GIT_SETUP_COMMAND, self.control, &mut |_| {})?;
        if made != ProgramExit::Code(0) && !self.control.is_cancelled() {
            MessageWriter::new().print_note("git is missing or does not work: the demo continues without a repository");
        }
        Ok(())
    }

    fn run_all_stops(&mut self) -> CommandResult {
        for (sentence, steps) in TOUR_STOPS {
            if self.control.is_cancelled() {
                break;
            }
            self.print_sentence(sentence)?;
            if self.pace == TourPace::Step {
                self.await_enter()?;
            }
            steps.iter().try_for_each(|step| self.run_tour_step(step))?;
            let pause = match self.pace {
                TourPace::Slow => SLOW_READING_PAUSE,
                TourPace::Usual if self.out.columns().is_some() => READING_PAUSE,
                TourPace::Usual | TourPace::Step => continue,
            };
            self.control.wait_unless_cancelled(pause);
        }
        Ok(())
    }

    /// Waits until the reader presses Enter. The end of the input stops no more.
    fn await_enter(&mut self) -> CommandResult {
        self.out.print_line(self.out.paint(TextTone::Faint, "  (Enter runs it)"))?;
        self.out.flush()?;
        // A signal does not end a read.
        while !is_input_ready(INPUT_POLL_INTERVAL) {
            if self.control.is_cancelled() {
                return Ok(());
            }
        }
        if io::stdin().read_line(&mut String::new()).unwrap_or(0) == 0 {
            self.pace = TourPace::Usual;
        }
        Ok(())
    }

    fn print_sentence(&mut self, sentence: &str) -> CommandResult {
        let width = self.out.columns().unwrap_or(MAX_SENTENCE_WIDTH).clamp(40, MAX_SENTENCE_WIDTH) - 2;
        self.out.print_line("")?;
        for row in text::wrap_to_width(sentence, width, width) {
            self.out.print_line(self.out.paint(TextTone::Strong, format_args!("# {row}")))?;
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
        self.out.print_line(self.out.paint(TextTone::Name, format_args!("$ {shown}")))?;
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
