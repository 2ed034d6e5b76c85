//! Scripts that need no shell: a program and its arguments, without any syntax for a shell to interpret.
//!
//! A shell takes as long to start as a small program, and stays until the program has ended. So this module does the shell's work
//! where the result is certain. The shell handles everything else, including programs that cannot be found.
//!
//! Invariant: the program gets the same arguments, environment and directory as from the shell.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::file::open_regular_file;

/// Bytes that are literal at any position, besides letters, digits and spaces.
const LITERAL_BYTES: &[u8] = b"_-./:@%+,=";

/// Builtins and keywords of shells. Some are programs as well; then a shell prefers its own.
const SHELL_WORDS: &str = "
    . : alias bg bind break builtin caller case cd command compgen complete compopt continue coproc declare dirs
    disown do done echo elif else enable esac eval exec exit export false fc fg fi for function getopts hash help
    history if in jobs kill let local logout mapfile newgrp popd print printf pushd pwd read readarray readonly
    return select set shift shopt source suspend test then time times trap true type typeset ulimit umask unalias
    unset until wait whence while
";

/// Splits a script that consists of literal words alone, of which the first names a program.
pub(crate) fn split_literal_words(script: &OsStr) -> Option<Vec<OsString>> {
    let bytes = script.as_bytes();
    if !bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b' ' || LITERAL_BYTES.contains(byte)) {
        return None;
    }
    let words: Vec<&[u8]> = bytes.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect();
    let first = words.first()?;
    let is_own = SHELL_WORDS.split_ascii_whitespace().any(|own| own.as_bytes() == *first);
    (!is_own && !first.contains(&b'=')).then(|| words.iter().map(|word| OsStr::from_bytes(word).to_owned()).collect())
}

/// Returns whether the kernel can execute a file. A shell runs any other file as a script of its own.
pub(crate) fn is_kernel_executable(file: &Path) -> bool {
    let mut start = [0; 4];
    let read = open_regular_file(file).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && (start == *b"\x7fELF" || start.starts_with(b"#!"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, expected: Option<&[&str]>) {
        let expected = expected.map(|words| words.iter().map(OsString::from).collect());
        assert_eq!(words(OsStr::new(script)), expected, "{script}");
    }

    #[test]
    fn plain_script_has_literal_words_only() {
        check("claude -p", Some(&["claude", "-p"]));
        check("  ./agent.sh  --model=a/b:1@2 50% ", Some(&["./agent.sh", "--model=a/b:1@2", "50%"]));
        for script in ["", "  ", "exit 3", "true", "echo a", "A=1 claude", "a; b", "a | b", "a\nb", "a 'b c'", "a $b"] {
            check(script, None);
        }
        for script in ["a\tb", "a ~", "a *", "a [b]", "a {b,c}", "a #b", "a >b", "a &", "a !", "a \\b", "ä", "a\0b"] {
            check(script, None);
        }
    }
}
