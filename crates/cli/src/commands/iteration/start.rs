//! `windlass iteration start`

use std::path::PathBuf;

use serde_json::{Value, json};
use windlass_engine::{Limits, Promise, TaskId};

use crate::commands::task::read_text;
use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::output::{Done, Output, Tone};
use crate::{twin, usage};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass iteration start T3 --max-iterations 5 --promise COMPLETE --promise BLOCKED
  windlass iteration start T3 --max-iterations 5 --promise COMPLETE --strict --rule '{\"type\": \"command\", \"name\": \"tests\", \"config\": {\"command\": \"make test\"}}'
  windlass iteration start T3 --max-iterations 5 --promise COMPLETE --rules rules.json

The task becomes active. A series that is under way is over with it.")]
pub struct Args {
    /// The task, such as T3
    #[arg(value_name = "ID")]
    task: TaskId,
    /// How many iterations there may be, 1 to 100
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = usage::number_to::<{ Limits::SERIES }>)]
    max_iterations: u64,
    /// A promise that ends the series: COMPLETE, BLOCKED, ESCALATE; may be given several times
    #[arg(long, value_name = "PROMISE", required = true)]
    promise: Vec<Promise>,
    /// A validation rule, as JSON; may be given several times
    #[arg(long, value_name = "JSON", value_parser = usage::json)]
    rule: Vec<Value>,
    /// Validation rules from a file with a JSON list, or from standard input with `-`
    #[arg(long, value_name = "FILE", conflicts_with = "rule")]
    rules: Option<PathBuf>,
    /// After how many failed iterations in a row a person is needed, 1 to 20 [default: 3]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = usage::number_to::<{ Limits::BREAKER }>)]
    breaker: Option<u64>,
    /// The work is complete only when every rule passes
    #[arg(long)]
    strict: bool,
}

pub fn run(context: &Context, args: Args, out: &mut Output) -> Done {
    let rules = match &args.rules {
        None => Value::Array(args.rule),
        Some(file) => serde_json::from_str(&read_text(file)?)
            .map_err(|error| Failure::new(Code::Usage, format!("{} is not JSON", file.display())).caused_by(error))?,
    };
    let given = json!({
        "taskId": args.task, "maxIterations": args.max_iterations, "completionPromises": args.promise,
        "validationRules": rules, "circuitBreakerThreshold": args.breaker, "strict": args.strict,
    });
    let answer = twin::call(context, "iteration_start", given)?;
    if out.is_json() {
        return out.object(&answer);
    }
    let id = out.paint(Tone::Strong, twin::text(&answer["iterationId"])).to_string();
    let rules = answer["config"]["validationRules"].as_array().map_or(0, Vec::len);
    let rules = match rules {
        0 => String::new(),
        1 => ", 1 validation rule".to_owned(),
        rules => format!(", {rules} validation rules"),
    };
    out.line(format_args!("{id} of {}: iteration 1 of {}{rules}", args.task, args.max_iterations))
}
