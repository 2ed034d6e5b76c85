//! The names of enum values, written once.

/// Gives the values of an enum their names, which `Display` and `FromStr` use too.
macro_rules! value_names {
    ($type:ident, $what:literal, $($value:ident = $name:literal),+ $(,)?) => {
        impl $type {
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.into_iter().find(|value| value.name() == text).ok_or_else(|| {
                    let known = Self::ALL.map(Self::name).join(", ");
                    format!(concat!("no ", $what, " is called `{}`; there are {}"), text, known)
                })
            }
        }
    };
}
pub(crate) use value_names;
