//! The events that end a turn of the agent.

use windlass_engine::EventType;

/// The events that end a turn of the agent.
pub const TURN_END_EVENTS: [EventType; 7] = [
    EventType::TurnFinished,
    EventType::DeliveryFinished,
    EventType::IterationFailed,
    EventType::DeliveryFailed,
    EventType::IterationInterrupted,
    EventType::DeliveryInterrupted,
    EventType::IterationPostponed,
];

/// Returns whether an event of this type ends a turn of the agent.
pub fn ends_turn(kind: EventType) -> bool {
    TURN_END_EVENTS.contains(&kind)
}
