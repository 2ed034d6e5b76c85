//! `windlass hooks test`

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use windlass_engine::{HookOutcome, HookReport, RuleAction, Ruling, judge};
use windlass_hooks::{self as hooks, Call, Kind, Mask, Papers, Role, answer, http};
use windlass_process::{Control, Finished, run as start};

use super::planned::{Row, Who, at};
use crate::config::{Config, Hook, Point};
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::output::{Done, Output, Tone};
use crate::project::Project;
use crate::trust::{self, Trust};
use crate::{dispatch, environment, plan, remedy, small_file, text};

/// The longest payload that is read.
const PAYLOAD: u64 = 16 * 1024 * 1024;
/// Where trials keep what they write.
const RECORDS: &str = "trials";

/// What the hooks of a point would run and be given. Nothing is recorded.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass hooks test stop                               the commands, and what they would be given
  echo '{\"iteration\": 3}' | windlass hooks test stop --payload -
  windlass hooks test on_error --payload error.json --run   run them, and show what they say

A payload is a JSON object with the names that conditions use: `iteration`, `error`, `task.labels`, … What it does not
name has its empty value. `docs/hooks.md` lists the names.")]
pub struct Args {
    /// The point
    #[arg(value_name = "POINT", value_parser = super::point)]
    point: Point,
    /// A JSON object with what the hooks are run for; `-` reads it from standard input
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// Only this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// For a task of this type [default: the payload's `task.type`]
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Run them, outside any session, and show their verdicts
    #[arg(long)]
    run: bool,
}

/// What a trial of one hook came to.
struct Trial<'c> {
    hook: &'c Hook,
    /// Whether its condition holds.
    holds: Result<bool, String>,
    command: Option<String>,
    environment: Map<String, Value>,
    report: Option<HookReport>,
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Done {
    let project = context.project()?;
    let config = Config::load(&project)?;
    if args.run && !context.trust && trust::state(&project, &config)? != Trust::Trusted {
        return Err(Failure::new(Code::Trust, "this project may not run what its configuration says")
            .caused_by("nobody has trusted it as it is now")
            .hint(remedy::HOW_TO_TRUST)
            .into());
    }
    let values = values(args.payload.as_deref(), args.point)?;
    let kind = args.kind.clone().or_else(|| values["task"]["type"].as_str().map(str::to_owned));
    let who = Who { kind: kind.filter(|kind| !kind.is_empty()), agent: values["agent"].as_str().map(str::to_owned) };
    let registry = plan::pure_rules(&config)?.registry;
    let planned = at(&config, &registry, &who, args.point);
    let written = planned.rows.iter().filter_map(|row| match row {
        Row::Written(hook) if args.hook.as_ref().is_none_or(|name| *name == hook.name) => Some(*hook),
        _ => None,
    });
    let written: Vec<&Hook> = written.filter(|hook| plan::runnable(hook).is_some() && hook.enabled()).collect();
    if written.is_empty() {
        return Err(Failure::new(Code::NotFound, format!("nothing that could be tried runs at {}", args.point))
            .hint("`windlass hooks list` shows what runs where")
            .into());
    }
    let records = project.make_records(RECORDS)?;
    let mask = dispatch::mask(&config);
    let trier = Trier { project: &project, point: args.point, values, records, mask };
    for hook in written {
        let trial = trier.try_out(hook, args.run)?;
        show(&trial, &trier, out)?;
    }
    Ok(())
}

/// What hooks are told, with what a payload says in place of the empty values.
fn values(payload: Option<&Path>, point: Point) -> Result<Value, Failure> {
    let mut values = windlass_engine::Situation::nothing();
    values["point"] = json!(point.name());
    values["event"]["type"] = json!(point.event().map_or("", |event| event.name()));
    let Some(path) = payload else { return Ok(values) };
    let wrong = |cause: String| {
        Failure::new(Code::Usage, format!("cannot use the payload `{}`", path.display())).caused_by(cause)
    };
    let bytes = if path == Path::new("-") {
        small_file::read_from(std::io::stdin().lock(), PAYLOAD)
    } else {
        File::open(path).and_then(|file| small_file::read_from(file, PAYLOAD))
    };
    let bytes = bytes.map_err(|error| wrong(error.to_string()))?;
    let given: Value = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    if !given.is_object() {
        return Err(wrong("it is not a JSON object".to_owned()).hint("write it as {\"iteration\": 1, …}"));
    }
    lay_over(&mut values, given);
    // The same under its other names, unless they are given too.
    for (name, of) in [("task_id", "id"), ("taskId", "id"), ("task_content", "content")] {
        if values[name] == "" {
            values[name] = values["task"][of].clone();
        }
    }
    Ok(values)
}

/// What rules know beside: empty, but for what follows from the payload or is named in it.
fn agent_context(values: &Value) -> Value {
    let promise = values["promise"].as_str().filter(|promise| !promise.is_empty());
    let promises: Vec<Value> =
        promise.map(|promise| json!({"type": promise, "detected": true, "content": promise})).into_iter().collect();
    let mut context = json!({
        "executionPhase": null,
        "filesModified": [],
        "validationResults": [],
        "completionPromises": promises,
        "agentOutput": values["output"],
        "draftContent": null,
        "draftType": null,
    });
    lay_over(&mut context, values.clone());
    context
}

/// Objects are merged, everything else is replaced.
fn lay_over(values: &mut Value, given: Value) {
    match (values, given) {
        (Value::Object(values), Value::Object(given)) => {
            for (name, value) in given {
                lay_over(values.entry(name).or_insert(Value::Null), value);
            }
        }
        (values, given) => *values = given,
    }
}

/// Tries hooks out.
struct Trier<'a> {
    project: &'a Project,
    point: Point,
    values: Value,
    records: PathBuf,
    mask: Mask,
}

impl Trier<'_> {
    fn try_out<'c>(&self, hook: &'c Hook, really: bool) -> Result<Trial<'c>, Failure> {
        let mut values = self.values.clone();
        values["hook"] = json!(hook.name);
        let holds = match &hook.when {
            Some(when) => when.holds(&values).map_err(|fault| fault.to_string()),
            None => Ok(true),
        };
        let runnable = plan::runnable(hook).expect("only those are tried");
        let environment = environment::inherited();
        let event = json!({"type": values["event"]["type"], "data": values["event"]["data"]});
        let call =
            Call { values: &values, event: &event, debt: None, project: &self.project.root, environment: &environment };
        let papers = Papers::at(&self.records.join(format!("trial-{}", std::process::id())), &call);
        let command = match &runnable.kind {
            Kind::Command(script) => Some(call.filled(script, &papers)),
            Kind::Http(address) => Some(format!("{} {}", address.method.name(), address.url)),
            Kind::Rules(_) => None,
        };
        let told = if matches!(runnable.kind, Kind::Command(_)) { call.told(&papers) } else { Vec::new() };
        let told = told.into_iter().map(|(name, value)| (name.to_owned(), json!(value.to_string_lossy()))).collect();
        let mut trial = Trial { hook, holds, command, environment: told, report: None };
        let judges = matches!(runnable.kind, Kind::Rules(_));
        if trial.holds != Ok(false) && (really || judges) {
            let report = self.report(&runnable, &call, &papers)?;
            trial.report = Some(self.mask.report(report));
        }
        Ok(trial)
    }

    fn role(&self) -> Role {
        match self.point.name() {
            "stop" => Role::Stop,
            "before_submit" | "before_merge" => Role::Pipeline,
            _ => Role::Observer,
        }
    }

    fn report(&self, hook: &hooks::Hook, call: &Call<'_>, papers: &Papers) -> Result<HookReport, Failure> {
        match &hook.kind {
            Kind::Command(script) => {
                let spec = call.spec(script, hook.timeout, papers);
                let system = |error| Failure::new(Code::System, "cannot write the payload").caused_by(error);
                papers.write(&spec.stdin).map_err(system)?;
                let roster = dispatch::enlist(self.project)?;
                let ran = start(&spec, &roster, &Control::new(), &mut |_, _| {});
                // Nothing of a trial is kept.
                for spilled in ran.iter().flat_map(|ran| [&ran.stdout.spilled, &ran.stderr.spilled]).flatten() {
                    let _ = std::fs::remove_file(&spilled.path);
                }
                Ok(answer(hook, self.role(), &ran, call.values))
            }
            Kind::Http(address) => Ok(self.sent(hook, address, call)),
            Kind::Rules(rules) => Ok(match judge(rules, &agent_context(call.values)) {
                Err(fault) => HookReport { message: Some(fault.to_string()), ..HookOutcome::Failure.into() },
                Ok(None) => HookOutcome::Success.into(),
                Ok(Some(ruling)) => self.ruled(hook, ruling),
            }),
        }
    }

    /// What a ruling means at this point.
    fn ruled(&self, hook: &hooks::Hook, ruling: Ruling) -> HookReport {
        let outcome = match (ruling.action, self.role()) {
            (RuleAction::Complete, _) | (RuleAction::Continue, Role::Observer) => HookOutcome::Success,
            (RuleAction::Continue, Role::Stop) => HookOutcome::Continue,
            (RuleAction::Continue, Role::Pipeline) => HookOutcome::Block,
            (RuleAction::Escalate, _) => HookOutcome::Escalate,
        };
        let told = ruling.next_prompt.or_else(|| ruling.reason.clone());
        let told = told.filter(|_| hook.pipes || (self.role().is_gate() && outcome != HookOutcome::Success));
        HookReport { message: ruling.reason, feedback: told, ..outcome.into() }
    }

    fn sent(&self, hook: &hooks::Hook, address: &hooks::Address, call: &Call<'_>) -> HookReport {
        let failed = |why: String| HookReport { message: Some(why), ..HookOutcome::Failure.into() };
        let request = match address.request(call, hook.timeout, "trial".to_owned()) {
            Ok(request) => request,
            Err(error) => return failed(error.to_string()),
        };
        match http::meaning(&http::send(&request)) {
            http::Ended::Ok(body) => answer(hook, self.role(), &Ok(Finished::said(body.into_bytes())), call.values),
            http::Ended::Again { why, .. } | http::Ended::TimedOut { why } | http::Ended::Failed { why } => failed(why),
        }
    }
}

fn show(trial: &Trial<'_>, trier: &Trier<'_>, out: &mut Output) -> Done {
    if out.is_json() {
        return out.object(&json!({
            "hook": trial.hook.name,
            "point": trier.point.name(),
            "when": trial.hook.entry.when.as_ref().map(|when| &when.value),
            "holds": trial.holds.as_ref().ok(),
            "command": trial.command,
            "environment": trial.environment,
            "payload": trier.values,
            "verdict": trial.report.as_ref().map(|report| json!({
                "outcome": report.outcome,
                "message": report.message,
                "feedback": report.feedback,
                "actions": report.actions,
            })),
        }));
    }
    out.line(out.paint(Tone::Name, text::line(&trial.hook.name)))?;
    if let Some(when) = &trial.hook.entry.when {
        let holds = match &trial.holds {
            Ok(true) => "holds".to_owned(),
            Ok(false) => "does not hold: it would not run".to_owned(),
            Err(fault) => format!("cannot be answered: {fault}; it would run"),
        };
        out.line(format_args!("  when         {}  {}", text::line(&when.value), out.paint(Tone::Faint, holds)))?;
    }
    if let Some(command) = &trial.command {
        out.line(format_args!("  runs         {}", text::line(command)))?;
    }
    for (name, value) in trial.environment.iter().filter(|(_, value)| value.as_str() != Some("")) {
        let value = text::line(value.as_str().unwrap_or_default());
        out.line(format_args!("  {}", out.paint(Tone::Faint, format!("{name}={value}"))))?;
    }
    let Some(report) = &trial.report else { return Ok(()) };
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
    Ok(())
}
