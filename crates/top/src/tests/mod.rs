//! Tests of the screens and of the reaction to events.
