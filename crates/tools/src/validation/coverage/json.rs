//! Coverage reports in JSON, in the formats of several tools:
//!
//! | tools | fields |
//! | --- | --- |
//! | istanbul, nyc, c8, jest, vitest: `coverage-summary.json` | `total.lines` |
//! | the same: `coverage-final.json` | for each file `statementMap` and `s` |
//! | coverage.py: `coverage json` | `totals` |
//! | llvm-cov, cargo-llvm-cov: `--json` | `data[].totals.lines` |

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use windlass_engine::validation::CoveragePercent;

use super::{ReportError, checked_percent, percent_of};

pub fn parse_json_report(text: &str) -> Result<CoveragePercent, ReportError> {
    let text = text.trim_start_matches('\u{feff}');
    let report: Value =
        serde_json::from_str(text).map_err(|error| ReportError::Format(format!("it is not JSON: {error}")))?;
    let unknown = || ReportError::Format("it has neither `total.lines.pct` nor `totals.percent_covered`".to_owned());
    let report = report.as_object().ok_or_else(unknown)?;
    if let Some(lines) = report.get("total").and_then(|total| total.get("lines")) {
        return parse_istanbul_summary(lines);
    }
    if let Some(totals) = report.get("totals").filter(|totals| totals.get("percent_covered").is_some()) {
        return parse_coverage_py(totals);
    }
    if let Some(Value::Array(data)) = report.get("data") {
        return parse_llvm_export(data);
    }
    parse_istanbul_files(report).ok_or_else(unknown)?
}

/// `{"total": 10, "covered": 8, "skipped": 0, "pct": 80}`. Without lines, the percentage is 100, or a word.
fn parse_istanbul_summary(lines: &Value) -> Result<CoveragePercent, ReportError> {
    let percent = &lines["pct"];
    match (lines["total"].as_u64(), percent) {
        (Some(0), _) => Err(ReportError::NoLines),
        (_, Value::Number(number)) => checked_percent(number.as_f64().unwrap_or(f64::NAN)),
        (_, Value::String(word)) if word == "Unknown" => Err(ReportError::NoLines),
        _ => Err(ReportError::Format("its `total.lines.pct` is not a number".to_owned())),
    }
}

/// `{"covered_lines": 8, "num_statements": 10, "percent_covered": 80.0}`
fn parse_coverage_py(totals: &Value) -> Result<CoveragePercent, ReportError> {
    if totals["num_statements"].as_u64() == Some(0) {
        return Err(ReportError::NoLines);
    }
    let percent = totals["percent_covered"].as_f64();
    percent.map_or_else(
        || Err(ReportError::Format("its `totals.percent_covered` is not a number".to_owned())),
        checked_percent,
    )
}

fn parse_llvm_export(data: &[Value]) -> Result<CoveragePercent, ReportError> {
    let (mut covered, mut lines) = (0, 0u64);
    for export in data {
        let (Some(hit), Some(count)) =
            (export["totals"]["lines"]["covered"].as_u64(), export["totals"]["lines"]["count"].as_u64())
        else {
            return Err(ReportError::Format("it has no `data[].totals.lines`".to_owned()));
        };
        covered = hit.saturating_add(covered);
        lines = lines.saturating_add(count);
    }
    percent_of(covered, lines)
}

/// Counts lines as istanbul does: those with the start of a statement, with the hits of their most frequent statement.
fn parse_istanbul_files(report: &Map<String, Value>) -> Option<Result<CoveragePercent, ReportError>> {
    let (mut covered, mut lines) = (0, 0);
    for file in report.values() {
        let (statements, hits) = (file.get("statementMap")?.as_object()?, file.get("s")?.as_object()?);
        let mut of_file: BTreeMap<u64, bool> = BTreeMap::new();
        for (id, statement) in statements {
            let line = statement["start"]["line"].as_u64()?;
            let hit = hits.get(id).and_then(Value::as_u64).is_some_and(|hits| hits > 0);
            *of_file.entry(line).or_default() |= hit;
        }
        lines += of_file.len() as u64;
        covered += of_file.values().filter(|hit| **hit).count() as u64;
    }
    (!report.is_empty()).then(|| percent_of(covered, lines))
}
