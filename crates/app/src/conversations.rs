//! Conversations whose agents have called by themselves, found by what people know of their ids.
//!
//! A subagent's calls belong to the conversation that started it, and have a name of their own besides: both ids with a
//! slash between them.

use std::collections::BTreeSet;

use windlass_engine::{Caller, Event, EventType, HookPoint, Record, Seq, payload};
use windlass_store::{Filter, Store, StoreError};
use windlass_text as text;

use crate::context::Opened;
use crate::{Code, Failure, hints};

/// Fewer letters of an id mean none.
const LETTERS: usize = 6;
/// So many are named to somebody who means one of several.
const NAMED: usize = 10;
/// Events that are read at a time.
const PAGE: usize = 512;
/// An id that is not longer is shown as it is.
const WHOLE: usize = 16;
/// So many letters of a longer one. Of an id that begins with the time they are all of it.
const SHORT: usize = 13;

/// How to find an id.
pub const HOW_TO_FIND: &str = "`windlass events --type bridge_called` names conversations";

/// The conversation with this id, or the only one whose id begins so; `agent:id` means that agent's alone.
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

/// The same, where it has to be there.
pub fn known(opened: &Opened, name: &str) -> Result<Caller, Failure> {
    let none = || Failure::new(Code::NotFound, format!("there is no conversation `{}`", text::fit(name, 60)));
    find(opened, name)?.ok_or_else(|| none().hint(HOW_TO_FIND))
}

/// The conversation that was last called from.
pub fn newest(opened: &Opened) -> Result<Option<Caller>, Failure> {
    let filter = Filter { types: vec![EventType::BridgeCalled], ..Filter::default() };
    let last = opened.store.read_back(&filter, None, 1).map_err(hints::store)?;
    Ok(last.iter().find_map(|record| match &record.envelope.event {
        Event::BridgeCalled(called) => Some(conversation_of(called)),
        _ => None,
    }))
}

/// Whether it is this conversation that called, or a subagent of it.
pub fn is_of(caller: &Caller, called: &payload::BridgeCalled) -> bool {
    own(called) == *caller || conversation_of(called) == *caller
}

/// Reads all events of these types after a position, oldest first.
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

/// Whoever called, by its own name.
fn own(called: &payload::BridgeCalled) -> Caller {
    Caller { agent: called.agent.clone(), conversation: called.conversation.clone() }
}

/// The conversation that a call belongs to.
fn conversation_of(called: &payload::BridgeCalled) -> Caller {
    let caller = own(called);
    match caller.conversation.rsplit_once('/') {
        Some((whole, _)) if called.point == HookPoint::SubagentStop => {
            Caller { conversation: whole.to_owned(), agent: caller.agent }
        }
        _ => caller,
    }
}

/// What people may call it: as the agent does, or as they have seen it.
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

/// Enough of a conversation's id to find it by; of a subagent's both parts.
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
