//! The final message of an agent's turn. Of a long message, the start and the end are kept.
//!
//! The final message is the text after the last tool call, or the text before it if the agent ends with a tool call.

/// How much of a message is kept, from its start and its end: at the end an agent says how the work went.
const MAX_MESSAGE_HEAD: usize = 16 * 1024;
const MAX_MESSAGE_TAIL: usize = 40 * 1024;

#[derive(Debug, Default)]
pub struct FinalMessage {
    current: ClippedText,
    /// The message before the last tool call.
    before: Option<ClippedText>,
}

impl FinalMessage {
    pub fn push_text(&mut self, text: &str) {
        self.current.push(text);
    }

    /// Records a tool call: the text that follows is another message.
    pub fn begin_tool_call(&mut self) {
        if !self.current.is_blank() {
            self.before = Some(std::mem::take(&mut self.current));
        }
        self.current = ClippedText::default();
    }

    pub fn is_blank(&self) -> bool {
        self.before.is_none() && self.current.is_blank()
    }

    pub fn into_text(self) -> String {
        match self.before {
            Some(before) if self.current.is_blank() => before.into_string(),
            _ => self.current.into_string(),
        }
    }
}

/// The longest trailing message that is kept.
const MAX_TRAILING_MESSAGE: usize = 1024;

/// The last message if it is separate: some agents report a failure in a message of its own after the model's.
#[derive(Debug, Default)]
pub struct TrailingMessage {
    message: Option<String>,
    text: String,
    apart: bool,
}

impl TrailingMessage {
    /// Adds text to the current message, or begins another one.
    pub fn push_chunk(&mut self, message: Option<&str>, text: &str) {
        if message != self.message.as_deref() {
            self.apart = !self.text.is_empty();
            self.message = message.map(str::to_owned);
            self.text.clear();
        }
        if self.text.len() <= MAX_TRAILING_MESSAGE {
            self.text.push_str(&text[..text.floor_char_boundary(MAX_TRAILING_MESSAGE + 1)]);
        }
    }

    pub fn into_separate_message(self) -> Option<String> {
        (self.apart && self.text.len() <= MAX_TRAILING_MESSAGE).then_some(self.text)
    }
}

/// A text whose middle is left out if it is long.
#[derive(Debug, Default)]
pub struct ClippedText {
    head: String,
    tail: String,
    left_out: usize,
}

impl ClippedText {
    pub fn is_blank(&self) -> bool {
        self.head.trim().is_empty() && self.tail.trim().is_empty()
    }

    pub fn push(&mut self, text: &str) {
        let room = if self.tail.is_empty() { MAX_MESSAGE_HEAD - self.head.len() } else { 0 };
        let (first, rest) = text.split_at(text.floor_char_boundary(room));
        self.head.push_str(first);
        self.tail.push_str(rest);
        if self.tail.len() > 2 * MAX_MESSAGE_TAIL {
            self.drop_middle();
        }
    }

    fn drop_middle(&mut self) {
        let over = self.tail.ceil_char_boundary(self.tail.len().saturating_sub(MAX_MESSAGE_TAIL));
        self.tail.drain(..over);
        self.left_out += over;
    }

    pub fn into_string(mut self) -> String {
        self.drop_middle();
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
        let mut speech = FinalMessage::default();
        for part in script {
            match *part {
                "|" => speech.begin_tool_call(),
                text => speech.push_text(text),
            }
        }
        assert_eq!(speech.into_text(), expected);
    }

    #[test]
    fn final_message_follows_the_last_tool_call() {
        check(&[], "");
        check(&["a", "b"], "ab");
        check(&["a", "|", "b", "|", "c", "d"], "cd");
        check(&["a", "|", "b", "|"], "b");
        check(&["a", "|", "|", " \n", "|", "\n"], "a");
        check(&["|", "|"], "");
    }

    #[test]
    fn trailing_message_is_returned_only_if_separate_and_short() {
        let aside = |script: &[(Option<&str>, &str)]| {
            let mut aside = TrailingMessage::default();
            script.iter().for_each(|(message, text)| aside.push_chunk(*message, text));
            aside.into_separate_message()
        };
        assert_eq!(aside(&[]), None);
        assert_eq!(aside(&[(None, "a"), (None, "b")]), None);
        assert_eq!(aside(&[(Some("1"), "a"), (Some("1"), "b")]), None);
        assert_eq!(aside(&[(Some("1"), "a"), (None, "b"), (None, "c")]).as_deref(), Some("bc"));
        assert_eq!(aside(&[(Some("1"), "a"), (Some("2"), &"b".repeat(MAX_TRAILING_MESSAGE * 2))]), None);
    }

    #[test]
    fn long_message_is_truncated_in_middle_keeping_start_and_end() {
        let mut speech = FinalMessage::default();
        for number in 0..100_000 {
            speech.push_text(&format!("é{number} "));
        }
        let text = speech.into_text();
        assert!(text.len() < MAX_MESSAGE_HEAD + MAX_MESSAGE_TAIL + 64, "{}", text.len());
        assert!(text.starts_with("é0 é1 ") && text.ends_with(" é99999 ") && text.contains(" bytes left out]\n"));
        check(&[&"é".repeat(MAX_MESSAGE_HEAD + MAX_MESSAGE_TAIL), "!"], &{
            let (head, tail) = ("é".repeat(MAX_MESSAGE_HEAD / 2), "é".repeat(MAX_MESSAGE_TAIL / 2 - 1) + "!");
            format!(
                "{head}\n[{} bytes left out]\n{tail}",
                2 * (MAX_MESSAGE_HEAD + MAX_MESSAGE_TAIL) + 1 - head.len() - tail.len()
            )
        });
    }
}
