//! Whose share of events a hook uses: a look at the outbox.

use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::log::id::{EffectId, Seq};
use crate::view::{Looked, View};

/// Whose share it is that a hook uses: its own, or that of the one which has taken it over.
pub(crate) fn payer(view: &dyn View, effect: EffectId) -> Looked<Option<PendingEffect>> {
    match view.effect(effect)? {
        Some(effect) => Ok(Some(effect)),
        None => sibling(view, effect),
    }
}

/// Another hook of the same event that has yet to end: the first one.
pub(crate) fn sibling(view: &dyn View, effect: EffectId) -> Looked<Option<PendingEffect>> {
    let mut after = Some(EffectId { seq: Seq(effect.seq.0.saturating_sub(1)), index: u32::MAX });
    while let Some(other) = view.next_effect(after)?.filter(|other| other.id.seq == effect.seq) {
        if other.id != effect && matches!(other.kind, EffectKind::Hook(_)) {
            return Ok(Some(other));
        }
        after = Some(other.id);
    }
    Ok(None)
}
