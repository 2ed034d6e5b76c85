//! `windlass hooks register`, `evaluate`, `clear`, and `list --task`: the stop hooks of a task

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use serde_json::{Value, json};
use windlass_engine::{Authority, Command, HookId, Seq, SeriesId, TaskId};

use crate::commands::iteration::Heard;
use crate::commands::task::read_text;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::output::{Done, Output, Tone};
use crate::{remedy, text, twin, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass hooks register T3                                    promises first, then validation rules
  windlass hooks register T3 --type rules --rules tdd           complete when the rule `tests_pass` passes
  windlass hooks register T3 --type rules --rules '[{\"when\": \"iteration > 5\", \"action\": \"escalate\"}]'
  windlass hooks register T3 --type command --command ./judge   gets the context as JSON, prints {action, reason}

Hooks are asked in the order of registration: the first that completes or escalates has the last word. They stay until
`windlass hooks clear`; once the task has ended, nobody asks them any more.")]
pub struct Register {
    /// The task, such as T3
    #[arg(value_name = "ID")]
    task: TaskId,
    /// What decides: default, validation, promise, command, rules
    #[arg(long = "type", short = 't', value_name = "TYPE", default_value = "default", hide_possible_values = true, value_parser = types())]
    kind: String,
    /// Register it without having it asked
    #[arg(long)]
    disabled: bool,
    /// What to remember about it, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = usage::json)]
    metadata: Option<Value>,
    /// The command that decides
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// The rules that decide: the name of a template, or JSON
    #[arg(long, value_name = "RULES")]
    rules: Option<String>,
}

fn types() -> impl TypedValueParser<Value = String> {
    usage::one_of(["default", "validation", "promise", "command", "rules"])
}

pub fn register(context: &Context, args: &Register, out: &mut Output) -> Done {
    let rules = args.rules.as_deref().map(rules).transpose()?;
    let given = json!({
        "taskId": args.task, "hookType": args.kind, "enabled": !args.disabled,
        "metadata": args.metadata, "command": args.command, "rules": rules,
    });
    let answer = twin::call(context, "hook_register", given)?;
    if out.is_json() {
        return out.object(&answer);
    }
    let id = out.paint(Tone::Strong, twin::text(&answer["hookId"])).to_string();
    let asked = if args.disabled { " is registered, and not asked" } else { " is asked from now on" };
    out.line(format_args!("{id} ({}) of {}{asked}", args.kind, args.task))
}

/// A template's name, or rules as they are written.
fn rules(given: &str) -> Result<Value, Failure> {
    if !given.trim_start().starts_with(['[', '{']) {
        return Ok(json!(given));
    }
    serde_json::from_str(given).map_err(|error| Failure::new(Code::Usage, "the rules are not JSON").caused_by(error))
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass hooks evaluate IT-12 --output \"<promise>COMPLETE</promise>\"
  my-agent | tee said.txt; windlass hooks evaluate IT-12 --output-file said.txt
  windlass hooks evaluate IT-12 --output-file - --json < said.txt

The validation rules run first, so that the hooks judge by what is so now. No task is moved.")]
pub struct Evaluate {
    /// The series of iterations, such as IT-12
    #[arg(value_name = "ITERATION")]
    series: SeriesId,
    #[command(flatten)]
    heard: Heard,
    /// A draft of the work, from a file
    #[arg(long, value_name = "FILE")]
    draft_file: Option<PathBuf>,
    /// What the draft is: implementation, test_plan, …
    #[arg(long, value_name = "TYPE")]
    draft_type: Option<String>,
}

pub fn evaluate(context: &Context, args: &Evaluate, out: &mut Output) -> Done {
    let draft = args.draft_file.as_deref().map(read_text).transpose()?;
    let given = json!({
        "iterationId": args.series, "agentOutput": args.heard.output()?, "filesModified": args.heard.files(),
        "draftContent": draft, "draftType": args.draft_type,
    });
    let answer = twin::call(context, "hook_evaluate", given)?;
    if out.is_json() {
        return out.object(&answer);
    }
    decision(&answer, out)?;
    if answer["checkpointCreated"] == true {
        out.line(out.paint(Tone::Faint, "  a checkpoint was made"))?;
    }
    Ok(())
}

/// What a hook has decided, and why.
pub fn decision(decided: &Value, out: &mut Output) -> Done {
    let action = twin::text(&decided["action"]);
    let tone = match action.as_str() {
        "complete" => Tone::Good,
        "escalate" => Tone::Bad,
        _ => Tone::Warning,
    };
    let action = out.paint(tone, action).to_string();
    out.line(format_args!("{action}  {}: {}", twin::text(&decided["hookId"]), twin::text(&decided["reason"])))?;
    let Some(prompt) = decided["nextPrompt"].as_str() else { return Ok(()) };
    out.line(format_args!("\n{}", text::lines(prompt)))
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass hooks clear T3
  windlass hooks clear T3 --hook HOOK-12")]
pub struct Clear {
    /// The task, such as T3
    #[arg(value_name = "ID")]
    task: TaskId,
    /// Only this one, such as HOOK-12
    #[arg(long, value_name = "HOOK")]
    hook: Option<HookId>,
}

pub fn clear(context: &Context, args: &Clear, out: &mut Output) -> Done {
    let answer = twin::call(context, "hook_clear", json!({"taskId": args.task, "hookId": args.hook}))?;
    if out.is_json() {
        return out.object(&answer);
    }
    if let Some(hook) = args.hook {
        return out.line(format_args!("{hook} of {} is taken away", args.task));
    }
    match answer["hooksCleared"].as_u64().unwrap_or(0) {
        0 => {
            let left = twin::call(context, "hook_list", json!({"taskId": args.task}))?;
            match left["hooks"].as_array().is_some_and(|hooks| !hooks.is_empty()) {
                true => out.line(format_args!(
                    "none is taken away: others have registered the stop hooks of {}, and only a person takes those away",
                    args.task
                )),
                false => out.line(format_args!("{} has no stop hooks", args.task)),
            }
        }
        1 => out.line(format_args!("the stop hook of {} is taken away", args.task)),
        hooks => out.line(format_args!("{hooks} stop hooks of {} are taken away", args.task)),
    }
}

/// Has a stop hook asked from now on, or not.
/// Whether a switch is carried out, or only told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchMode {
    Commit,
    DryRun,
}

/// Has a registered stop hook asked, or not any more.
pub fn switch(context: &Context, (hook, enabled): (HookId, bool), mode: SwitchMode, out: &mut Output) -> Done {
    let mut opened = context.open()?;
    // A hook has the position of the event that registered it.
    let registered = opened.store.event(Seq(hook.0)).map_err(remedy::store)?;
    let unknown = || {
        Failure::new(Code::NotFound, format!("there is no stop hook {hook}"))
            .hint("`windlass hooks list --task ID` shows those of a task")
    };
    let task = registered.and_then(|record| record.envelope.node.task()).ok_or_else(unknown)?;
    let before = opened.task(task)?.drive.hooks.iter().find(|known| known.id == hook).map(|known| known.enabled);
    if mode == SwitchMode::Commit {
        opened.execute(&Command::SwitchHook { task, hook, enabled }, Authority::Person)?;
    }
    let before = before.ok_or_else(unknown)?;
    if out.is_json() {
        let written = mode == SwitchMode::Commit;
        return out.object(&json!({
            "hookId": hook, "taskId": task, "enabled": enabled, "changed": before != enabled, "written": written,
        }));
    }
    let asked = match (mode, before == enabled, enabled) {
        (SwitchMode::DryRun, true, true) => "is asked already; nothing would change",
        (SwitchMode::DryRun, true, false) => "is not asked as it is; nothing would change",
        (SwitchMode::DryRun, false, true) => "would be asked from now on",
        (SwitchMode::DryRun, false, false) => "would not be asked any more",
        (SwitchMode::Commit, _, true) => "is asked from now on",
        (SwitchMode::Commit, _, false) => "is not asked any more",
    };
    out.line(format_args!("{} of {task} {asked}", out.paint(Tone::Strong, hook)))
}

/// The stop hooks of a task, in the order in which they are asked.
pub fn list(context: &Context, task: TaskId, out: &mut Output) -> Done {
    let answer = twin::call(context, "hook_list", json!({"taskId": task}))?;
    if out.is_json() {
        return out.object(&answer);
    }
    let hooks = answer["hooks"].as_array().map(Vec::as_slice).unwrap_or_default();
    if hooks.is_empty() {
        return out.line(out.paint(Tone::Faint, format_args!("{task} has no stop hooks")));
    }
    for hook in hooks {
        let mut more = hook["metadata"].clone();
        let kind = more.as_object_mut().and_then(|more| more.remove("type")).unwrap_or_default();
        let about = if more == json!({}) { String::new() } else { format!("  {}", text::line(&more.to_string())) };
        let off = if hook["enabled"] == true { "" } else { "  (disabled)" };
        let id = out.paint(Tone::Strong, twin::text(&hook["id"])).to_string();
        out.line(format_args!("{id}  {}{off}{}", twin::text(&kind), out.paint(Tone::Faint, about)))?;
    }
    Ok(())
}
