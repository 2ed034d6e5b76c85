//! Conversations of agents whose own hook systems called, found by their ids.
//!
//! A subagent's calls belong to the conversation that started it. A subagent also has an id of its own: both ids with a slash
//! between them.

use std::collections::BTreeSet;

use windlass_engine::{BridgeCaller, Event, EventRecord, EventType, HookPoint, Seq, payload};
use windlass_store::{EventFilter, Store, StoreError};
use windlass_text as text;

use crate::context::OpenedProject;
use crate::{Failure, FailureCode, hints};

/// The shortest id prefix that is looked up, in characters.
const MIN_ID_PREFIX: usize = 6;
/// How many conversations a hint names when a prefix is ambiguous.
const MAX_NAMED_CONVERSATIONS: usize = 10;
/// The number of events per read.
const EVENT_PAGE_SIZE: usize = 512;
/// The longest id that is shown unshortened, in characters.
const MAX_UNSHORTENED_ID: usize = 16;
/// The length of a shortened id, in characters. For an id that begins with a time stamp, this is the whole time stamp.
const SHORT_ID_LENGTH: usize = 13;

/// The hint of how to find an id.
pub const CONVERSATION_ID_HINT: &str = "`windlass events --type bridge_called` names conversations";

/// Returns the conversation with this id, or the only one whose id has this prefix. `agent:id` limits the search to that agent.
pub fn find_conversation(opened: &OpenedProject, name: &str) -> Result<Option<BridgeCaller>, Failure> {
    let (mut whole, mut parts) = (BTreeSet::new(), BTreeSet::new());
    visit_events(opened, &[EventType::BridgeCalled], Seq::START, |record| {
        if let Event::BridgeCalled(called) = &record.envelope.event {
            whole.insert(parent_conversation_of_call(called));
            parts.insert(caller_of_call(called));
        }
    })?;
    let exact = whole.union(&parts).filter(|caller| list_caller_names(caller).iter().any(|own| own == name));
    let exact: Vec<&BridgeCaller> = exact.collect();
    if !exact.is_empty() {
        return require_single_match(name, &exact).map(Some);
    }
    if name.chars().count() < MIN_ID_PREFIX {
        return Ok(None);
    }
    let begins = |caller: &&BridgeCaller| {
        list_caller_names(caller).iter().any(|own| own.starts_with(name))
            || shorten_conversation_id(&caller.conversation) == name
    };
    let mut meant: Vec<&BridgeCaller> = whole.iter().filter(begins).collect();
    if meant.is_empty() {
        meant = parts.iter().filter(begins).collect();
    }
    if meant.is_empty() { Ok(None) } else { require_single_match(name, &meant).map(Some) }
}

/// Returns the conversation with this id or prefix; an unknown one is a failure.
pub fn require_conversation(opened: &OpenedProject, name: &str) -> Result<BridgeCaller, Failure> {
    let none = || Failure::new(FailureCode::NotFound, format!("there is no conversation `{}`", text::fit(name, 60)));
    find_conversation(opened, name)?.ok_or_else(|| none().with_hint(CONVERSATION_ID_HINT))
}

/// Returns the conversation of the latest call.
pub fn find_newest_conversation(opened: &OpenedProject) -> Result<Option<BridgeCaller>, Failure> {
    let filter = EventFilter { types: vec![EventType::BridgeCalled], ..EventFilter::default() };
    let last = opened.store.read_events_back(&filter, None, 1).map_err(hints::store_failure)?;
    Ok(last.iter().find_map(|record| match &record.envelope.event {
        Event::BridgeCalled(called) => Some(parent_conversation_of_call(called)),
        _ => None,
    }))
}

/// Returns whether a call came from this conversation or from a subagent of it.
pub fn is_call_of_conversation(caller: &BridgeCaller, called: &payload::BridgeCalled) -> bool {
    caller_of_call(called) == *caller || parent_conversation_of_call(called) == *caller
}

/// Visits all events of these types after a position, oldest first.
pub fn visit_events(
    opened: &OpenedProject,
    types: &[EventType],
    after: Seq,
    mut take: impl FnMut(EventRecord),
) -> Result<(), Failure> {
    let filter = EventFilter { types: types.to_vec(), ..EventFilter::default() };
    let mut after = after;
    loop {
        let page: Result<Vec<EventRecord>, StoreError> = opened.store.read_events(&filter, after, EVENT_PAGE_SIZE);
        let page = page.map_err(hints::store_failure)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        page.into_iter().for_each(&mut take);
    }
}

/// Returns the caller under its own id, even if it is a subagent.
fn caller_of_call(called: &payload::BridgeCalled) -> BridgeCaller {
    BridgeCaller { agent: called.agent.clone(), conversation: called.conversation.clone() }
}

/// Returns the conversation that a call belongs to: for a subagent, the one that started it.
fn parent_conversation_of_call(called: &payload::BridgeCalled) -> BridgeCaller {
    let caller = caller_of_call(called);
    match caller.conversation.rsplit_once('/') {
        Some((whole, _)) if called.point == HookPoint::SubagentStop => {
            BridgeCaller { conversation: whole.to_owned(), agent: caller.agent }
        }
        _ => caller,
    }
}

/// Returns the names that a person may type: the agent's own id and the id as displayed, each with and without the agent.
fn list_caller_names(caller: &BridgeCaller) -> [String; 4] {
    let BridgeCaller { agent, conversation } = caller;
    let seen = text::clean_line(conversation);
    [conversation.clone(), seen.to_string(), format!("{agent}:{conversation}"), format!("{agent}:{seen}")]
}

fn require_single_match(name: &str, meant: &[&BridgeCaller]) -> Result<BridgeCaller, Failure> {
    if let [only] = meant {
        return Ok((*only).clone());
    }
    let named = meant
        .iter()
        .take(MAX_NAMED_CONVERSATIONS)
        .map(|caller| text::clean_line(&list_caller_names(caller)[3]).into_owned());
    let named: Vec<String> = named.collect();
    let more = if meant.len() > MAX_NAMED_CONVERSATIONS { ", …" } else { "" };
    let message = format!("`{}` may be any of {} conversations", text::fit(name, 60), meant.len());
    Err(Failure::new(FailureCode::Usage, message).with_hint(format!("name one: {}{more}", named.join(", "))))
}

/// Returns a prefix long enough to find a conversation by; for a subagent, of both parts of its id.
pub fn shorten_conversation_id(conversation: &str) -> String {
    match conversation.rsplit_once('/') {
        Some((whole, part)) => format!("{}/{}", beginning(whole), beginning(part)),
        None => shorten_id_part(conversation),
    }
}

fn shorten_id_part(id: &str) -> String {
    let id = text::clean_line(id);
    if id.chars().count() <= MAX_UNSHORTENED_ID {
        return id.into_owned();
    }
    id.chars().take(SHORT_ID_LENGTH).collect()
}
