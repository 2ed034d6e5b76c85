//! The part of `windlass hooks metrics` that is about stop hooks which are registered for tasks

use std::cmp::Reverse;

use serde_json::{Value, json};
use windlass_engine::{EventType, Seq};
use windlass_store::{Filter, Store};

use super::metrics::percent;
use super::rates::{Rated, Rates, TYPES, Tally, Wanted};
use crate::context::Opened;
use crate::failure::Failure;
use crate::output::{Done, Output, Tone};
use crate::{remedy, show, text};

/// Events that are read at a time.
const PAGE: usize = 512;
/// So many hooks are shown to a person.
const SHOWN: usize = 20;

/// Counts what the log tells. Where no hook has decided anything, that is all that is looked for.
pub fn count(opened: &Opened, wanted: Wanted) -> Result<Rates, Failure> {
    let mut rates = Rates::new(wanted);
    let evaluated = Filter { types: vec![EventType::HookEvaluated], ..Filter::default() };
    if opened.store.read(&evaluated, Seq::START, 1).map_err(remedy::store)?.is_empty() {
        return Ok(rates);
    }
    let filter = Filter { types: TYPES.to_vec(), ..Filter::default() };
    let mut after = Seq::START;
    loop {
        let page = opened.store.read(&filter, after, PAGE).map_err(remedy::store)?;
        page.iter().for_each(|record| rates.take(record));
        match page.last() {
            Some(last) if page.len() == PAGE => after = last.seq,
            _ => return Ok(rates),
        }
    }
}

pub fn to_json(rates: &Rates) -> Value {
    let hooks = rates.hooks().into_iter().map(|rated| {
        let mut object = rated.tally.to_json();
        (object["hook"], object["type"], object["task"]) = (json!(rated.hook), json!(rated.kind), json!(rated.task));
        object
    });
    let types = rates.types().into_iter().map(|(kind, tally)| {
        let mut object = tally.to_json();
        object["type"] = json!(kind);
        object
    });
    json!({
        "hooks": hooks.collect::<Vec<_>>(),
        "types": types.collect::<Vec<_>>(),
        "total": rates.total().to_json(),
    })
}

const COLUMNS: usize = 6;
const TITLES: [&str; COLUMNS] = ["decided", "complete", "continue", "escalate", "rejected", "errors"];
/// What a moment takes, with the blanks before it.
const MOMENT: usize = 21;

/// One line: whose it is, and what it adds up to.
struct Row {
    name: [String; 3],
    tally: Tally,
}

pub fn table(rates: &Rates, out: &mut Output) -> Done {
    let mut hooks = rates.hooks();
    let more = hooks.len().saturating_sub(SHOWN);
    if more > 0 {
        // Those that have decided something last.
        hooks.sort_by_key(|rated| Reverse((rated.tally.last, rated.hook)));
        hooks.truncate(SHOWN);
        hooks.sort_by_key(|rated| rated.hook);
    }
    let of_hook = |rated: Rated| Row {
        name: [rated.hook.to_string(), rated.kind.to_owned(), rated.task.map(|id| id.to_string()).unwrap_or_default()],
        tally: rated.tally,
    };
    let of_type =
        |(kind, tally): (&str, Tally)| Row { name: ["total".to_owned(), kind.to_owned(), String::new()], tally };
    let types = rates.types();
    let mut rows: Vec<Row> = hooks.into_iter().map(of_hook).collect();
    let several = types.len() > 1;
    rows.extend(types.into_iter().map(of_type));
    rows.extend(
        several.then(|| Row { name: ["total".to_owned(), String::new(), String::new()], tally: rates.total() }),
    );
    draw(&rows, out)?;
    match more {
        0 => Ok(()),
        1 => out.line(out.paint(Tone::Faint, "one more stop hook decided something longer ago; --json shows it")),
        more => {
            let told = format!("{more} more stop hooks decided something longer ago; --json shows them");
            out.line(out.paint(Tone::Faint, told))
        }
    }
}

fn draw(rows: &[Row], out: &mut Output) -> Done {
    let cells: Vec<[String; COLUMNS]> = rows.iter().map(|row| cells(&row.tally)).collect();
    let titles = ["stop hook", "type", "task"];
    let names: [usize; 3] = std::array::from_fn(|column| {
        rows.iter().map(|row| row.name[column].len()).max().unwrap_or(0).max(titles[column].len())
    });
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        cells.iter().map(|row| row[column].len()).max().unwrap_or(0).max(TITLES[column].len())
    });
    let named = |name: [&str; 3]| {
        let parts: Vec<String> = name.iter().zip(names).map(|(part, width)| text::pad(part, width)).collect();
        parts.join("  ")
    };
    let aligned = |cells: &[&str]| {
        let cells = cells.iter().zip(widths).map(|(cell, width)| format!("  {cell:>width$}"));
        cells.collect::<String>()
    };
    // A terminal that is too narrow for all of it does without the moment, and then without the errors.
    let wide = |columns: usize| names.iter().chain(&widths[..columns]).map(|width| width + 2).sum::<usize>() - 2;
    let fits = |wide: usize| out.columns().is_none_or(|columns| wide <= columns);
    let columns = if fits(wide(COLUMNS)) { COLUMNS } else { COLUMNS - 1 };
    let has_room = fits(wide(COLUMNS) + MOMENT);
    let last = if has_room { "  last" } else { "" };
    out.line(out.paint(Tone::Faint, format!("{}{}{last}", named(titles), aligned(&TITLES[..columns]))))?;
    for (row, cells) in rows.iter().zip(&cells) {
        let last = row.tally.last.filter(|_| has_room).map(show::moment).unwrap_or_default();
        let cells: Vec<&str> = cells[..columns].iter().map(String::as_str).collect();
        let name = out.paint(Tone::Strong, named([&row.name[0], &row.name[1], &row.name[2]]));
        let line = format!("{name}{}  {}", aligned(&cells), out.paint(Tone::Faint, last));
        out.line(line.trim_end())?;
    }
    Ok(())
}

fn cells(tally: &Tally) -> [String; COLUMNS] {
    let all = tally.evaluations();
    let rejected = match tally.complete {
        0 => "-".to_owned(),
        complete => format!("{} of {complete}", tally.rejected),
    };
    [
        all.to_string(),
        percent(tally.complete, all),
        percent(tally.goes_on, all),
        percent(tally.escalate, all),
        rejected,
        tally.errors.to_string(),
    ]
}
