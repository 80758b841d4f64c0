//! Bugs that give no usable answer.

use crate::bug::Bug;
use crate::run::Run;

/// Bytes for each replica: all of the address space for a few.
const BYTES_PER_REPLICA: usize = 1 << 29;

impl Run<'_> {
    /// Does what the chosen bug does before an answer is computed.
    pub(crate) fn misbehave(&self) {
        let spec = &self.shop().spec;
        match self.bug {
            Bug::TrapOnEmptyImage => assert!(!spec.image.is_empty(), "there is an image"),
            Bug::TakesFirstPage => assert!(!spec.pages[0].is_empty() || spec.pages.len() < 9),
            Bug::ParsesImage => {
                let tag = spec.image.split_once(':');
                assert!(tag.is_some(), "an image has a tag");
            }
            Bug::SlicesImage => assert!(spec.image.len() < 4 || !spec.image[..4].is_empty()),
            Bug::AllocatesByReplicas => {
                let replicas = usize::try_from(spec.replicas).unwrap_or(0);
                let memory = Vec::<u8>::with_capacity(replicas.saturating_mul(BYTES_PER_REPLICA));
                assert!(memory.is_empty(), "nothing is in it");
                std::hint::black_box(memory);
            }
            Bug::DivideByReplicas => {
                let share = 100_u32.checked_div(spec.replicas);
                assert!(share.is_some(), "division by zero");
            }
            Bug::LoopOnZeroReplicas if spec.replicas == 0 => loop {
                std::hint::spin_loop();
            },
            Bug::TrapOnRareShop => assert!(!self.has_rare(self.bug), "the Shop is an ordinary one"),
            _ => {}
        }
    }
}
