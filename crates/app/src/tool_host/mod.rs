//! The tool host of a real project: for one command, or for a server that takes calls for days.
//!
//! ```text
//! call ─► inside whose run? ─► configuration: cached while its file is unchanged ─► commit ─► its pending hooks, if any
//! ```
//!
//! Invariants:
//! - A call checks the configuration's file, and neither reads nor parses an unchanged one again.
//! - Nothing of a configuration counts that no person trusts.
//! - A person's change of the configuration, or of their trust, applies from the next call on.
//! - Nothing is written to standard output, which a server uses for its protocol. The output of hooks is captured, and failures
//!   of hooks become notices of the front end.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use windlass_config::{Config, ConfigSource, plan};
use windlass_engine::validation::ValidationRule;
use windlass_engine::{
    Authority, Command, ConfigDigest, Digest, Origin, Record, Rules, RunId, Timestamp, Trusted, TypeName, Types,
};
use windlass_hooks::Mask;
use windlass_process::Roster;
use windlass_store::{Sqlite, Store};
use windlass_tools::validation::Workshop;
use windlass_tools::{self as tools, CallerHint, Control, ToolError, ToolHost};

use crate::caller::{Inside, is_for_persons};
use crate::context::Opened;
use crate::execution::{self, HookExecution, owner_name};
use crate::person::ConcernedSessions;
use crate::runner_settings::{launcher, mask, permission, standing};
use crate::{Code, Failure, Notice, environment, hints, trust};

/// Longer than a clock tick of any file system.
const RECENT: Duration = Duration::from_secs(2);

/// A project that serves tool calls.
pub struct ProjectToolHost {
    opened: Opened,
    config_file: PathBuf,
    user: String,
    kept: Option<Kept>,
    /// Set from the first call on that could enqueue a hook.
    roster: Option<Roster>,
    /// A file that was changed within this time may change again without a new time stamp.
    recent: Duration,
}

/// A parsed configuration.
struct Kept {
    source: Source,
    text: Digest,
    config: Arc<Config>,
    /// Whether the configuration counts.
    counts: bool,
    rules: Rules,
    mask: Mask,
}

/// The source of a cached configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The configuration that a run was started with.
    Run(ConfigDigest),
    /// The file, identified by its metadata.
    File(Stamp),
    /// The file, which was changed too recently to be identified by its metadata.
    Changing,
}

/// Metadata that identifies one content of a file, as far as the file system can tell; all zero if there is no file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    length: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl ProjectToolHost {
    pub fn new(opened: Opened) -> Self {
        let (user, config_file) = (environment::user(), opened.project.config_file());
        Self { opened, config_file, user, kept: None, roster: None, recent: RECENT }
    }

    /// Returns the owner lock of this process, acquired on first use.
    fn roster(&mut self) -> Result<&Roster, Failure> {
        match &mut self.roster {
            Some(roster) => Ok(roster),
            none => Ok(none.insert(execution::enlist(&self.opened.project)?)),
        }
    }

    /// Detects the caller of a call, and refreshes the cached configuration.
    fn look(&mut self) -> Result<Inside, Failure> {
        let inside = Inside::look(&self.opened)?;
        self.keep(&inside)?;
        Ok(inside)
    }

    /// Detects the caller of a command, which may be one that agents are refused, and refreshes the cached configuration.
    fn look_for(&mut self, command: &Command) -> Result<Inside, Failure> {
        if !is_for_persons(command) {
            return self.look();
        }
        let inside = Inside::look_for_person(&self.opened, ConcernedSessions::of(command))?;
        self.keep(&inside)?;
        Ok(inside)
    }

    /// Caches the configuration that applies to a call.
    fn keep(&mut self, inside: &Inside) -> Result<(), Failure> {
        let source = match inside.config {
            Some(digest) => Source::Run(digest),
            None => self.look_at_file(),
        };
        let known = self.kept.as_ref().is_some_and(|kept| kept.source == source && source != Source::Changing);
        let kept = match self.kept.take() {
            Some(kept) if known => kept,
            kept => self.understand(inside.written(&self.opened)?, source, kept)?,
        };
        let told = self.opened.trust || inside.config.is_some();
        let counts = trust::counts(&self.opened.project, &kept.config, told)?;
        let kept = match kept.counts == counts {
            true => kept,
            false => Kept { rules: self.rules(&kept.config, counts)?, counts, ..kept },
        };
        if !counts && kept.config.decides_about_tasks() {
            trust::note_defaults(&*self.opened.front_end);
        }
        self.kept = Some(kept);
        Ok(())
    }

    /// Parses a configuration, unless the cached one has the same text.
    fn understand(&mut self, written: ConfigSource, source: Source, before: Option<Kept>) -> Result<Kept, Failure> {
        let text = written.text().digest();
        if let Some(kept) = before.filter(|kept| kept.text == text) {
            return Ok(Kept { source, ..kept });
        }
        let config = Arc::new(Config::parse(written)?);
        let (rules, mask) = (self.rules(&config, false)?, mask(&config));
        Ok(Kept { source, text, config, counts: false, rules, mask })
    }

    /// Returns the configuration that the last call cached.
    fn kept(&self) -> &Kept {
        self.kept.as_ref().expect("it was looked up")
    }

    fn rules(&mut self, config: &Config, counts: bool) -> Result<Rules, Failure> {
        match (plan::planned_hooks(config).is_empty(), counts) {
            (true, true) => return Ok(plan::pure_rules(config)?),
            (true, false) => return Ok(plan::pure_rules(&config.without_say())?),
            (false, _) => {}
        }
        let owner = owner_name(self.roster()?);
        Ok(plan::rules(config, &owner, if counts { Trusted::Yes } else { Trusted::No })?)
    }

    fn look_at_file(&self) -> Source {
        let Ok(found) = fs::metadata(&self.config_file) else { return Source::File(Stamp::default()) };
        let stamp = Stamp {
            file: (found.dev(), found.ino()),
            length: found.len(),
            written: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        };
        let changed = Duration::from_secs(found.ctime().max(found.mtime()).unsigned_abs());
        let now = Duration::from_millis(environment::now().millis().unsigned_abs());
        if changed + self.recent <= now { Source::File(stamp) } else { Source::Changing }
    }

    fn commit(&mut self, origin: &Origin, command: &Command) -> Result<Vec<Record>, ToolError> {
        let nonce = execution::random().map_err(told)?;
        let kept = self.kept.as_ref().expect("it was looked up");
        Ok(self.opened.store.execute(&kept.rules, origin, command, nonce)?)
    }

    /// Runs the pending hooks of this process.
    fn settle(&mut self, control: &Control) -> Result<(), Failure> {
        let (Some(kept), Some(roster)) = (&self.kept, &self.roster) else { return Ok(()) };
        let rules = kept.rules.clone();
        let execution = HookExecution::new(&mut self.opened, &kept.config, control).owned_by(roster, rules);
        execution.run(|dispatch| dispatch.run_pending().map_err(hints::run))
    }
}

impl ToolHost for ProjectToolHost {
    fn store(&self) -> &Sqlite {
        &self.opened.store
    }

    fn execute(&mut self, command: &Command, control: &Control) -> Result<Vec<Record>, ToolError> {
        let inside = self.look_for(command).map_err(told)?;
        let origin = Origin {
            by: self.user.clone(),
            at: environment::now(),
            authority: Authority::Person,
            run: inside.run.clone(),
            via: inside.via,
        };
        let records = self.commit(&origin, command)?;
        if records.iter().any(|record| record.envelope.metadata.owes.is_some()) {
            // The command is committed, so it succeeds even if its hooks fail.
            match self.settle(control) {
                Err(failure) if matches!(failure.code, Code::Interrupted(_)) => return Err(told(failure)),
                Err(failure) => self.opened.front_end.show(Notice::Failure(&failure)),
                Ok(()) => {}
            }
        }
        Ok(records)
    }

    fn types(&mut self) -> Result<Types, ToolError> {
        self.look().map_err(told)?;
        Ok(self.kept().rules.types.clone())
    }

    fn configured_rules(&mut self, kind: Option<&TypeName>) -> Result<Vec<ValidationRule>, ToolError> {
        self.look().map_err(told)?;
        let Kept { config, counts, .. } = self.kept();
        let rules = config.validation_rules().for_type(kind).to_vec();
        if !counts && !rules.is_empty() {
            // Without these rules, work would pass that the file wants judged.
            let state = trust::state(&self.opened.project, config).map_err(told)?;
            return Err(told(trust::refuse(config, state)));
        }
        Ok(rules)
    }

    fn run(&self) -> Result<Option<RunId>, ToolError> {
        Ok(Inside::look(&self.opened).map_err(told)?.run)
    }

    fn workshop(&mut self) -> Result<Workshop<'_>, ToolError> {
        let inside = self.look().map_err(told)?;
        let config = self.kept().config.clone();
        // Inside a run, the run's own trust decides; its configuration alone is no reason to trust it.
        let told_so = self.opened.trust || (inside.config.is_some() && environment::is_trusted());
        let trusted = told_so || trust::serves_agents(&self.opened.project, &config).map_err(told)?;
        Ok(Workshop {
            directory: self.opened.project.root.clone(),
            environment: environment::inherited_inside(),
            mask: mask(&config),
            permission: permission(&config, standing(trusted)),
            launcher: Some(launcher().map_err(told)?),
            roster: self.roster().map_err(told)?,
        })
    }

    fn mask(&mut self) -> Result<&Mask, ToolError> {
        self.look().map_err(told)?;
        Ok(&self.kept().mask)
    }

    fn now(&self) -> Timestamp {
        environment::now()
    }

    fn directory(&self) -> &Path {
        &self.opened.project.root
    }
}

/// Converts a failure to the error of a tool.
pub fn told(failure: Failure) -> ToolError {
    let code = match failure.code {
        Code::Usage => tools::Code::Invalid,
        Code::Config => tools::Code::Config,
        Code::Trust => tools::Code::Trust,
        Code::NotFound | Code::NoProject => tools::Code::NotFound,
        Code::Refused => tools::Code::Refused,
        Code::Store => tools::Code::Store,
        Code::System => tools::Code::System,
        Code::Interrupted(_) => tools::Code::Interrupted,
    };
    let hint = match code {
        tools::Code::Trust => Some(CallerHint::command("windlass trust", "shows what would run and asks")),
        _ => failure.hint.map(CallerHint::Advice),
    };
    ToolError { code, message: failure.message, causes: failure.causes, hints: hint.into_iter().collect() }
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        let code = match error.code {
            tools::Code::UnknownTool | tools::Code::Invalid => Code::Usage,
            tools::Code::NotFound => Code::NotFound,
            tools::Code::Refused => Code::Refused,
            tools::Code::Trust => Code::Trust,
            tools::Code::Config => Code::Config,
            tools::Code::Store => Code::Store,
            tools::Code::System => Code::System,
            tools::Code::Interrupted => Code::Interrupted(hints::SIGINT),
        };
        let hint = error.word_hints(|hint| match hint {
            CallerHint::Tool { name, effect } => format!("the tool {name} {effect} (`windlass tool show {name}`)"),
            CallerHint::Command { line, effect } => format!("`{line}` {effect}"),
            CallerHint::Advice(text) => text.clone(),
        });
        // A message with several errors has one per line.
        let mut lines = error.message.lines().map(str::to_owned);
        let message = lines.next().unwrap_or_default();
        Self { causes: lines.chain(error.causes).collect(), hint, ..Self::new(code, message) }
    }
}

#[cfg(test)]
mod tests;
