//! Words with which a sentence says that something does not hold, holds only later, or held too early.
//!
//! The lists are short on purpose: whoever says that the work is done says so in many ways, and none of them may be missed.
//! In English a word counts anywhere in its clause. In other languages, where less is known about what else the word may
//! mean, it counts right beside what it denies.
//!
//! Not here: which text stands beside a tag (`promise`).

const NEGATIONS: [&str; 12] = [
    "not",
    "never",
    "cannot",
    "cant",
    "without",
    "unable",
    "neither",
    "nor",
    "unfinished",
    "incomplete",
    "premature",
    "yet",
];
const PLANS: [&str; 7] = ["will", "would", "should", "shall", "must", "until", "unless"];
/// Words that make a plan of the sentence that they begin.
const CONDITIONS: [&str; 2] = ["if", "once"];

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
const LAST: [&str; 9] = ["no", "not", "non", "ohne", "sans", "sin", "sem", "senza", "без"];
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
const SECOND_THOUGHTS: [&str; 10] = [
    "actually",
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
/// What follows a `wait` that is a second thought.
const AFTER_A_WAIT: [&str; 6] = ["i", "no", "that", "there", "it", "not"];

/// Words of a sentence after which another has to come.
const UNFINISHED: [&str; 23] = [
    "for", "to", "say", "saying", "write", "print", "output", "emit", "claim", "declare", "with", "by", "of", "as",
    "a", "an", "the", "is", "be", "no", "not", "until", "than",
];

/// The words of a text, in small letters as the text is.
pub fn words(text: &str) -> Vec<&str> {
    let inside = |letter: char| letter.is_alphanumeric() || matches!(letter, '\'' | '’');
    text.split(|letter| !inside(letter)).filter(|word| !word.is_empty()).collect()
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

/// Whether a sentence holds only where something else does.
pub fn is_conditional(sentence: &str) -> bool {
    words(sentence).first().is_some_and(|word| CONDITIONS.contains(word))
}

/// Whether a sentence goes on after this.
pub fn is_unfinished(text: &str) -> bool {
    let text = text.trim_end().trim_end_matches([':', '*', '_']);
    let ends_in_a_word = text.chars().next_back().is_some_and(char::is_alphanumeric);
    ends_in_a_word && words(text).last().is_some_and(|word| UNFINISHED.contains(word))
}

/// Whether a text, in any of its sentences, takes back what was said before it.
pub fn takes_back(text: &str) -> bool {
    text.split(['.', '!', '?', ';']).any(|sentence| {
        let words = words(sentence).join(" ").replace('’', "'");
        let begins = |beginning: &str| {
            words.strip_prefix(beginning).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        SECOND_THOUGHTS.iter().any(|thought| begins(thought))
            || TAKEN_BACK.iter().any(|phrase| words.contains(phrase))
            || is_a_wait(sentence)
    })
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

fn is_negation_elsewhere(word: &str) -> bool {
    ELSEWHERE.contains(&word)
}

fn ends_with_a_negation(clause: &str) -> bool {
    let clause = clause.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    let bare = clause.trim_end_matches(CHINESE_VERBS);
    bare.ends_with(CHINESE) || JAPANESE.iter().any(|word| clause.ends_with(word))
}
