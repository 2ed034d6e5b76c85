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

/// What is shown: a sentence, and what shows it.
const TOUR: &[(&str, Step)] = &[
    ("A project is a directory with .windlass/ in it. This one is temporary.", Step::Run(&["init"])),
    ("An agent is any program that reads a prompt. A script plays it here; it says that it is done at once.", AGENT),
    ("What done means is yours to say. This check sends the agent back, with everything that it prints.", HOOKS),
    ("A configuration can run programs, so a person has to trust it first.", Step::Run(&["trust", "--yes"])),
    (
        "Now it turns, until the check agrees.",
        Step::Run(&["run", "Write the parser", "--agent", "command:sh agent.sh"]),
    ),
    ("Work can be planned: tasks have a goal, labels and a priority; 0 is the most urgent.", {
        Step::Run(&["task", "add", "Write the printer", "--label", "agent", "--priority", "1"])
    }),
    ("A task can wait for others …", Step::Run(&["task", "add", "Write its tests", "--depends", "T2"])),
    (
        "… for as many as it needs.",
        Step::Run(&["task", "add", "Release 1.0", "--depends", "T2", "--depends", "T3", "--priority", "0"]),
    ),
    ("What comes first stands on top.", Step::Run(&["task", "graph"])),
    ("A circle is refused, with the path.", Step::Run(&["task", "depend", "T3", "T4"])),
    ("A worker takes the next task under a lease.", {
        Step::Run(&["task", "claim", "--owner", "worker-1", "--lease", "10m"])
    }),
    ("While it holds the task, nobody else completes it.", Step::Run(&["task", "complete", "T2"])),
    (
        "Its holder does. T3 becomes ready, and because an agent did it, a review appears.",
        Step::Run(&["task", "complete", "T2", "--epoch", "1", "--result", "prints everything"]),
    ),
    ("Every fact is an event, and every event knows what led to it.", Step::Run(&["events", "--task", "T2"])),
    ("All of it can be verified.", Step::Run(&["doctor"])),
];

enum Step {
    /// A command of ours.
    Run(&'static [&'static str]),
    /// A file that is written, and shown.
    Write(&'static str, &'static str),
}

const AGENT: Step = Step::Write(
    "agent.sh",
    "\
cat > prompt.txt
if grep -q 'nobody has tested' prompt.txt; then touch tested; echo 'Now it is tested.'; fi
echo '<promise>COMPLETE</promise>'
",
);

const HOOKS: Step = Step::Write(
    ".windlass/config.yaml",
    "\
hooks:
  stop:
    - command: test -e tested || { echo 'nobody has tested the parser' >&2; exit 2; }
  session_end:
    - command: echo \"$WINDLASS_SESSION is over\" > notified
",
);

pub fn run(_: Args, out: &mut Output) -> Done {
    if out.is_json() {
        return Err(Failure::new(Code::Usage, "the demo is for people; it has no --json").into());
    }
    let directory = Temporary::new()?;
    let context = context(&directory.path);
    for (sentence, step) in TOUR {
        out.line(format_args!("\n{}", out.paint(Tone::Strong, format_args!("# {sentence}"))))?;
        match step {
            Step::Run(words) => command(&context, words, out)?,
            Step::Write(name, content) => file(&directory.path.join(name), name, content, out)?,
        }
    }
    out.line(format_args!("\n{}", out.paint(Tone::Strong, "Now in a project of your own:")))?;
    out.line("  windlass run \"what you want done\" --agent \"command:claude -p\"")?;
    out.line("  windlass init")?;
    out.line("  windlass --help")
}

fn context(directory: &Path) -> Context {
    Context { project: Some(directory.to_owned()), directory: directory.to_owned(), trust: false }
}

fn file(path: &Path, name: &str, content: &str, out: &mut Output) -> Done {
    std::fs::write(path, content)
        .map_err(|error| Failure::new(Code::System, format!("cannot write `{}`", path.display())).caused_by(error))?;
    out.line(out.paint(Tone::Name, format_args!("$ cat {name}")))?;
    content.lines().try_for_each(|line| out.line(line))
}

/// Runs one command. A refusal is part of the tour.
fn command(context: &Context, words: &[&str], out: &mut Output) -> Done {
    let shown = words.iter().map(|word| if word.contains(' ') { format!("\"{word}\"") } else { (*word).to_owned() });
    out.line(out.paint(Tone::Name, format_args!("$ windlass {}", shown.collect::<Vec<_>>().join(" "))))?;
    out.flush()?;
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
