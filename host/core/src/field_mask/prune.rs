//! Leaves out what a mask does not name.

use serde_json::value::RawValue;

use super::mask::FieldMask;
use crate::object::raw_json::{Members, first_byte, push_quoted};

impl FieldMask {
    /// The JSON text of an object with the fields of the mask only.
    ///
    /// # Errors
    /// If the text is not JSON.
    pub fn prune(&self, text: &str) -> Result<String, serde_json::Error> {
        let mut out = String::with_capacity(text.len() / 2);
        self.write(serde_json::from_str(text)?, &mut out)?;
        Ok(out)
    }

    /// Appends the fields of the mask. It descends no deeper than the mask.
    pub(super) fn write(
        &self,
        value: &RawValue,
        out: &mut String,
    ) -> Result<(), serde_json::Error> {
        match first_byte(value) {
            b'{' if self.is_of_object() => self.write_members(value, out),
            b'[' if self.is_of_list() => self.write_items(value, out),
            _ => {
                out.push_str(value.get());
                Ok(())
            }
        }
    }

    fn write_members(&self, value: &RawValue, out: &mut String) -> Result<(), serde_json::Error> {
        let members: Members<'_> = serde_json::from_str(value.get())?;
        out.push('{');
        let mut is_first = true;
        for (name, value) in &members {
            let Some(mask) = self.member(name) else { continue };
            if !is_first {
                out.push(',');
            }
            is_first = false;
            push_quoted(name, out);
            out.push(':');
            mask.write(value, out)?;
        }
        out.push('}');
        Ok(())
    }

    fn write_items(&self, value: &RawValue, out: &mut String) -> Result<(), serde_json::Error> {
        let items: Vec<&RawValue> = serde_json::from_str(value.get())?;
        out.push('[');
        let mut is_first = true;
        for item in items {
            let Some(mask) = self.item(item) else { continue };
            if !is_first {
                out.push(',');
            }
            is_first = false;
            mask.write(item, out)?;
        }
        out.push(']');
        Ok(())
    }
}
