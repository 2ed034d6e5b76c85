//! A store that this machine did not write, as `windlass trust` shows it.

use super::*;

/// A store that this machine did not make, as a person sees it.
pub struct ForeignStore {
    pub seen: Option<StoreMarks>,
    pub identity: Option<String>,
    pub holdings: Vec<StoreHolding>,
    /// The files of the store that git tracks.
    pub tracked: Vec<String>,
}

impl ForeignStore {
    /// Inspects the store. Returns `None` if there is no store, or if this machine made it.
    pub fn inspect_store(project: &Project) -> Result<Option<Self>, Failure> {
        if !store_records::is_store_foreign(project)? {
            return Ok(None);
        }
        // The marks come before the reading, so that a store that replaces this one is not adopted unseen.
        let seen = StoreMarks::read_marks(project);
        let survey = SqliteStore::survey_foreign(&project.store_file()).map_err(hints::store_failure)?;
        let holdings = holdings::list_holdings(&survey).map_err(hints::store_failure)?;
        let identity = survey.store.read_identity().map_err(hints::store_failure)?;
        Ok(Some(Self { seen, identity, holdings, tracked: windlass_app::changes::list_tracked_store_files(project) }))
    }

    pub fn print_holdings(&self, out: &mut Output) -> CommandResult {
        out.print_line(out.paint(TextTone::Warning, "Its store was not made on this machine, or was replaced."))?;
        if !self.tracked.is_empty() {
            let files = self.tracked.join(", ");
            out.print_line(format_args!("It came with the repository: git tracks {}.", text::clean_line(&files)))?;
        }
        match self.holdings.is_empty() {
            true => out.print_line("The store holds nothing that can act."),
            false => out.print_line("The store holds:"),
        }?;
        self.holdings.iter().try_for_each(|holding| holding.print_holding(out))
    }

    pub fn adopt_store(self, project: &Project) -> Result<(), Failure> {
        let Some(seen) = &self.seen else {
            return Err(hints::store_failure(StoreError::Missing(project.store_file())));
        };
        store_records::adopt_store(project, seen, self.identity)
    }
}
