//! Reads a workflow from its tree. Every error has a place and a suggestion.

use std::time::Duration;

use windlass_engine::Digest;
use windlass_engine::workflow::{StepLocation, StepOperation, StepProgram, Workflow, WorkflowError, WorkflowStep};
use windlass_expr::{ValuePattern, parse_predicate, to_snake_case};
use windlass_hooks::check_argv;

use super::fields::{MapFields, find_expression_range, locate_problem, parse_value_pattern};
use super::task_steps::{read_create_task, read_update_task};
use crate::{
    ConfigNode, ConfigProblem, DurationSetting, LocatedValue, NodeValue, check_timeout, deserialize_node, quote_text,
};

/// The default timeout of a program.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(5);
const MAX_STEPS: usize = 200;
const MAX_ID_BYTES: usize = 64;
/// An example value for `steps`.
const EXAMPLE_STEPS: &str = "[{id: first, type: noop}]";

const WORKFLOW_KEYS: &[&str] = &["id", "name", "description", "version", "steps", "metadata"];
const STEP_KEYS: &[&str] = &["id", "name", "description", "type", "config", "onSuccess", "onFailure", "metadata"];
const STEP_TYPES: &[&str] = &["create_task", "update_task", "execute_command", "condition", "parallel", "noop"];
const COMMAND_KEYS: &[&str] = &["command", "args", "captureOutput", "storeAs", "timeout", "idempotent"];
const CONDITION_KEYS: &[&str] = &["predicate", "onTrue", "onFalse"];
const PARALLEL_KEYS: &[&str] = &["steps", "waitForAll"];

pub fn read_workflow(node: &ConfigNode, source: &str, stem: &str, digest: Digest) -> Result<Workflow, ConfigProblem> {
    if let NodeValue::List(_) = &node.value {
        let problem = ConfigProblem::new("a workflow is a map of keys and values, and this is a list");
        return Err(problem
            .with_suggestion("write `steps:` above it, and the list below that".to_owned())
            .with_range(node.at.clone()));
    }
    let fields = MapFields::with_known_keys(node, source, "a workflow", WORKFLOW_KEYS)?;
    let id = fields.text_field("id")?.unwrap_or(stem).to_owned();
    match fields.get("id") {
        Some(node) => check_id("the id of a workflow", &id).map_err(|problem| problem.with_range(node.at.clone()))?,
        None => {
            check_id("without an `id` the file name is the id of the workflow, and an id", &id).map_err(|problem| {
                problem.with_suggestion("write an `id`".to_owned()).with_range(fields.field_range("id"))
            })?
        }
    }
    let listed = fields.require_field("steps", ("its `steps`: a list", EXAMPLE_STEPS))?;
    let steps = read_steps(listed, source, false)?;
    let texts = |name| fields.text_field(name).map(|text| text.map(str::to_owned));
    let workflow = Workflow { id, name: texts("name")?, description: texts("description")?, steps, digest };
    workflow.check_definition().map_err(|error| locate_flow_error(error, listed, source))?;
    Ok(workflow)
}

/// Returns the id in a file.
pub fn read_id(node: &ConfigNode) -> Option<&str> {
    MapFields::with_any_keys(node, "").text_field("id").ok().flatten()
}

/// Locates an error about links between steps.
fn locate_flow_error(error: WorkflowError, listed: &ConfigNode, source: &str) -> ConfigProblem {
    let at = find_step_node(listed, &error.step, source).map(|step| {
        let fields = MapFields::with_any_keys(step, source);
        let config = fields.get("config");
        match &error.place {
            StepLocation::Field(name) => {
                let within = config.and_then(|config| MapFields::with_any_keys(config, source).get(name));
                let field = fields.get(name).or(within).or_else(|| fields.get("id"));
                field.unwrap_or(step).at.clone()
            }
            StepLocation::Expression(text) => {
                let written = config.and_then(|config| find_expression_range(source, config, text));
                written.unwrap_or(step.at.clone())
            }
        }
    });
    let problem = ConfigProblem::new(error.message).with_suggestion(error.suggestion);
    if let Some(at) = at { problem.with_range(at) } else { problem }
}

/// Finds the node of a step.
fn find_step_node<'n>(listed: &'n ConfigNode, id: &str, source: &'n str) -> Option<&'n ConfigNode> {
    let NodeValue::List(items) = &listed.value else { return None };
    // Of two steps with the same name the last one is the duplicate.
    items.iter().rev().find_map(|item| {
        let fields = MapFields::with_any_keys(item, source);
        let within = fields.get("config").and_then(|config| MapFields::with_any_keys(config, source).get("steps"));
        let is_it = fields.get("id").is_some_and(|node| matches!(&node.value, NodeValue::Text(text) if text == id));
        if is_it { Some(item) } else { within.and_then(|steps| find_step_node(steps, id, source)) }
    })
}

fn read_steps(listed: &ConfigNode, source: &str, within: bool) -> Result<Vec<WorkflowStep>, ConfigProblem> {
    let NodeValue::List(items) = &listed.value else {
        return Err(ConfigProblem::new("`steps` is a list")
            .with_suggestion("start each step with `- id: …`".to_owned())
            .with_range(listed.at.clone()));
    };
    if items.is_empty() || items.len() > MAX_STEPS {
        let instead = match items.is_empty() {
            true => format!("write `steps: {EXAMPLE_STEPS}`"),
            false => "move the other steps to a workflow of their own".to_owned(),
        };
        let problem = ConfigProblem::new(format!("`steps` has from 1 to {MAX_STEPS} entries"));
        return Err(problem.with_suggestion(instead).with_range(listed.at.clone()));
    }
    items.iter().map(|item| read_step(item, source, within)).collect()
}

fn read_step(node: &ConfigNode, source: &str, within: bool) -> Result<WorkflowStep, ConfigProblem> {
    let fields = MapFields::with_known_keys(node, source, "a step", STEP_KEYS)?;
    let id = fields.require_text("id", ("an `id`, so that other steps can name it", "check"))?.to_owned();
    check_id("the id of a step", &id).map_err(|problem| problem.with_range(fields.field_range("id")))?;
    let kind =
        fields.require_text("type", (&format!("a `type`: one of {}", STEP_TYPES.join(", ")), "execute_command"))?;
    let empty = ConfigNode { at: node.at.clone(), value: NodeValue::Map(Vec::new()) };
    let config = fields.get("config").unwrap_or(&empty);
    let what = match to_snake_case(kind).as_str() {
        "create_task" => read_create_task(config, source)?,
        "update_task" => read_update_task(config, source)?,
        "execute_command" => StepOperation::Run(read_program(config, source)?),
        "condition" | "parallel" if within => {
            let problem = ConfigProblem::new(format!("a `{kind}` cannot be one of the steps of a `parallel`"));
            return Err(problem
                .with_suggestion("make it a separate step, before or after".to_owned())
                .with_range(fields.field_range("type")));
        }
        "condition" => read_condition(config, source)?,
        "parallel" => read_parallel(config, source)?,
        "noop" => {
            MapFields::with_known_keys(config, source, "a `noop`", &[])?;
            StepOperation::Nothing
        }
        _ => {
            return Err(
                ConfigProblem::unknown_name("type of step", kind, STEP_TYPES).with_range(fields.field_range("type"))
            );
        }
    };
    let next = |name: &str| fields.text_field(name).map(|text| text.map(str::to_owned));
    let (on_success, on_failure) = (next("onSuccess")?, next("onFailure")?);
    if let (true, Some(name)) = (within, ["onSuccess", "onFailure"].into_iter().find(|name| fields.get(name).is_some()))
    {
        let problem = ConfigProblem::new(format!("`{name}` is not allowed inside a `parallel`"));
        return Err(problem
            .with_suggestion("write it beside the `type: parallel`".to_owned())
            .with_range(fields.field_range(name)));
    }
    Ok(WorkflowStep { id, operation: what, on_success, on_failure })
}

fn read_program(node: &ConfigNode, source: &str) -> Result<StepProgram, ConfigProblem> {
    let fields = MapFields::with_known_keys(node, source, "an `execute_command`", COMMAND_KEYS)?;
    let written = fields.require_field("command", ("a `command`: the name of a program", "make"))?;
    if let NodeValue::List(_) = &written.value {
        return Err(ConfigProblem::new("`command` is the name of one program")
            .with_suggestion("write the first word as `command`, and the others as `args: [one, two]`".to_owned())
            .with_range(written.at.clone()));
    }
    fields.check_text("command")?;
    let args = fields.get("args");
    let is_for_shell = |text: &str| {
        let signs = ['|', '&', ';', '<', '>', '`', '*', '('];
        let text = text.trim();
        !text.contains("${") && text.contains(|letter: char| letter.is_whitespace() || signs.contains(&letter))
    };
    if matches!(&written.value, NodeValue::Text(text) if is_for_shell(text)) {
        return Err(ConfigProblem::new("no shell looks at a `command`: it is the name of one program")
            .with_suggestion(
                "write `command: npm` and `args: [test]`, or `command: sh` and `args: [-c, '…']`".to_owned(),
            )
            .with_range(written.at.clone()));
    }
    fields.check_list("args", |item| match &item.value {
        NodeValue::Null => Err(ConfigProblem::new("an argument is text")
            .with_suggestion("write `''` for an empty one".to_owned())
            .with_range(item.at.clone())),
        NodeValue::Map(_) => Err(ConfigProblem::new("an argument is text")
            .with_suggestion("write JSON in quotes, or `'${… | tojson}'` for a value".to_owned())
            .with_range(item.at.clone())),
        _ => Ok(()),
    })?;
    let args = match args.map(|node| &node.value) {
        Some(NodeValue::List(items)) => {
            items.iter().map(|item| parse_value_pattern(item, source)).collect::<Result<_, _>>()?
        }
        Some(_) => args.map(|node| parse_value_pattern(node, source)).transpose()?.into_iter().collect(),
        None => Vec::new(),
    };
    check_arguments(written, fields.get("args"), &args)?;
    let store_as = fields.text_field("storeAs")?.map(str::to_owned);
    if let Some(name) = &store_as {
        check_id("a name to store something as", name)
            .map_err(|problem| problem.with_range(fields.field_range("storeAs")))?;
    }
    let capture = fields.bool_field("captureOutput")?.unwrap_or(true);
    if store_as.is_some() && !capture {
        let problem = ConfigProblem::new("`storeAs` has nothing to store: `captureOutput` is false");
        return Err(problem
            .with_suggestion("leave one of the two out".to_owned())
            .with_range(fields.field_range("storeAs")));
    }
    let timeout = fields.get("timeout").map(|node| read_timeout(node, source)).transpose()?;
    Ok(StepProgram {
        command: parse_value_pattern(written, source)?,
        args,
        capture,
        store_as,
        timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
        idempotent: fields.bool_field("idempotent")?.unwrap_or(false),
    })
}

/// Refuses values in the arguments of a program that would evaluate them. The runner checks the arguments of a `command` with an
/// expression when it runs.
fn check_arguments(
    command: &ConfigNode,
    written: Option<&ConfigNode>,
    args: &[ValuePattern],
) -> Result<(), ConfigProblem> {
    let NodeValue::Text(program) = &command.value else { return Ok(()) };
    if program.contains("${") {
        return Ok(());
    }
    check_argv(program, args).map_err(|refused| {
        let written = written.unwrap_or(command);
        let place = match &written.value {
            NodeValue::List(items) => items.get(refused.index.saturating_sub(1)).unwrap_or(written),
            _ => written,
        };
        ConfigProblem::new(refused.to_string()).with_suggestion(refused.instead).with_range(place.at.clone())
    })
}

/// Reads a timeout with the same checks as for hooks.
fn read_timeout(node: &ConfigNode, source: &str) -> Result<Duration, ConfigProblem> {
    let read = deserialize_node::<LocatedValue<DurationSetting>>(node, source).map_err(|problem| {
        let usual = || "write it as in `timeout: 30s` or `timeout: 5m`".to_owned();
        ConfigProblem { suggestion: Some(problem.suggestion.unwrap_or_else(usual)), ..problem }
    })?;
    check_timeout(&read, source)?;
    Ok(read.duration())
}

fn read_condition(node: &ConfigNode, source: &str) -> Result<StepOperation, ConfigProblem> {
    let fields = MapFields::with_known_keys(node, source, "a `condition`", CONDITION_KEYS)?;
    let what = ("a `predicate`", "task.priority < 2");
    let text = fields.require_text("predicate", what)?;
    let at = fields.require_field("predicate", what)?;
    let predicate = parse_predicate(text).map_err(|error| locate_problem(at, source, text, error))?;
    let next = |name: &str| fields.text_field(name).map(|text| text.map(str::to_owned));
    Ok(StepOperation::Choose { predicate, on_true: next("onTrue")?, on_false: next("onFalse")? })
}

fn read_parallel(node: &ConfigNode, source: &str) -> Result<StepOperation, ConfigProblem> {
    let fields = MapFields::with_known_keys(node, source, "a `parallel`", PARALLEL_KEYS)?;
    let listed = fields.require_field("steps", ("`steps`: a list", EXAMPLE_STEPS))?;
    Ok(StepOperation::Parallel {
        steps: read_steps(listed, source, true)?,
        wait_for_all: fields.bool_field("waitForAll")?.unwrap_or(true),
    })
}

fn check_id(what: &str, id: &str) -> Result<(), ConfigProblem> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if (1..=MAX_ID_BYTES).contains(&id.len()) && id.chars().all(fits) {
        return Ok(());
    }
    let problem =
        ConfigProblem::new(format!("{what} has letters, digits, `-`, `_` and `.`, at most 64: not {}", quote_text(id)));
    Err(problem.with_suggestion("write one such as `check-1`".to_owned()))
}
