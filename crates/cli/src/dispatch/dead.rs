//! What commands that died have left undone.

use std::sync::Arc;

use windlass_engine::{ConfigDigest, Debt, DebtId, Effect, OwnerName, SessionName, Trusted, View};
use windlass_process::{Control, is_alive, sweep};

use super::{recorded, with};
use crate::config::Config;
use crate::context::Opened;
use crate::failure::{Code, Failure};
use crate::outline::Outline;
use crate::remedy;
use crate::trust::{self, Trust};

/// Whose hooks are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach<'a> {
    /// Everybody's; with `--trust` under older configurations too.
    Everything,
    /// Those that do not belong to the session which is about to be run.
    BeforeSession(&'a SessionName),
}

/// Takes over the hooks that the dead have left, each under the configuration that it was owed under. Answers how many
/// there were, and for how many nobody has given trust.
pub fn settle_dead(opened: &mut Opened, control: &Control, reach: Reach<'_>) -> Result<(usize, usize), Failure> {
    let project = opened.project.clone();
    sweep(&project.owners())
        .map_err(|error| Failure::new(Code::System, "cannot end what an earlier command has left").caused_by(error))?;
    let mut left = left_by_the_dead(opened)?;
    if let Reach::BeforeSession(session) = reach {
        left.retain(|debt| debt.session.as_ref() != Some(session));
    }
    let mut configs: Vec<ConfigDigest> = left.iter().map(|debt| debt.config).collect();
    configs.sort_unstable();
    configs.dedup();
    let (mut settled, mut untrusted) = (0, 0);
    for digest in configs {
        let text = opened.store.snapshot().map_err(remedy::store)?.config(digest).map_err(remedy::view)?;
        // What nobody can read any more has no hooks that could run: they are recorded as failed.
        let config = Config::parse(recorded(&project, text.as_deref().unwrap_or_default()));
        let outline = Arc::new(Outline::from(config.unwrap_or_else(|_| Config::absent(&project))));
        if !may_run(opened, outline.frame(), reach)? {
            untrusted += left.iter().filter(|debt| debt.config == digest).count();
            continue;
        }
        let among: Vec<DebtId> = left.iter().map(|debt| debt.id).collect();
        let is_dead = |owner: &OwnerName| !is_alive(&project.owners(), owner.as_str());
        settled += with(opened, &outline, Trusted::Yes, control, |dispatch| {
            let meant = |debt: &Debt| debt.config == digest && is_dead(&debt.owner) && among.contains(&debt.id);
            dispatch.take_over(meant).map_err(remedy::run)
        })?;
    }
    Ok((settled, untrusted))
}

/// Hooks whose owner is dead, and that no session waits for which could be gone on with. One that has ended waits for none
/// but those of its end.
pub fn left_by_the_dead(opened: &Opened) -> Result<Vec<Debt>, Failure> {
    let snapshot = opened.store.snapshot().map_err(remedy::store)?;
    let mut debts = snapshot.debts().map_err(remedy::store)?;
    let open = snapshot.sessions().map_err(remedy::store)?.into_iter().filter(|session| session.ended().is_none());
    let waited: Vec<DebtId> = open.flat_map(|session| session.owed).collect();
    let owners = opened.project.owners();
    debts.retain(|debt| {
        matches!(debt.effect, Effect::Hook(_)) && !waited.contains(&debt.id) && !is_alive(&owners, debt.owner.as_str())
    });
    Ok(debts)
}

/// Whether a configuration may run. `run` knows only the present one: a store can come with a repository, and nobody has
/// seen what it says.
fn may_run(opened: &Opened, config: &Config, reach: Reach<'_>) -> Result<bool, Failure> {
    let present = Config::load(&opened.project).is_ok_and(|present| present.text() == config.text());
    let told = opened.trust && (present || reach == Reach::Everything);
    Ok(told || !config.exists() || (present && trust::state(&opened.project, config)? == Trust::Trusted))
}
