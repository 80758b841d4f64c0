//! A JSON text of an object: as it is, or compressed by a dictionary.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A text that compression makes less than this many bytes shorter stays as it is.
const SAVING_MIN: usize = 48;

/// A text of fewer bytes is not compressed: it would save little, and compression costs a pass over
/// the dictionary, however short the text is.
const BYTES_MIN: usize = 2 * SAVING_MIN;

/// A JSON text: that of an object, or of a part of it. [`ObjectText::read`] gives it.
#[derive(Clone)]
pub struct ObjectText(Form);

#[derive(Clone)]
enum Form {
    Plain(Box<str>),
    Compressed {
        /// A block of LZ4.
        block: Box<[u8]>,
        /// The text of another object, to whose parts the block refers.
        dictionary: Arc<str>,
        /// The bytes of the text.
        len: u32,
    },
}

impl ObjectText {
    /// The text. A compressed one is decompressed each time.
    pub fn read(&self) -> Cow<'_, str> {
        match &self.0 {
            Form::Plain(text) => Cow::Borrowed(text),
            Form::Compressed { block, dictionary, len } => {
                // `compressed` has read the block once, so this never gives the empty text.
                Cow::Owned(decompress(block, dictionary, *len).unwrap_or_default())
            }
        }
    }

    /// The bytes of the text.
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Plain(text) => text.len(),
            Form::Compressed { len, .. } => *len as usize,
        }
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of memory, without the dictionary, which many texts share.
    pub fn stored_bytes(&self) -> usize {
        match &self.0 {
            Form::Plain(text) => text.len(),
            Form::Compressed { block, .. } => block.len(),
        }
    }

    /// Whether compression may save anything: the text is neither compressed nor short.
    pub(super) fn is_compressible(&self) -> bool {
        matches!(&self.0, Form::Plain(text) if text.len() >= BYTES_MIN)
    }

    /// The same text compressed by a dictionary ([`dictionary`]); `None` if that saves little, or
    /// if it is short or compressed already.
    pub(super) fn compressed(&self, dictionary: &Arc<str>) -> Option<Self> {
        let Form::Plain(text) = &self.0 else { return None };
        if !self.is_compressible() {
            return None;
        }
        let len = u32::try_from(text.len()).ok()?;
        let block = lz4_flex::block::compress_with_dict(text.as_bytes(), dictionary.as_bytes());
        // If the library should make a mistake, the object keeps its text.
        let is_shorter = block.len() + SAVING_MIN <= text.len();
        if !is_shorter || decompress(&block, dictionary, len).as_deref() != Some(text) {
            return None;
        }
        let (block, dictionary) = (block.into(), dictionary.clone());
        Some(Self(Form::Compressed { block, dictionary, len }))
    }
}

/// A dictionary of at most this many bytes of a text, for texts that have much in common with it.
pub(super) fn dictionary(text: &str, bytes_max: usize) -> Arc<str> {
    let end = text.floor_char_boundary(bytes_max);
    text.get(..end).unwrap_or_default().into()
}

fn decompress(block: &[u8], dictionary: &str, len: u32) -> Option<String> {
    let text = lz4_flex::block::decompress_with_dict(block, len as usize, dictionary.as_bytes());
    String::from_utf8(text.ok()?).ok()
}

impl<T: Into<Box<str>>> From<T> for ObjectText {
    fn from(text: T) -> Self {
        Self(Form::Plain(text.into()))
    }
}

impl PartialEq for ObjectText {
    fn eq(&self, other: &Self) -> bool {
        let has_same_form = match (&self.0, &other.0) {
            (
                Form::Compressed { block, dictionary, .. },
                Form::Compressed { block: others, dictionary: of_others, .. },
            ) => block == others && Arc::ptr_eq(dictionary, of_others),
            _ => false,
        };
        has_same_form || (self.len() == other.len() && self.read() == other.read())
    }
}

impl Eq for ObjectText {}

impl fmt::Debug for ObjectText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.read(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(rng: &mut fastrand::Rng) -> String {
        let words = ["\"name\":", "{", "}", "\"ü\"", "\"a-long-value-that-repeats\"", ",", "7"];
        (0..rng.usize(0..400)).map(|_| words[rng.usize(0..words.len())]).collect()
    }

    #[test]
    fn compressed_text_is_the_same_text() {
        let mut rng = fastrand::Rng::with_seed(18);
        let mut shorter = 0;
        for _ in 0..2_000 {
            let dictionary = dictionary(&json(&mut rng), 32 << 10);
            let plain = ObjectText::from(json(&mut rng));
            let Some(compressed) = plain.compressed(&dictionary) else { continue };
            shorter += 1;
            assert_eq!((&compressed, compressed.len()), (&plain, plain.len()));
            assert_eq!(plain.compressed(&dictionary).unwrap(), compressed);
            assert!(compressed.stored_bytes() < plain.stored_bytes());
            assert!(compressed.compressed(&dictionary).is_none(), "it is compressed");
        }
        assert!(shorter > 1_000, "{shorter}");
    }

    #[test]
    fn text_that_compression_hardly_shortens_stays_as_it_is() {
        let empty = dictionary("", 32 << 10);
        for text in ["", "{}", r#"{"a":1}"#, &"a".repeat(BYTES_MIN - 1)] {
            assert!(ObjectText::from(text).compressed(&empty).is_none(), "{text}");
        }
        let random: String = std::iter::repeat_with(fastrand::alphanumeric).take(5_000).collect();
        assert!(ObjectText::from(random).compressed(&empty).is_none());
    }

    #[test]
    fn dictionary_ends_within_its_limit_at_the_end_of_a_character() {
        let bytes_max = 4 << 10;
        let text = "ü".repeat(bytes_max);
        for text in [text.clone(), format!("a{text}")] {
            let dictionary = dictionary(&text, bytes_max);
            assert!(dictionary.len() <= bytes_max && text.starts_with(&*dictionary));
            assert!(dictionary.len() > bytes_max - 2);
            let compressed = ObjectText::from(text.clone()).compressed(&dictionary).unwrap();
            assert_eq!(compressed.read(), text);
        }
    }
}
