//! Words with which a sentence says that something does not hold, holds only later, or held too early.
//!
//! The lists are short on purpose: whoever says that the work is done says so in many ways, and none of them may be missed.
//! In English a word counts anywhere in its clause. In other languages, where less is known about what else the word may
//! mean, it counts right beside what it denies.
//!
//! Not here: which text stands beside a tag (`promise`).

const NEGATIONS: [&str; 11] =
    ["not", "never", "cannot", "cant", "unable", "neither", "nor", "unfinished", "incomplete", "premature", "yet"];
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
const LABELS: [&str; 6] = ["todo", "expected", "example", "remaining", "pending", "next"];
const PLANS: [&str; 7] = ["will", "would", "should", "shall", "must", "until", "unless"];
/// Words that make a plan of the sentence that they begin.
const CONDITIONS: [&str; 2] = ["if", "once"];
/// Words that begin a sentence about what was as well as one about what is to come: the latter ends with a verb of saying.
const MOMENTS: [&str; 5] = ["when ", "whenever ", "as soon as ", "after that ", "after this "];
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

/// What begins a sentence that takes back what was said before it.
const SECOND_THOUGHTS: [&str; 11] = [
    "actually",
    "on reflection",
    "no wait",
    "oops",
    "whoops",
    "correction",
    "nevermind",
    "never mind",
    "hold on",
    "scratch that",
    "on second thought",
];
const TAKEN_BACK: [&str; 10] = [
    "i was wrong",
    "i am wrong",
    "i spoke too soon",
    "i take it back",
    "i take that back",
    "i retract",
    "not done yet",
    "not finished yet",
    "not complete yet",
    "that was premature",
];
/// What may come before such a beginning.
const FILLERS: [&str; 8] = ["hm", "hmm", "oh", "ah", "but", "sorry", "ok", "okay"];
/// What is not done, where a sentence takes back that it is.
const WORK: [&str; 9] = ["this is", "it is", "that is", "it's", "that's", "the task is", "the work is", "i am", "i'm"];
const DONE: [&str; 3] = ["done", "finished", "complete"];
/// What follows a `wait` that is a second thought.
const AFTER_A_WAIT: [&str; 6] = ["i", "no", "that", "there", "it", "not"];

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
    words(clause).iter().any(|word| PLANS.contains(word) || word.ends_with("'ll") || word.ends_with("’ll"))
}

/// Whether a clause speaks of what is to come after something else.
pub fn plans_for_later(clause: &str) -> bool {
    plans(clause) && words(clause).iter().any(|word| LATER.contains(word))
}

/// Whether a sentence holds only where something else does.
pub fn is_conditional(sentence: &str) -> bool {
    let plain = words(sentence).join(" ");
    let waits = MOMENTS.iter().any(|moment| plain.starts_with(moment)) && ends_with_saying(&plain);
    waits || words(sentence).first().is_some_and(|word| CONDITIONS.contains(word))
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
    // A longer one is a sentence.
    let label = announced.map(words).filter(|label| label.len() <= 2);
    text.ends_with("e.g.") || label.is_some_and(|label| label.first().is_some_and(|word| LABELS.contains(word)))
}

fn ends_with_saying(plain: &str) -> bool {
    let before = |saying: &&str| plain.strip_suffix(*saying);
    SAYING.iter().filter_map(before).any(|rest| rest.is_empty() || rest.ends_with(' '))
}

/// Whether a sentence goes on after this.
pub fn is_unfinished(text: &str) -> bool {
    let text = text.trim_end().trim_end_matches([':', '*', '_']);
    let ends_in_a_word = text.chars().next_back().is_some_and(char::is_alphanumeric);
    ends_in_a_word && last_word(text).is_some_and(|word| UNFINISHED.contains(&word))
}

/// Whether a text, in any of its sentences, takes back what was said before it.
pub fn takes_back(text: &str) -> bool {
    text.split(['.', '!', '?', ';']).any(|sentence| {
        let sentence = without_fillers(sentence);
        let words = words(sentence).join(" ").replace('’', "'");
        SECOND_THOUGHTS.iter().any(|thought| is_begun_by(&words, thought))
            || TAKEN_BACK.iter().any(|phrase| words.contains(phrase))
            || denies_the_work(&words)
            || is_a_wait(sentence)
    })
}

/// Whether a sentence begins with a second thought, and not with a word that only looks like one ("Actually running it …").
fn is_begun_by(words: &str, thought: &str) -> bool {
    let Some(rest) = words.strip_prefix(thought) else { return false };
    let next = rest.split(' ').nth(1).unwrap_or_default();
    let goes_on = next.ends_with("ing") || next.ends_with("ed") || matches!(next, "of" | "to" | "for");
    rest.is_empty() || rest.starts_with(' ') && !goes_on
}

/// Whether words say that the work is not done.
fn denies_the_work(words: &str) -> bool {
    WORK.iter().any(|work| {
        words.match_indices(work).any(|(place, _)| {
            let rest = words[place + work.len()..].strip_prefix(" not ");
            let whole = place == 0 || words[..place].ends_with(' ');
            whole && rest.and_then(|rest| rest.split(' ').next()).is_some_and(|word| DONE.contains(&word))
        })
    })
}

/// A sentence without what people say while they think.
fn without_fillers(sentence: &str) -> &str {
    let mut rest = sentence.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    while let Some(word) = words(rest).first().filter(|word| FILLERS.contains(word)) {
        rest = rest[word.len()..].trim_start_matches(|letter: char| !letter.is_alphanumeric());
    }
    rest
}

/// Whether a sentence begins with a `wait` that stands alone, or before a word that shows that it is meant so.
fn is_a_wait(sentence: &str) -> bool {
    let sentence = sentence.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    let Some(rest) = sentence.strip_prefix("wait") else { return false };
    match rest.trim_start().chars().next() {
        None => true,
        Some(letter) if letter.is_alphanumeric() => {
            rest.starts_with(' ') && words(rest).first().is_some_and(|next| AFTER_A_WAIT.contains(next))
        }
        Some(letter) => matches!(letter, ',' | '—' | '–' | '…' | ':') || rest.starts_with(" - "),
    }
}

fn is_negation(word: &str) -> bool {
    NEGATIONS.contains(&word) || word.ends_with("n't") || word.ends_with("n’t")
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
