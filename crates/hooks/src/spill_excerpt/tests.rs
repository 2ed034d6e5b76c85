//! Excerpts of spill files.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use windlass_process::ProgramExit;

use super::*;
use crate::excerpt::parse_missing_mark;
use crate::{excerpt_text, summarize_output};

/// The captured part of a stream that wrote this, with sizes of its start, its end and its file.
fn captured(written: &[u8], ends: (usize, usize), cap: usize, file: &Path) -> CapturedOutput {
    let kept = written.len().min(cap);
    fs::write(file, &written[..kept]).expect("a file");
    CapturedOutput {
        head: written[..ends.0].to_vec(),
        tail: written[written.len() - ends.1..].to_vec(),
        total: written.len() as u64,
        spilled: Some(SpillFile { path: file.to_owned(), kept: kept as u64, error: None }),
    }
}

/// A run whose output has 128 KiB of its start and of its end in memory.
fn ran(written: &[u8], mask: &SecretMask) -> ProgramOutcome {
    let place = tempfile::tempdir().expect("a directory");
    let stdout = captured(written, (128 * 1024, 128 * 1024), usize::MAX, &place.path().join("run.stdout"));
    excerpt_run(
        ProgramOutcome { stdout, exit: ProgramExit::Code(2), ..ProgramOutcome::success_with_stdout(Vec::new()) },
        mask,
    )
}

fn sift_all(written: &[u8], mask: &SecretMask) -> String {
    ran(written, mask).stdout.to_text_lossy()
}

fn dull(count: usize) -> String {
    (0..count).map(|number| format!("  compiling part {number} of the yard, which takes a while\n")).collect()
}

const ERROR_LINES: [&str; 4] = [
    "test pump::runs ... FAILED",
    "error[E0308]: mismatched types",
    "FAILED tests/test_pump.py::test_pump - assert 3 == 4",
    "thread 'pump' panicked at src/pump.rs:3:5:",
];

#[test]
fn relevant_lines_are_found_in_memory_gap() {
    let between: String = ERROR_LINES.map(|line| dull(1500) + line + "\n").concat();
    let written = dull(3000) + &between + &dull(4000);
    let ran = ran(written.as_bytes(), &SecretMask::default());
    let excerpt = excerpt_text(&ran.stdout.to_text_lossy(), 16 * 1024);
    for line in ERROR_LINES {
        assert!(excerpt.contains(line), "{line}");
    }
    assert!(
        excerpt.starts_with("  compiling part 0 of")
            && excerpt.ends_with("part 3999 of the yard, which takes a while\n")
    );
    assert_eq!(summarize_output(&ran).as_deref(), Some(ERROR_LINES[2]), "people are told as well");
}

#[test]
fn colours_do_not_hide_relevant_lines() {
    let written = dull(4000) + "\x1b[31mFAIL\x1b[0m src/pump.test.ts\r\n" + &dull(4000);
    assert!(sift_all(written.as_bytes(), &SecretMask::default()).contains("\nFAIL src/pump.test.ts\n"));
}

#[test]
fn relevant_line_brings_its_neighbours() {
    let telling = "before\nthread 'x' panicked at src/x.rs:1:1:\nthe pump leaks\nafter\n";
    let text = sift_all((dull(4000) + telling + &dull(4000)).as_bytes(), &SecretMask::default());
    assert!(text.contains(&format!("bytes left out]\n{telling}[")), "it is whole");
}

/// A line and a secret stay whole at every position where memory and file meet.
#[test]
fn line_with_secret_is_joined_and_masked_across_every_edge() {
    let place = tempfile::tempdir().expect("a directory");
    let mask = SecretMask::new([("TOKEN", "hunter22")]);
    let line = "test hunter22 ... FAILED\n";
    let written = "dull\n".repeat(200) + line + &"dull\n".repeat(200);
    let at = written.find(line).expect("it is there");
    for edge in at..at + line.len() {
        for ends in [(edge, 20), (20, written.len() - edge)] {
            let kept = captured(written.as_bytes(), ends, usize::MAX, &place.path().join("run"));
            let text =
                excerpt_run(ProgramOutcome { stdout: kept, ..ProgramOutcome::success_with_stdout(Vec::new()) }, &mask)
                    .stdout
                    .to_text_lossy();
            assert!(text.contains("\ntest [secret TOKEN] ... FAILED\n"), "{ends:?}: {text}");
        }
        // The file ends here, and the tail begins later.
        let kept = captured(written.as_bytes(), (20, 60), edge, &place.path().join("run"));
        let text =
            excerpt_run(ProgramOutcome { stdout: kept, ..ProgramOutcome::success_with_stdout(Vec::new()) }, &mask)
                .stdout
                .to_text_lossy();
        assert!(!text.replace("[secret TOKEN]", "").contains("hunt"), "{edge}: {text}");
    }
}

#[test]
fn secret_inside_control_sequences_is_masked() {
    let mask = SecretMask::new([("TOKEN", "hunter22")]);
    let written = dull(4000) + "error: denied for hun\x1b[1mter22\nerror: hunter22\n" + &dull(4000);
    let text = sift_all(written.as_bytes(), &mask);
    assert!(text.contains("error: denied for [secret TOKEN]\nerror: [secret TOKEN]\n"), "it is masked");
}

/// The bytes after the end of the file count as missing, and so do all others.
#[test]
fn bytes_after_file_end_count_as_missing() {
    let place = tempfile::tempdir().expect("a directory");
    let dull = "dull\n".repeat(400);
    let written = format!("{dull}error: one\n{dull}error: two\n{dull}");
    let kept = captured(written.as_bytes(), (10, 10), 3501, &place.path().join("run"));
    let ran = excerpt_run(
        ProgramOutcome { stdout: kept, ..ProgramOutcome::success_with_stdout(Vec::new()) },
        &SecretMask::default(),
    );
    let text = ran.stdout.to_text_lossy();
    let start = "dull\n".repeat(104) + "[1475 bytes left out]\ndull\nerror: one\ndull\ndull\n[";
    assert!(text.starts_with(&start), "{text}");
    assert!(text.ends_with(" bytes left out]\ndull\ndull\n") && !text.contains("two"), "{text}");
    let sum: u64 = text.split_inclusive('\n').map(|line| parse_missing_mark(line).unwrap_or(line.len() as u64)).sum();
    assert_eq!(sum, written.len() as u64);
}

#[test]
fn spill_file_changed_since_capture_is_ignored() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("run");
    let kept = captured(&b"x\n".repeat(100), (10, 10), usize::MAX, &file);
    for put in ["", "error: not ours\n"] {
        fs::write(&file, put).expect("a file");
        let ran = excerpt_run(
            ProgramOutcome { stdout: kept.clone(), ..ProgramOutcome::success_with_stdout(Vec::new()) },
            &SecretMask::default(),
        );
        assert_eq!(ran.stdout, kept);
    }
}

/// Millions of relevant lines, lines without an end, and bytes that are not text: the excerpt is bounded, and contains the ends.
#[test]
fn excerpt_is_bounded_for_any_output() {
    let size = 1024 * 1024;
    for piece in ["FAIL x\n", "\n", "FATAL", "\0", "\u{1b}[", "error: y\n\n\n\n"] {
        let mut written = piece.repeat(size / piece.len()).into_bytes();
        written.splice(size / 2..size / 2, b"\xff\xfe\nFAIL needle\n".iter().copied());
        let text = sift_all(&written, &SecretMask::default());
        assert!(text.len() < 400 * 1024, "{piece:?}: {}", text.len());
    }
    let mut names: Vec<String> = (0..65_536).map(|number| format!("test pump::part_{number} ... FAILED\n")).collect();
    names.insert(0, dull(4000));
    names.push("error: it is the pump\n".to_owned() + &dull(4000));
    let text = sift_all(names.concat().as_bytes(), &SecretMask::default());
    for kept in ["::part_0 ", "::part_65535 ", "error: it is the pump"] {
        assert!(text.contains(kept), "{kept}");
    }
}

/// A response that is too long must not look like one that is not JSON.
#[test]
fn excerpt_keeps_all_that_memory_had() {
    let answer = format!("{{\"message\": \"{}\"}}", "x".repeat(300_000));
    assert!(sift_all(answer.as_bytes(), &SecretMask::default()).len() > 256 * 1024);
}

/// Repeated names leave room for others.
#[test]
fn repeated_failure_line_is_deduplicated_in_excerpt() {
    let written = dull(4000) + &"FAIL pump\n".repeat(9000) + "FAIL valve\n" + &dull(4000) + &dull(4000);
    let text = sift_all(written.as_bytes(), &SecretMask::default());
    assert_eq!((text.matches("FAIL pump\n").count(), text.matches("FAIL valve\n").count()), (1, 1));
}

proptest! {
    /// For any cut, no line is invented and every missing byte is counted.
    #[test]
    fn every_byte_is_kept_or_counted_as_missing(
        lines in prop::collection::vec(r"(|a|é{3}|error: x|FAIL y|test z \.\.\. FAILED|x{30,90})", 1..200),
        start in 0_usize..400,
        end in 0_usize..400,
        cap in 0_usize..9000,
    ) {
        let written = lines.join("\n") + "\n";
        let (start, end) = (start.min(written.len()), end.min(written.len()));
        prop_assume!(start + end < written.len() && cap >= start);
        prop_assume!(written.is_char_boundary(cap.min(written.len())) && written.is_char_boundary(written.len() - end));
        let place = tempfile::tempdir().expect("a directory");
        let kept = captured(written.as_bytes(), (start, end), cap, &place.path().join("run"));
        let ran = excerpt_run(ProgramOutcome { stdout: kept, ..ProgramOutcome::success_with_stdout(Vec::new()) }, &SecretMask::default());
        let text = ran.stdout.to_text_lossy();
        // The excerpt adds a line end before a mark in the middle of a line.
        let sum: u64 = text.split_inclusive('\n').map(|line| parse_missing_mark(line).unwrap_or(line.len() as u64)).sum();
        let marks = text.matches("left out").count() as u64;
        prop_assert!((written.len() as u64..=written.len() as u64 + marks).contains(&sum), "{}", text);
    }
}
