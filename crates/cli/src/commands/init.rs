//! `windlass init`: makes a project.
//!
//! Invariants:
//! - `init` never changes an existing project, and refuses one whose store this machine did not make.
//! - The next `init` makes a store that is missing or half made.

use serde_json::json;
use windlass_app::context::Context;
use windlass_app::person::require_person;
use windlass_app::project_setup::{FoundRepository, ProjectReport, find_existing, prepare, trust_new_project};
use windlass_app::{Failure, environment, hints, project, store_records, trust};
use windlass_store::{Lifetime, Sqlite, StoreError};
use windlass_text as text;

use crate::output::{Done, Output, Tone};
use crate::show;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass init                       make a project in this directory
  windlass init --project new/thing   make it there; the directory is made if it is missing

A project that is there already is left as it is.")]
pub struct Args {}

pub fn run(context: &Context, _: Args, out: &mut Output) -> Done {
    // Every other command looks for the project there.
    let root = match context.project.clone().or_else(environment::project) {
        Some(named) => context.directory.join(named),
        None => context.directory.clone(),
    };
    store_records::check_place()?;
    if let Some(project) = find_existing(&root)?
        && store_records::is_foreign(&project)?
    {
        return Err(hints::store(StoreError::Foreign(project.store_file())).into());
    }
    let outer = root.parent().and_then(|parent| project::around(parent).ok().flatten());
    let report = prepare(&root)?;
    // A fresh clone has the configuration but no store, because the store is not in git.
    let new_store = Sqlite::is_unmade(&report.project.store_file());
    if new_store {
        // An agent could move away the store that restricts it, so only a person makes a new one.
        if store_records::has_record(&report.project) {
            require_person(&report.project)?;
        }
        store_records::create(&report.project, Lifetime::Command, false)?;
    }
    let untrusted = match report.created {
        true => trust_new_project(&report.project).err(),
        false => None,
    };
    match (out.is_json(), report.created) {
        (true, _) => out.object(&as_json(&report)),
        (false, true) => {
            if let Some(outer) = outer {
                let path = outer.root.to_string_lossy().into_owned();
                let note = format!("note: this is inside another project, {}; commands here now use this one", path);
                out.line(out.paint(Tone::Warning, text::line(&note)))?;
            }
            as_text(&report, untrusted.as_ref(), out)
        }
        (false, false) => already_there(&report, new_store, out),
    }
}

fn already_there(report: &ProjectReport, new_store: bool, out: &mut Output) -> Done {
    let root = report.project.root.to_string_lossy();
    out.line(format_args!("There is a project already: {}", text::line(&root)))?;
    match new_store {
        true => out.line("It had no store; now it has an empty one.")?,
        false => out.line("Nothing was changed.")?,
    }
    match trust::warning(&report.project) {
        Some(warning) => out.line(out.paint(Tone::Warning, warning)),
        None => Ok(()),
    }
}

fn as_json(report: &ProjectReport) -> serde_json::Value {
    let ProjectReport { project, created, found } = report;
    json!({
        "project": project.root.to_string_lossy(),
        "created": created,
        "config": project.config_file().to_string_lossy(),
        "found": {
            "tests": found.tests,
            "agents": found.agents,
            "git": found.git.as_ref().map(|git| json!({"branch": git.branch})),
        },
    })
}

fn as_text(report: &ProjectReport, untrusted: Option<&Failure>, out: &mut Output) -> Done {
    let ProjectReport { project, found, .. } = report;
    let file = project.config_file();
    out.line(format_args!("{} {}", out.paint(Tone::Good, "created"), text::line(&file.to_string_lossy())))?;
    let git = match &found.git {
        None => "no repository",
        Some(FoundRepository { branch: None }) => "a repository",
        Some(FoundRepository { branch: Some(branch) }) => branch,
    };
    let agents = if found.agents.is_empty() { "none found".to_owned() } else { found.agents.join(", ") };
    for (label, value) in [("tests", found.tests.unwrap_or("none found")), ("agents", &agents), ("git", git)] {
        out.line(format_args!("  {} {value}", text::pad(label, 8)))?;
    }
    if let Some(failure) = untrusted {
        let reason = text::line(&failure.message).into_owned();
        out.line(format_args!("{}: it is not trusted yet: {reason}", out.paint(Tone::Warning, "warning")))?;
    }
    show::obstacles(&report.project, out)?;
    out.line("")?;
    out.line("Next:")?;
    out.line("  windlass config check              what the configuration says")?;
    out.line("  windlass run \"what to do\"          have an agent do it")?;
    out.line("  windlass task add \"what to do\"     or plan it: the first task")
}
