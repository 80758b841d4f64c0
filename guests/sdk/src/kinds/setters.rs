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
