//! `lcov.info`: for each file `LF:` lines found and `LH:` lines hit, or a `DA:line,hits` for every line.

use windlass_engine::validation::CoveragePercent;

use super::{ReportError, percent_of};

/// Counts of one file in a report.
#[derive(Default)]
struct FileSection {
    found: Option<u64>,
    hit: Option<u64>,
    /// Number of lines, and of hit lines, in `DA` entries.
    lines: u64,
    hits: u64,
    begun: bool,
}

pub fn parse_lcov(text: &str) -> Result<CoveragePercent, ReportError> {
    let (mut sum, mut section) = (LineTotals::default(), FileSection::default());
    for (number, line) in text.lines().enumerate() {
        let wrong = || ReportError::Format(format!("its line {} is not understood", number + 1));
        let count = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
        match line.trim().split_once(':') {
            Some(("SF", _)) if section.begun => return Err(wrong()),
            Some(("SF", _)) => section.begun = true,
            Some(("LF", found)) if section.begun => section.found = Some(count(found)?),
            Some(("LH", hit)) if section.begun => section.hit = Some(count(hit)?),
            Some(("DA", line)) if section.begun => {
                let hits = line.split(',').nth(1).ok_or_else(wrong)?;
                section.lines += 1;
                // Some tools write negative counts by mistake, and some with an exponent.
                section.hits += u64::from(hits.trim().parse::<f64>().map_err(|_| wrong())? > 0.0);
            }
            None if line.trim() == "end_of_record" => sum.add_section(&std::mem::take(&mut section))?,
            _ => {}
        }
    }
    match sum.sections {
        _ if section.begun => Err(ReportError::Format("it ends in the middle of a file".to_owned())),
        0 => Err(ReportError::Format("it has no `SF:` lines".to_owned())),
        _ => percent_of(sum.hit, sum.found),
    }
}

#[derive(Default)]
struct LineTotals {
    sections: usize,
    found: u64,
    hit: u64,
}

impl LineTotals {
    /// Adds the totals of a file, or the counts of its lines.
    fn add_section(&mut self, section: &FileSection) -> Result<(), ReportError> {
        if !section.begun {
            return Ok(());
        }
        let (found, hit) = match (section.found, section.hit) {
            (Some(found), Some(hit)) => (found, hit),
            _ => (section.lines, section.hits),
        };
        if hit > found {
            return Err(ReportError::Format(format!("it says that {hit} of {found} lines of a file are covered")));
        }
        self.sections += 1;
        self.found = self.found.saturating_add(found);
        self.hit = self.hit.saturating_add(hit);
        Ok(())
    }
}
