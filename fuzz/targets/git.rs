//! Output of git, and content of a repository.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| windlass_vcs::git::laws::check_git_output(bytes));
