//! The report about a conversation with an agent whose own hook system calls.

use std::collections::BTreeSet;

use crate::context::OpenedProject;
use crate::hook_runs::RUN_EVENTS;
use crate::{Failure, conversations, time_format};
use windlass_bridge::BridgeAgent;
use windlass_engine::{BridgeCaller, CallRuling, Event, EventRecord, EventType, HookPoint, Seq};

use super::fact::build_facts;
use super::report::WhyReport;
use super::subject::format_times;
use crate::event_text::bridge;
use crate::tone::TextTone;

pub fn report_conversation(opened: &OpenedProject, caller: &BridgeCaller) -> Result<WhyReport, Failure> {
    let records = read_conversation(opened, caller)?;
    let calls: Vec<&EventRecord> = records.iter().filter(|record| record.kind() == EventType::BridgeCalled).collect();
    let answers = records.iter().filter_map(|record| match &record.envelope.event {
        Event::BridgeAnswered(answered) => Some(answered),
        _ => None,
    });
    let state = answers.clone().next_back().map(|answered| {
        let (tone, words) = bridge::describe_answer(answered);
        (tone, format!("at {}: {words}", answered.point))
    });
    let agent =
        caller.agent.parse::<BridgeAgent>().map_or_else(|_| caller.agent.clone(), |agent| agent.title().to_owned());
    let moment = |call: Option<&&EventRecord>| {
        let envelope = &call?.envelope;
        Some(format!("{}, for {}", time_format::format_local_time(envelope.timestamp), envelope.metadata.triggered_by))
    };
    let times = |count: usize| (count > 0).then(|| format_times(count));
    let is_sent_back = |point: &HookPoint, ruling| point.sends_back() && ruling == CallRuling::Block;
    let sent_back = answers.clone().filter(|answered| is_sent_back(&answered.point, answered.ruling)).count();
    let about = [
        ("agent", Some(agent)),
        ("first call", moment(calls.first())),
        ("last call", moment(calls.last())),
        ("calls", Some(calls.len().to_string())),
        ("sent back", times(sent_back)),
        ("let through", times(answers.filter(|answered| answered.let_go.is_some()).count())),
    ];
    let about = about.into_iter().filter_map(|(label, what)| Some((label, what?))).collect();
    Ok(WhyReport {
        kind: "conversation",
        name: caller.conversation.clone(),
        state: state.unwrap_or((TextTone::Plain, "nothing was answered yet".to_owned())),
        about,
        causes: Vec::new(),
        has_more_causes: false,
        details: Vec::new(),
        facts: build_facts(opened, records)?,
        next: None,
    })
}

/// Reads the calls of a conversation, the runs of their hooks, and the answers.
fn read_conversation(opened: &OpenedProject, caller: &BridgeCaller) -> Result<Vec<EventRecord>, Failure> {
    let mut records = Vec::new();
    let mut calls = BTreeSet::new();
    conversations::visit_events(opened, &[EventType::BridgeCalled], Seq::START, |record| {
        match &record.envelope.event {
            Event::BridgeCalled(called) if conversations::is_call_of_conversation(caller, called) => {
                calls.insert(record.seq);
                records.push(record);
            }
            _ => {}
        }
    })?;
    let types: Vec<EventType> = RUN_EVENTS.into_iter().chain([EventType::BridgeAnswered]).collect();
    conversations::visit_events(opened, &types, calls.first().copied().unwrap_or(Seq::START), |record| {
        let call = match &record.envelope.event {
            Event::HookStarted(started) => Some(started.effect.seq),
            Event::HookFinished(finished) => Some(finished.effect.seq),
            _ => record.cause_position(),
        };
        if call.is_some_and(|call| calls.contains(&call)) {
            records.push(record);
        }
    })?;
    records.sort_unstable_by_key(|record| record.seq);
    Ok(records)
}
