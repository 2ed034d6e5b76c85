//! A line of text that a person edits.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The most characters of an input.
const MAX_INPUT_LENGTH: usize = 20_000;

/// Text with a cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineEditor {
    characters: Vec<char>,
    cursor: usize,
}

impl LineEditor {
    pub fn from_text(text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        Self { cursor: characters.len(), characters }
    }

    pub fn text(&self) -> String {
        self.characters.iter().collect()
    }

    pub fn is_blank(&self) -> bool {
        self.characters.iter().all(|c| c.is_whitespace())
    }

    /// Returns the text before and after the cursor.
    pub fn split_at_cursor(&self) -> (String, String) {
        let (before, after) = self.characters.split_at(self.cursor);
        (before.iter().collect(), after.iter().collect())
    }

    pub fn insert(&mut self, text: &str) {
        for c in text.replace("\r\n", "\n").replace('\r', "\n").chars() {
            if self.characters.len() < MAX_INPUT_LENGTH {
                self.characters.insert(self.cursor, c);
                self.cursor += 1;
            }
        }
    }

    /// Applies a key. Returns false if the key edits nothing.
    pub fn apply_key(&mut self, key: KeyEvent) -> bool {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return self.apply_control_key(key.code);
        }
        match key.code {
            KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::ALT) => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.characters.remove(self.cursor);
            }
            KeyCode::Backspace => {}
            KeyCode::Delete if self.cursor < self.characters.len() => drop(self.characters.remove(self.cursor)),
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(self.characters.len()),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.characters.len(),
            _ => return false,
        }
        true
    }

    /// Applies the usual keys of a shell.
    fn apply_control_key(&mut self, code: KeyCode) -> bool {
        match code {
            KeyCode::Char('a') => self.cursor = 0,
            KeyCode::Char('e') => self.cursor = self.characters.len(),
            KeyCode::Char('u') => {
                self.characters.drain(..self.cursor);
                self.cursor = 0;
            }
            KeyCode::Char('k') => self.characters.truncate(self.cursor),
            KeyCode::Char('w') => {
                let is_space = |at: usize| self.characters[at].is_whitespace();
                let word = (0..self.cursor).rev().find(|at| !is_space(*at)).unwrap_or_default();
                let start = (0..word).rev().find(|at| is_space(*at)).map_or(0, |at| at + 1);
                self.characters.drain(start..self.cursor);
                self.cursor = start;
            }
            _ => return false,
        }
        true
    }
}
