//! Properties of cleaned text, for tests and fuzzing only.
//!
//! Each law takes bytes and panics if it does not hold.

use unicode_width::UnicodeWidthStr;

/// Checks that cleaned text holds no character that a terminal obeys or that misleads a reader, and that it
/// fits its width.
pub fn check_terminal_text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let line = crate::clean_line(&text);
    assert!(!line.contains(crate::is_unsafe_character), "{line:?}");
    assert_eq!(crate::clean_line(&line), line, "cleaning twice is cleaning once");
    let lines = crate::clean_lines(&text);
    assert!(
        !lines.contains(|letter| crate::is_unsafe_character(letter) && letter != '\n' && letter != '\t'),
        "{lines:?}"
    );
    assert_eq!(lines.matches('\n').count(), text.matches('\n').count(), "lines stay lines");
    let json = serde_json::to_string(&text).expect("text can be written");
    let safe = crate::clean_json(&json);
    assert!(!safe.contains(crate::is_unsafe_character), "{safe:?}");
    assert_eq!(serde_json::from_str::<String>(&safe).expect("it is JSON"), text, "JSON means the same");
    for width in [0, 1, 2, 7, 40] {
        let fitting = crate::fit_to_width(&text, width);
        assert!(fitting.width() <= width, "{fitting:?} has {} columns, not {width}", fitting.width());
        let rows = crate::wrap_to_width(&text, width, width);
        // One character takes up to three columns, and `wrap_to_width` does not split it.
        assert!(rows.iter().all(|row| row.width() <= width.max(3)), "{rows:?} in {width} columns");
        let letters = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(letters(&rows.join(" ")), letters(&line), "nothing is lost between rows");
    }
}

#[cfg(test)]
mod tests {
    use windlass_testkit::hostile::check_law;

    #[test]
    fn terminal_text_is_harmless() {
        check_law("terminal_text", super::check_terminal_text);
    }
}
