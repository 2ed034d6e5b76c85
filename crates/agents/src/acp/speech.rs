//! The final message of an agent's turn. Of a long message, the start and the end are kept.
//!
//! The final message is the text after the last tool call, or the text before it if the agent ends with a tool call.

/// How much of a message is kept, from its start and its end: at the end an agent says how the work went.
const HEAD: usize = 16 * 1024;
const TAIL: usize = 40 * 1024;

#[derive(Debug, Default)]
pub struct Speech {
    current: Text,
    /// The message before the last tool call.
    before: Option<Text>,
}

impl Speech {
    pub fn say(&mut self, text: &str) {
        self.current.push(text);
    }

    /// Records a tool call: the text that follows is another message.
    pub fn turn_to_work(&mut self) {
        if !self.current.is_blank() {
            self.before = Some(std::mem::take(&mut self.current));
        }
        self.current = Text::default();
    }

    pub fn is_blank(&self) -> bool {
        self.before.is_none() && self.current.is_blank()
    }

    pub fn finish(self) -> String {
        match self.before {
            Some(before) if self.current.is_blank() => before.finish(),
            _ => self.current.finish(),
        }
    }
}

/// The longest trailing message that is kept.
const ASIDE: usize = 1024;

/// The last message if it is separate: some agents report a failure in a message of its own after the model's.
#[derive(Debug, Default)]
pub struct Aside {
    message: Option<String>,
    text: String,
    apart: bool,
}

impl Aside {
    /// Adds text to the current message, or begins another one.
    pub fn say(&mut self, message: Option<&str>, text: &str) {
        if message != self.message.as_deref() {
            self.apart = !self.text.is_empty();
            self.message = message.map(str::to_owned);
            self.text.clear();
        }
        if self.text.len() <= ASIDE {
            self.text.push_str(&text[..text.floor_char_boundary(ASIDE + 1)]);
        }
    }

    pub fn finish(self) -> Option<String> {
        (self.apart && self.text.len() <= ASIDE).then_some(self.text)
    }
}

/// A text whose middle is left out if it is long.
#[derive(Debug, Default)]
pub struct Text {
    head: String,
    tail: String,
    left_out: usize,
}

impl Text {
    pub fn is_blank(&self) -> bool {
        self.head.trim().is_empty() && self.tail.trim().is_empty()
    }

    pub fn push(&mut self, text: &str) {
        let room = if self.tail.is_empty() { HEAD - self.head.len() } else { 0 };
        let (first, rest) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(first);
        self.tail.push_str(rest);
        if self.tail.len() > 2 * TAIL {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let over = self.tail.ceil_char_boundary(self.tail.len().saturating_sub(TAIL));
        self.tail.drain(..over);
        self.left_out += over;
    }

    pub fn finish(mut self) -> String {
        self.cut();
        if self.left_out > 0 {
            self.head.push_str(&format!("\n[{} bytes left out]\n", self.left_out));
        }
        self.head.push_str(&self.tail);
        self.head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &[&str], expected: &str) {
        let mut speech = Speech::default();
        for part in script {
            match *part {
                "|" => speech.turn_to_work(),
                text => speech.say(text),
            }
        }
        assert_eq!(speech.finish(), expected);
    }

    #[test]
    fn the_final_message_comes_after_the_last_tool_call() {
        check(&[], "");
        check(&["a", "b"], "ab");
        check(&["a", "|", "b", "|", "c", "d"], "cd");
        check(&["a", "|", "b", "|"], "b");
        check(&["a", "|", "|", " \n", "|", "\n"], "a");
        check(&["|", "|"], "");
    }

    #[test]
    fn the_last_message_is_known_where_it_is_told_apart() {
        let aside = |script: &[(Option<&str>, &str)]| {
            let mut aside = Aside::default();
            script.iter().for_each(|(message, text)| aside.say(*message, text));
            aside.finish()
        };
        assert_eq!(aside(&[]), None);
        assert_eq!(aside(&[(None, "a"), (None, "b")]), None);
        assert_eq!(aside(&[(Some("1"), "a"), (Some("1"), "b")]), None);
        assert_eq!(aside(&[(Some("1"), "a"), (None, "b"), (None, "c")]).as_deref(), Some("bc"));
        assert_eq!(aside(&[(Some("1"), "a"), (Some("2"), &"b".repeat(ASIDE * 2))]), None);
    }

    #[test]
    fn a_long_message_keeps_its_start_and_its_end() {
        let mut speech = Speech::default();
        for number in 0..100_000 {
            speech.say(&format!("é{number} "));
        }
        let text = speech.finish();
        assert!(text.len() < HEAD + TAIL + 64, "{}", text.len());
        assert!(text.starts_with("é0 é1 ") && text.ends_with(" é99999 ") && text.contains(" bytes left out]\n"));
        check(&[&"é".repeat(HEAD + TAIL), "!"], &{
            let (head, tail) = ("é".repeat(HEAD / 2), "é".repeat(TAIL / 2 - 1) + "!");
            format!("{head}\n[{} bytes left out]\n{tail}", 2 * (HEAD + TAIL) + 1 - head.len() - tail.len())
        });
    }
}
