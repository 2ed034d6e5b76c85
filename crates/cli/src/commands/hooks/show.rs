//! `windlass hooks show`: prints everything about one hook.

use serde_json::{Map, Value, json};
use windlass_app::context::CommandContext;
use windlass_app::{Failure, FailureCode};
use windlass_config::listing::{ListedHook, WorkSubject, list_planned_hooks};
use windlass_config::{BuiltinHook, Config, plan};
use windlass_engine::HookPoint;
use windlass_expr::nearest_name;
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass hooks show \"stop[0]\"
  windlass hooks show lint --json")]
pub struct Args {
    /// The name of the hook, as `windlass hooks list` shows it
    #[arg(value_name = "NAME")]
    name: String,
}

pub fn run_hooks_show(context: &CommandContext, args: &Args, out: &mut Output) -> CommandResult {
    let project = context.find_project()?;
    let config = Config::load(&project.root)?;
    let found = find_hook_fields(&config, &args.name)?;
    if out.is_json() {
        return out.print_json(&found);
    }
    let width = found.keys().map(String::len).max().unwrap_or(0);
    for (name, value) in found.iter().filter(|(_, value)| !value.is_null()) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        out.print_line(format_args!(
            "{}  {}",
            out.paint(TextTone::Name, text::pad_to_width(name, width)),
            text::clean_line(&value)
        ))?;
    }
    Ok(())
}

fn find_hook_fields(config: &Config, name: &str) -> Result<Map<String, Value>, Failure> {
    if let Some(hook) = config.hooks.iter().find(|hook| hook.name == name) {
        let mut fields = describe_hook_fields((&hook.point, &ListedHook::Configured(hook)), hook.describe_place());
        let briefs: Map<_, _> =
            hook.review_briefs().map(|name| (name.to_owned(), config.review_brief(name).into())).collect();
        if !briefs.is_empty() {
            fields.insert("briefs".to_owned(), briefs.into());
        }
        return Ok(fields);
    }
    let all = list_planned_hooks(config, &WorkSubject::default())?;
    let rows = all.iter().flat_map(|planned| planned.rows.iter().map(move |row| (&planned.point, row)));
    let mut points: Vec<&str> = Vec::new();
    let mut row = None;
    // The default hook is known by its short name too.
    let is_meant = |row: &ListedHook<'_>| {
        row.name() == name || (matches!(row, ListedHook::Default { .. }) && name == BuiltinHook::CreatePr.name())
    };
    for (point, other) in rows.filter(|(_, row)| is_meant(row)) {
        points.push(point.name());
        row = Some((point, other));
    }
    match row {
        Some((point, row)) => Ok(describe_hook_fields((point, row), points.join(", "))),
        None => {
            let names: Vec<&str> = config.hooks.iter().map(|hook| hook.name.as_str()).collect();
            let failure = Failure::new(FailureCode::NotFound, format!("there is no hook `{}`", text::clean_line(name)));
            Err(failure.with_hint(match nearest_name(name, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => windlass_app::hook_switch::hook_list_hint(name),
            }))
        }
    }
}

fn describe_hook_fields((point, row): (&HookPoint, &ListedHook<'_>), points: String) -> Map<String, Value> {
    let mut fields = match row.to_json(point) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.insert("points".to_owned(), points.into());
    if let ListedHook::Configured(hook) = row {
        let entry = &hook.entry;
        fields.insert("description".to_owned(), entry.description.clone().into());
        fields.insert("idempotent".to_owned(), entry.idempotent.unwrap_or(false).into());
        fields.insert("maxOutput".to_owned(), plan::hook_max_output(hook).into());
        if let Some(context) = &entry.context {
            fields.insert("context".to_owned(), json!(context.value));
        }
        if !entry.metadata.is_empty() {
            fields.insert("metadata".to_owned(), entry.metadata.clone().into_iter().collect());
        }
    }
    fields
}
