//! The names of a payload's fields, taken from its `Deserialize` implementation, so that there is no second list.

use std::fmt::Display;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;

/// Returns the names of a struct's fields; `None` for a type that does not deserialize as a struct.
pub(super) fn struct_field_names<'de, T: Deserialize<'de>>() -> Option<&'static [&'static str]> {
    match T::deserialize(FieldNameProbe) {
        Err(ProbedFieldNames(names)) => names,
        Ok(_) => None,
    }
}

/// A deserializer that reads nothing and returns the field names that the type asks for.
struct FieldNameProbe;

/// The field names, carried by the error: nothing is deserialized.
#[derive(Debug, thiserror::Error)]
#[error("the fields are {0:?}")]
struct ProbedFieldNames(Option<&'static [&'static str]>);

impl Error for ProbedFieldNames {
    fn custom<T: Display>(_: T) -> Self {
        Self(None)
    }
}

impl<'de> Deserializer<'de> for FieldNameProbe {
    type Error = ProbedFieldNames;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ProbedFieldNames> {
        Err(ProbedFieldNames(None))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ProbedFieldNames> {
        Err(ProbedFieldNames(Some(fields)))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use crate::log::event_type::EventType;

    #[test]
    fn payload_fields_are_those_of_the_log() {
        assert_eq!(EventType::TaskCompleted.data_fields(), Some(&["result", "artifacts"][..]));
        assert_eq!(EventType::TaskReady.data_fields(), Some(&[][..]));
        assert_eq!(EventType::FactLogged.data_fields(), None);
        let unknown = EventType::ALL.iter().filter(|kind| kind.data_field_names().is_none());
        assert_eq!(unknown.collect::<Vec<_>>(), [&EventType::FactLogged]);
    }
}
