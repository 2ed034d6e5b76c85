//! Tests with reports of real tools, and with invalid reports.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use windlass_engine::validation::{CoverageFormat, CoveragePercent, CoverageRule};

use super::*;

fn check_report(format: CoverageFormat, least: f64, report: &Path) -> (bool, String) {
    let min_coverage = CoveragePercent::new(least).unwrap();
    let report_path = report.file_name().unwrap().to_str().unwrap().to_owned();
    let finding = check_coverage(&CoverageRule { min_coverage, format, report_path }, report.parent().unwrap());
    (finding.passed, finding.message)
}

#[track_caller]
fn check_covered(covered: Result<CoveragePercent, ReportError>, percent: f64) {
    let covered = covered.unwrap().get();
    assert!((covered - percent).abs() < 1e-9, "{covered}");
}

#[track_caller]
fn check_fault(covered: Result<CoveragePercent, ReportError>, why: &str) {
    match covered {
        Err(ReportError::Format(found)) => assert!(found.contains(why), "{found}"),
        other => panic!("{other:?}"),
    }
}

const LCOV: &str = "TN:\nSF:src/a.js\nFN:1,main\nFNDA:1,main\nDA:1,1\nDA:2,0\nLF:10\nLH:9\nend_of_record\n\
                    SF:src/b.js\nDA:1,4\nDA:2,0\nLH:1\nLF:10\nend_of_record\n";

#[test]
fn lcov_sums_its_files() {
    check_covered(lcov::parse_lcov(LCOV), 50.0);
    check_covered(lcov::parse_lcov("SF:a\r\nLF:4\r\nLH:3\r\nend_of_record\r\n"), 75.0);
    check_covered(lcov::parse_lcov("SF:a\nDA:1,0\nDA:2,7,abc\nDA:3,1e3\nDA:4,-1\nend_of_record\n"), 50.0);
    assert_eq!(lcov::parse_lcov("SF:a\nLF:0\nLH:0\nend_of_record\n"), Err(ReportError::NoLines));
    assert_eq!(lcov::parse_lcov("SF:a\nend_of_record\n"), Err(ReportError::NoLines));
    check_fault(lcov::parse_lcov("hello\n"), "it has no `SF:` lines");
    check_fault(lcov::parse_lcov("SF:a\nLF:ten\n"), "its line 2 is not understood");
    check_fault(lcov::parse_lcov("SF:a\nLF:NaN\nLH:NaN\n"), "its line 2 is not understood");
    check_fault(lcov::parse_lcov("SF:a\nLF:1\nLH:1\n"), "it ends in the middle of a file");
    check_fault(lcov::parse_lcov("SF:a\nSF:b\n"), "its line 2 is not understood");
    check_fault(lcov::parse_lcov("SF:a\nDA:1\n"), "its line 2 is not understood");
    check_fault(lcov::parse_lcov("SF:a\nLF:1\nLH:2\nend_of_record"), "it says that 2 of 1 lines of a file are covered");
}

#[test]
fn json_is_read_as_the_tools_write_it() {
    check_covered(
        json::parse_json_report(r#"{"total":{"lines":{"total":8,"covered":7,"skipped":0,"pct":87.5}}}"#),
        87.5,
    );
    let python = r#"{"meta":{},"files":{},"totals":{"covered_lines":2,"num_statements":3,"percent_covered":66.5}}"#;
    check_covered(json::parse_json_report(python), 66.5);
    let llvm =
        r#"{"data":[{"totals":{"lines":{"count":4,"covered":1,"percent":25}}}],"type":"llvm.coverage.json.export"}"#;
    check_covered(json::parse_json_report(llvm), 25.0);
    let last = r#"{"/a.js":{"path":"/a.js","statementMap":{"0":{"start":{"line":1,"column":0}},"1":{"start":{"line":1}},
        "2":{"start":{"line":2}}},"s":{"0":0,"1":3,"2":0},"fnMap":{},"f":{}}}"#;
    check_covered(json::parse_json_report(last), 50.0);
}

#[test]
fn json_report_without_lines_does_not_pass() {
    for empty in [
        r#"{"total":{"lines":{"total":0,"covered":0,"pct":100}}}"#,
        r#"{"total":{"lines":{"total":0,"covered":0,"pct":"Unknown"}}}"#,
        r#"{"total":{"lines":{"pct":"Unknown"}}}"#,
        r#"{"totals":{"num_statements":0,"percent_covered":100.0}}"#,
        r#"{"data":[{"totals":{"lines":{"count":0,"covered":0}}}]}"#,
        r#"{"data":[]}"#,
        r#"{"/a.js":{"statementMap":{},"s":{}}}"#,
    ] {
        assert_eq!(json::parse_json_report(empty), Err(ReportError::NoLines), "{empty}");
    }
    check_fault(json::parse_json_report("not json"), "it is not JSON: expected");
    check_fault(json::parse_json_report(r#"{"total":{"lines":{"pct":NaN}}}"#), "it is not JSON: expected value");
    check_fault(
        json::parse_json_report(r#"{"total":{"lines":{"pct":"NaN"}}}"#),
        "its `total.lines.pct` is not a number",
    );
    check_fault(json::parse_json_report(r#"{"total":{"lines":{"pct":120}}}"#), "120 is not a percentage");
    check_fault(json::parse_json_report(r#"{"totals":{"percent_covered":"80"}}"#), "is not a number");
    for other in ["[]", "3", "{}", r#"{"a":1}"#, r#"{"total":3}"#, r#"{"a":{"statementMap":{"0":{}},"s":{}}}"#] {
        check_fault(json::parse_json_report(other), "it has neither `total.lines.pct`");
    }
}

#[test]
fn cobertura_is_read_from_its_root() {
    let lines = "<packages><line number=\"1\" hits=\"1\"/></packages></coverage>";
    let report = |root: &str| format!("{root}{lines}");
    check_covered(cobertura::parse_cobertura(&report("<coverage line-rate=\"0.75\" branch-rate=\"0\">")), 75.0);
    let full = "\u{feff}<?xml version=\"1.0\"?>\n<!DOCTYPE coverage SYSTEM 'http://cobertura.sourceforge.net/xml/coverage-04.dtd'>\n\
                <!-- <coverage line-rate=\"1\"> -->\n<coverage  branch-rate = \"1\"\n  line-rate = '0.5' \
                lines-valid=\"10\" version=\"a>b\">";
    check_covered(cobertura::parse_cobertura(&report(full)), 50.0);
    assert_eq!(cobertura::parse_cobertura("<coverage line-rate=\"1\" lines-valid=\"0\"/>"), Err(ReportError::NoLines));
    assert_eq!(cobertura::parse_cobertura("<coverage line-rate=\"1\"></coverage>"), Err(ReportError::NoLines));
    check_fault(cobertura::parse_cobertura(&report("<coverage line-rate=\"NaN\">")), "is not a number from 0 to 1");
    check_fault(cobertura::parse_cobertura(&report("<coverage line-rate=\"75\">")), "is not a number from 0 to 1");
    check_fault(cobertura::parse_cobertura(&report("<coverage line-rate=\"most\">")), "is not a number");
    check_fault(cobertura::parse_cobertura(&report("<coverage generated=\"1\">")), "has no `line-rate`");
    check_fault(
        cobertura::parse_cobertura("<coverage line-rate=\"1\" lines-valid=\"3\"><packa"),
        "it ends in the middle",
    );
    for other in
        ["", "{}", "<", "<!--", "<?xml", "<!DOCTYPE [", "<report name=\"jacoco\">", "<!-- <coverage line-rate=\"1\"/>"]
    {
        check_fault(cobertura::parse_cobertura(other), "its first element is not `coverage`");
    }
    check_fault(cobertura::parse_cobertura("<coverage line-rate=\"1"), "its element `coverage` cannot be read");
}

#[test]
fn cobertura_rate_is_read_only_from_the_root() {
    let good = "<coverage line-rate=\"0.99\" lines-valid=\"9\">";
    let poor = "<coverage line-rate=\"0.1\" lines-valid=\"9\"></coverage>";
    for other in [
        format!("<report><![CDATA[{good}]]>{poor}</report>"),
        format!("<!DOCTYPE coverage [<!ENTITY a '{good}'>]>{poor}"),
        format!("<!DOCTYPE coverage PUBLIC \"it's\" '>{good}'>{poor}").replace("line-rate=\"0.1\"", ""),
        format!("<report>{good}</coverage></report>"),
        format!("<!-->{good}</coverage>"),
        poor.replace("<coverage", "<coverages"),
    ] {
        assert!(matches!(cobertura::parse_cobertura(&other), Err(ReportError::Format(_))), "{other}");
    }
    check_covered(cobertura::parse_cobertura(&format!("<!DOCTYPE coverage SYSTEM '>{good}'>{poor}")), 10.0);
    check_covered(cobertura::parse_cobertura(&poor.replace("lines", "note=' line-rate=\"0.99\"' lines")), 10.0);
    check_covered(cobertura::parse_cobertura(&poor.replace("><", " note='>'><")), 10.0);
    check_fault(cobertura::parse_cobertura(&poor.replace("lines", "line-rate='0.99' lines")), "cannot be read");
}

#[test]
fn unusable_reports_have_distinct_messages() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let lcov = |path: &Path| check_report(CoverageFormat::Lcov, 50.0, path);
    let failed = |looked: (bool, String), message: &str| assert_eq!(looked, (false, message.to_owned()));
    failed(
        lcov(&place.path().join("lcov.info")),
        "the report `lcov.info` is not there: run the tests with coverage first, or correct `reportPath`, which is relative to \
         the project's directory",
    );
    failed(lcov(&file("empty", " \n")), "the report `empty` is empty: run the tests with coverage again, to their end");
    fs::create_dir(place.path().join("coverage")).unwrap();
    failed(
        lcov(&place.path().join("coverage")),
        "the report `coverage` is a directory: name the file in it as `reportPath`",
    );
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path().join("pipe"), 0o600.into()).unwrap();
    failed(lcov(&place.path().join("pipe")), "the report `pipe` is a fifo, not a file: correct `reportPath`");
    failed(
        lcov(&file("x.json", "{}")),
        "the report `x.json` is not in the format lcov: it has no `SF:` lines; \
         correct `format` or `reportPath`, or generate the report again",
    );
    failed(
        check_report(CoverageFormat::Json, 1.0, &file("y", "SF:a\n")),
        "the report `y` is not in the format json: it is not JSON: expected value at line 1 column 1; \
         correct `format` or `reportPath`, or generate the report again",
    );
    failed(
        check_report(CoverageFormat::Cobertura, 1.0, &file("clover.xml", "<coverage generated='1'></coverage>")),
        "the report `clover.xml` is not in the format cobertura: its `coverage` has no `line-rate`; Clover's reports have none either; \
         correct `format` or `reportPath`, or generate the report again",
    );
    failed(
        lcov(&file("nothing", "SF:a\nLF:0\nLH:0\nend_of_record\n")),
        "the report `nothing` covers no lines: check that the tests run, and that the sources are included",
    );
    failed(
        lcov(&file("large", &"x".repeat((MAX_REPORT_BYTES + 1) as usize))),
        "the report `large` is larger than 16 MiB: make one with totals only, or of fewer files",
    );
}

#[test]
fn coverage_passes_exactly_at_its_minimum() {
    let place = tempfile::tempdir().unwrap();
    let report = place.path().join("lcov.info");
    fs::write(&report, LCOV).unwrap();
    let check = |least: f64, passed: bool, message: &str| {
        assert_eq!(check_report(CoverageFormat::Lcov, least, &report), (passed, message.to_owned()));
    };
    check(50.0, true, "50% of the lines are covered; 50% are wanted");
    check(0.0, true, "50% of the lines are covered; 0% are wanted");
    check(
        50.01,
        false,
        "50% of the lines are covered, and 50.01% are wanted (`lcov.info`): write tests for the lines that are not \
         covered, and generate the report again",
    );
}

proptest! {
    #[test]
    fn coverage_parsers_accept_arbitrary_input_without_panic(text in any::<String>(), cut in 0usize..400) {
        for covered in [lcov::parse_lcov, json::parse_json_report, cobertura::parse_cobertura] {
            let _ = covered(&text);
            let _ = covered(&format!("SF:{text}\nLF:{text}"));
            let _ = covered(&format!("<coverage {text}>"));
            let _ = covered(&LCOV[..LCOV.floor_char_boundary(cut)]);
        }
    }
}
