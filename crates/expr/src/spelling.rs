//! Suggestions for misspelled names, and conversion between cases.

/// The maximum length of a name that is compared: the comparison takes quadratic time.
const MAX_NAME_BYTES: usize = 100;
/// The maximum number of names in a suggestion.
const MAX_LISTED: usize = 40;

/// Returns the nearest known name, if any is near: small mistakes, another case, `-` for `_`.
pub fn nearest_name<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() >= MAX_NAME_BYTES {
        return None;
    }
    let plain = |name: &str| name.to_lowercase().replace(['-', ' '], "_");
    let name = plain(name);
    let most = name.chars().count().clamp(3, 30) / 3;
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&name, &plain(known)), *known))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Returns a suggestion for an unknown name: the nearest known name, or a list of all.
pub fn suggest_name(parents: &[&str], name: &str, known: &[&str]) -> String {
    let full = |name: &str| format!("`{}`", join_path(&[parents, &[name]].concat()));
    let more = if known.len() > MAX_LISTED { ", …" } else { "" };
    match nearest_name(name, known) {
        Some(near) => format!("did you mean {}?", full(near)),
        None if known.is_empty() => format!("`{}` has no fields here", join_path(parents)),
        None => {
            let listed: Vec<String> = known.iter().take(MAX_LISTED).map(|name| full(name)).collect();
            format!("known here: {}{more}", listed.join(", "))
        }
    }
}

/// Joins names to a path: `steps['make-it'].data`.
pub fn join_path(names: &[&str]) -> String {
    let mut path = names.first().copied().unwrap_or_default().to_owned();
    for name in names.iter().skip(1) {
        match name.chars().all(|letter| letter.is_alphanumeric() || letter == '_') {
            true => path.extend([".", name]),
            false => path.extend(["['", name, "']"]),
        }
    }
    path
}

/// Converts `OnTaskComplete`, `onTaskComplete` and `on-task-complete` to `on_task_complete`.
pub fn to_snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.push(if letter == '-' { '_' } else { letter.to_ascii_lowercase() });
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestion_requires_small_edit_distance() {
        let known = ["iteration", "task_id", "output"];
        assert_eq!(nearest_name("iteraton", &known), Some("iteration"));
        assert_eq!(nearest_name("Task-ID", &known), Some("task_id"));
        assert_eq!(nearest_name("deploy", &known), None);
        assert_eq!(nearest_name(&"iteration".repeat(20), &known), None);
    }
}
