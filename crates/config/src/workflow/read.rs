//! Reads a workflow from its tree. Every error has a place and a suggestion.

use std::time::Duration;

use windlass_engine::Digest;
use windlass_engine::workflow::{FlowError, Place, Program, Step, What, Workflow};
use windlass_expr::{Pattern, predicate, snake_case};
use windlass_hooks::check_argv;

use super::fields::{Fields, find_expression, pattern, wrong};
use super::tasks::{create, update};
use crate::{ConfigNode, ConfigProblem, DurationSetting, Located, NodeValue, check_timeout, quoted, read};

/// The default timeout of a program.
const TIMEOUT: Duration = Duration::from_mins(5);
const STEPS: usize = 200;
const LONGEST_ID: usize = 64;
/// An example value for `steps`.
const FIRST: &str = "[{id: first, type: noop}]";

const WORKFLOW: &[&str] = &["id", "name", "description", "version", "steps", "metadata"];
const STEP: &[&str] = &["id", "name", "description", "type", "config", "onSuccess", "onFailure", "metadata"];
const TYPES: &[&str] = &["create_task", "update_task", "execute_command", "condition", "parallel", "noop"];
const COMMAND: &[&str] = &["command", "args", "captureOutput", "storeAs", "timeout", "idempotent"];
const CONDITION: &[&str] = &["predicate", "onTrue", "onFalse"];
const PARALLEL: &[&str] = &["steps", "waitForAll"];

pub fn workflow(node: &ConfigNode, source: &str, stem: &str, digest: Digest) -> Result<Workflow, ConfigProblem> {
    if let NodeValue::List(_) = &node.value {
        let problem = ConfigProblem::new("a workflow is a map of keys and values, and this is a list");
        return Err(problem.suggest("write `steps:` above it, and the list below that".to_owned()).at(node.at.clone()));
    }
    let fields = Fields::of(node, source, "a workflow", WORKFLOW)?;
    let id = fields.text("id")?.unwrap_or(stem).to_owned();
    match fields.get("id") {
        Some(node) => check_id("the id of a workflow", &id).map_err(|problem| problem.at(node.at.clone()))?,
        None => check_id("without an `id` the name of the file is that of the workflow, and an id", &id)
            .map_err(|problem| problem.suggest("write an `id`".to_owned()).at(fields.place("id")))?,
    }
    let listed = fields.needed("steps", ("its `steps`: a list", FIRST))?;
    let steps = steps(listed, source, false)?;
    let texts = |name| fields.text(name).map(|text| text.map(str::to_owned));
    let workflow = Workflow { id, name: texts("name")?, description: texts("description")?, steps, digest };
    workflow.check().map_err(|error| placed(error, listed, source))?;
    Ok(workflow)
}

/// Returns the id in a file.
pub fn id(node: &ConfigNode) -> Option<&str> {
    Fields::loose(node, "").text("id").ok().flatten()
}

/// Locates an error about links between steps.
fn placed(error: FlowError, listed: &ConfigNode, source: &str) -> ConfigProblem {
    let at = find_step(listed, &error.step, source).map(|step| {
        let fields = Fields::loose(step, source);
        let config = fields.get("config");
        match &error.place {
            Place::Field(name) => {
                let within = config.and_then(|config| Fields::loose(config, source).get(name));
                let field = fields.get(name).or(within).or_else(|| fields.get("id"));
                field.unwrap_or(step).at.clone()
            }
            Place::Expression(text) => {
                let written = config.and_then(|config| find_expression(source, config, text));
                written.unwrap_or(step.at.clone())
            }
        }
    });
    let problem = ConfigProblem::new(error.message).suggest(error.suggestion);
    if let Some(at) = at { problem.at(at) } else { problem }
}

/// Finds the node of a step.
fn find_step<'n>(listed: &'n ConfigNode, id: &str, source: &'n str) -> Option<&'n ConfigNode> {
    let NodeValue::List(items) = &listed.value else { return None };
    // Of two steps with the same name the last one is the duplicate.
    items.iter().rev().find_map(|item| {
        let fields = Fields::loose(item, source);
        let within = fields.get("config").and_then(|config| Fields::loose(config, source).get("steps"));
        let is_it = fields.get("id").is_some_and(|node| matches!(&node.value, NodeValue::Text(text) if text == id));
        if is_it { Some(item) } else { within.and_then(|steps| find_step(steps, id, source)) }
    })
}

fn steps(listed: &ConfigNode, source: &str, within: bool) -> Result<Vec<Step>, ConfigProblem> {
    let NodeValue::List(items) = &listed.value else {
        return Err(ConfigProblem::new("`steps` is a list")
            .suggest("start each step with `- id: …`".to_owned())
            .at(listed.at.clone()));
    };
    if items.is_empty() || items.len() > STEPS {
        let instead = match items.is_empty() {
            true => format!("write `steps: {FIRST}`"),
            false => "let what is more be a workflow of its own".to_owned(),
        };
        let problem = ConfigProblem::new(format!("`steps` has from 1 to {STEPS} entries"));
        return Err(problem.suggest(instead).at(listed.at.clone()));
    }
    items.iter().map(|item| step(item, source, within)).collect()
}

fn step(node: &ConfigNode, source: &str, within: bool) -> Result<Step, ConfigProblem> {
    let fields = Fields::of(node, source, "a step", STEP)?;
    let id = fields.needed_text("id", ("an `id`, so that others can lead to it", "check"))?.to_owned();
    check_id("the id of a step", &id).map_err(|problem| problem.at(fields.place("id")))?;
    let kind = fields.needed_text("type", (&format!("a `type`: one of {}", TYPES.join(", ")), "execute_command"))?;
    let empty = ConfigNode { at: node.at.clone(), value: NodeValue::Map(Vec::new()) };
    let config = fields.get("config").unwrap_or(&empty);
    let what = match snake_case(kind).as_str() {
        "create_task" => create(config, source)?,
        "update_task" => update(config, source)?,
        "execute_command" => What::Run(program(config, source)?),
        "condition" | "parallel" if within => {
            let problem = ConfigProblem::new(format!("a `{kind}` cannot be one of the steps of a `parallel`"));
            return Err(problem
                .suggest("let it be a step of its own, before or after".to_owned())
                .at(fields.place("type")));
        }
        "condition" => condition(config, source)?,
        "parallel" => parallel(config, source)?,
        "noop" => {
            Fields::of(config, source, "a `noop`", &[])?;
            What::Nothing
        }
        _ => return Err(ConfigProblem::unknown("type of step", kind, TYPES).at(fields.place("type"))),
    };
    let next = |name: &str| fields.text(name).map(|text| text.map(str::to_owned));
    let (on_success, on_failure) = (next("onSuccess")?, next("onFailure")?);
    if let (true, Some(name)) = (within, ["onSuccess", "onFailure"].into_iter().find(|name| fields.get(name).is_some()))
    {
        let problem = ConfigProblem::new(format!("`{name}` has no place within a `parallel`"));
        return Err(problem.suggest("write it beside the `type: parallel`".to_owned()).at(fields.place(name)));
    }
    Ok(Step { id, what, on_success, on_failure })
}

fn program(node: &ConfigNode, source: &str) -> Result<Program, ConfigProblem> {
    let fields = Fields::of(node, source, "an `execute_command`", COMMAND)?;
    let written = fields.needed("command", ("a `command`: the name of a program", "make"))?;
    if let NodeValue::List(_) = &written.value {
        return Err(ConfigProblem::new("`command` is the name of one program")
            .suggest("write the first word as `command`, and the others as `args: [one, two]`".to_owned())
            .at(written.at.clone()));
    }
    fields.is_text("command")?;
    let args = fields.get("args");
    let is_for_shell = |text: &str| {
        let signs = ['|', '&', ';', '<', '>', '`', '*', '('];
        let text = text.trim();
        !text.contains("${") && text.contains(|letter: char| letter.is_whitespace() || signs.contains(&letter))
    };
    if matches!(&written.value, NodeValue::Text(text) if is_for_shell(text)) {
        return Err(ConfigProblem::new("no shell looks at a `command`: it is the name of one program")
            .suggest("write `command: npm` and `args: [test]`, or `command: sh` and `args: [-c, '…']`".to_owned())
            .at(written.at.clone()));
    }
    fields.is_list("args", |item| match &item.value {
        NodeValue::Null => Err(ConfigProblem::new("an argument is text")
            .suggest("write `''` for an empty one".to_owned())
            .at(item.at.clone())),
        NodeValue::Map(_) => Err(ConfigProblem::new("an argument is text")
            .suggest("write JSON in quotes, or `'${… | tojson}'` for a value".to_owned())
            .at(item.at.clone())),
        _ => Ok(()),
    })?;
    let args = match args.map(|node| &node.value) {
        Some(NodeValue::List(items)) => items.iter().map(|item| pattern(item, source)).collect::<Result<_, _>>()?,
        Some(_) => args.map(|node| pattern(node, source)).transpose()?.into_iter().collect(),
        None => Vec::new(),
    };
    check_arguments(written, fields.get("args"), &args)?;
    let store_as = fields.text("storeAs")?.map(str::to_owned);
    if let Some(name) = &store_as {
        check_id("a name to store something as", name).map_err(|problem| problem.at(fields.place("storeAs")))?;
    }
    let capture = fields.truth("captureOutput")?.unwrap_or(true);
    if store_as.is_some() && !capture {
        let problem = ConfigProblem::new("`storeAs` has nothing to store: `captureOutput` is false");
        return Err(problem.suggest("leave one of the two out".to_owned()).at(fields.place("storeAs")));
    }
    let timeout = fields.get("timeout").map(|node| timeout(node, source)).transpose()?;
    Ok(Program {
        command: pattern(written, source)?,
        args,
        capture,
        store_as,
        timeout: timeout.unwrap_or(TIMEOUT),
        idempotent: fields.truth("idempotent")?.unwrap_or(false),
    })
}

/// Refuses values in the arguments of a program that would evaluate them. The runner checks the arguments of a `command` with an
/// expression when it runs.
fn check_arguments(command: &ConfigNode, written: Option<&ConfigNode>, args: &[Pattern]) -> Result<(), ConfigProblem> {
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
        ConfigProblem::new(refused.to_string()).suggest(refused.instead).at(place.at.clone())
    })
}

/// Reads a timeout with the same checks as for hooks.
fn timeout(node: &ConfigNode, source: &str) -> Result<Duration, ConfigProblem> {
    let read = read::<Located<DurationSetting>>(node, source).map_err(|problem| {
        let usual = || "write it as in `timeout: 30s` or `timeout: 5m`".to_owned();
        ConfigProblem { suggestion: Some(problem.suggestion.unwrap_or_else(usual)), ..problem }
    })?;
    check_timeout(&read, source)?;
    Ok(read.duration())
}

fn condition(node: &ConfigNode, source: &str) -> Result<What, ConfigProblem> {
    let fields = Fields::of(node, source, "a `condition`", CONDITION)?;
    let what = ("a `predicate`", "task.priority < 2");
    let text = fields.needed_text("predicate", what)?;
    let at = fields.needed("predicate", what)?;
    let predicate = predicate(text).map_err(|error| wrong(at, source, text, error))?;
    let next = |name: &str| fields.text(name).map(|text| text.map(str::to_owned));
    Ok(What::Choose { predicate, on_true: next("onTrue")?, on_false: next("onFalse")? })
}

fn parallel(node: &ConfigNode, source: &str) -> Result<What, ConfigProblem> {
    let fields = Fields::of(node, source, "a `parallel`", PARALLEL)?;
    let listed = fields.needed("steps", ("`steps`: a list", FIRST))?;
    Ok(What::Parallel {
        steps: steps(listed, source, true)?,
        wait_for_all: fields.truth("waitForAll")?.unwrap_or(true),
    })
}

fn check_id(what: &str, id: &str) -> Result<(), ConfigProblem> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if (1..=LONGEST_ID).contains(&id.len()) && id.chars().all(fits) {
        return Ok(());
    }
    let problem =
        ConfigProblem::new(format!("{what} has letters, digits, `-`, `_` and `.`, at most 64: not {}", quoted(id)));
    Err(problem.suggest("write one such as `check-1`".to_owned()))
}
