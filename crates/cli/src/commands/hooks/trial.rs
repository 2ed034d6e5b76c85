//! `windlass hooks test`: shows the input of the hooks at a point, and runs them with `--run`.

use std::path::{Path, PathBuf};

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::hook_trial::input::{TrialPayload, build_trial_input};
use windlass_app::hook_trial::{HookTrial, HookTrialRunner, list_testable_hooks};
use windlass_app::trust::{self, TrustState};
use windlass_app::{Failure, FailureCode, execution, hints};
use windlass_bridge::BridgeAgent;
use windlass_config::Config;
use windlass_engine::HookPoint;
use windlass_process::RunControl;
use windlass_text as text;

use super::list;
use crate::commands::input::read_bytes;
use crate::output::{CommandResult, Output, TextTone};
use crate::usage;

/// The column in which values begin.
const VALUE_COLUMN: usize = 15;
/// The longest accepted payload.
const MAX_PAYLOAD_BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass hooks test stop                                  show input only
  windlass hooks test on_error --payload error.json --run   run them
  echo '{\"iteration\": 3}' | windlass hooks test stop --payload -
  echo '{\"tool_name\": \"Bash\"}' | windlass hooks test pre_tool_use --payload -

A payload is a JSON object with the names that conditions use: `iteration`, `error`, `task.labels`, … A name \
that it leaves out has its empty value. docs/reference/payloads-and-answers.md lists the names.

In three cases the payload is the input of an agent, and the hooks run as `windlass hook` would run them: at a \
point where only agents call, with --as, and if the payload has a `session_id`.")]
pub struct Args {
    /// The point of the hooks, such as stop
    #[arg(value_name = "POINT", value_parser = super::parse_point_argument)]
    point: HookPoint,
    /// A JSON object with the input for the hooks; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// Act as the hook system of this agent [default: from the payload]
    #[arg(long = "as", value_name = "AGENT", value_parser = usage::name_parser::<BridgeAgent>(BridgeAgent::ALL.iter().map(|agent| agent.name())))]
    agent: Option<BridgeAgent>,
    /// Test only this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Use the hooks of this task type [default: the payload's `task.type`]
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Include the hooks of this agent [default: the payload's `agent`]
    #[arg(long = "agent", value_name = "NAME")]
    works: Option<String>,
    /// Run the hooks outside any session, and show their verdicts
    #[arg(long)]
    run: bool,
}

pub fn run_hooks_test(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    let project = context.find_project()?;
    let config = Config::load(&project.root)?;
    if args.run && !context.trust && trust::find_trust_state(&project, &config)? != TrustState::Trusted {
        return Err(Failure::new(FailureCode::Trust, "cannot use the configuration of this project")
            .with_cause("it is not trusted as it is now")
            .with_hint(hints::HOW_TO_TRUST)
            .with_trust_option()
            .into());
    }
    let payload = args.payload.as_deref().map(read_payload_file).transpose()?;
    let mut input = build_trial_input(payload.as_ref(), &args.point, args.agent)?;
    if let Some(name) = list::check_known_name(args.works.clone(), "agent", &list::agent_names(&config))? {
        input.values["agent"] = json!(name);
        input.values["agent_name"] = json!(name);
    }
    let mut subject = input.complete_values(&project);
    subject.kind = args.kind.clone().or(subject.kind);
    let hooks = list_testable_hooks(&config, &subject, &args.point, args.hook.as_deref())?;
    let listening = if args.run { Some(execution::listen_to_signals()?) } else { None };
    let control = listening.as_ref().map_or_else(RunControl::new, |(control, _)| control.clone());
    let point = args.point.clone();
    let runner = HookTrialRunner::new((&project, &config), point, input, control.clone())?;
    for hook in hooks {
        let trial = runner.try_hook(hook, args.run)?;
        show_hook_trial(&trial, &args.point, &runner, out)?;
        if control.is_cancelled() {
            let signal = listening.as_ref().and_then(|(_, received)| received.first_signal());
            return Err(interrupted_failure().with_signal(signal).into());
        }
    }
    Ok(())
}

fn read_payload_file(path: &Path) -> Result<TrialPayload, Failure> {
    let hint = "a payload for a trial can be shorter: leave out what no hook reads";
    let bytes = read_bytes(path, MAX_PAYLOAD_BYTES, hint)?;
    let mut payload = TrialPayload { value: json!({}), name: path.display().to_string() };
    payload.value = serde_json::from_slice(&bytes)
        .map_err(|error| payload.failure(error.to_string(), "write it as {\"iteration\": 1, …}"))?;
    Ok(payload)
}

fn interrupted_failure() -> Failure {
    Failure::new(FailureCode::Interrupted(hints::SIGINT_NUMBER), "ended while hooks were tried")
        .with_cause("nothing of a trial is recorded")
}

fn show_hook_trial(
    trial: &HookTrial<'_>,
    point: &HookPoint,
    runner: &HookTrialRunner<'_>,
    out: &mut Output,
) -> CommandResult {
    if out.is_json() {
        return out.print_json(&json!({
            "hook": trial.hook.name,
            "point": point.name(),
            "when": trial.hook.entry.when.as_ref().map(|when| &when.value),
            "matcher": trial.hook.entry.matcher.as_ref().map(|matcher| &matcher.value),
            "matches": trial.matches,
            "holds": trial.condition.as_ref().ok(),
            "command": trial.command,
            "environment": trial.environment,
            "payload": trial.payload,
            "hint": trial.exit_code_hint(),
            "verdict": trial.report.as_ref().map(|report| json!({
                "outcome": report.outcome,
                "message": report.message,
                "feedback": report.feedback,
                "actions": report.actions,
            })),
        }));
    }
    out.print_line(out.paint(TextTone::Name, text::clean_line(&trial.hook.name)))?;
    if let Some(matcher) = &trial.hook.entry.matcher {
        let matches = if trial.matches { "matches" } else { "does not match: it would not run" };
        let matches = out.paint(TextTone::Faint, matches);
        out.print_line(format_args!("  matcher      {}  {matches}", text::clean_line(&matcher.value)))?;
    }
    if let Some(when) = &trial.hook.entry.when {
        let holds = match &trial.condition {
            Ok(true) => "holds".to_owned(),
            Ok(false) => "does not hold: it would not run".to_owned(),
            Err(fault) if runner.would_run_on_condition(&trial.condition) => {
                format!("cannot be answered: {fault}; it would run, for this is a gate")
            }
            Err(fault) => format!("cannot be answered: {fault}; it would not run"),
        };
        out.print_line(format_args!(
            "  when         {}  {}",
            text::clean_line(&when.value),
            out.paint(TextTone::Faint, holds)
        ))?;
    }
    if let Some(command) = &trial.command {
        out.print_line(format_args!("  runs         {}", text::clean_line(command)))?;
        let (payload, room) =
            (trial.payload.to_string(), out.columns().map(|columns| columns.saturating_sub(VALUE_COLUMN)));
        let payload = text::fit_to_width(&payload, room.unwrap_or(usize::MAX));
        out.print_line(format_args!("  payload      {}", out.paint(TextTone::Faint, payload)))?;
    }
    for (name, value) in trial.environment.iter().filter(|(_, value)| value.as_str() != Some("")) {
        let value = text::clean_line(value.as_str().unwrap_or_default());
        out.print_line(format_args!("  {}", out.paint(TextTone::Faint, format!("{name}={value}"))))?;
    }
    let hint = |out: &mut Output| {
        trial
            .exit_code_hint()
            .into_iter()
            .try_for_each(|hint| out.print_line(format_args!("  hint         {}", text::clean_line(&hint))))
    };
    let Some(report) = &trial.report else { return hint(out) };
    let outcome = serde_json::to_value(report.outcome).ok().and_then(|word| word.as_str().map(str::to_owned));
    let why = report.message.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    out.print_line(format_args!("  verdict      {}{}", outcome.unwrap_or_default(), text::clean_line(&why)))?;
    for line in report.feedback.iter().flat_map(|told| told.lines()) {
        out.print_line(format_args!("  agent told   {}", text::clean_line(line)))?;
    }
    for action in &report.actions {
        out.print_line(format_args!(
            "  asks for     {} {}",
            text::clean_line(&action.kind),
            text::clean_line(&action.payload.to_string())
        ))?;
    }
    hint(out)
}
