//! A workflow from its tree. Whatever is wrong is said where it stands, with what to write instead.

use std::time::Duration;

use serde_json::{Map, Number, Value as Json};
use windlass_engine::workflow::{FlowError, Pattern, Program, Step, What, Workflow, predicate};
use windlass_engine::{Digest, ExpressionError, snake_case};

use crate::config::{Node, Problem, Span, Value, expression_problem, quoted, read};

/// How long a program may run that does not say.
const TIMEOUT: Duration = Duration::from_mins(5);
const STEPS: usize = 200;

const WORKFLOW: &[&str] = &["id", "name", "description", "version", "steps", "metadata"];
const STEP: &[&str] = &["id", "name", "description", "type", "config", "onSuccess", "onFailure", "metadata"];
const TYPES: &[&str] = &["create_task", "update_task", "execute_command", "condition", "parallel", "noop"];
const CREATE: &[&str] =
    &["goal", "body", "deliverables", "labels", "priority", "type", "parentTaskId", "depends", "dependsOn"];
const UPDATE: &[&str] =
    &["taskId", "action", "payload", "reason", "labels", "result", "artifacts", "requiredKnowledge"];
const CHANGES: &[&str] = &[
    "start",
    "complete",
    "block",
    "unblock",
    "ready",
    "transition_to_ready",
    "fail",
    "set_labels",
    "add_labels",
    "remove_labels",
];
const COMMAND: &[&str] = &["command", "args", "captureOutput", "storeAs", "timeout", "idempotent"];
const CONDITION: &[&str] = &["predicate", "onTrue", "onFalse"];
const PARALLEL: &[&str] = &["steps", "waitForAll"];

/// The fields of a map, by their names.
struct Fields<'n> {
    at: std::ops::Range<usize>,
    source: &'n str,
    found: Vec<(&'n str, &'n Node, &'n Node)>,
}

pub fn workflow(node: &Node, source: &str, stem: &str, digest: Digest) -> Result<Workflow, Problem> {
    let fields = Fields::of(node, source, "a workflow", WORKFLOW)?;
    let id = fields.text("id")?.unwrap_or(stem).to_owned();
    check_id("the id of a workflow", &id).map_err(|problem| problem.at(fields.place("id")))?;
    let listed = fields.needed("steps", "its `steps`: a list")?;
    let steps = steps(listed, source, false)?;
    let texts = |name| fields.text(name).map(|text| text.map(str::to_owned));
    let workflow = Workflow { id, name: texts("name")?, description: texts("description")?, steps, digest };
    workflow.check().map_err(|error| placed(error, listed, source))?;
    Ok(workflow)
}

/// What is wrong with how steps lead to each other, at the step.
fn placed(error: FlowError, listed: &Node, source: &str) -> Problem {
    let at = find_step(listed, &error.step, source).map(|step| {
        let fields = Fields::loose(step, source);
        let within = fields.get("config").map(|config| Fields::loose(config, source));
        let field = fields.get(error.field).or_else(|| within.and_then(|within| within.get(error.field)));
        field.or_else(|| fields.get("id")).map_or(step.at.clone(), |node| node.at.clone())
    });
    let problem = Problem::new(error.message).suggest(error.suggestion);
    if let Some(at) = at { problem.at(at) } else { problem }
}

/// Where a step is written.
fn find_step<'n>(listed: &'n Node, id: &str, source: &'n str) -> Option<&'n Node> {
    let Value::List(items) = &listed.value else { return None };
    // The last one: of two with the same name that one is too many.
    items.iter().rev().find_map(|item| {
        let fields = Fields::loose(item, source);
        let within = fields.get("config").and_then(|config| Fields::loose(config, source).get("steps"));
        let is_it = fields.get("id").is_some_and(|node| matches!(&node.value, Value::Text(text) if text == id));
        if is_it { Some(item) } else { within.and_then(|steps| find_step(steps, id, source)) }
    })
}

fn steps(listed: &Node, source: &str, within: bool) -> Result<Vec<Step>, Problem> {
    let Value::List(items) = &listed.value else {
        return Err(Problem::new("`steps` is a list")
            .suggest("start each step with `- id: …`".to_owned())
            .at(listed.at.clone()));
    };
    if items.is_empty() || items.len() > STEPS {
        return Err(Problem::new(format!("`steps` has from 1 to {STEPS} entries")).at(listed.at.clone()));
    }
    items.iter().map(|item| step(item, source, within)).collect()
}

fn step(node: &Node, source: &str, within: bool) -> Result<Step, Problem> {
    let fields = Fields::of(node, source, "a step", STEP)?;
    let id = fields.needed_text("id", "an `id`, so that others can lead to it")?.to_owned();
    check_id("the id of a step", &id).map_err(|problem| problem.at(fields.place("id")))?;
    let kind = fields.needed_text("type", &format!("a `type`: one of {}", TYPES.join(", ")))?;
    let empty = Node { at: node.at.clone(), value: Value::Map(Vec::new()) };
    let config = fields.get("config").unwrap_or(&empty);
    let what = match snake_case(kind).as_str() {
        "create_task" => create(config, source)?,
        "update_task" => update(config, source)?,
        "execute_command" => What::Run(program(config, source)?),
        "condition" | "parallel" if within => {
            let problem = Problem::new(format!("a `{kind}` cannot be one of the steps of a `parallel`"));
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
        _ => return Err(Problem::unknown("type of step", kind, TYPES).at(fields.place("type"))),
    };
    let next = |name: &str| fields.text(name).map(|text| text.map(str::to_owned));
    let (on_success, on_failure) = (next("onSuccess")?, next("onFailure")?);
    if let (true, Some(name)) = (within, ["onSuccess", "onFailure"].into_iter().find(|name| fields.get(name).is_some()))
    {
        let problem = Problem::new(format!("`{name}` has no place within a `parallel`"));
        return Err(problem.suggest("write it beside the `type: parallel`".to_owned()).at(fields.place(name)));
    }
    Ok(Step { id, what, on_success, on_failure })
}

fn create(node: &Node, source: &str) -> Result<What, Problem> {
    let fields = Fields::of(node, source, "a `create_task`", CREATE)?;
    fields.needed("goal", "a `goal`: what is to be done")?;
    let pattern = fields.pattern()?;
    fields.is_text("goal")?;
    ["deliverables", "labels", "depends", "dependsOn"].into_iter().try_for_each(|name| fields.is_list(name))?;
    if let Some(Value::Integer(priority)) = fields.get("priority").map(|node| &node.value)
        && !(0..=4).contains(priority)
    {
        return Err(Problem::new("`priority` is a number from 0 (most urgent) to 4").at(fields.place("priority")));
    }
    Ok(What::CreateTask(pattern))
}

fn update(node: &Node, source: &str) -> Result<What, Problem> {
    let fields = Fields::of(node, source, "an `update_task`", UPDATE)?;
    fields.needed("taskId", "a `taskId`: `T7`, `${task.id}` or `{fromContext: steps.make.data.taskId}`")?;
    let action = fields.needed("action", &format!("an `action`: one of {}", CHANGES.join(", ")))?;
    let pattern = fields.pattern()?;
    if let Value::Text(word) = &action.value
        && !word.contains("${")
        && !CHANGES.contains(&snake_case(word).as_str())
    {
        return Err(Problem::unknown("action", word, CHANGES).at(action.at.clone()));
    }
    Ok(What::UpdateTask(pattern))
}

fn program(node: &Node, source: &str) -> Result<Program, Problem> {
    let fields = Fields::of(node, source, "an `execute_command`", COMMAND)?;
    let written = fields.needed("command", "a `command`: the name of a program")?;
    fields.is_text("command")?;
    let args = fields.get("args");
    if let Value::Text(text) = &written.value
        && !text.contains("${")
        && text.trim().contains(char::is_whitespace)
    {
        let words: Vec<&str> = text.split_whitespace().collect();
        let instead = format!("write `command: {}` and `args: [{}]`", words[0], words[1..].join(", "));
        let problem = Problem::new("no shell looks at a `command`: it is the name of one program");
        return Err(problem.suggest(instead).at(written.at.clone()));
    }
    fields.is_list("args")?;
    let args = match args.map(|node| &node.value) {
        Some(Value::List(items)) => items.iter().map(|item| pattern(item, source)).collect::<Result<_, _>>()?,
        Some(_) => args.map(|node| pattern(node, source)).transpose()?.into_iter().collect(),
        None => Vec::new(),
    };
    let store_as = fields.text("storeAs")?.map(str::to_owned);
    if let Some(name) = &store_as {
        check_id("a name to store something as", name).map_err(|problem| problem.at(fields.place("storeAs")))?;
    }
    let capture = fields.truth("captureOutput")?.unwrap_or(true);
    if store_as.is_some() && !capture {
        let problem = Problem::new("`storeAs` has nothing to store: `captureOutput` is false");
        return Err(problem.suggest("leave one of the two out".to_owned()).at(fields.place("storeAs")));
    }
    let timeout = fields.get("timeout").map(|node| read::<Span>(node, source)).transpose()?;
    Ok(Program {
        command: pattern(written, source)?,
        args,
        capture,
        store_as,
        timeout: timeout.map_or(TIMEOUT, Span::duration),
        idempotent: fields.truth("idempotent")?.unwrap_or(false),
    })
}

fn condition(node: &Node, source: &str) -> Result<What, Problem> {
    let fields = Fields::of(node, source, "a `condition`", CONDITION)?;
    let what = "a `predicate`, such as `task.priority < 2`";
    let text = fields.needed_text("predicate", what)?;
    let at = fields.needed("predicate", what)?;
    let predicate = predicate(text).map_err(|error| wrong(at, source, text, error))?;
    let next = |name: &str| fields.text(name).map(|text| text.map(str::to_owned));
    Ok(What::Choose { predicate, on_true: next("onTrue")?, on_false: next("onFalse")? })
}

fn parallel(node: &Node, source: &str) -> Result<What, Problem> {
    let fields = Fields::of(node, source, "a `parallel`", PARALLEL)?;
    let listed = fields.needed("steps", "`steps`: a list")?;
    Ok(What::Parallel {
        steps: steps(listed, source, true)?,
        wait_for_all: fields.truth("waitForAll")?.unwrap_or(true),
    })
}

/// A value with expressions in it.
fn pattern(node: &Node, source: &str) -> Result<Pattern, Problem> {
    Pattern::parse(&json(node)).map_err(|error| {
        let place = find_text(node, &error.text).unwrap_or(node);
        wrong(place, source, &error.text, error.error)
    })
}

fn wrong(node: &Node, source: &str, text: &str, error: ExpressionError) -> Problem {
    expression_problem(source, node.at.clone(), text, error)
}

/// The node that holds a text.
fn find_text<'n>(node: &'n Node, text: &str) -> Option<&'n Node> {
    match &node.value {
        Value::Text(own) if own == text => Some(node),
        Value::List(items) => items.iter().find_map(|item| find_text(item, text)),
        Value::Map(entries) => entries.iter().find_map(|(_, value)| find_text(value, text)),
        _ => None,
    }
}

fn json(node: &Node) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(truth) => Json::Bool(*truth),
        Value::Integer(number) => Json::from(*number),
        Value::Unsigned(number) => Json::from(*number),
        Value::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
        Value::Text(text) => Json::String(text.clone()),
        Value::List(items) => Json::Array(items.iter().map(json).collect()),
        Value::Map(entries) => {
            let named = |(key, value): &(Node, Node)| match &key.value {
                Value::Text(name) => Some((name.clone(), json(value))),
                _ => None,
            };
            Json::Object(entries.iter().filter_map(named).collect::<Map<_, _>>())
        }
    }
}

fn check_id(what: &str, id: &str) -> Result<(), Problem> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if (1..=64).contains(&id.len()) && id.chars().all(fits) {
        return Ok(());
    }
    Err(Problem::new(format!("{what} has letters, digits, `-`, `_` and `.`, at most 64: not {}", quoted(id))))
}

impl<'n> Fields<'n> {
    /// The fields of a map that has no others.
    fn of(node: &'n Node, source: &'n str, what: &str, known: &[&'static str]) -> Result<Self, Problem> {
        if !matches!(node.value, Value::Map(_)) {
            return Err(Problem::new(format!("{what} is a map of keys and values")).at(node.at.clone()));
        }
        let fields = Self::loose(node, source);
        for (place, (name, key, _)) in fields.found.iter().enumerate() {
            let is_same = |other: &str| snake_case(other) == snake_case(name);
            if !known.iter().any(|known| is_same(known)) {
                return Err(Problem::unknown("key", name, known).at(key.at.clone()));
            }
            if fields.found[..place].iter().any(|(other, _, _)| is_same(other)) {
                return Err(
                    Problem::new(format!("the key `{name}` is given twice, in two spellings")).at(key.at.clone())
                );
            }
        }
        Ok(fields)
    }

    /// Whatever fields there are.
    fn loose(node: &'n Node, source: &'n str) -> Self {
        let entries: &[(Node, Node)] = if let Value::Map(entries) = &node.value { entries } else { &[] };
        let named = |(key, value): &'n (Node, Node)| match &key.value {
            Value::Text(name) => Some((name.as_str(), key, value)),
            _ => None,
        };
        Self { at: node.at.clone(), source, found: entries.iter().filter_map(named).collect() }
    }

    fn get(&self, name: &str) -> Option<&'n Node> {
        let found = self.found.iter().find(|(key, _, _)| snake_case(key) == snake_case(name));
        found.map(|(_, _, value)| *value).filter(|node| !matches!(node.value, Value::Null))
    }

    fn place(&self, name: &str) -> std::ops::Range<usize> {
        self.get(name).map_or(self.at.clone(), |node| node.at.clone())
    }

    fn needed(&self, name: &str, what: &str) -> Result<&'n Node, Problem> {
        self.get(name).ok_or_else(|| Problem::new(format!("this needs {what}")).at(self.at.clone()))
    }

    fn text(&self, name: &str) -> Result<Option<&'n str>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some(Node { value: Value::Text(text), .. }) => Ok(Some(text)),
            Some(node) => Err(Problem::new(format!("`{name}` is text")).at(node.at.clone())),
        }
    }

    fn needed_text(&self, name: &str, what: &str) -> Result<&'n str, Problem> {
        self.needed(name, what)?;
        Ok(self.text(name)?.unwrap_or_default())
    }

    fn truth(&self, name: &str) -> Result<Option<bool>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some(Node { value: Value::Bool(truth), .. }) => Ok(Some(*truth)),
            Some(node) => Err(Problem::new(format!("`{name}` is `true` or `false`")).at(node.at.clone())),
        }
    }

    /// A text, or what becomes one.
    fn is_text(&self, name: &str) -> Result<(), Problem> {
        match self.get(name).map(|node| (&node.value, node)) {
            Some((Value::Text(text), node)) if text.trim().is_empty() => {
                Err(Problem::new(format!("`{name}` is empty")).at(node.at.clone()))
            }
            None | Some((Value::Text(_) | Value::Map(_), _)) => Ok(()),
            Some((_, node)) => Err(Problem::new(format!("`{name}` is text")).at(node.at.clone())),
        }
    }

    /// A list, or what becomes one.
    fn is_list(&self, name: &str) -> Result<(), Problem> {
        match self.get(name).map(|node| (&node.value, node)) {
            None | Some((Value::List(_) | Value::Map(_), _)) => Ok(()),
            Some((Value::Text(text), _)) if text.starts_with("${") && text.ends_with('}') => Ok(()),
            Some((_, node)) => {
                let shown = self.source.get(node.at.clone()).unwrap_or("…");
                let problem = Problem::new(format!("`{name}` is a list"));
                Err(problem.suggest(format!("write `[{}]`", shown.trim())).at(node.at.clone()))
            }
        }
    }

    /// All of them as one pattern.
    fn pattern(&self) -> Result<Pattern, Problem> {
        let parsed = |(name, _, value): &(&str, &Node, &Node)| Ok(((*name).to_owned(), pattern(value, self.source)?));
        Ok(Pattern::Fields(self.found.iter().map(parsed).collect::<Result<_, Problem>>()?))
    }
}
