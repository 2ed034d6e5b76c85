//! Look-ups in the outbox: the hook that pays for an event.

use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::log::id::{EffectId, Seq};
use crate::view::{Looked, View};

/// Returns the hook whose share an effect uses: the effect itself, or the sibling that has taken its share over.
pub(crate) fn payer(view: &dyn View, effect: EffectId) -> Looked<Option<PendingEffect>> {
    match view.effect(effect)? {
        Some(effect) => Ok(Some(effect)),
        None => sibling(view, effect),
    }
}

/// Returns the first other hook of the same event that has not ended.
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
