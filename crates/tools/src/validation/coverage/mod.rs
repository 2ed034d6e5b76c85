//! Coverage rules: how much of the code the tests reach, according to a report.
//!
//! Invariants:
//! - A report that is missing, empty, damaged, of another format, or without lines has not passed. Each case has its own message.
//! - A report is read within bounds, and only if it is a regular file.

mod cobertura;
mod json;
mod lcov;
#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind};
use std::path::Path;

use windlass_engine::validation::{CoverageFormat, CoveragePercent, CoverageRule};
use windlass_process::file::{self, UnreadableFile};

use super::{RuleFinding, quote_excerpt};

/// Maximum size of a report.
const MAX_REPORT_BYTES: u64 = 16 * 1024 * 1024;

/// Reason why a report has no usable percentage.
#[derive(Debug, PartialEq, Eq)]
enum ReportError {
    /// The report has another format than the rule names.
    Format(String),
    /// The format is right, but the report has no lines.
    NoLines,
}

pub fn check_coverage(rule: &CoverageRule, directory: &Path) -> RuleFinding {
    let path = quote_excerpt(&rule.report_path);
    let text = match read_report(&directory.join(&rule.report_path)) {
        Ok(text) if text.trim().is_empty() => {
            return RuleFinding::failed(format!(
                "the report {path} is empty: run the tests with coverage again, to their end"
            ));
        }
        Ok(text) => text,
        Err(why) => return RuleFinding::failed(format!("the report {path} {why}")),
    };
    let covered = match rule.format {
        CoverageFormat::Lcov => lcov::parse_lcov(&text),
        CoverageFormat::Json => json::parse_json_report(&text),
        CoverageFormat::Cobertura => cobertura::parse_cobertura(&text),
    };
    match covered {
        Ok(covered) if covered >= rule.min_coverage => {
            RuleFinding::passed(format!("{covered} of the lines are covered; {} are wanted", rule.min_coverage))
        }
        Ok(covered) => RuleFinding::failed(format!(
            "{covered} of the lines are covered, and {} are wanted ({path}): write tests for the lines that are not covered, \
             and generate the report again",
            rule.min_coverage
        )),
        Err(ReportError::Format(why)) => {
            let name = format_name(rule.format);
            RuleFinding::failed(format!(
                "the report {path} is not in the format {name}: {why}; correct `format` or `reportPath`, or generate \
                 the report again"
            ))
        }
        Err(ReportError::NoLines) => RuleFinding::failed(format!(
            "the report {path} covers no lines: check that the tests run, and that the sources are included"
        )),
    }
}

fn format_name(format: CoverageFormat) -> &'static str {
    match format {
        CoverageFormat::Lcov => "lcov",
        CoverageFormat::Json => "json",
        CoverageFormat::Cobertura => "cobertura",
    }
}

/// Reads a report. Returns an explanation if it cannot be read.
fn read_report(path: &Path) -> Result<String, String> {
    let explain = |error: io::Error| {
        match (UnreadableFile::from_io_error(&error), error.kind()) {
        (Some(UnreadableFile::NotRegular("a directory")), _) => {
            "is a directory: name the file in it as `reportPath`".to_owned()
        }
        (Some(UnreadableFile::TooLarge(_)), _) => {
            format!("is larger than {} MiB: make one with totals only, or of fewer files", MAX_REPORT_BYTES >> 20)
        }
        (Some(other), _) => format!("{}: correct `reportPath`", other.describe_cause()),
        (None, ErrorKind::NotFound) => {
            "is not there: run the tests with coverage first, or correct `reportPath`, which is relative to the project's \
             directory"
                .to_owned()
        }
        (None, _) => format!("cannot be read: {error}"),
    }
    };
    let bytes = file::read_bounded(path, MAX_REPORT_BYTES).map_err(explain)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns a ratio as a percentage.
fn percent_of(covered: u64, lines: u64) -> Result<CoveragePercent, ReportError> {
    if lines == 0 {
        return Err(ReportError::NoLines);
    }
    let percent = covered as f64 / lines as f64 * 100.0;
    CoveragePercent::new(percent)
        .ok_or_else(|| ReportError::Format(format!("{covered} of {lines} lines cannot be covered")))
}

/// Checks a percentage from a report.
fn checked_percent(percent: f64) -> Result<CoveragePercent, ReportError> {
    CoveragePercent::new(percent).ok_or_else(|| ReportError::Format(format!("{percent} is not a percentage")))
}
