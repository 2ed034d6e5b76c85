//! Programs of a workflow: how one is built from its patterns, and what its run results in.

use std::thread;
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use windlass_engine::duration_in_words;
use windlass_engine::workflow::{StepProgram, StepResult, WorkflowStep};
use windlass_expr::{EvaluationBudget, ValuePattern};
use windlass_hooks::{
    FilledWord, HookInputFiles, UnsafeArgument, WordOrigin, check_argv, check_filled_words, clean_output, excerpt_text,
    summarize_output,
};
use windlass_process::{
    CapturedOutput, ProgramExit, ProgramInvocation, ProgramOutcome, ProgramSpec, ProgramStartError, RunControl,
    running_program_path,
};

use super::super::MIN_ATTEMPT_TIMEOUT;
use super::{StepRun, WorkflowRun};
use crate::EffectRunner;
use crate::workspace_problem::describe_causes;

/// Maximum size of a program's recorded output.
const MAX_STORED_OUTPUT: usize = 48 * 1024;

/// A program that is ready to run.
pub(super) struct PreparedProgram {
    pub spec: ProgramSpec,
    /// Files with the hook's input, which are removed when this is dropped.
    pub files: HookInputFiles,
    /// Time limit in words, with its origin.
    pub limit: String,
}

impl EffectRunner<'_> {
    /// Prepares a program, or returns why it cannot run.
    pub(super) fn prepare_program(
        &self,
        doing: &StepRun<'_>,
        step: &WorkflowStep,
        program: &StepProgram,
        left: &mut EvaluationBudget,
    ) -> Result<PreparedProgram, StepResult> {
        let WorkflowRun { run, workflow, until, .. } = doing.flow;
        let failed = |why: String| StepResult::failed(&step.id, why, Duration::ZERO);
        let words = evaluate_arguments(program, doing.context, left).map_err(failed)?;
        let number = workflow.all_steps().position(|other| other.id == step.id).unwrap_or_default();
        let place = self.settings.records.join(format!("{}-{number}", run.effect));
        let input = self.hook_input(run);
        let files = HookInputFiles::for_run(&place, &input);
        let time = program.timeout.min(until.saturating_duration_since(Instant::now())).max(MIN_ATTEMPT_TIMEOUT);
        let limit = match time < program.timeout {
            true => format!("{}, with all of the workflow", duration_in_words(run.hook.timeout)),
            false => duration_in_words(program.timeout),
        };
        let invocation = ProgramInvocation::Argv(words.into_iter().map(Into::into).collect());
        let spec = input.build_program_spec(invocation, time, &files);
        // A program reads the input from its file if it needs it. Standard input stays empty, as in a terminal or a pipe.
        files.write(&spec.stdin).map_err(|error| failed(format!("cannot write its input: {error}")))?;
        Ok(PreparedProgram { spec: ProgramSpec { stdin: Vec::new(), ..spec }, files, limit })
    }
}

/// Name of this program in a `command`.
const OWN_PROGRAM_NAME: &str = "windlass";

/// Evaluates the program and its arguments, which share one allowance.
fn evaluate_arguments(
    program: &StepProgram,
    context: &Value,
    left: &mut EvaluationBudget,
) -> Result<Vec<String>, String> {
    let word = |value: Value| match value {
        Value::String(text) if text.contains('\0') => Err("an argument contains a NUL byte".to_owned()),
        Value::String(text) => Ok(text),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        other => Err(format!("`{other}` cannot be an argument")),
    };
    let mut fill =
        |pattern: &ValuePattern| pattern.fill_within_budget(context, left).map_err(|fault| fault.to_string());
    let refusal = |refused: UnsafeArgument| format!("{refused}; {}", refused.instead);
    let mut words = vec![FilledWord { text: word(fill(&program.command)?)?, origin: WordOrigin::Author }];
    check_argv(&words[0].text, &program.args).map_err(refusal)?;
    if let (OWN_PROGRAM_NAME, Some(path)) = (words[0].text.as_str(), own_program_path()) {
        words[0].text = path;
    }
    for pattern in &program.args {
        let origin = WordOrigin::from_pattern(pattern);
        let values = match fill(pattern)? {
            // A list is several arguments.
            Value::Array(items) => items,
            value => vec![value],
        };
        for value in values {
            words.push(FilledWord { text: word(value)?, origin });
        }
    }
    check_filled_words(&words).map_err(refusal)?;
    Ok(words.into_iter().map(|word| word.text).collect())
}

/// Returns the path of the running program if it is Windlass: `PATH` may have another version.
fn own_program_path() -> Option<String> {
    let file = running_program_path()
        .ok()
        .filter(|file| file.file_name().is_some_and(|name| name == OWN_PROGRAM_NAME) && file.exists())?;
    file.into_os_string().into_string().ok()
}

pub(super) type ProgramRun = Result<ProgramOutcome, ProgramStartError>;

/// Runs programs at the same time. If one is enough, its success cancels the others.
pub(super) fn run_side_by_side(
    programs: &[&ProgramSpec],
    control: &RunControl,
    all: bool,
    run: impl Fn(&ProgramSpec, &RunControl) -> ProgramRun + Sync,
) -> Vec<ProgramRun> {
    let run = &run;
    thread::scope(|scope| {
        let started: Vec<_> = programs
            .iter()
            .map(|spec| {
                scope.spawn(move || {
                    let ran = run(spec, control);
                    if !all && matches!(&ran, Ok(finished) if finished.exit == ProgramExit::Code(0)) {
                        control.cancel_own_runs();
                    }
                    ran
                })
            })
            .collect();
        started.into_iter().map(|thread| thread.join().expect("running a program does not panic")).collect()
    })
}

/// Turns the end of a program into the result of its step.
pub(super) fn program_result(
    step: &WorkflowStep,
    program: &StepProgram,
    ran: ProgramRun,
    limit: &str,
    read: impl Fn(ProgramOutcome) -> ProgramOutcome,
) -> StepResult {
    let total = ran.as_ref().map_or(0, |ran| ran.stdout.total);
    let ran = match ran {
        Ok(ran) => read(ran),
        Err(error) => return StepResult::failed(&step.id, clean_output(&describe_causes(&error)), Duration::ZERO),
    };
    let (took, why) =
        (ran.took, |how: String| summarize_output(&ran).map_or(how.clone(), |line| format!("{how}: {line}")));
    // A text that is too long is cut to its most telling lines.
    let printed = |captured: &CapturedOutput| excerpt_text(&clean_output(&captured.to_text_lossy()), MAX_STORED_OUTPUT);
    let code = if let ProgramExit::Code(code) = ran.exit { Some(code) } else { None };
    let data = match program.capture {
        true => json!({"exitCode": code, "stdout": printed(&ran.stdout), "stderr": printed(&ran.stderr)}),
        false => json!({"exitCode": code}),
    };
    // A part of a list is no list.
    let is_cut = total > MAX_STORED_OUTPUT as u64 && begins_as_json(&ran.stdout.to_text_lossy());
    let result = match ran.exit {
        ProgramExit::Code(0) if program.store_as.is_some() && is_cut => {
            let why = format!("it printed {total} bytes of JSON, and at most {MAX_STORED_OUTPUT} can be stored");
            StepResult::failed(&step.id, why, took)
        }
        ProgramExit::Code(0) => StepResult::succeeded(&step.id, None, took),
        ProgramExit::Code(code) => StepResult::failed(&step.id, why(format!("exit {code}")), took),
        ProgramExit::Signal(number) => StepResult::failed(&step.id, why(format!("ended by signal {number}")), took),
        ProgramExit::TimedOut | ProgramExit::OutputIdle => {
            StepResult::failed(&step.id, why(format!("timed out after {limit}")), took)
        }
        ProgramExit::Cancelled => StepResult::failed(&step.id, "cancelled", took),
        ProgramExit::Lost => StepResult::failed(&step.id, "it was lost", took),
    };
    result.with_data(Some(data))
}

/// Returns whether the beginning of a long text reads as an object or a list: `[warning] …` does not.
fn begins_as_json(text: &str) -> bool {
    let text = text.trim_start();
    let head = &text[..text.floor_char_boundary(4096)];
    head.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(head).is_err_and(|error| error.is_eof())
}

/// Returns the value that later steps find under `store_as`: an object, a list or a number as itself, anything else as text. A
/// number has to read the same when it is written again, so `007` and `1.10` are texts.
pub(super) fn stored_value(program: &StepProgram, result: &StepResult) -> Map<String, Value> {
    let printed = result.data.as_ref().and_then(|data| data["stdout"].as_str());
    let (Some(name), Some(printed), true) = (&program.store_as, printed, result.success) else { return Map::new() };
    let text = printed.trim();
    let value = serde_json::from_str(text).ok().filter(|value: &Value| match value {
        Value::Object(_) | Value::Array(_) => true,
        Value::Number(number) => number.to_string() == text,
        _ => false,
    });
    let value = value.unwrap_or_else(|| json!(text));
    [(name.clone(), value)].into_iter().collect()
}
