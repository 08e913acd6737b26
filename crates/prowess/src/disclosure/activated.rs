//! The instructions that a conversation already contains.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

/// The skills that were activated in a conversation, each with the digest of the instructions that
/// the model was shown.
#[derive(Debug, Clone, Default)]
pub struct ActivatedSkills {
    digests: BTreeMap<String, [u8; 32]>,
}

impl ActivatedSkills {
    /// Records that a skill was activated; returns whether these instructions are new to the
    /// conversation. Changed instructions are.
    pub fn take(&mut self, name: &str, instructions: &str) -> bool {
        let digest = Sha256::digest(instructions).into();
        self.digests.insert(name.to_owned(), digest) != Some(digest)
    }

    /// Records that the instructions of a skill are no longer part of the conversation.
    pub fn forget(&mut self, name: &str) {
        self.digests.remove(name);
    }
}
