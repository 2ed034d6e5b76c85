//! Opens a change: pushes the branch, and opens a change on the forge if the remote is on one.

use std::time::Duration;

use windlass_engine::{ChangeFact, ChangeRef, HookOutcome, HookReport, Session, Task, Workspace};
use windlass_vcs::forge::{
    ForgeChange, ForgeChangeState, ForgeClient, ForgeError, ForgeProject, ForgeToken, NewChange, RetryAdvice,
};
use windlass_vcs::git::{BranchName, Error, GitClient, GitCommitId, PushOutcome, RemoteBranch};

use super::DeliveryStepResult;
use crate::gate_checkout::commit_in_delivery;
use crate::hook::HookRun;
use crate::wording::report_with_message;
use crate::workspace_problem::describe_causes;
use crate::{EffectRunner, RunError, RunnerEvent};

/// Maximum number of calls to a forge that cannot answer, and the longest wait between two.
const MAX_FORGE_ATTEMPTS: u32 = 4;
const MAX_FORGE_WAIT: Duration = Duration::from_secs(60);

/// A branch that others can see from now on.
pub(super) struct PublishedBranch {
    pub branch: BranchName,
    pub head: GitCommitId,
    /// Branch that the change is meant for.
    pub base: BranchName,
    pub pushed: Option<PushOutcome>,
    pub address: Option<String>,
}

impl EffectRunner<'_> {
    pub(super) fn open_change(
        &mut self,
        run: &HookRun<'_>,
        session: &Session,
        workspace: &Workspace,
    ) -> Result<DeliveryStepResult, RunError> {
        let task = run.subject.task.as_ref();
        if !self.still_holds_task(session)? {
            return Ok(Ok(task_taken_report()));
        }
        let published = match self
            .with_git(|git| self.publish_task_branch(git, task, workspace, head_in_delivery(session)?.as_ref()))
        {
            Ok(published) => published,
            Err(error) => return Ok(Err(error)),
        };
        if !self.still_holds_task(session)? {
            return Ok(Ok(task_taken_report()));
        }
        let site = published
            .address
            .as_deref()
            .map(|address| ForgeProject::from_remote(address, &self.settings.delivery.forge));
        let site = match site.transpose() {
            Ok(site) => site.flatten(),
            Err(error) => return Ok(Ok(forge_failure_report(&error))),
        };
        let Some(site) = site else {
            let unmet = self.settings.delivery.forge.explain_mismatch(published.address.as_deref());
            return Ok(Ok(local_change_report(&published, unmet)));
        };
        let forge = match self.connect_forge(site) {
            Ok(forge) => forge,
            Err(error) => return Ok(Ok(forge_failure_report(&error))),
        };
        let new = NewChange {
            branch: published.branch.to_string(),
            base: published.base.to_string(),
            head: published.head.to_string(),
            title: task.map_or("Work", Task::title).to_owned(),
            body: task.map(|task| change_body(task, workspace)).unwrap_or_default(),
        };
        // A known change goes on, whatever base a person has given it. If a person has closed it, it is not opened again.
        let known = task.and_then(|task| task.change.as_ref()).filter(|change| change.merged.is_none());
        let known = known.and_then(|change| change.at.number);
        let opened = self.retry_forge_call(|| match known.map(|number| forge.view_change(number)).transpose()? {
            Some(change) if matches!(change.state, ForgeChangeState::Open | ForgeChangeState::Closed) => Ok(change),
            _ => forge.open_change(&new),
        });
        Ok(Ok(opened
            .map_or_else(|error| forge_failure_report(&error), |change| opened_change_report(&published, &change))))
    }

    /// Pushes a branch that is at the judged commit, if there is a remote.
    pub(super) fn publish_task_branch(
        &self,
        git: &GitClient<'_>,
        task: Option<&Task>,
        workspace: &Workspace,
        judged: Option<&GitCommitId>,
    ) -> Result<PublishedBranch, Error> {
        let base = self.last_known_base(git)?;
        let local = BranchName::new(&workspace.branch)?;
        let head = git.branch_tip(&local)?.ok_or_else(|| Error::UnknownCommit { commit: local.to_string() })?;
        if judged.is_some_and(|judged| *judged != head) {
            return Err(Error::Moved { branch: local });
        }
        let Some(remote) = base.remote else {
            return Ok(PublishedBranch { branch: local, head, base: base.branch, pushed: None, address: None });
        };
        let shared = RemoteBranch { branch: public_branch_name(task, workspace)?, remote, local };
        let pushed = Some(git.publish_branch(&shared, &head)?);
        let address = Some(git.remote_address(&shared.remote)?);
        Ok(PublishedBranch { branch: shared.branch, head, base: base.branch, pushed, address })
    }

    /// Returns whether the session still has its task: others may have taken it since the hook began.
    pub(super) fn still_holds_task(&self, session: &Session) -> Result<bool, RunError> {
        Ok(self.load_session(&session.name)?.held_epoch() == session.held_epoch())
    }

    pub(super) fn connect_forge(&self, site: ForgeProject) -> Result<ForgeClient, ForgeError> {
        let environment = &self.settings.environment;
        let token = ForgeToken::find_token(&site, environment, |spec| self.run_query(&spec))?;
        Ok(ForgeClient::new(site, token, environment, ForgeClient::DEFAULT_TIMEOUT))
    }

    /// Calls a forge, and retries if that may help.
    pub(super) fn retry_forge_call<T>(&mut self, ask: impl Fn() -> Result<T, ForgeError>) -> Result<T, ForgeError> {
        let mut tried = 0;
        loop {
            let error = match ask() {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            tried += 1;
            let RetryAdvice::After(after) = error.retry_advice() else { return Err(error) };
            let wait = after.unwrap_or(Duration::from_millis(500) * 4_u32.pow(tried - 1));
            if tried >= MAX_FORGE_ATTEMPTS || wait > MAX_FORGE_WAIT {
                return Err(error);
            }
            (self.env.observe)(RunnerEvent::Note(&format!("{error}; asking again")));
            if !self.wait_cancellable(wait) {
                return Err(error);
            }
        }
    }
}

/// Returns the public name of a task's branch. Work on an open change of others continues that change.
fn public_branch_name(task: Option<&Task>, workspace: &Workspace) -> Result<BranchName, Error> {
    let change = task.and_then(|task| task.change.as_ref()).filter(|change| change.merged.is_none());
    BranchName::new(change.and_then(|change| change.at.branch.as_deref()).unwrap_or(&workspace.branch))
}

/// Returns the commit of a session in delivery.
pub(super) fn head_in_delivery(session: &Session) -> Result<Option<GitCommitId>, Error> {
    commit_in_delivery(session).map(|(_, head)| GitCommitId::new(head)).transpose()
}

pub(super) fn task_taken_report() -> HookReport {
    report_with_message(HookOutcome::Failure, "this session no longer holds the task")
}

pub(super) fn forge_failure_report(error: &ForgeError) -> HookReport {
    report_with_message(HookOutcome::Failure, format!("{}; {}", describe_causes(error), error.hint()))
}

/// Reports a change that only the log and the branch know.
fn local_change_report(published: &PublishedBranch, unmet: Option<String>) -> HookReport {
    let change = ChangeRef {
        branch: Some(published.branch.to_string()),
        base: Some(published.base.to_string()),
        url: None,
        number: None,
    };
    let said = match (&published.pushed, unmet) {
        (None, Some(unmet)) => format!("the change is the branch {}; {unmet}", published.branch),
        (None, None) => format!("the change is the branch {}; there is no remote", published.branch),
        (Some(_), Some(unmet)) => format!("pushed {}; {unmet}", published.branch),
        (Some(_), None) => format!("pushed {}; the remote is on no forge that is known", published.branch),
    };
    HookReport { change: Some(ChangeFact::Opened(change)), ..report_with_message(HookOutcome::Success, said) }
}

fn opened_change_report(published: &PublishedBranch, change: &ForgeChange) -> HookReport {
    let url = change.url.clone();
    if change.state == ForgeChangeState::Closed {
        return report_with_message(
            HookOutcome::Escalate,
            format!("{url} was closed without having been merged; reopen it there to continue"),
        );
    }
    let fact = ChangeRef {
        branch: Some(published.branch.to_string()),
        base: Some(published.base.to_string()),
        url: Some(url.clone()),
        number: Some(change.number),
    };
    let context = [("pr_url".to_owned(), url.clone().into())].into_iter().collect();
    HookReport { change: Some(ChangeFact::Opened(fact)), context, ..report_with_message(HookOutcome::Success, url) }
}

fn change_body(task: &Task, workspace: &Workspace) -> String {
    let rest = task.goal.lines().skip_while(|line| line.trim().is_empty()).skip(1).collect::<Vec<_>>().join("\n");
    let parts = [rest.trim(), task.body.as_deref().unwrap_or_default().trim()];
    let mut text: Vec<String> = parts.iter().filter(|part| !part.is_empty()).map(|part| (*part).to_owned()).collect();
    if !task.deliverables.is_empty() {
        text.push(task.deliverables.iter().map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n"));
    }
    if !workspace.stacked_on.is_empty() {
        let below: Vec<String> = workspace.stacked_on.iter().map(ToString::to_string).collect();
        text.push(format!("Stands on {}: merge that first.", below.join(" and ")));
    }
    text.push(format!("Task: {}", task.id));
    text.join("\n\n")
}
