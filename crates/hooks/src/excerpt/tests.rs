//! Excerpts of long output.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

#[test]
fn long_text_keeps_its_ends() {
    assert_eq!(excerpt_text("short", 5), "short");
    let lines: String = (0..100).map(|number| format!("line {number}\n")).collect();
    assert_eq!(excerpt_text(&lines, 60), "line 0\nline 1\n[752 bytes left out]\nline 97\nline 98\nline 99\n");
    let twice = lines.replace("line 50\n", "[1000 bytes left out]\n");
    assert_eq!(excerpt_text(&twice, 60), "line 0\nline 1\nline 2\n[1745 bytes left out]\nline 98\nline 99\n");
    let after = lines.clone() + "[1000 bytes left out]\n";
    assert!(excerpt_text(&after, 100).ends_with("line 99\n[1000 bytes left out]\n"), "{}", excerpt_text(&after, 100));
    assert_eq!(excerpt_text("\u{e4}\u{e4}\u{e4}", 3), "\u{e4}");
    let line = "x".repeat(500);
    assert!(excerpt_text(&line, 100).starts_with("xxx") && excerpt_text(&line, 100).ends_with("xxx"));
}

#[test]
fn relevant_line_is_kept_with_neighbours() {
    let mut lines: Vec<String> = (0..100).map(|number| format!("line {number}")).collect();
    lines[50] = "error: the pump leaks".to_owned();
    let cut = excerpt_text(&lines.join("\n"), 160);
    assert!(cut.contains("bytes left out]\nline 49\nerror: the pump leaks\nline 51\n"), "{cut}");
    assert_eq!(cut.matches("left out").count(), 2, "{cut}");
}

#[test]
fn most_relevant_line_replaces_last_without_score() {
    assert_eq!(most_relevant_line("\n \n"), None);
    assert_eq!(most_relevant_line("checking\n  the pump leaks \n\n"), Some("the pump leaks"));
    assert_eq!(
        most_relevant_line("error: no oil\n  test_pump ... FAILED\nran 9 tests\n"),
        Some("test_pump ... FAILED")
    );
    assert_eq!(most_relevant_line("error: no oil\nerror: no pump\nnever mind"), Some("error: no pump"));
    assert_eq!(most_relevant_line("test_pump ... FAILED\nerror: test failed"), Some("error: test failed"));
    assert_eq!(most_relevant_line("src/pump.rs:3\ngo and look"), Some("go and look"));
}

/// Checks that an excerpt of long output keeps these lines.
#[track_caller]
fn check(output: &str, kept: &[String]) {
    assert!(output.lines().count() >= 300, "{} lines are no long output", output.lines().count());
    let cut = excerpt_text(output, 2048);
    assert!(cut.len() <= 2048, "{}", cut.len());
    for line in kept {
        assert!(output.contains(line.as_str()), "the test itself: {line}");
        assert!(cut.contains(line.as_str()), "`{line}` is not in:\n{cut}");
    }
}

/// Lines without a score, with relevant ones at these positions.
fn among(count: usize, dull: impl Fn(usize) -> String, telling: &[(usize, String)]) -> String {
    let line = |number| telling.iter().find(|(place, _)| *place == number).map(|(_, line)| line.clone());
    (0..count).map(|number| line(number).unwrap_or_else(|| dull(number)) + "\n").collect()
}

const FAILING: [(usize, &str); 4] = [(17, "pumps"), (101, "valves"), (102, "gauges"), (288, "tanks")];

#[test]
fn cargo_test_keeps_names_and_panics() {
    let names = FAILING.map(|(place, name)| (place, format!("test yard::{name}::holds_pressure ... FAILED")));
    let mut output = String::from(
        "   Compiling yard v0.1.0\n    Finished `test` profile\n     Running src/lib.rs\n\nrunning 300 tests\n",
    );
    output += &among(300, |number| format!("test yard::part_{number}::works ... ok"), &names);
    output += "\nfailures:\n\n";
    for (place, name) in FAILING {
        output += &format!(
            "---- yard::{name}::holds_pressure stdout ----\n\n\
                 thread 'yard::{name}::holds_pressure' panicked at src/{name}.rs:{place}:9:\n\
                 assertion `left == right` failed: {name}\n  left: 3\n right: 4\n"
        );
        output += &(0..30).map(|frame| format!("  {frame:2}: yard::frame_{frame}\n")).collect::<String>();
    }
    output += "\n\nfailures:\n    yard::pumps::holds_pressure\n\n\
         test result: FAILED. 296 passed; 4 failed; 0 ignored; finished in 0.31s\n\n\
         error: test failed, to rerun pass `--lib`\n";
    let mut kept: Vec<String> = names.map(|(_, line)| line).to_vec();
    kept.extend(["panicked at src/pumps.rs:17:9:", "error: test failed", "4 failed"].map(str::to_owned));
    check(&output, &kept);
}

#[test]
fn nextest_keeps_names_and_summary() {
    let names =
        FAILING.map(|(place, name)| (place, format!("        FAIL [   0.01{place}s] yard {name}::holds_pressure")));
    let mut output = among(310, |number| format!("        PASS [   0.005s] yard part_{number}::works"), &names);
    output += "--- STDERR: yard pumps::holds_pressure ---\n\
         thread 'pumps::holds_pressure' panicked at src/pumps.rs:17:9:\nassertion failed: pressure > 3\n";
    output += &"note: a line of a backtrace without any use\n".repeat(40);
    output += "------------\n     Summary [   1.204s] 310 tests run: 306 passed, 4 failed, 0 skipped\n";
    output += &names.clone().map(|(_, line)| line + "\n").concat();
    output += "error: test run failed\n";
    let mut kept: Vec<String> = names.map(|(_, line)| line.trim().to_owned()).to_vec();
    kept.extend(
        ["panicked at src/pumps.rs:17:9:", "306 passed, 4 failed", "error: test run failed"].map(str::to_owned),
    );
    check(&output, &kept);
}

#[test]
fn pytest_keeps_names_and_assertions() {
    let mut output = String::from(
        "============ test session starts ============\nplatform linux -- Python 3.14.0\ncollected 320 items\n\n",
    );
    output += &among(
        260,
        |number| format!("tests/test_part_{number}.py ....                 [{:3}%]", number * 100 / 260),
        &[],
    );
    output += "\n================= FAILURES =================\n";
    for (place, name) in FAILING {
        output += &format!("_____________ test_{name} _____________\n\n    def test_{name}():\n");
        output += &(0..20).map(|line| format!("        step_{line}()\n")).collect::<String>();
        output += &format!(
            ">       assert pressure({place}) == 4\nE       assert 3 == 4\n\
                 E        +  where 3 = pressure({place})\n\ntests/test_{name}.py:{place}: AssertionError\n"
        );
    }
    output += "============ short test summary info ============\n";
    for (_, name) in FAILING {
        output += &format!("FAILED tests/test_{name}.py::test_{name} - assert 3 == 4\n");
    }
    output += "ERROR tests/test_hose.py - ImportError: no module named hose\n\
         ======== 4 failed, 316 passed in 2.31s ========\n";
    let mut kept: Vec<String> = FAILING.map(|(_, name)| format!("FAILED tests/test_{name}.py::test_{name}")).to_vec();
    kept.extend(["E       assert 3 == 4", "ERROR tests/test_hose.py", "4 failed, 316 passed"].map(str::to_owned));
    check(&output, &kept);
}

#[test]
fn jest_keeps_names_and_errors() {
    let mut output = String::new();
    for (place, name) in FAILING {
        output += &format!("FAIL src/{name}.test.ts\n");
        output += &(0..70).map(|number| format!("    ✓ works with part {number} ({number} ms)\n")).collect::<String>();
        output += &format!("    ✕ holds pressure of {name} (4 ms)\n\n  ● {name} › holds pressure\n\n");
        output += "    expect(received).toBe(expected)\n\n    Expected: 4\n    Received: 3\n\n";
        output += &format!("      at Object.<anonymous> (src/{name}.test.ts:{place}:20)\n");
        output += &(0..10)
            .map(|number| format!("      at frame{number} (node_modules/jest-circus/build/run.js:{number}:7)\n"))
            .collect::<String>();
    }
    output += "Error: the pump is not connected\n    at connect (src/pump.ts:7:3)\n\n\
         Test Suites: 4 failed, 3 passed, 7 total\nTests:       4 failed, 290 passed, 294 total\n\
         Time:        3.1 s\n";
    let mut kept: Vec<String> = FAILING.map(|(_, name)| format!("✕ holds pressure of {name}")).to_vec();
    kept.extend(FAILING.map(|(_, name)| format!("● {name} › holds pressure")));
    kept.extend(["Error: the pump is not connected", "4 failed, 290 passed"].map(str::to_owned));
    check(&output, &kept);
}

#[test]
fn go_test_keeps_names_and_places() {
    let mut output = String::new();
    for number in 0..200 {
        output += &format!("=== RUN   TestPart{number}\n--- PASS: TestPart{number} (0.00s)\n");
        if let Some((place, name)) = FAILING.iter().find(|(place, _)| place / 2 == number) {
            output += &format!(
                "=== RUN   Test_{name}\n    {name}_test.go:{place}: pressure = 3, want 4\n\
                     --- FAIL: Test_{name} (0.00s)\n"
            );
        }
    }
    output += "# example.com/yard/hose\nhose/hose.go:12:5: undefined: valve\n\
         FAIL\texample.com/yard/hose [build failed]\nFAIL\texample.com/yard\t0.412s\n\
         ok  \texample.com/yard/shed\t0.1s\nFAIL\n";
    let mut kept: Vec<String> = FAILING.map(|(_, name)| format!("--- FAIL: Test_{name}")).to_vec();
    kept.extend(
        ["pumps_test.go:17: pressure = 3", "hose/hose.go:12:5: undefined: valve", "[build failed]"].map(str::to_owned),
    );
    check(&output, &kept);
}

#[test]
fn tsc_and_eslint_keep_first_and_last_errors() {
    let line = |number: usize| {
        format!("src/part{number}.ts({number},5): error TS2322: Type 'string' is not assignable to type 'number'.")
    };
    let mut output: String = (0..330).map(|number| line(number) + "\n").collect();
    output += "\nFound 330 errors in 330 files.\n";
    check(&output, &[line(0), line(329), "Found 330 errors".to_owned()]);

    let problem = |number: usize| format!("  {number}:5  error  'valve{number}' is not defined  no-undef");
    let dull = |number: usize| format!("  {number}:1  warning  Missing return type on function  explicit-return-type");
    let places = [3, 150, 301].map(|place| (place, problem(place)));
    let mut output = "\n/yard/src/pump.js\n".to_owned() + &among(310, dull, &places);
    output += "\n✖ 310 problems (3 errors, 307 warnings)\n";
    let mut kept: Vec<String> = places.map(|(_, line)| line).to_vec();
    kept.push("✖ 310 problems (3 errors, 307 warnings)".to_owned());
    check(&output, &kept);
}

#[test]
fn mocha_keeps_what_its_list_names_and_no_other_list() {
    let list = |count: usize| -> String {
        let entry = |number: usize| {
            let frames = "        at processImmediate (node:internal/timers)\n".repeat(80);
            format!("  {number}) yard {number}\n       holds pressure {number}:\n\n{frames}\n")
        };
        (1..=count).map(entry).collect()
    };
    let mut output = list(5).replace("yard", "step").replace("holds", "has");
    output += "\n  9 passing (31ms)\n  4 failing\n\n";
    output += &list(6);
    let names = (1..=4).flat_map(|number| [format!("  {number}) yard {number}"), format!("holds pressure {number}:")]);
    check(&output, &names.collect::<Vec<_>>());
    let excerpt = excerpt_text(&output, 2048);
    for other in [") step 3", "has pressure 3", "5) yard 5"] {
        assert!(!excerpt.contains(other), "{other}:\n{excerpt}");
    }
}

#[test]
fn linkers_crashes_and_runners_score() {
    for line in [
        "/usr/bin/ld: pump.o: in function `main': pump.c:(.text+0x9): undefined reference to `valve'",
        "tests.sh: line 3:  4711 Segmentation fault      (core dumped) ./pump",
        "2026-01-17T10:00:00Z ##[error]Process completed with exit 1.",
    ] {
        check(&among(400, |number| format!("part {number}"), &[(200, line.to_owned())]), &[line.to_owned()]);
    }
}

#[test]
fn zero_failures_do_not_score() {
    let lines: String = (0..200).map(|number| format!("suite {number}: 10 passed, 0 failed\n")).collect();
    assert_eq!(excerpt_text(&lines, 400).matches("left out").count(), 1);
}

/// The limit is generous, because a machine may be busy. Quadratic code takes minutes.
#[test]
fn excerpt_time_is_linear() {
    let size = 256 * 1024;
    for text in ["\n", "x\n", "x", " ", "FAIL", "FAIL\n", "a.b:1:1:", "E   \n", ": ", "\u{e4}", "[9 bytes left out]\n"]
    {
        let text = text.repeat(size / text.len());
        let begun = Instant::now();
        assert!(excerpt_text(&text, 2048).len() <= 2048);
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", &text[..8]);
    }
    let blank = " ".repeat(size / 2) + &"FAIL".repeat(size / 8);
    assert!(excerpt_text(&blank, 16 * 1024).len() <= 16 * 1024);
}

#[test]
fn excerpt_is_never_longer_than_limit() {
    let text = "\u{fffd}".repeat(200) + &"x\n".repeat(100) + "error: y\n" + &"z\n".repeat(100);
    for most in 0..text.len() + 2 {
        assert!(excerpt_text(&text, most).len() <= most, "{most}");
    }
}

/// Lines without a score, errors, marks and very long lines.
const LINES: &str = r"(|a|é{3}|error: x|FAIL y|test z \.\.\. FAILED|\[7 bytes left out\]|x{30,90})";

/// The bytes that a text has or counts as missing.
fn total(text: &str) -> u64 {
    text.split_inclusive('\n').map(|line| parse_missing_mark(line).unwrap_or(line.len() as u64)).sum()
}

proptest! {
    #[test]
    fn excerpt_contains_only_original_lines_and_counts_omitted_bytes(
        lines in prop::collection::vec(LINES, 0..80),
        most in 0_usize..700,
        ended in any::<bool>(),
    ) {
        let text = lines.join("\n") + if ended { "\n" } else { "" };
        let short = excerpt_text(&text, most);
        prop_assert!(short.len() <= most);
        prop_assert_eq!(&excerpt_text(&text, most), &short);
        prop_assert_eq!(&excerpt_text(&short, most), &short);
        if text.len() <= most {
            prop_assert_eq!(&short, &text);
        } else if most >= longest_mark_bytes(&text) {
            // The excerpt adds a line end before a mark in the middle of a line.
            let (before, after) = (total(&text), total(&short));
            prop_assert!(before <= after && after <= before + short.matches("left out").count() as u64);
            for line in short.lines().filter(|line| parse_missing_mark(line).is_none()) {
                let is_of = |whole: &String| whole == line || (whole.len() > 16 && whole.contains(line));
                prop_assert!(lines.iter().any(is_of), "{line}");
            }
        }
    }
}
