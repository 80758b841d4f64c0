/// Writes methods that set optional fields: `name(path.of.field: Type);` with its doc comment.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($($field:ident).+: $type:ty);)+) => {
        $(
            $(#[$doc])*
            pub fn $name(mut self, value: impl Into<$type>) -> Self {
                self.$($field).+ = Some(value.into());
                self
            }
        )+
    };
}

/// Converts a struct to JSON. Plain data always serializes.
macro_rules! into_json {
    ($type:ty) => {
        impl From<$type> for serde_json::Value {
            fn from(value: $type) -> Self {
                serde_json::to_value(value).unwrap_or_default()
            }
        }
    };
}
