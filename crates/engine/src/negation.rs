//! Words with which a sentence says that something does not hold, holds only later, or held too early.
//!
//! The lists are short on purpose: whoever says that the work is done says so in many ways, and none of them may be missed.
//! In English a word counts anywhere in its clause. In other languages, where less is known about what else the word may
//! mean, it counts right beside what it denies.
//!
//! Not here: which text stands beside a tag (`promise`), what is said about saying it (`saying`), what takes a claim back
//! that stands above (`retraction`).

use crate::saying;

const NEGATIONS: [&str; 10] =
    ["not", "never", "cannot", "unable", "neither", "nor", "unfinished", "incomplete", "premature", "yet"];
/// The same without their apostrophe.
const CARELESS: [&str; 12] =
    ["cant", "dont", "doesnt", "didnt", "isnt", "arent", "wasnt", "havent", "hasnt", "wont", "wouldnt", "shouldnt"];
/// English words that deny what follows within a few words, or put it off; further away they are about something else.
const NEAR: [&str; 18] = [
    "without saying",
    "without claiming",
    "before saying",
    "before claiming",
    "avoid",
    "avoiding",
    "withhold",
    "withholding",
    "instead of",
    "rather than",
    "far from",
    "early for",
    "refuse to",
    // What somebody else wants.
    "told to",
    "asked to",
    "supposed to",
    "say to",
    "says to",
];
/// What a line is called that only shows how the end would look, or what is still to come.
const LABELS: [&str; 34] = [
    "todo",
    "expected",
    "example",
    "remaining",
    "pending",
    "next",
    "missing",
    "plan",
    "soon",
    "later",
    "tomorrow",
    "eventually",
    "incomplete",
    "partially",
    "failing",
    "instruction",
    "instructions",
    "goal",
    "target",
    "aim",
    "sample",
    "format",
    "template",
    "step",
    "fixme",
    // Who else has said it, and when.
    "user",
    "human",
    "assistant",
    "system",
    "prompt",
    "hook",
    "previous",
    "previously",
    "earlier",
];
/// What follows one of them where it is a report.
const REPORTED: [&str; 8] = ["met", "done", "complete", "ready", "ok", "clean", "green", "passes"];
/// What a longer one begins with, and how it goes on.
const LONG_LABELS: [(&str, &[&str]); 9] = [
    ("when", &["done", "finished", "complete", "ready"]),
    ("upon", &["completion", "success"]),
    ("on", &["completion", "success"]),
    ("still", &["to", "open", "missing", "left"]),
    ("not", &["yet", "done", "finished", "complete", "ready", "there"]),
    ("to", &["do", "come", "follow"]),
    ("done", &["when", "once", "if"]),
    ("finished", &["when", "once", "if"]),
    ("last", &["time", "turn", "run", "iteration", "session"]),
];
const PLANS: [&str; 7] = ["will", "would", "should", "shall", "must", "until", "unless"];
/// Words that make a plan of the sentence that they begin.
const CONDITIONS: [&str; 6] = ["if", "once", "assuming", "provided", "providing", "supposing"];
/// Words that begin a sentence about what was as well as one about what is to come: the latter ends with a verb of saying.
const MOMENTS: [&str; 5] = ["when ", "whenever ", "as soon as ", "after that ", "after this "];
/// How long one is that only names the moment: "When the tests pass:".
const MOMENT: usize = 6;
const LATER: [&str; 9] = ["when", "once", "if", "after", "until", "soon", "next", "later", "before"];
const SAYING: [&str; 12] = [
    "say",
    "saying",
    "write",
    "print",
    "output",
    "emit",
    "claim",
    "declare",
    "end with",
    "finish with",
    "reply with",
    "respond with",
];

/// Words with which a short sentence says that something is there in part, or perhaps.
const NOT_ALL: [&str; 19] = [
    "almost",
    "nearly",
    "partly",
    "partially",
    "half",
    "halfway",
    "hardly",
    "barely",
    "maybe",
    "perhaps",
    "probably",
    "possibly",
    "hopefully",
    "soon",
    "could",
    "might",
    "waiting",
    "todo",
    "fixme",
];
const NUMBERS: [&str; 9] = ["one", "two", "three", "four", "five", "six", "some", "several", "many"];
/// How long such a sentence is.
const SHORT: usize = 3;

/// German, French, Spanish, Portuguese, Italian and Russian words that deny what follows within a few words.
const ELSEWHERE: [&str; 24] = [
    "nicht",
    "nie",
    "niemals",
    "kein",
    "keine",
    "keinen",
    "keinem",
    "keiner",
    "pas",
    "jamais",
    "aucun",
    "aucune",
    "nunca",
    "jamás",
    "ningún",
    "ninguna",
    "não",
    "nao",
    "nenhum",
    "nessun",
    "не",
    "нет",
    "никогда",
    "нельзя",
];
/// Words that do so right before it; elsewhere they mean too much else.
const LAST: [&str; 11] = ["no", "not", "without", "then", "non", "ohne", "sans", "sin", "sem", "senza", "без"];
/// What follows a Spanish `no`, and hardly an English one.
const AFTER_A_SPANISH_NO: [&str; 10] = ["puedo", "podemos", "puede", "está", "estoy", "es", "he", "hemos", "ha", "se"];
/// How far away they count.
const REACH: usize = 3;

/// Chinese and Japanese have no blanks between words: what a text ends with, but for a verb of saying or being.
const CHINESE: [char; 9] = ['没', '沒', '未', '不', '无', '無', '别', '別', '非'];
const CHINESE_VERBS: [char; 12] = ['说', '說', '写', '寫', '算', '到', '是', '能', '有', '会', '會', '出'];
const JAPANESE: [&str; 2] = ["まだ", "未だ"];
/// What a sentence begins with that denies what stands before it.
const DENIES_WHAT_WAS: [&str; 15] = [
    "还没",
    "还不",
    "還沒",
    "還不",
    "尚未",
    "不是",
    "不能",
    "不可",
    "ではな",
    "ではあり",
    "じゃな",
    "じゃあり",
    "とは言え",
    "とはいえ",
    "はまだ",
];

/// Words of a sentence after which another has to come.
const UNFINISHED: [&str; 23] = [
    "for", "to", "say", "saying", "write", "print", "output", "emit", "claim", "declare", "with", "by", "of", "as",
    "a", "an", "the", "is", "be", "no", "not", "until", "than",
];

/// The words of a text, in small letters as the text is.
pub fn words(text: &str) -> Vec<&str> {
    text.split(is_outside).filter(|word| !word.is_empty()).collect()
}

/// The last of them, without a look at the others.
fn last_word(text: &str) -> Option<&str> {
    text.rsplit(is_outside).find(|word| !word.is_empty())
}

fn is_outside(letter: char) -> bool {
    !letter.is_alphanumeric() && !matches!(letter, '\'' | '’')
}

/// Whether a clause denies what follows it.
pub fn denies_what_follows(clause: &str) -> bool {
    let words = words(clause);
    words.iter().any(|word| is_negation(word)) || denies_the_next(clause)
}

/// Whether it does so with its very last words.
pub fn denies_the_next(clause: &str) -> bool {
    let words = words(clause);
    let near = &words[words.len().saturating_sub(REACH)..];
    words.last().is_some_and(|word| LAST.contains(word))
        || is_near_a_denial(&words)
        || near.iter().any(|word| is_negation_elsewhere(word))
        || words.windows(2).any(|pair| pair[0] == "no" && AFTER_A_SPANISH_NO.contains(&pair[1]))
        || ends_with_a_negation(clause)
}

/// Whether a sentence denies what stands before it.
pub fn denies_what_was(sentence: &str) -> bool {
    let words = words(sentence);
    let near = &words[..words.len().min(REACH)];
    let spanish = near.windows(2).any(|pair| matches!(pair, ["todavía" | "todavia" | "aún" | "aun", "no"]))
        || matches!(near, ["no", next, ..] if AFTER_A_SPANISH_NO.contains(next));
    words.contains(&"yet")
        || near.iter().take(2).any(|word| is_negation(word))
        || near.iter().any(|word| is_negation_elsewhere(word))
        || spanish
        || DENIES_WHAT_WAS.iter().any(|beginning| sentence.trim_start().starts_with(beginning))
}

/// Whether a clause speaks of what is to come.
pub fn plans(clause: &str) -> bool {
    let words = words(clause);
    let hedges = |word: &str| word == "should" && words.contains(&"now");
    let is_plan = |word: &str| PLANS.contains(&word) || word.ends_with("'ll") || word.ends_with("’ll");
    words.iter().any(|word| is_plan(word) && !hedges(word))
}

/// Whether a clause speaks of what is to come after something else.
pub fn plans_for_later(clause: &str) -> bool {
    plans(clause) && words(clause).iter().any(|word| LATER.contains(word))
}

/// Whether a sentence says that something is there in part, or perhaps: "nearly there", "90 %".
pub fn is_in_part(sentence: &str) -> bool {
    let words = words(sentence);
    let share = sentence.split_once('%').and_then(|(share, _)| share.trim().parse::<f64>().ok());
    let some = share.is_some_and(|share| share < 100.0);
    some || (words.len() <= SHORT && words.first().is_some_and(|word| NOT_ALL.contains(word)))
}

/// Whether a word says how many.
pub fn is_a_number(word: &str) -> bool {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    digits || NUMBERS.contains(&word)
}

/// Whether a sentence holds only where something else does.
pub fn is_conditional(sentence: &str) -> bool {
    let plain = words(sentence).join(" ");
    let waits = MOMENTS.iter().any(|moment| plain.starts_with(moment)) && saying::ends_with_saying(sentence);
    let words = words(sentence);
    let is_moment = |word: &&str| matches!(*word, "is" | "are" | "works" | "pass" | "passes");
    let awaits = matches!(words[..], ["when", ..] if words.len() <= MOMENT && words.iter().any(is_moment))
        && sentence.trim_end().ends_with(':');
    waits || awaits || words.first().is_some_and(|word| CONDITIONS.contains(word) && !is_past(&words))
}

/// Whether what looks like a condition is a report: "once that was fixed", "provided a fix".
fn is_past(words: &[&str]) -> bool {
    match words {
        ["once", rest @ ..] => rest.iter().any(|word| matches!(*word, "was" | "were" | "had")),
        ["provided", next, ..] => matches!(*next, "a" | "an" | "more" | "better"),
        _ => false,
    }
}

/// Whether a text is nothing but the wish that something be said, as a step of a plan is.
pub fn is_a_step(text: &str) -> bool {
    let plain = words(text).join(" ");
    let step = plain.rsplit_once("then ").map_or(plain.as_str(), |(_, step)| step);
    SAYING.contains(&step) && !text.trim_end().ends_with(':')
}

/// Whether a text calls what follows it an example, or something that is still to be done.
pub fn is_a_label(text: &str) -> bool {
    let text = text.trim_end().trim_end_matches(['*', '_']);
    let announced = text.strip_suffix(':').and_then(|label| label.rsplit([',', '.', ':']).next());
    let label = announced.map(words).unwrap_or_default();
    let is_long = |(first, then): &(&str, &[&str])| matches!(label[..], [word, next, ..] if word == *first && then.contains(&next));
    match label.len() {
        0 => text.ends_with("e.g."),
        // "Instructions followed:" is a report.
        1 | 2 if LABELS.contains(&label[0]) => {
            !label[1..].iter().any(|word| word.ends_with("ed") || REPORTED.contains(word))
        }
        // A longer one is a sentence.
        1..=3 => LONG_LABELS.iter().any(is_long),
        _ => false,
    }
}

/// Whether a sentence goes on after this.
pub fn is_unfinished(text: &str) -> bool {
    let text = text.trim_end().trim_end_matches([':', '*', '_']);
    let ends_in_a_word = text.chars().next_back().is_some_and(char::is_alphanumeric);
    ends_in_a_word && last_word(text).is_some_and(|word| UNFINISHED.contains(&word))
}

fn is_negation(word: &str) -> bool {
    NEGATIONS.contains(&word) || CARELESS.contains(&word) || word.ends_with("n't") || word.ends_with("n’t")
}

fn is_near_a_denial(words: &[&str]) -> bool {
    let near = words[words.len().saturating_sub(REACH + 1)..].join(" ");
    NEAR.iter().any(|denial| {
        let rest = near.split_once(denial);
        rest.is_some_and(|(before, after)| {
            (before.is_empty() || before.ends_with(' ')) && (after.is_empty() || after.starts_with(' '))
        })
    })
}

fn is_negation_elsewhere(word: &str) -> bool {
    ELSEWHERE.contains(&word)
}

fn ends_with_a_negation(clause: &str) -> bool {
    let clause = clause.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    let bare = clause.trim_end_matches(CHINESE_VERBS);
    bare.ends_with(CHINESE) || JAPANESE.iter().any(|word| clause.ends_with(word))
}
