//! The machine of a fleet in the names of its owners.

use std::fmt::{self, Display};
use std::str::FromStr;

/// The longest name of a machine. An owner's name has 64 letters, and 40 of them are for the process.
const MAX_NAME_LENGTH: usize = 12;

/// A machine of a fleet: a name for people and eight hexadecimal digits, as in `mill-1a2b3c4d`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MachineTag {
    name: String,
    id: u32,
}

impl MachineTag {
    /// Makes the tag of a machine. Of the name it takes letters and digits, in lower case.
    pub fn new(name: &str, id: u32) -> Self {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        let name: String = name.chars().map(letter).take(MAX_NAME_LENGTH).collect();
        let name = if name.is_empty() { "machine".to_owned() } else { name };
        Self { name, id }
    }

    /// Returns the name for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the machine in an owner's name, if it has one.
    pub fn find_in_owner_name(owner: &str) -> Option<Self> {
        let mut words = owner.splitn(5, '-');
        let tag = (words.next() == Some("run")).then(|| words.nth(3)).flatten()?;
        tag.parse().ok()
    }
}

impl Display for MachineTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:08x}", self.name, self.id)
    }
}

/// A text that is no tag of a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no machine of a fleet, such as mill-1a2b3c4d")]
pub struct MachineTagError(String);

impl FromStr for MachineTag {
    type Err = MachineTagError;

    fn from_str(text: &str) -> Result<Self, MachineTagError> {
        let found = text.rsplit_once('-').and_then(|(name, id)| {
            let id = u32::from_str_radix(id, 16).ok()?;
            Some(Self { name: name.to_owned(), id })
        });
        let is_canonical = |tag: &Self| tag.to_string() == text && Self::new(&tag.name, tag.id) == *tag;
        found.filter(is_canonical).ok_or_else(|| MachineTagError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_tag_has_short_name_and_digits() {
        for (name, expected) in
            [("Mill.example.org", "mill_example-000000ab"), ("", "machine-000000ab"), ("ü-1", "__1-000000ab")]
        {
            let tag = MachineTag::new(name, 0xab);
            assert_eq!((tag.to_string().as_str(), tag.to_string().parse()), (expected, Ok(tag)));
        }
        for text in
            ["", "mill", "-1a2b3c4d", "mill-1A2b3c4d", "mill-1a2b", "mi.l-1a2b3c4d", "a_very_long_name-1a2b3c4d"]
        {
            assert!(text.parse::<MachineTag>().is_err(), "{text}");
        }
    }

    #[test]
    fn owner_name_tells_its_machine() {
        let tag = MachineTag::new("mill", 0x1a2b_3c4d);
        let owner = format!("run-77-123-0123456789abcdef-{tag}");
        assert_eq!(MachineTag::find_in_owner_name(&owner), Some(tag));
        for name in ["run-77-123-0123456789abcdef", "w1", "run-1-2-3-4", "serve-77-123-0-mill-1a2b3c4d"] {
            assert_eq!(MachineTag::find_in_owner_name(name), None, "{name}");
        }
    }
}
