//! `windlass init`: makes a project.
//!
//! Invariants:
//! - `init` never changes an existing project, and refuses one whose store this machine did not make.
//! - The next `init` makes a store that is missing or half made.

use serde_json::json;
use windlass_app::context::CommandContext;
use windlass_app::person::require_person;
use windlass_app::project_setup::{
    FoundRepository, ProjectReport, find_existing_project, prepare_project, trust_new_project,
};
use windlass_app::{Failure, environment, hints, project, store_records, trust};
use windlass_store::{Lifetime, SqliteStore, StoreError};
use windlass_text as text;

use crate::output::{CommandResult, Output, TextTone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass init                       create a project in this directory
  windlass init --project new/thing   create it there, with the directory

An existing project is not changed.")]
pub struct Args {}

/// The effect of the usual delivery on a repository with this remote.
const DELIVERY_NOTE: &str = "origin; Windlass pushes the work of each task there as a branch (`before_submit` decides)";

pub fn run_init(context: &CommandContext, _: Args, out: &mut Output) -> CommandResult {
    // Every other command looks for the project there.
    let root = match context.project.clone().or_else(environment::project_variable) {
        Some(named) => context.directory.join(named),
        None => context.directory.clone(),
    };
    store_records::check_record_directory()?;
    if let Some(project) = find_existing_project(&root)?
        && store_records::is_store_foreign(&project)?
    {
        return Err(hints::store_failure(StoreError::Foreign(project.store_file())).into());
    }
    let outer = root.parent().and_then(|parent| project::find_enclosing_project(parent).ok().flatten());
    let report = prepare_project(&root)?;
    // A fresh clone has the configuration but no store, because the store is not in git.
    let new_store = SqliteStore::is_missing_or_blank(&report.project.store_file());
    if new_store {
        // An agent could move away the store that restricts it, so only a person makes a new one.
        if store_records::has_store_record(&report.project) {
            require_person(&report.project)?;
        }
        store_records::open_or_create_store(&report.project, Lifetime::Command, false)?;
    }
    let untrusted = match report.created {
        true => trust_new_project(&report.project).err(),
        false => None,
    };
    match (out.is_json(), report.created) {
        (true, _) => out.print_json(&project_report_to_json(&report)),
        (false, true) => {
            if let Some(outer) = outer {
                let path = outer.root.to_string_lossy().into_owned();
                let note = format!("note: this is inside another project, {}; commands here now use this one", path);
                out.print_line(out.paint(TextTone::Warning, text::clean_line(&note)))?;
            }
            print_created_project(&report, untrusted.as_ref(), out)
        }
        (false, false) => report_existing_project(&report, new_store, out),
    }
}

fn report_existing_project(report: &ProjectReport, new_store: bool, out: &mut Output) -> CommandResult {
    let root = report.project.root.to_string_lossy();
    out.print_line(format_args!("There is a project already: {}", text::clean_line(&root)))?;
    match new_store {
        true => out.print_line("It had no store; now it has an empty one.")?,
        false => out.print_line("Nothing was changed.")?,
    }
    match trust::trust_warning(&report.project) {
        Some(warning) => out.print_line(out.paint(TextTone::Warning, warning)),
        None => Ok(()),
    }
}

fn project_report_to_json(report: &ProjectReport) -> serde_json::Value {
    let ProjectReport { project, created, found } = report;
    json!({
        "project": project.root.to_string_lossy(),
        "created": created,
        "config": project.config_file().to_string_lossy(),
        "found": {
            "tests": found.tests,
            "agents": found.agents,
            "git": found.git.as_ref().map(|git| json!({"branch": git.branch, "origin": git.has_origin})),
        },
    })
}

fn print_created_project(report: &ProjectReport, untrusted: Option<&Failure>, out: &mut Output) -> CommandResult {
    let ProjectReport { project, found, .. } = report;
    let file = project.config_file();
    out.print_line(format_args!(
        "{} {}",
        out.paint(TextTone::Good, "created"),
        text::clean_line(&file.to_string_lossy())
    ))?;
    let git = match &found.git {
        None => "no repository",
        Some(FoundRepository { branch: None, .. }) => "a repository",
        Some(FoundRepository { branch: Some(branch), .. }) => branch,
    };
    let agents = if found.agents.is_empty() { "none found".to_owned() } else { found.agents.join(", ") };
    let rows = [("tests", found.tests.unwrap_or("none found")), ("agents", &agents), ("git", git)];
    let remote = found.git.as_ref().filter(|git| git.has_origin).map(|_| ("remote", DELIVERY_NOTE));
    for (label, value) in rows.into_iter().chain(remote) {
        out.print_line(format_args!("  {} {value}", text::pad_to_width(label, 8)))?;
    }
    if let Some(failure) = untrusted {
        let reason = text::clean_line(&failure.message).into_owned();
        out.print_line(format_args!("{}: it is not trusted yet: {reason}", out.paint(TextTone::Warning, "warning")))?;
    }
    show::print_obstacles(&report.project, out)?;
    out.print_line("")?;
    out.print_line("Next:")?;
    out.print_line("  windlass config check              what the configuration says")?;
    out.print_line("  windlass run \"what to do\"          have an agent do it")?;
    out.print_line("  windlass task add \"what to do\"     or plan it: the first task")
}
