//! Sentences about the tag: whether whoever writes it says it, or speaks of saying it.
//!
//! A sentence that needs the tag to be whole ("I can say …", "nothing justifies …") is about it. There are more ways to say
//! that it does not hold than anyone can list, so such a sentence is believed only where it says outright that it does. A
//! sentence that is whole without the tag is a report, and none of this is asked about it.
//!
//! Not here: which words deny something wherever they stand (`negation`), what is taken back later (`retraction`).

use crate::negation::{is_a_number, words};

/// What is said, whatever stands before it.
const SAY: [&str; 8] = ["say", "write", "emit", "declare", "saying", "writing", "emitting", "declaring"];
/// What is done with a line at the end of a message.
const END_WITH: [&str; 12] = [
    "end",
    "finish",
    "close",
    "conclude",
    "reply",
    "respond",
    "ending",
    "finishing",
    "closing",
    "concluding",
    "replying",
    "responding",
];
/// Words that are verbs of saying only where somebody does it.
const PRINT: [&str; 7] = ["print", "output", "claim", "call", "printing", "claiming", "calling"];
const SOMEBODY: [&str; 15] =
    ["i", "we", "i'll", "we'll", "me", "to", "can", "could", "may", "will", "must", "should", "now", "and", "then"];
/// What was said at another time.
const SAID: [&str; 7] = ["said", "wrote", "written", "printed", "emitted", "claimed", "declared"];
const ENDED_WITH: [&str; 5] = ["ended", "closed", "concluded", "replied", "responded"];

/// What the tag is called, and what stands around that.
const TAG: [&str; 6] = ["line", "marker", "tag", "word", "words", "promise"];
const AROUND: [&str; 21] = [
    "with",
    "this",
    "the",
    "that",
    "following",
    "my",
    "your",
    "final",
    "last",
    "required",
    "requested",
    "completion",
    "closing",
    "exact",
    "exactly",
    "below",
    "a",
    "message",
    "answer",
    "turn",
    "not",
];

/// What a sentence ends with that needs another word.
const NEEDS_MORE: [&str; 21] = [
    "is",
    "are",
    "near",
    "almost",
    "nearly",
    "half",
    "halfway",
    "partly",
    "partially",
    "hardly",
    "barely",
    "justify",
    "justifies",
    "warrants",
    "deserve",
    "deserves",
    "deserved",
    "earn",
    "earned",
    "wants",
    "expects",
];
/// The same about words that may as well end a sentence on a line of its own.
const LEADS_ON: [&str; 7] = ["for", "to", "from", "toward", "towards", "of", "see"];
/// After these they do.
const FOR: [&str; 5] = ["asked", "hoped", "called", "looked", "wished"];
/// What is here only to be seen, or not yet.
const SHOWN: [&str; 8] = ["example", "sample", "format", "template", "what", "how", "will", "would"];
/// How many words before a verb its clause may begin.
const NEAR: usize = 6;
/// What nobody says of work that is done, but of the tag, a plan, or a doubt.
const NO_WORK: [&str; 18] = [
    "line",
    "marker",
    "tag",
    "word",
    "goal",
    "aim",
    "plan",
    "step",
    "instruction",
    "instructions",
    "doubt",
    "thing",
    "left",
    "missing",
    "no",
    "nothing",
    "nobody",
    "nowhere",
];

/// What may stand between whoever says it and the saying.
const OUTRIGHT: [&str; 24] = [
    "can",
    "may",
    "am",
    "are",
    "do",
    "now",
    "able",
    "to",
    "going",
    "will",
    "finally",
    "hereby",
    "therefore",
    "thus",
    "safely",
    "confidently",
    "honestly",
    "truthfully",
    "happily",
    "gladly",
    "happy",
    "glad",
    "proud",
    "just",
];
const OBLIGED: [&str; 4] = ["must", "should", "have", "need"];
/// Who says it.
const SPEAKER: [&str; 8] = ["i", "we", "i'll", "we'll", "i'm", "we're", "i've", "we've"];
/// What a part of a sentence begins with that follows from what was said before it.
const CONCLUDES: [&str; 4] = ["means", "and", "accordingly", "because"];
/// The same, and said of nothing that is still to come.
const THEREFORE: [&str; 4] = ["so", "therefore", "thus", "hence"];
/// What may come before whoever says it, in the same part of the sentence.
const OPENERS: [&str; 10] = ["as", "per", "since", "now", "with", "having", "given", "following", "finally", "that"];

/// Whether a clause with the tag at its end needs it and does not say outright that it holds.
pub fn speaks_of_it(clause: &str) -> bool {
    let words = plain(clause);
    let needs_it = is_saying(clause) || needs_more(&words) || leads_on(&words);
    // "Output: …" is the name of what follows.
    let is_name = words.len() <= 2 && clause.trim_end().ends_with(':');
    needs_it && !is_name && !affirms(clause)
}

/// Whether the line above a tag announces that it is said.
pub fn announces_it(above: &str) -> bool {
    let words = plain(above);
    let is_own = words.iter().any(|word| SPEAKER.contains(word) || *word == "me");
    // Without a colon it may as well be a report of what a program says.
    let is_about_it = |verb: usize| is_open(above) == Some(':') || is_own || verb + 1 == words.len();
    is_open(above).is_some() && says(&words).is_some_and(is_about_it)
}

/// Whether the line above a tag announces it, or has begun its sentence, without saying that it holds now.
pub fn announces_it_for_later(above: &str) -> bool {
    let Some(end) = is_open(above) else { return false };
    let words = plain(above);
    if is_put_off(&words) {
        return true;
    }
    match says(&words) {
        // It may as well be a report that nobody has put a full stop to.
        Some(_) if end != ':' && !leads_to_it(&words) => false,
        Some(verb) => {
            let is_name = end == ':' && words.len() <= 2;
            announces_it(above) && !is_name && !affirms(above) && !is_announced_outright(&words, verb)
        }
        None if end == ':' => is_what_should_be(&words) || is_only_shown(&words),
        None => needs_more(&words) && (words.len() == 1 || (has_no_work(&words) && !affirms(above))),
    }
}

/// Whether words end with what the tag is called, or with what cannot end a sentence about it.
fn leads_to_it(words: &[&str]) -> bool {
    words.last().is_some_and(|last| TAG.contains(last) || matches!(*last, "with" | "say" | "saying"))
}

/// Whether a line cannot end where it does, but with the tag: after a colon, or a word that wants another.
pub fn goes_on(line: &str) -> bool {
    is_open(line) == Some(':') || matches!(plain(line).last(), Some(&("with" | "say" | "saying")))
}

/// "The last line should be:"
fn is_what_should_be(words: &[&str]) -> bool {
    let is_wished =
        matches!(words, [.., "should" | "must" | "would", "be"] | [.., "should" | "must" | "would", "then", "be"]);
    is_wished && words.iter().any(|word| TAG.contains(word)) && !words.iter().any(|word| THEREFORE.contains(word))
}

/// "Here is an example:"
fn is_only_shown(words: &[&str]) -> bool {
    matches!(words, ["here" | "here's", rest @ ..] if rest.iter().any(|word| SHOWN.contains(word)))
}

/// What a text ends with that goes on after it: a colon, or a word.
fn is_open(text: &str) -> Option<char> {
    let text = text.trim_end().trim_end_matches(['*', '_']);
    text.chars().next_back().filter(|end| *end == ':' || end.is_alphanumeric())
}

/// Whether a sentence ends with a verb of saying and what is said.
pub fn ends_with_saying(sentence: &str) -> bool {
    is_saying(sentence) && !plain(sentence).iter().any(|word| THEREFORE.contains(word))
}

/// The same of a sentence or of its last part: "to finish, print …".
fn is_saying(sentence: &str) -> bool {
    let part = sentence.rsplit(',').next().unwrap_or_default();
    says(&plain(sentence)).is_some() || says(&plain(part)).is_some()
}

/// The words of a text, with one kind of apostrophe where it matters.
fn plain(text: &str) -> Vec<&str> {
    let straight = |word| match word {
        "i’ll" => "i'll",
        "we’ll" => "we'll",
        "i’m" => "i'm",
        "we’re" => "we're",
        "i’ve" => "i've",
        "it’s" => "it's",
        "that’s" => "that's",
        "here’s" => "here's",
        word => word,
    };
    words(text).into_iter().map(straight).collect()
}

/// Where the verb of saying stands that words end with, but for what is said.
fn says(words: &[&str]) -> Option<usize> {
    let is_object = |word: &&str| TAG.contains(word) || AROUND.contains(word);
    let verb = words.iter().rposition(|word| !is_object(word))?;
    let (word, object) = (words[verb], &words[verb + 1..]);
    // "All of it is what you said": the sentence is whole.
    if is_told_of(&words[..verb]) {
        return None;
    }
    let by_somebody = verb == 0 || SOMEBODY.contains(&words[verb - 1]) || object.iter().any(|word| TAG.contains(word));
    let is_verb = SAY.contains(&word)
        || SAID.contains(&word)
        || (PRINT.contains(&word) && by_somebody)
        || ((END_WITH.contains(&word) || ENDED_WITH.contains(&word)) && object.contains(&"with"));
    is_verb.then_some(verb)
}

/// Whether what follows these words only says which thing they mean.
fn is_told_of(words: &[&str]) -> bool {
    let near = &words[words.len().saturating_sub(NEAR)..];
    let begins = |pair: &[&str]| matches!(pair, ["everything", "you" | "the"] | ["as", "you"]);
    let begun = near.windows(2).rposition(begins);
    near.iter().any(|word| matches!(*word, "what" | "whatever"))
        || begun.is_some_and(|at| !near[at..].iter().any(|word| SPEAKER.contains(word)))
}

fn needs_more(words: &[&str]) -> bool {
    let last = words.last().copied().unwrap_or_default();
    NEEDS_MORE.contains(&last) || words.ends_with(&["off", "on"])
}

fn leads_on(words: &[&str]) -> bool {
    matches!(words, [.., before, last] if LEADS_ON.contains(last) && !FOR.contains(before))
}

fn has_no_work(words: &[&str]) -> bool {
    words.iter().any(|word| NO_WORK.contains(word))
}

/// Whether something is to be said only after something else: "I will say it when it works".
fn is_put_off(words: &[&str]) -> bool {
    let waits = |at: &usize| match words[*at] {
        "when" | "if" | "until" | "unless" | "whenever" => true,
        "once" => !matches!(words.get(at + 1), Some(&("more" | "again"))),
        "after" => words.get(at + 1).is_some_and(|next| !next.ends_with("ing")),
        "as" => words.get(at + 1) == Some(&"soon"),
        "at" => words[*at..].starts_with(&["at", "the", "end"]),
        _ => false,
    };
    let verb = says(words).unwrap_or(0);
    let is_due = |at: usize| {
        let between = words.get(at..verb).unwrap_or_default();
        let plans = between.iter().any(|word| OBLIGED.contains(word) || *word == "will" || word.ends_with("'ll"));
        plans && !between.iter().any(|word| THEREFORE.contains(word) || *word == "now")
    };
    (0..words.len()).filter(waits).any(|at| says(&words[..at]).is_some() || is_due(at))
}

/// Whether a clause says outright that the tag holds: "so I can say …", "the work is …", "here is …", "ending with …".
fn affirms(clause: &str) -> bool {
    let part = clause.rsplit([',', ';', '—']).next().unwrap_or_default();
    let words = plain(part);
    let concluded = words.iter().rposition(|word| CONCLUDES.contains(word) || THEREFORE.contains(word));
    let concludes = |at: usize| is_affirmed(&words[at + 1..], true);
    !is_to_come(&words) && (is_affirmed(&words, false) || concluded.is_some_and(concludes))
}

/// "Let me mend it so I can say …", "two more fixes and it is …"
fn is_to_come(words: &[&str]) -> bool {
    let is_told = words.iter().any(|word| matches!(*word, "were" | "was" | "added"));
    let wants_more = |pair: &[&str]| pair[1] == "more" && (is_a_number(pair[0]) || pair[0] == "few");
    words.first() == Some(&"let") || (!is_told && words.windows(2).any(wants_more))
}

/// The same of a part of it, which may draw a conclusion.
fn is_affirmed(part: &[&str], concludes: bool) -> bool {
    match part {
        ["here" | "here's", ..] => !is_only_shown(part),
        ["i" | "we", "believe" | "think" | "consider", rest @ ..]
        | ["i'm" | "we're", "confident" | "sure", rest @ ..] => is_affirmed(rest, concludes),
        ["which", "brings", "us" | "me", "to"] => true,
        [first, ..] if first.ends_with("ing") && says(&[first, "with"]).is_some() => true,
        [.., "is" | "are" | "it's" | "that's"] => {
            matches!(
                part[0],
                "this" | "it" | "it's" | "that" | "that's" | "everything" | "all" | "the" | "my" | "our" | "status"
            ) && !has_no_work(part)
        }
        _ => says(part).is_some_and(|verb| is_said_outright(part, verb, concludes)),
    }
}

/// Whether whoever speaks says it, and nothing stands between but that it can be said. Whoever draws a conclusion may also
/// have to say it.
fn is_said_outright(part: &[&str], verb: usize, concludes: bool) -> bool {
    let Some(speaker) = part[..verb].iter().rposition(|word| SPEAKER.contains(word)) else { return false };
    let said = SAY.contains(&part[verb]) || PRINT.contains(&part[verb]) || END_WITH.contains(&part[verb]);
    let between = &part[speaker + 1..verb];
    let outright = |word: &&str| OUTRIGHT.contains(word) || (concludes && OBLIGED.contains(word));
    let opened = speaker == 0 || (OPENERS.contains(&part[0]) && !has_no_work(&part[..speaker]));
    said && opened && between.iter().all(outright)
}

/// "… and can now say:", where whoever speaks is named further above.
fn is_announced_outright(words: &[&str], verb: usize) -> bool {
    let and = words[..verb].iter().rposition(|word| *word == "and");
    and.is_some_and(|and| {
        let between = &words[and + 1..verb];
        !between.is_empty() && !has_no_work(&words[..and]) && between.iter().all(|word| OUTRIGHT.contains(word))
    })
}
