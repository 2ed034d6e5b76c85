//! Hostile input for laws: inputs that fuzzing has found, in `fuzz/`, and random variations of them.
//!
//! `fuzz/corpus/TARGET` has inputs that reach different parts of the code, `fuzz/findings/TARGET` those that once broke a
//! law. A target of `cargo fuzz` and an ordinary test call the same law, so a finding stays tested without fuzzing.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestError, TestRunner};

/// The longest random input.
const MAX_INPUT_LENGTH: usize = 300;

/// Checks a law with all kept inputs of a target and with random ones. `PROPTEST_CASES=100000` checks more random
/// inputs.
pub fn check_law(target: &str, law: fn(&[u8])) {
    check_kept_inputs(target, law);
    check_random_inputs(target, law);
}

/// Checks a law with all kept inputs of a target.
fn check_kept_inputs(target: &str, law: fn(&[u8])) {
    for (file, bytes) in kept_inputs(target) {
        let holds = catch_unwind(AssertUnwindSafe(|| law(&bytes)));
        assert!(holds.is_ok(), "{} breaks a law of `{target}`", file.display());
    }
}

/// Checks a law with random inputs: any bytes, any text, and pieces of kept inputs.
fn check_random_inputs(target: &str, law: fn(&[u8])) {
    let known: Arc<Vec<Vec<u8>>> = Arc::new(kept_inputs(target).into_iter().map(|(_, bytes)| bytes).collect());
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let result = runner.run(&arbitrary_inputs(known), |bytes| {
        law(&bytes);
        Ok(())
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, bytes)) => panic!("a law of `{target}` is broken: {why}\nby {}", bytes.escape_ascii()),
        Err(TestError::Abort(why)) => panic!("`{target}`: {why}"),
    }
}

/// Returns all kept inputs of a target.
fn kept_inputs(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut files: Vec<PathBuf> = ["corpus", "findings"]
        .into_iter()
        .filter_map(|kind| fs::read_dir(fuzz.join(kind).join(target)).ok())
        .flat_map(|entries| entries.map(|entry| entry.expect("an entry").path()))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "nothing is kept for `{target}` under {}", fuzz.display());
    let read = |file: PathBuf| {
        let bytes = fs::read(&file).expect("a file that was kept");
        (file, bytes)
    };
    files.into_iter().map(read).collect()
}

fn arbitrary_inputs(known: Arc<Vec<Vec<u8>>>) -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..MAX_INPUT_LENGTH);
    let text = any::<String>().prop_map(String::into_bytes);
    let piece = (any::<Index>(), any::<Index>(), any::<Index>()).prop_map(move |(file, from, to)| {
        let file = file.get(&known);
        let (from, to) = (from.index(file.len() + 1), to.index(file.len() + 1));
        file[from.min(to)..from.max(to)].to_vec()
    });
    let letters = prop::collection::vec(any::<u8>(), 0..4);
    let patched = (piece.clone(), letters, piece).prop_map(|(one, letters, other)| [one, letters, other].concat());
    prop_oneof![1 => bytes, 1 => text, 4 => patched]
}
