//! `windlass demo`: the real commands, in a directory that is gone afterwards

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::args;
use crate::context::Context;
use crate::environment;
use crate::failure::{Code, Failure};
use crate::output::{Done, Output, Stop, Tone};
use crate::trust;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass demo

Nothing of it is left afterwards.")]
pub struct Args {}

/// What is shown: a sentence, and the command that shows it.
const TOUR: &[(&str, &[&str])] = &[
    ("A project is a directory with .windlass/ in it. This one is temporary.", &["init"]),
    (
        "Tasks have a goal, labels and a priority; 0 is the most urgent.",
        &["task", "add", "Write the parser", "--label", "agent", "--priority", "1"],
    ),
    ("A task can wait for others …", &["task", "add", "Write its tests", "--depends", "T1"]),
    (
        "… for as many as it needs.",
        &["task", "add", "Release 1.0", "--depends", "T1", "--depends", "T2", "--priority", "0"],
    ),
    ("What comes first stands on top.", &["task", "graph"]),
    ("Only what waits for nothing is ready.", &["task", "ready"]),
    ("A worker takes the next task under a lease.", &["task", "claim", "--owner", "worker-1", "--lease", "10m"]),
    ("While it holds the task, nobody else completes it.", &["task", "complete", "T1"]),
    (
        "Its holder does. T2 becomes ready, and because an agent did it, a review appears.",
        &["task", "complete", "T1", "--epoch", "1", "--result", "parses everything"],
    ),
    ("A circle is refused, with the path.", &["task", "depend", "T2", "T3"]),
    ("Every fact is an event, and every event knows what led to it.", &["events", "--from", "8"]),
    ("All of it can be verified.", &["doctor"]),
];

pub fn run(_: Args, out: &mut Output) -> Done {
    if out.is_json() {
        return Err(Failure::new(Code::Usage, "the demo is for people; it has no --json").into());
    }
    let directory = Temporary::new()?;
    let context = context(&directory.path);
    for (sentence, words) in TOUR {
        out.line(format_args!("\n{}", out.paint(Tone::Strong, format_args!("# {sentence}"))))?;
        let shown: Vec<_> =
            words.iter().map(|w| if w.contains(' ') { format!("\"{w}\"") } else { (*w).to_owned() }).collect();
        out.line(out.paint(Tone::Name, format_args!("$ windlass {}", shown.join(" "))))?;
        step(&context, words, out)?;
    }
    out.line(format_args!("\n{}", out.paint(Tone::Strong, "Now in a project of your own:")))?;
    out.line("  windlass init")?;
    out.line("  windlass task add \"what you want done\"")?;
    out.line("  windlass --help")
}

fn context(directory: &Path) -> Context {
    Context { project: Some(directory.to_owned()), directory: directory.to_owned() }
}

/// Runs one command. A refusal is part of the tour.
fn step(context: &Context, words: &[&str], out: &mut Output) -> Done {
    let line = ["windlass"].iter().chain(words).map(OsString::from).collect();
    let (invocation, _) = args::parse_from(line).map_err(|refused| refused.failure())?;
    match super::run_in(context, invocation.command, out) {
        Err(Stop::Failed(failure)) if failure.code == Code::Refused => {
            out.line(format_args!("{}: {}", out.paint(Tone::Bad, "error"), failure.message))?;
            match failure.hint {
                Some(hint) => out.line(format_args!("{}: {hint}", out.paint(Tone::Good, "hint"))),
                None => Ok(()),
            }
        }
        done => done.map(drop),
    }
}

/// A directory that is removed when the tour ends, however it ends.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn new() -> Result<Self, Failure> {
        let fail = |error: &dyn std::fmt::Display| {
            Failure::new(Code::System, "cannot make a temporary directory").caused_by(error)
        };
        let nonce = environment::random().map_err(|error| fail(&error))?;
        let path = environment::temporary_directory().join(format!("windlass-demo-{nonce:032x}"));
        std::fs::create_dir(&path).map_err(|error| fail(&error))?;
        Ok(Self { path })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Ok(project) = context(&self.path).project() {
            let _ = trust::revoke(&project);
        }
        // What cannot be removed is in the system's temporary directory, which is cleaned anyway.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
