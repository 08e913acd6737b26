//! Which instructions a conversation already holds.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

/// The skills that a conversation has taken up, each with the digest of what the model was told.
#[derive(Debug, Clone, Default)]
pub struct ActivatedSkills {
    told: BTreeMap<String, [u8; 32]>,
}

impl ActivatedSkills {
    /// Notes that a skill is taken up; says whether these instructions are new to the conversation.
    /// Those that were changed meanwhile are.
    pub fn take(&mut self, name: &str, instructions: &str) -> bool {
        let digest = Sha256::digest(instructions).into();
        self.told.insert(name.to_owned(), digest) != Some(digest)
    }

    /// Notes that the instructions of a skill are no longer part of the conversation.
    pub fn forget(&mut self, name: &str) {
        self.told.remove(name);
    }
}
