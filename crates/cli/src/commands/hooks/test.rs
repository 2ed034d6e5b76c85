//! `windlass hooks test`

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Map, Value, json};
use windlass_app::context::Context;
use windlass_app::project::Project;
use windlass_app::trust::{self, Trust};
use windlass_app::{Code, Failure, environment, execution, hints, runner_settings};
use windlass_bridge::{Agent, AgentHookRequest};
use windlass_config::listing::{ListedHook, WorkSubject, list_hooks_at};
use windlass_config::{Config, HookSpec, plan};
use windlass_engine::{HookOutcome, HookPoint, HookReport};
use windlass_hooks::{
    self as hooks, HookInput, HookRole, Mask, Papers, PipeOutput, RunnableKind, ShellCommand, answer_of_command, http,
    ruling, sifted,
};
use windlass_process::{Control, run as start};
use windlass_text as text;

use super::list;
use super::payload::{Given, given};
use crate::output::{Done, Output, Tone};
use crate::usage;

/// Where trials keep what they write.
const RECORDS: &str = "trials";
/// Where the second column begins.
const INDENT: usize = 15;
/// Names a file that is there only while the hook runs.
const PAYLOAD_FILE: &str = "WINDLASS_PAYLOAD_FILE";

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass hooks test stop                               the commands, and what they would be given
  echo '{\"iteration\": 3}' | windlass hooks test stop --payload -
  windlass hooks test on_error --payload error.json --run   run them, and show what they say
  echo '{\"tool_name\": \"Bash\", \"tool_input\": {\"command\": \"ls\"}}' | windlass hooks test pre_tool_use --payload -

A payload is a JSON object with the names that conditions use: `iteration`, `error`, `task.labels`, … What it does not
name has its empty value. `docs/hooks.md` lists the names.

Where only agents' own hook systems call, with --as, and where it has a `session_id`, a payload is what the agent would say, and \
the hooks are tried as `windlass hook` would run them.")]
pub struct Args {
    /// The point
    #[arg(value_name = "POINT", value_parser = super::point)]
    point: HookPoint,
    /// A JSON object with what the hooks are run for; `-` reads it from standard input
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// As if this agent's own hook system called [default: whoever the payload looks like, where only those call]
    #[arg(long = "as", value_name = "AGENT", value_parser = usage::one_of::<Agent>(Agent::ALL.iter().map(|agent| agent.name())))]
    agent: Option<Agent>,
    /// Only this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// For a task of this type [default: the payload's `task.type`]
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// When this agent works: its own hooks are tried too [default: the payload's `agent`]
    #[arg(long = "agent", value_name = "NAME")]
    works: Option<String>,
    /// Run them, outside any session, and show their verdicts
    #[arg(long)]
    run: bool,
}

/// What a trial of one hook came to.
struct Trial<'c> {
    hook: &'c HookSpec,
    /// Whether it is for the tool; where there is none, it is.
    matches: bool,
    /// Whether its condition holds.
    holds: Result<bool, String>,
    command: Option<String>,
    environment: Map<String, Value>,
    /// What it would read from its standard input, or a server would get.
    payload: Value,
    report: Option<HookReport>,
}

impl Trial<'_> {
    /// That the exit of the command will not send the agent back. A run that passed, or that blocks, needs no hint.
    fn hint(&self) -> Option<String> {
        let failed = |report: &HookReport| report.outcome == HookOutcome::Failure && !report.unstarted;
        let (message, remedy) = self.hook.exit_hint().filter(|_| self.report.as_ref().is_none_or(failed))?;
        Some(format!("{message}; {remedy}"))
    }
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Done {
    let project = context.project()?;
    let config = Config::load(&project.root)?;
    if args.run && !context.trust && trust::state(&project, &config)? != Trust::Trusted {
        return Err(Failure::new(Code::Trust, "this project may not run what its configuration says")
            .caused_by("it is not trusted as it is now")
            .hint(hints::HOW_TO_TRUST)
            .offer_trust()
            .into());
    }
    let Given { mut values, request } = given(args.payload.as_deref(), &args.point, args.agent)?;
    if values["project_dir"] == "" {
        values["project_dir"] = json!(project.root.to_string_lossy());
    }
    let kind = args.kind.clone().or_else(|| values["task"]["type"].as_str().map(str::to_owned));
    if let Some(name) = list::known(args.works.clone(), "agent", &list::agents(&config))? {
        values["agent"] = json!(name);
        values["agent_name"] = json!(name);
    }
    let who =
        WorkSubject { kind: kind.filter(|kind| !kind.is_empty()), agent: values["agent"].as_str().map(str::to_owned) };
    let registry = plan::pure_rules(&config).map_err(Failure::from)?.registry;
    let planned = list_hooks_at(&config, &registry, &who, &args.point);
    let written = planned.rows.iter().filter_map(|row| match row {
        ListedHook::Written(hook) if args.hook.as_ref().is_none_or(|name| *name == hook.name) => Some(*hook),
        _ => None,
    });
    let written: Vec<&HookSpec> = written.filter(|hook| plan::runnable(hook).is_some() && hook.enabled()).collect();
    if written.is_empty() {
        let failure = Failure::new(Code::NotFound, format!("nothing that could be tried runs at {}", args.point));
        let usual = planned.rows.iter().find(|row| matches!(row, ListedHook::Default { worktrees: true }));
        let failure = match usual {
            Some(row) => failure.caused_by(format!(
                "`{}` runs there for tasks in worktrees, and only a session that submits its work runs it",
                row.name()
            )),
            None => failure,
        };
        return Err(failure.hint("`windlass hooks list` shows what runs where").into());
    }
    let records = project.make_records(RECORDS)?;
    let mask = runner_settings::mask(&config);
    let listening = if args.run { Some(execution::listen()?) } else { None };
    let control = listening.as_ref().map_or_else(Control::new, |(control, _)| control.clone());
    let trier = Trier { project: &project, point: args.point, values, request, records, mask, control };
    for hook in written {
        let trial = trier.try_out(hook, args.run)?;
        show(&trial, &trier, out)?;
        if trier.control.is_cancelled() {
            let signal = listening.as_ref().and_then(|(_, received)| received.first());
            return Err(interrupted().by(signal).into());
        }
    }
    Ok(())
}

fn interrupted() -> Failure {
    Failure::new(Code::Interrupted(hints::SIGINT), "ended while hooks were tried")
        .caused_by("nothing of a trial is recorded")
}

/// Tries hooks out.
struct Trier<'a> {
    project: &'a Project,
    point: HookPoint,
    values: Value,
    /// What an agent says whose own hook system calls.
    request: Option<AgentHookRequest>,
    records: PathBuf,
    mask: Mask,
    control: Control,
}

impl Trier<'_> {
    fn try_out<'c>(&self, hook: &'c HookSpec, really: bool) -> Result<Trial<'c>, Failure> {
        let mut values = self.values.clone();
        values["hook"] = json!(hook.name);
        let told = plan::runnable(hook).map(|hook| hook.kind);
        let is_told_at_gate =
            self.point.is_gate() && matches!(told, Some(RunnableKind::Command(_) | RunnableKind::Http(_)));
        if is_told_at_gate || matches!(told, Some(RunnableKind::Rules(_))) {
            values = ruling::with_context(&values, &ruling::context_of_values(&values));
        }
        let tool = values["tool_name"].as_str().unwrap_or_default();
        let names = self.request.as_ref().map_or_else(|| vec![tool], Self::matched);
        let matches = names.iter().all(|name| name.is_empty()) || names.iter().any(|name| hook.matcher.matches(name));
        let holds = match &hook.when {
            Some(when) => when.holds(&values).map_err(|fault| fault.to_string()),
            None => Ok(true),
        };
        let mut runnable = plan::runnable(hook).expect("only those are tried");
        if self.request.is_some() {
            runnable.pipes.get_or_insert(PipeOutput::when(self.point.output_is_context()));
        }
        let environment = environment::inherited();
        let event = json!({"type": values["event"]["type"], "data": values["event"]["data"]});
        let input = HookInput {
            values: &values,
            event: &event,
            effect: None,
            project: &self.project.root,
            directory: &self.project.root,
            environment: &environment,
            agent_payload: self.request.as_ref().map(|request| &request.payload),
        };
        let papers = Papers::at(&self.records.join(format!("trial-{}", std::process::id())), &input);
        let command = match &runnable.kind {
            RunnableKind::Command(script) => Some(input.filled(script, &papers)),
            RunnableKind::Http(address) => Some(format!("{} {}", address.method.name(), address.url)),
            RunnableKind::Desktop => Some("a notice on the desktop".to_owned()),
            RunnableKind::Step(_) | RunnableKind::Workflow(_) => hook.effect(),
            RunnableKind::Rules(_) | RunnableKind::Prompt(_) => None,
        };
        let runs = matches
            && self.would_run(&holds)
            && (really || matches!(runnable.kind, RunnableKind::Rules(_) | RunnableKind::Prompt(_)));
        let told = if matches!(runnable.kind, RunnableKind::Command(_)) { input.told(&papers) } else { Vec::new() };
        let told = told.into_iter().filter(|(name, _)| runs || *name != PAYLOAD_FILE);
        let told = told.map(|(name, value)| (name.to_owned(), json!(value.to_string_lossy()))).collect();
        let report = if runs { Some(self.mask.report(self.report(&runnable, &input, &papers)?)) } else { None };
        Ok(Trial { hook, matches, holds, command, environment: told, payload: input.payload(), report })
    }

    /// What matchers look at.
    fn matched(request: &AgentHookRequest) -> Vec<&str> {
        request.call.matched.iter().map(String::as_str).collect()
    }

    /// As the engine has it: where a condition cannot be answered a gate runs, for otherwise it would stand open, and nothing
    /// else does.
    fn would_run(&self, holds: &Result<bool, String>) -> bool {
        *holds.as_ref().unwrap_or(&(self.point.is_gate()))
    }

    fn role(&self) -> HookRole {
        match self.point {
            _ if self.request.is_some() && self.point.hears_refusal() => HookRole::Stop,
            _ if self.request.is_some() => HookRole::Observer,
            HookPoint::Stop => HookRole::Stop,
            HookPoint::BeforeSubmit | HookPoint::BeforeMerge => HookRole::Pipeline,
            _ => HookRole::Observer,
        }
    }

    fn report(
        &self,
        hook: &hooks::RunnableHook,
        input: &HookInput<'_>,
        papers: &Papers,
    ) -> Result<HookReport, Failure> {
        match &hook.kind {
            RunnableKind::Command(script) => {
                let spec = input.spec(script, hook.timeout, papers);
                let system = |error| Failure::new(Code::System, "cannot write the payload").caused_by(error);
                papers.write(&spec.stdin).map_err(system)?;
                let roster = execution::enlist(self.project)?;
                let ran = start(&spec, &roster, &self.control, &mut |_, _| {});
                // Before anything is cut out of it: half a secret is one too.
                let ran = ran.map(|ran| sifted(ran, &self.mask));
                // Nothing of a trial is kept.
                for spilled in ran.iter().flat_map(|ran| [&ran.stdout.spilled, &ran.stderr.spilled]).flatten() {
                    let _ = std::fs::remove_file(&spilled.path);
                }
                let command =
                    ShellCommand { text: script.text(), directory: input.directory, environment: &spec.environment };
                let report = answer_of_command(hook, self.role(), &ran, input.values, command);
                // The agent does not hear of a gate that could not run.
                let is_told = !report.unstarted || !self.role().is_gate();
                Ok(HookReport { feedback: report.feedback.filter(|_| is_told), ..report })
            }
            RunnableKind::Http(address) => Ok(self.sent(hook, address, input)),
            RunnableKind::Desktop => {
                let message = Some("only the loop shows notices on the desktop".to_owned());
                Ok(HookReport { message, ..HookOutcome::Skip.into() })
            }
            RunnableKind::Prompt(template) => Ok(match template.render(input.values) {
                Ok(text) => HookReport { feedback: Some(text), ..HookOutcome::Success.into() },
                Err(fault) => HookReport { message: Some(fault.to_string()), ..HookOutcome::Failure.into() },
            }),
            RunnableKind::Step(_) => {
                let message = Some("only a session that submits its work runs it".to_owned());
                Ok(HookReport { message, ..HookOutcome::Skip.into() })
            }
            RunnableKind::Workflow(flow) => {
                let message = match flow.given(input.values) {
                    Ok(given) if given.is_empty() => format!("`windlass workflow run {}` runs it", flow.id),
                    Ok(given) => {
                        let (id, given) = (&flow.id, Value::Object(given));
                        format!("it would be given {given}; `windlass workflow run {id} --context -` runs it")
                    }
                    Err(why) => return Ok(HookReport { message: Some(why), ..HookOutcome::Failure.into() }),
                };
                Ok(HookReport { message: Some(message), ..HookOutcome::Skip.into() })
            }
            // Files that have changed are those that the payload names.
            RunnableKind::Rules(rules) => Ok(ruling::report(hook, self.role(), rules, input.values)),
        }
    }

    fn sent(&self, hook: &hooks::RunnableHook, address: &hooks::WebhookAddress, input: &HookInput<'_>) -> HookReport {
        let request = match address.request(input, hook.timeout, "trial".to_owned()) {
            Ok(request) => request,
            Err(error) => return HookReport { message: Some(error.to_string()), ..HookOutcome::Failure.into() },
        };
        let began = Instant::now();
        match http::ask(request, &self.mask, || self.control.is_cancelled()) {
            Some(ended) => http::report(hook, self.role(), ended, began.elapsed(), input.values),
            None => HookOutcome::Cancelled.into(),
        }
    }
}

fn show(trial: &Trial<'_>, trier: &Trier<'_>, out: &mut Output) -> Done {
    if out.is_json() {
        return out.object(&json!({
            "hook": trial.hook.name,
            "point": trier.point.name(),
            "when": trial.hook.entry.when.as_ref().map(|when| &when.value),
            "matcher": trial.hook.entry.matcher.as_ref().map(|matcher| &matcher.value),
            "matches": trial.matches,
            "holds": trial.holds.as_ref().ok(),
            "command": trial.command,
            "environment": trial.environment,
            "payload": trial.payload,
            "hint": trial.hint(),
            "verdict": trial.report.as_ref().map(|report| json!({
                "outcome": report.outcome,
                "message": report.message,
                "feedback": report.feedback,
                "actions": report.actions,
            })),
        }));
    }
    out.line(out.paint(Tone::Name, text::line(&trial.hook.name)))?;
    if let Some(matcher) = &trial.hook.entry.matcher {
        let matches = if trial.matches { "matches" } else { "does not match: it would not run" };
        let matches = out.paint(Tone::Faint, matches);
        out.line(format_args!("  matcher      {}  {matches}", text::line(&matcher.value)))?;
    }
    if let Some(when) = &trial.hook.entry.when {
        let holds = match &trial.holds {
            Ok(true) => "holds".to_owned(),
            Ok(false) => "does not hold: it would not run".to_owned(),
            Err(fault) if trier.would_run(&trial.holds) => {
                format!("cannot be answered: {fault}; it would run, for this is a gate")
            }
            Err(fault) => format!("cannot be answered: {fault}; it would not run"),
        };
        out.line(format_args!("  when         {}  {}", text::line(&when.value), out.paint(Tone::Faint, holds)))?;
    }
    if let Some(command) = &trial.command {
        out.line(format_args!("  runs         {}", text::line(command)))?;
        let (payload, room) = (trial.payload.to_string(), out.columns().map(|columns| columns.saturating_sub(INDENT)));
        let payload = text::fit(&payload, room.unwrap_or(usize::MAX));
        out.line(format_args!("  payload      {}", out.paint(Tone::Faint, payload)))?;
    }
    for (name, value) in trial.environment.iter().filter(|(_, value)| value.as_str() != Some("")) {
        let value = text::line(value.as_str().unwrap_or_default());
        out.line(format_args!("  {}", out.paint(Tone::Faint, format!("{name}={value}"))))?;
    }
    let hint = |out: &mut Output| {
        trial.hint().into_iter().try_for_each(|hint| out.line(format_args!("  hint         {}", text::line(&hint))))
    };
    let Some(report) = &trial.report else { return hint(out) };
    let outcome = serde_json::to_value(report.outcome).ok().and_then(|word| word.as_str().map(str::to_owned));
    let why = report.message.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    out.line(format_args!("  verdict      {}{}", outcome.unwrap_or_default(), text::line(&why)))?;
    for line in report.feedback.iter().flat_map(|told| told.lines()) {
        out.line(format_args!("  agent told   {}", text::line(line)))?;
    }
    for action in &report.actions {
        out.line(format_args!(
            "  asks for     {} {}",
            text::line(&action.kind),
            text::line(&action.payload.to_string())
        ))?;
    }
    hint(out)
}
