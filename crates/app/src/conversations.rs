//! Conversations of agents whose own hook systems called, found by their ids.
//!
//! A subagent's calls belong to the conversation that started it. A subagent also has an id of its own: both ids with a slash
//! between them.

use std::collections::BTreeSet;

use windlass_engine::{Caller, Event, EventType, HookPoint, Record, Seq, payload};
use windlass_store::{Filter, Store, StoreError};
use windlass_text as text;

use crate::context::Opened;
use crate::{Code, Failure, hints};

/// The shortest id prefix that is looked up, in characters.
const LETTERS: usize = 6;
/// How many conversations a hint names when a prefix is ambiguous.
const NAMED: usize = 10;
/// The number of events per read.
const PAGE: usize = 512;
/// The longest id that is shown unshortened, in characters.
const WHOLE: usize = 16;
/// The length of a shortened id, in characters. For an id that begins with a time stamp, this is the whole time stamp.
const SHORT: usize = 13;

/// The hint of how to find an id.
pub const HOW_TO_FIND: &str = "`windlass events --type bridge_called` names conversations";

/// Returns the conversation with this id, or the only one whose id has this prefix. `agent:id` limits the search to that agent.
pub fn find(opened: &Opened, name: &str) -> Result<Option<Caller>, Failure> {
    let (mut whole, mut parts) = (BTreeSet::new(), BTreeSet::new());
    read(opened, &[EventType::BridgeCalled], Seq::START, |record| {
        if let Event::BridgeCalled(called) = &record.envelope.event {
            whole.insert(conversation_of(called));
            parts.insert(own(called));
        }
    })?;
    let exact = whole.union(&parts).filter(|caller| names(caller).iter().any(|own| own == name));
    let exact: Vec<&Caller> = exact.collect();
    if !exact.is_empty() {
        return one_of(name, &exact).map(Some);
    }
    if name.chars().count() < LETTERS {
        return Ok(None);
    }
    let begins = |caller: &&Caller| {
        names(caller).iter().any(|own| own.starts_with(name)) || short_id(&caller.conversation) == name
    };
    let mut meant: Vec<&Caller> = whole.iter().filter(begins).collect();
    if meant.is_empty() {
        meant = parts.iter().filter(begins).collect();
    }
    if meant.is_empty() { Ok(None) } else { one_of(name, &meant).map(Some) }
}

/// Returns the conversation with this id or prefix; an unknown one is a failure.
pub fn known(opened: &Opened, name: &str) -> Result<Caller, Failure> {
    let none = || Failure::new(Code::NotFound, format!("there is no conversation `{}`", text::fit(name, 60)));
    find(opened, name)?.ok_or_else(|| none().hint(HOW_TO_FIND))
}

/// Returns the conversation of the latest call.
pub fn newest(opened: &Opened) -> Result<Option<Caller>, Failure> {
    let filter = Filter { types: vec![EventType::BridgeCalled], ..Filter::default() };
    let last = opened.store.read_back(&filter, None, 1).map_err(hints::store)?;
    Ok(last.iter().find_map(|record| match &record.envelope.event {
        Event::BridgeCalled(called) => Some(conversation_of(called)),
        _ => None,
    }))
}

/// Returns whether a call came from this conversation or from a subagent of it.
pub fn is_of(caller: &Caller, called: &payload::BridgeCalled) -> bool {
    own(called) == *caller || conversation_of(called) == *caller
}

/// Visits all events of these types after a position, oldest first.
pub fn read(opened: &Opened, types: &[EventType], after: Seq, mut take: impl FnMut(Record)) -> Result<(), Failure> {
    let filter = Filter { types: types.to_vec(), ..Filter::default() };
    let mut after = after;
    loop {
        let page: Result<Vec<Record>, StoreError> = opened.store.read(&filter, after, PAGE);
        let page = page.map_err(hints::store)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        page.into_iter().for_each(&mut take);
    }
}

/// Returns the caller under its own id, even if it is a subagent.
fn own(called: &payload::BridgeCalled) -> Caller {
    Caller { agent: called.agent.clone(), conversation: called.conversation.clone() }
}

/// Returns the conversation that a call belongs to: for a subagent, the one that started it.
fn conversation_of(called: &payload::BridgeCalled) -> Caller {
    let caller = own(called);
    match caller.conversation.rsplit_once('/') {
        Some((whole, _)) if called.point == HookPoint::SubagentStop => {
            Caller { conversation: whole.to_owned(), agent: caller.agent }
        }
        _ => caller,
    }
}

/// Returns the names that a person may type: the agent's own id and the id as displayed, each with and without the agent.
fn names(caller: &Caller) -> [String; 4] {
    let Caller { agent, conversation } = caller;
    let seen = text::line(conversation);
    [conversation.clone(), seen.to_string(), format!("{agent}:{conversation}"), format!("{agent}:{seen}")]
}

fn one_of(name: &str, meant: &[&Caller]) -> Result<Caller, Failure> {
    if let [only] = meant {
        return Ok((*only).clone());
    }
    let named = meant.iter().take(NAMED).map(|caller| text::line(&names(caller)[3]).into_owned());
    let named: Vec<String> = named.collect();
    let more = if meant.len() > NAMED { ", …" } else { "" };
    let message = format!("`{}` may be any of {} conversations", text::fit(name, 60), meant.len());
    Err(Failure::new(Code::Usage, message).hint(format!("name one: {}{more}", named.join(", "))))
}

/// Returns a prefix long enough to find a conversation by; for a subagent, of both parts of its id.
pub fn short_id(conversation: &str) -> String {
    match conversation.rsplit_once('/') {
        Some((whole, part)) => format!("{}/{}", beginning(whole), beginning(part)),
        None => beginning(conversation),
    }
}

fn beginning(id: &str) -> String {
    let id = text::line(id);
    if id.chars().count() <= WHOLE {
        return id.into_owned();
    }
    id.chars().take(SHORT).collect()
}
