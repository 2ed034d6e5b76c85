//! Trials of hooks: their input, and their result.

pub mod input;

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Map, Value, json};
use windlass_bridge::AgentHookRequest;
use windlass_config::listing::{ListedHook, WorkSubject, list_hooks_at};
use windlass_config::{Config, HookSpec, plan};
use windlass_engine::{HookOutcome, HookPoint, HookReport};
use windlass_hooks::{
    self as hooks, DeliveryStep, HookInput, HookInputFiles, HookRole, HookScript, PipeOutput, RunnableKind, SecretMask,
    ShellCommand, build_command_report, clean_output, excerpt_run, excerpt_text, http, rule_report,
};
use windlass_process::{ProgramExit, ProgramOutcome, RunControl, run_program as start};
use windlass_runner::test_command;

use self::input::TrialInput;
use crate::project::Project;
use crate::{Failure, FailureCode, environment, execution, runner_settings};

/// The directory of records for trials.
const RECORDS_DIRECTORY: &str = "trials";
/// The variable with the path of a file that exists only while the hook runs.
const PAYLOAD_FILE_VARIABLE: &str = "WINDLASS_PAYLOAD_FILE";
/// The most output of a program that a trial shows.
const MAX_SHOWN_OUTPUT: usize = 64 * 1024;

/// The result of a trial of one hook.
pub struct HookTrial<'c> {
    pub hook: &'c HookSpec,
    /// Whether its matcher fits the tool; true without a tool.
    pub matches: bool,
    /// Whether its condition holds.
    pub condition: Result<bool, String>,
    pub command: Option<String>,
    pub environment: Map<String, Value>,
    /// The input on standard input, or the body of a request.
    pub payload: Value,
    pub report: Option<HookReport>,
    /// The program that the hook started.
    pub program: Option<TrialProgram>,
}

/// The end of a program that a trial started.
pub struct TrialProgram {
    /// Absent if the program ended without one: by a signal or out of time.
    pub exit_code: Option<i32>,
    /// Standard output, then standard error, without secrets.
    pub output: String,
}

impl TrialProgram {
    fn from_outcome(ended: &ProgramOutcome) -> Self {
        let exit_code = if let ProgramExit::Code(code) = ended.exit { Some(code) } else { None };
        let streams = [&ended.stdout, &ended.stderr].map(|stream| clean_output(&stream.to_text_lossy()));
        let written: Vec<&str> = streams.iter().map(|text| text.trim_end()).filter(|text| !text.is_empty()).collect();
        Self { exit_code, output: excerpt_text(&written.join("\n"), MAX_SHOWN_OUTPUT) }
    }
}

/// The report of a hook, and the program that it started.
type TrialRun = (HookReport, Option<TrialProgram>);

impl HookTrial<'_> {
    /// Returns a hint that the exit code of the command does not block the agent. A run that passed or blocked needs no hint.
    pub fn exit_code_hint(&self) -> Option<String> {
        let failed = |report: &HookReport| report.outcome == HookOutcome::Failure && !report.unstarted;
        let (message, remedy) = self.hook.exit_hint().filter(|_| self.report.as_ref().is_none_or(failed))?;
        Some(format!("{message}; {remedy}"))
    }
}

/// Lists the hooks at a point that a trial can run, or only the one with a name.
pub fn list_testable_hooks<'c>(
    config: &'c Config,
    subject: &WorkSubject,
    point: &HookPoint,
    name: Option<&str>,
) -> Result<Vec<&'c HookSpec>, Failure> {
    let registry = plan::pure_rules(config).map_err(Failure::from)?.registry;
    let planned = list_hooks_at(config, &registry, subject, point);
    let written = planned.rows.iter().filter_map(|row| match row {
        ListedHook::Configured(hook) if name.is_none_or(|name| *name == *hook.name) => Some(*hook),
        _ => None,
    });
    let written: Vec<&HookSpec> =
        written.filter(|hook| plan::runnable_hook(hook).is_some() && hook.is_enabled()).collect();
    if !written.is_empty() {
        return Ok(written);
    }
    let failure = Failure::new(FailureCode::NotFound, format!("no hook at {point} can be tried"));
    let default = planned.rows.iter().find(|row| matches!(row, ListedHook::Default { worktrees: true }));
    let failure = match default {
        Some(row) => failure.with_cause(format!(
            "`{}` runs there for tasks in worktrees, and only a session that submits its work runs it",
            row.name()
        )),
        None => failure,
    };
    Err(failure.with_hint("`windlass hooks list` shows what runs where"))
}

/// A runner for trials outside any session. Trials are not recorded.
pub struct HookTrialRunner<'a> {
    project: &'a Project,
    point: HookPoint,
    values: Value,
    /// The request of an agent whose own hook system calls.
    request: Option<AgentHookRequest>,
    records: PathBuf,
    mask: SecretMask,
    control: RunControl,
    test_command: Option<String>,
}

impl<'a> HookTrialRunner<'a> {
    /// Prepares trials at a point with these values, or with the request of an agent's own hook system.
    pub fn new(
        (project, config): (&'a Project, &Config),
        point: HookPoint,
        input: TrialInput,
        control: RunControl,
    ) -> Result<Self, Failure> {
        let (records, mask) =
            (project.create_record_directory(RECORDS_DIRECTORY)?, runner_settings::build_secret_mask(config));
        let test_command = config.settings.test_command.as_ref().map(|command| command.value.clone());
        let TrialInput { values, request } = input;
        Ok(Self { project, point, values, request, records, mask, control, test_command })
    }

    /// Tries a hook out. Hooks that start programs run only if `really` is set.
    pub fn try_hook<'c>(&self, hook: &'c HookSpec, really: bool) -> Result<HookTrial<'c>, Failure> {
        let mut values = self.values.clone();
        values["hook"] = json!(hook.name);
        let kind = plan::runnable_hook(hook).map(|hook| hook.kind);
        let reports_at_gate =
            self.point.is_gate() && matches!(kind, Some(RunnableKind::Command(_) | RunnableKind::Http(_)));
        if reports_at_gate || matches!(kind, Some(RunnableKind::Rules(_))) {
            values = rule_report::merge_agent_context(&values, &rule_report::agent_context_from_values(&values));
        }
        let tool = values["tool_name"].as_str().unwrap_or_default();
        let names = self.request.as_ref().map_or_else(|| vec![tool], Self::list_matched_names);
        let matches =
            names.iter().all(|name| name.is_empty()) || names.iter().any(|name| hook.matcher.matches_tool(name));
        let holds = match &hook.when {
            Some(when) => when.is_satisfied(&values).map_err(|fault| fault.to_string()),
            None => Ok(true),
        };
        let mut runnable = plan::runnable_hook(hook).expect("only those are tried");
        if self.request.is_some() {
            runnable.pipes.get_or_insert(PipeOutput::from_flag(self.point.output_is_context()));
        }
        let environment = environment::inherited_environment();
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
        let files = HookInputFiles::for_run(&self.records.join(format!("trial-{}", std::process::id())), &input);
        let command = match &runnable.kind {
            RunnableKind::Command(script) => Some(input.fill_script(script, &files)),
            RunnableKind::Http(address) => Some(format!("{} {}", address.method.name(), address.url)),
            RunnableKind::Desktop => Some("a notice on the desktop".to_owned()),
            RunnableKind::Step(_) | RunnableKind::Workflow(_) => hook.describe_effect(),
            RunnableKind::Rules(_) | RunnableKind::Prompt(_) => None,
        };
        let runs = matches
            && self.would_run_on_condition(&holds)
            && (really || matches!(runnable.kind, RunnableKind::Rules(_) | RunnableKind::Prompt(_)));
        let variables = if matches!(runnable.kind, RunnableKind::Command(_)) {
            input.environment_variables(&files)
        } else {
            Vec::new()
        };
        let variables = variables.into_iter().filter(|(name, _)| runs || *name != PAYLOAD_FILE_VARIABLE);
        let variables = variables.map(|(name, value)| (name.to_owned(), json!(value.to_string_lossy()))).collect();
        let ran = if runs { Some(self.run_hook(&runnable, &input, &files)?) } else { None };
        let (report, program) = ran.map_or((None, None), |(report, program)| (Some(report), program));
        Ok(HookTrial {
            hook,
            matches,
            condition: holds,
            command,
            environment: variables,
            payload: input.build_payload(),
            report: report.map(|report| self.mask.mask_report(report)),
            program,
        })
    }

    /// Returns the names that matchers are applied to.
    fn list_matched_names(request: &AgentHookRequest) -> Vec<&str> {
        request.call.matched.iter().map(String::as_str).collect()
    }

    /// Returns whether the hook would run in the engine: if its condition fails to evaluate, a gate runs and other hooks do not.
    pub fn would_run_on_condition(&self, holds: &Result<bool, String>) -> bool {
        *holds.as_ref().unwrap_or(&(self.point.is_gate()))
    }

    fn hook_role(&self) -> HookRole {
        match self.point {
            _ if self.request.is_some() && self.point.hears_refusal() => HookRole::Stop,
            _ if self.request.is_some() => HookRole::Observer,
            HookPoint::Stop => HookRole::Stop,
            HookPoint::BeforeSubmit | HookPoint::BeforeMerge => HookRole::Pipeline,
            _ => HookRole::Observer,
        }
    }

    fn run_hook(
        &self,
        hook: &hooks::RunnableHook,
        input: &HookInput<'_>,
        files: &HookInputFiles,
    ) -> Result<TrialRun, Failure> {
        let report = match &hook.kind {
            RunnableKind::Command(script) => return self.run_script(hook, script, input, files),
            RunnableKind::Step(DeliveryStep::RunTests) => return self.run_tests(hook, input, files),
            RunnableKind::Http(address) => self.send_webhook(hook, address, input),
            RunnableKind::Desktop => {
                let message = Some("only the loop shows notices on the desktop".to_owned());
                HookReport { message, ..HookOutcome::Skip.into() }
            }
            RunnableKind::Prompt(template) => match template.render(input.values) {
                Ok(text) => HookReport { feedback: Some(text), ..HookOutcome::Success.into() },
                Err(fault) => HookReport { message: Some(fault.to_string()), ..HookOutcome::Failure.into() },
            },
            RunnableKind::Step(_) => {
                let message = Some("only a session that submits its work runs it".to_owned());
                HookReport { message, ..HookOutcome::Skip.into() }
            }
            RunnableKind::Workflow(flow) => {
                let message = match flow.fill_context(input.values) {
                    Ok(given) if given.is_empty() => format!("`windlass workflow run {}` runs it", flow.id),
                    Ok(given) => {
                        let (id, given) = (&flow.id, Value::Object(given));
                        format!("it would be given {given}; `windlass workflow run {id} --context -` runs it")
                    }
                    Err(why) => {
                        return Ok((HookReport { message: Some(why), ..HookOutcome::Failure.into() }, None));
                    }
                };
                HookReport { message: Some(message), ..HookOutcome::Skip.into() }
            }
            // The payload names the changed files.
            RunnableKind::Rules(rules) => rule_report::build_rule_report(hook, self.hook_role(), rules, input.values),
        };
        Ok((report, None))
    }

    fn run_script(
        &self,
        hook: &hooks::RunnableHook,
        script: &HookScript,
        input: &HookInput<'_>,
        files: &HookInputFiles,
    ) -> Result<TrialRun, Failure> {
        let spec = input.build_spec(script, hook.timeout, files);
        let system = |error| Failure::new(FailureCode::System, "cannot write the payload").with_cause(error);
        files.write(&spec.stdin).map_err(system)?;
        let owner_lock = execution::acquire_owner_lock(self.project)?;
        let ran = start(&spec, &owner_lock, &self.control, &mut |_, _| {});
        // The output is masked before it is cut: half a secret is one, too.
        let ran = ran.map(|ran| excerpt_run(ran, &self.mask));
        // Trials keep no output.
        for spilled in ran.iter().flat_map(|ran| [&ran.stdout.spilled, &ran.stderr.spilled]).flatten() {
            let _ = std::fs::remove_file(&spilled.path);
        }
        let command = ShellCommand { text: script.text(), directory: input.directory, environment: &spec.environment };
        let report = build_command_report(hook, self.hook_role(), &ran, input.values, command);
        // The agent gets no feedback from a gate that could not run.
        let is_told = !report.unstarted || !self.hook_role().is_gate();
        let program = ran.as_ref().ok().map(TrialProgram::from_outcome);
        Ok((HookReport { feedback: report.feedback.filter(|_| is_told), ..report }, program))
    }

    /// Runs the tests of the project, as the `run_tests` step does.
    fn run_tests(
        &self,
        hook: &hooks::RunnableHook,
        input: &HookInput<'_>,
        files: &HookInputFiles,
    ) -> Result<TrialRun, Failure> {
        let detected = || test_command::detect_test_command(&self.project.root).map(str::to_owned);
        let Some(command) = self.test_command.clone().or_else(detected) else {
            let message = Some(test_command::NO_TESTS.to_owned());
            return Ok((HookReport { message, ..HookOutcome::Skip.into() }, None));
        };
        match HookScript::parse(&command) {
            Ok(script) => {
                let (report, program) = self.run_script(hook, &script, input, files)?;
                Ok((test_command::judge_test_report(report, &command), program))
            }
            Err(refused) => {
                let message = Some(format!("`test_command`: {refused}"));
                Ok((HookReport { message, ..HookOutcome::Failure.into() }, None))
            }
        }
    }

    fn send_webhook(
        &self,
        hook: &hooks::RunnableHook,
        address: &hooks::WebhookTemplate,
        input: &HookInput<'_>,
    ) -> HookReport {
        let request = match address.request(input, hook.timeout, "trial".to_owned()) {
            Ok(request) => request,
            Err(error) => return HookReport { message: Some(error.to_string()), ..HookOutcome::Failure.into() },
        };
        let began = Instant::now();
        match http::send_until_cancelled(request, &self.mask, || self.control.is_cancelled()) {
            Some(ended) => http::build_webhook_report(hook, self.hook_role(), ended, began.elapsed(), input.values),
            None => HookOutcome::Cancelled.into(),
        }
    }
}
