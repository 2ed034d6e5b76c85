//! What a worker has to say, on its way to standard output, which another thread has.

use std::sync::mpsc::SyncSender;

use windlass_engine::Record;
use windlass_text as text;

use super::super::paper::Paper;
use crate::output::{Done, Palette};

/// Lines that belong together.
pub type Batch = Vec<String>;

pub struct Post {
    pub json: bool,
    pub palette: Palette,
    pub columns: Option<usize>,
    pub to: SyncSender<Batch>,
    pub batch: Batch,
}

impl Paper for Post {
    fn is_json(&self) -> bool {
        self.json
    }

    fn palette(&self) -> Palette {
        self.palette
    }

    fn columns(&self) -> Option<usize> {
        self.columns
    }

    fn line(&mut self, line: String) -> Done {
        self.batch.push(line);
        Ok(())
    }

    fn record(&mut self, record: &Record) -> Done {
        let text = serde_json::to_string(record).expect("what we print has string keys");
        self.line(text::json(&text).into_owned())
    }

    fn flush(&mut self) -> Done {
        if !self.batch.is_empty() {
            // Whoever gathers them may have nobody left to give them to.
            let _ = self.to.send(std::mem::take(&mut self.batch));
        }
        Ok(())
    }

    fn give_up(&mut self) {}
}
