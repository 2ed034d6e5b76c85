//! Look-ups in the outbox: the hook that pays for an event.

use crate::effects::outbox::{EffectKind, PendingEffect};
use crate::log::id::{EffectId, Seq};
use crate::view::{StateView, ViewResult};

/// Returns the hook whose share an effect uses: the effect itself, or the sibling that has taken its share over.
pub(crate) fn find_paying_effect(view: &dyn StateView, effect: EffectId) -> ViewResult<Option<PendingEffect>> {
    match view.find_effect(effect)? {
        Some(effect) => Ok(Some(effect)),
        None => find_sibling_effect(view, effect),
    }
}

/// Returns the first other hook of the same event that has not ended.
pub(crate) fn find_sibling_effect(view: &dyn StateView, effect: EffectId) -> ViewResult<Option<PendingEffect>> {
    let mut after = Some(EffectId { seq: Seq(effect.seq.0.saturating_sub(1)), index: u32::MAX });
    while let Some(other) = view.next_pending_effect(after)?.filter(|other| other.id.seq == effect.seq) {
        if other.id != effect && matches!(other.kind, EffectKind::Hook(_)) {
            return Ok(Some(other));
        }
        after = Some(other.id);
    }
    Ok(None)
}
