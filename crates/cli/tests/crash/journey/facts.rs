//! What came of a journey, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::checks::{Fault, Kind, misdelivered};
use super::super::log::{self, Entry};
use super::super::recorder;
use super::super::stage::{Seen, Stage};

/// What is the same wherever a journey was disturbed; and the log and the recorder, which are not.
#[derive(Clone)]
pub struct Facts {
    pub told: String,
    pub log: String,
    pub recorder: String,
}

impl Facts {
    pub fn of(stage: &Stage) -> Self {
        let git = |words: &str| {
            let ran = stage.world.finish(stage.world.program("git").args(words.split(' ')));
            if ran.code == 0 { ran.stdout } else { ran.to_string() }
        };
        let log = stage.log();
        let mut told: Vec<String> = tasks(stage);
        git("fetch -q --prune origin");
        let mut merges: Vec<String> =
            git("log --first-parent --merges --format=%s origin/main").lines().map(str::to_owned).collect();
        merges.sort_unstable();
        told.extend(merges);
        told.push(git("ls-tree --name-only origin/main").split_whitespace().collect::<Vec<_>>().join(" "));
        told.push(git("for-each-ref --format=%(refname)").split_whitespace().collect::<Vec<_>>().join(" "));
        told.push(format!("{} worktree", git("worktree list --porcelain").matches("worktree ").count()));
        told.extend(git("status --porcelain").lines().map(str::to_owned));
        told.extend(workflow(&log::read(&log)));
        Self { told: told.join("\n"), log, recorder: stage.recorded() }
    }

    /// What is wrong. After a kill it comes to the same; where calls have failed, the workflow may have, too.
    pub fn faults(&self, seen: &Seen, undisturbed: &Self, is_deadly: bool) -> Vec<Fault> {
        let log = log::read(&self.log);
        let mut faults = seen.faults.clone();
        faults.extend(lost(seen, &self.log));
        faults.extend(unmarked(&log, &self.recorder));
        faults.extend(untold(&log, &self.recorder, is_deadly));
        faults.extend(
            recorder::find_starts_after_takeover(&self.recorder).into_iter().map(|line| Fault::new(Kind::Undead, line)),
        );
        if self.told != undisturbed.told && (is_deadly || !self.has_no_workflow(&log, undisturbed)) {
            let what = format!("it came to\n{}\nundisturbed\n{}", self.told, undisturbed.told);
            faults.push(Fault::new(Kind::Different, what));
        }
        faults
    }
}

impl Facts {
    /// Whether only the workflow is missing, and the log says that its hook has failed: a file that cannot be opened is told of.
    fn has_no_workflow(&self, log: &[Entry], undisturbed: &Self) -> bool {
        let failed = log.iter().any(|entry| {
            entry.kind() == "hook_finished" && entry.text("hook") == "follow" && entry.text("outcome") == "failure"
        });
        let is_of_it =
            |line: &str| line.contains("Third") || line.starts_with(['"', 'w']) && !line.contains("completed");
        let without = |told: &str| {
            let told = told.replace(" part-T3", "");
            told.lines().filter(|line| !is_of_it(line) && *line != "workflow_completed").map(str::to_owned).collect()
        };
        let (ours, theirs): (Vec<String>, Vec<String>) = (without(&self.told), without(&undisturbed.told));
        failed && ours == theirs
    }
}

/// The tasks as people see them. Their numbers are those of the order in which they were made.
fn tasks(stage: &Stage) -> Vec<String> {
    let listed = stage.world.run(&["--json", "task", "list", "--all"]).stdout;
    let parsed = listed.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    parsed.map(|task| format!("{} {} {} {}", task["id"], task["state"], task["goal"], task["labels"])).collect()
}

/// The way that the workflow has gone. The step that may not run twice has failed where it was interrupted.
fn workflow(log: &[Entry]) -> Vec<String> {
    let about = log.iter().filter(|entry| entry.kind().starts_with("workflow_"));
    let told = about.filter_map(|entry| match entry.kind() {
        "workflow_step_started" => None,
        "workflow_step_finished" => Some(entry.field("result")["stepId"].to_string()),
        kind => Some(kind.to_owned()),
    });
    told.collect()
}

/// What was printed is durable. A line that was cut off was not said.
fn lost(seen: &Seen, log: &str) -> Vec<Fault> {
    let log: BTreeSet<&str> = log.lines().collect();
    let said = seen.acknowledged.iter().flat_map(|text| text.split_inclusive('\n'));
    let whole = said.filter_map(|line| line.strip_suffix('\n')).filter(|line| line.contains("\"seq\":"));
    whole.filter(|line| !log.contains(line)).map(|line| Fault::new(Kind::Lost, line)).collect()
}

/// Nothing runs that the log does not say was begun, and what may not run twice has not.
fn unmarked(log: &[Entry], recorder: &str) -> Vec<Fault> {
    let mut begun: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in log {
        match (entry.kind(), entry.text("step")) {
            ("turn_started", _) => *begun.entry("agent").or_default() += 1,
            ("hook_started", _) => *begun.entry(entry.text("hook")).or_default() += 1,
            ("workflow_step_started", "both") => {
                *begun.entry("left").or_default() += 1;
                *begun.entry("right").or_default() += 1;
            }
            ("workflow_step_started", step) => *begun.entry(step).or_default() += 1,
            _ => {}
        }
    }
    let (effects, odd) = recorder::read(recorder);
    let mut faults: Vec<Fault> = odd.into_iter().map(|what| Fault::new(Kind::Odd, what)).collect();
    let mut ran: BTreeMap<&str, usize> = BTreeMap::new();
    effects.iter().for_each(|effect| *ran.entry(&effect.who).or_default() += 1);
    for (who, times) in ran {
        let told = begun.get(who).copied().unwrap_or_default();
        if times > told {
            faults.push(Fault::new(Kind::Unmarked, format!("{who} ran {times} times, the log knows of {told}")));
        }
        if who == "stamp" && times > 1 {
            faults.push(Fault::new(Kind::Twice, format!("{who} ran {times} times")));
        }
    }
    faults
}

/// The agent hears what the log says, and each piece is in exactly one finished turn; where calls have failed, at most in one.
fn untold(log: &[Entry], recorder: &str, is_deadly: bool) -> Vec<Fault> {
    let (begun, pieces) = (log::begun(log), log::pieces(log));
    let mut owed: Vec<Vec<String>> =
        begun.iter().filter(|begun| begun.who == "agent").map(|turn| turn.prompt(&pieces)).collect();
    let mut faults = Vec::new();
    for heard in recorder::read(recorder).0.into_iter().filter_map(|effect| effect.prompt) {
        match owed.iter().position(|prompt| *prompt == heard) {
            Some(place) => drop(owed.swap_remove(place)),
            None => faults.push(Fault::new(Kind::Feedback, format!("an agent heard {heard:?}, as no turn of the log"))),
        }
    }
    let is_right = |counts| counts == (1, 1) || !is_deadly && counts == (0, 0);
    let wrong = log::delivered(log, &begun).into_iter().filter(|(_, counts)| !is_right(*counts));
    faults.extend(wrong.map(|(seq, counts)| misdelivered(seq, counts)));
    faults
}
