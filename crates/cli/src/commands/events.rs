//! `windlass events`: prints events, and follows the log.

use std::ffi::OsStr;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};
use windlass_app::context::CommandContext;
use windlass_app::hints;
use windlass_engine::{Event, EventRecord, EventType, FactType, Seq, TaskId};
use windlass_store::{EventFilter, Store};

use crate::output::{CommandResult, EarlyExit, Output};
use crate::{show, usage};

/// The number of events read at a time.
const EVENTS_PER_PAGE: usize = 512;

/// The interval at which `--follow` checks for a closed output. New events wake it at once.
const CLOSED_OUTPUT_POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windlass events --task T3                    show the history of one task
  windlass events --type task_completed --type task_failed
  windlass events --type review.passed         show facts that your hooks logged
  windlass events --from 100 --json | jq .type
  windlass events --follow                     wait for new events until Ctrl-C")]
pub struct Args {
    /// Show only events of this type; repeatable
    #[arg(long = "type", value_name = "TYPE", value_parser = WantedTypeParser)]
    types: Vec<WantedType>,
    /// Show only events of this task
    #[arg(long, value_name = "ID")]
    task: Option<TaskId>,
    /// Show only events from this position on
    #[arg(long, value_name = "SEQ", default_value_t = 1, allow_negative_numbers = true, value_parser = usage::parse_number)]
    from: u64,
    /// Show at most this many events
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = usage::parse_count)]
    limit: Option<usize>,
    /// Wait for new events
    #[arg(long, short)]
    follow: bool,
}

/// A type of event to print: one of Windlass's, or a fact type of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WantedType {
    Event(EventType),
    Fact(FactType),
}

impl WantedType {
    fn event_type(&self) -> EventType {
        match self {
            Self::Event(kind) => *kind,
            Self::Fact(_) => EventType::FactLogged,
        }
    }

    fn includes(&self, record: &EventRecord) -> bool {
        match (self, &record.envelope.event) {
            (Self::Fact(wanted), Event::FactLogged(fact)) => *wanted == fact.kind,
            (Self::Fact(_), _) => false,
            (Self::Event(kind), event) => *kind == event.kind(),
        }
    }
}

/// The parser of `--type`. It offers Windlass's own types for completion.
#[derive(Debug, Clone)]
struct WantedTypeParser;

impl WantedTypeParser {
    fn event_type_parser() -> impl TypedValueParser<Value = EventType> {
        usage::name_parser(EventType::ALL.iter().map(|kind| kind.name()))
    }
}

impl TypedValueParser for WantedTypeParser {
    type Value = WantedType;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<WantedType, clap::Error> {
        let fact = value.to_str().and_then(|name| name.parse().ok()).map(WantedType::Fact);
        let event = || Self::event_type_parser().parse_ref(command, argument, value).map(WantedType::Event);
        fact.map_or_else(event, Ok)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let values: Vec<PossibleValue> = Self::event_type_parser().possible_values()?.collect();
        Some(Box::new(values.into_iter()))
    }
}

pub fn run_events(context: &CommandContext, args: Args, out: &mut Output) -> CommandResult {
    let opened = context.open_project_to_read()?;
    let types = args.types.iter().map(WantedType::event_type).collect();
    let filter = EventFilter { types, task: args.task, session: None };
    let is_wanted = |record: &EventRecord| args.types.is_empty() || args.types.iter().any(|kind| kind.includes(record));
    if let Some(id) = args.task {
        opened.require_task(id)?;
    }
    let mut after = Seq(args.from.saturating_sub(1));
    let mut left = args.limit.unwrap_or(usize::MAX);
    let mut size = EVENTS_PER_PAGE;
    while left > 0 {
        // The head is taken before the read, so that no event can slip in between the read and the wait.
        let head = opened.store.head().map_err(hints::store_failure)?;
        let page = match opened.store.read_events(&filter, after, size.min(left)) {
            // A record of the page is damaged. The records before it can still be shown, one at a time.
            Err(_) if size > 1 => {
                size = 1;
                continue;
            }
            page => page.map_err(hints::store_failure)?,
        };
        for record in &page {
            after = record.seq;
            if !is_wanted(record) {
                continue;
            }
            left -= 1;
            if out.is_json() { out.print_json(record)? } else { show::print_event(record, out)? }
        }
        if !page.is_empty() {
            continue;
        }
        if !args.follow {
            break;
        }
        out.flush()?;
        after = after.max(head);
        opened.store.wait_for_events(after, CLOSED_OUTPUT_POLL_INTERVAL).map_err(hints::store_failure)?;
        if out.is_closed() {
            return Err(EarlyExit::Closed);
        }
    }
    Ok(())
}
