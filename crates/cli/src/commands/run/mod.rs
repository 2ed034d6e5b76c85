//! `windlass run`: has an agent work until the work is done.
//!
//! ```text
//! arguments ─► RunRequest ─► app::run ─► runner events ─► progress, live view ─► summary, exit code
//! ```

mod gate_question;
mod live;
mod notices;
mod progress;
mod session_summary;
mod signals;
mod sink;
mod summary;
mod worker_output;
mod worker_pool;
mod worker_summary;

use serde_json::json;
use windlass_app::answers::GatePrompt;
use windlass_app::context::{CommandContext, OpenedProject};
use windlass_app::run::{
    NothingReady, PlannedSession, RunPlan, RunRequest, SessionReport, open_project_to_run, plan_run,
};
use windlass_app::{Failure, FailureCode, SUPERVISE_ARGUMENT};
use windlass_engine::{SessionEndKind, SessionName, TaskId};
use windlass_process::RunControl;
use windlass_text as text;

use self::gate_question::TerminalPrompt;
use self::live::LiveView;
use self::progress::ProgressPrinter;
use self::signals::SignalListener;
use self::summary::EndedSession;
use crate::output::{CommandResult, EarlyExit, Output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass run \"Fix the login\" --agent claude                a known agent
  windlass run \"Fix the login\" --agent \"acp:goose acp\"       an agent over ACP
  windlass run \"Fix the login\" --agent \"command:claude -p\"   prompt on stdin
  windlass run \"Fix the login\" --max-iterations 5            agent of the config
  windlass run \"Fix the login\" --fresh                       a new session
  windlass run --task T3                                     one task
  windlass run --resolve T3                                  resolve a conflict
  windlass run                                               all ready tasks
  windlass run --workers 4                                   four at a time
  windlass run --verbose                                     show all output

After a crash, the same command resumes the same session.

Exit codes:
  0 complete     1 error     3 ended without completion     4 a person is needed
  64 usage, configuration or trust
  130, 143, 129 ended by SIGINT, SIGTERM, SIGHUP")]
pub struct Args {
    /// The goal of the work [default: work on all ready tasks]
    #[arg(value_name = "GOAL")]
    goal: Option<String>,
    /// Work on this task
    #[arg(long, value_name = "ID", conflicts_with = "goal")]
    task: Option<TaskId>,
    /// Resolve the conflict of this task's change with its base
    #[arg(long, value_name = "ID", conflicts_with_all = ["goal", "task"])]
    resolve: Option<TaskId>,
    /// The agent: a known name such as `claude`, a name under `agents:`,
    /// `acp:CMD`, `command:CMD` or `scripted:FILE` [default: `agent` of the config]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Stop after this many iterations [default: from the config, else 25]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    max_iterations: Option<u32>,
    /// The name of the session [default: made from the goal]
    #[arg(long, value_name = "NAME")]
    session: Option<SessionName>,
    /// Start a new session instead of resuming an unfinished one
    #[arg(long)]
    fresh: bool,
    /// Print the output of the agent and of hooks while it is written
    #[arg(long, short)]
    verbose: bool,
    /// Work on up to N ready tasks at a time (1 to 64), a session each
    #[arg(long, value_name = "N", conflicts_with_all = ["goal", "task", "resolve", "session", "fresh"],
          allow_negative_numbers = true, value_parser = parse_worker_count)]
    workers: Option<u8>,
}

/// Parses the number of workers.
fn parse_worker_count(text: &str) -> Result<u8, String> {
    let count = text.parse().ok().filter(|count| (1..=64).contains(count));
    count.ok_or_else(|| "it is a number from 1 to 64".to_owned())
}

/// The deepest nesting of runs: an agent may call `windlass run`, whose agent may call it again.
const MAX_NESTED_RUNS: usize = 3;

/// Refuses a run that is nested too deeply, in any project. The supervisors above are counted, because an agent can remove
/// variables but not its parents.
fn check_nesting() -> Result<(), Failure> {
    if windlass_process::count_supervisors_above(SUPERVISE_ARGUMENT) < MAX_NESTED_RUNS {
        return Ok(());
    }
    Err(Failure::new(
        FailureCode::Refused,
        format!("cannot start a run within {MAX_NESTED_RUNS} nested programs of Windlass"),
    )
    .with_hint("`windlass task add` adds work for a later run"))
}

impl Args {
    fn to_run_request(&self) -> RunRequest {
        RunRequest {
            goal: self.goal.clone(),
            task: self.task.or(self.resolve),
            resolve_conflict: self.resolve.is_some(),
            agent: self.agent.clone(),
            max_iterations: self.max_iterations,
            session: self.session.clone(),
            fresh: self.fresh,
        }
    }
}

pub fn run_work_loop(context: &CommandContext, args: Args, out: &mut Output) -> Result<u8, EarlyExit> {
    check_nesting()?;
    if let Some(workers) = args.workers {
        return worker_pool::run_worker_pool(context, &args, workers, out);
    }
    let mut request = args.to_run_request();
    let mut opened = open_project_to_run(context, &mut request)?;
    let mut stage = None;
    loop {
        let planned = match plan_run(&mut opened, &request)? {
            RunPlan::Session(planned) => planned,
            RunPlan::NothingReady(nothing) => {
                show_nothing_ready(&nothing, out)?;
                return Ok(nothing.remaining.exit_code());
            }
        };
        if stage.is_none() {
            stage = Some(SessionConsole::set_up(out, args.verbose)?);
        }
        let stage = stage.as_mut().expect("it was just set");
        if let Some(report) = stage.run_session(context, &mut opened, &planned, out)? {
            let ending = report.ending.unwrap_or(SessionEndKind::Cancelled);
            stage.show_end(&opened, &planned, report, out);
            return Ok(session_exit_code(ending, stage.signals.first_signal()));
        }
        // Another process has begun the planned session, so the request is planned again.
    }
}

/// The terminal and the signals while a session runs.
struct SessionConsole {
    control: RunControl,
    live: Option<LiveView>,
    signals: SignalListener,
    is_verbose: bool,
}

impl SessionConsole {
    fn set_up(out: &mut Output, is_verbose: bool) -> Result<Self, EarlyExit> {
        let control = RunControl::new();
        let live = start_live_view(out, 0)?;
        let signals = SignalListener::start(&control, live.as_ref().map(LiveView::view), || {})?;
        Ok(Self { control, live, signals, is_verbose })
    }

    /// Runs a session and shows what happens.
    fn run_session(
        &mut self,
        context: &CommandContext,
        opened: &mut OpenedProject,
        planned: &PlannedSession<'_>,
        out: &mut Output,
    ) -> Result<Option<SessionReport>, EarlyExit> {
        let view = self.live.as_ref().map(LiveView::view);
        self.signals.follow_session(&opened.project, &self.control, planned.session_name(), view)?;
        if let Some(view) = view {
            view.update_areas(|area| {
                if let Some(session) = planned.choice.resumed_session() {
                    area.set_earlier_time(session.watch.lasted);
                    area.used = session.watch.used;
                }
                area.time = planned.config.settings.limits.wall_time.as_ref().map(|time| time.duration());
            });
        }
        let is_person_there = gate_question::has_terminal() && !out.is_json();
        let prompt = is_person_there.then_some(TerminalPrompt { view });
        let progress = ProgressPrinter::new(out, view.cloned(), planned.work_source());
        let mut progress = progress.with_program_output(self.is_verbose);
        progress.directory = shown_directory(context, opened);
        Ok(planned.run_session(
            opened,
            &self.control,
            &mut progress,
            prompt.as_ref().map(|prompt| prompt as &dyn GatePrompt),
        )?)
    }

    /// Shows the summary of a session.
    fn show_end(
        &mut self,
        opened: &OpenedProject,
        planned: &PlannedSession<'_>,
        report: SessionReport,
        out: &mut Output,
    ) {
        // The live view removes its rows before anything else is written.
        drop(self.live.take());
        let ended = EndedSession {
            opened,
            name: planned.session_name(),
            report,
            control: &self.control,
            agent: planned.named_agent(),
            restrictions: planned.agent_restrictions(opened),
        };
        if ended.show_summary(out).and_then(|()| out.flush()).is_err() {
            // The work is done, whether or not the summary is read.
            out.ignore_closed_output();
        }
    }
}

/// Starts the live view if a person watches.
fn start_live_view(out: &mut Output, seats: usize) -> Result<Option<LiveView>, EarlyExit> {
    if !out.is_watched() {
        return Ok(None);
    }
    // From now on lines go to the terminal past this buffer.
    out.flush()?;
    let live = LiveView::start(out.palette(), seats)
        .map_err(|error| Failure::new(FailureCode::System, "cannot start a thread").with_cause(error))?;
    Ok(Some(live))
}

/// Returns the project's directory if the command was given elsewhere.
fn shown_directory(context: &CommandContext, opened: &OpenedProject) -> Option<String> {
    let root = &opened.project.root;
    let here = context.directory.canonicalize().is_ok_and(|directory| directory == *root);
    (!here).then(|| root.to_string_lossy().into_owned())
}

/// Shows that nothing is ready, and the tasks that remain.
fn show_nothing_ready(nothing: &NothingReady, out: &mut Output) -> CommandResult {
    let remaining = &nothing.remaining;
    if out.is_json() {
        return out.print_json(&json!({"ready": 0, "left": remaining.to_json(), "more": remaining.more}));
    }
    match (remaining.tasks.is_empty(), remaining.has_tasks) {
        (true, false) => {
            out.print_line("no tasks; `windlass task add GOAL` makes one, `windlass run GOAL` works on it at once")
        }
        (true, true) => out.print_line("every task is completed"),
        (false, _) => {
            out.print_line(text::clean_line(&nothing.reason))?;
            remaining
                .describe_lines()
                .iter()
                .try_for_each(|line| out.print_line(format_args!("  left: {}", text::clean_line(line))))
        }
    }
}

/// Returns the exit code of a session with this ending.
fn session_exit_code(ending: SessionEndKind, signal: Option<i32>) -> u8 {
    match (ending, signal) {
        (SessionEndKind::Completed, _) => 0,
        (SessionEndKind::Error, _) => 1,
        (SessionEndKind::Limit, _) => 3,
        // A person cancelled it from elsewhere.
        (SessionEndKind::Cancelled, None) => 3,
        (SessionEndKind::Escalated, _) => 4,
        (SessionEndKind::Cancelled, Some(signal)) => 128 + u8::try_from(signal).unwrap_or(2),
    }
}
