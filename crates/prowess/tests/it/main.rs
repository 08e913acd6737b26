//! What the library makes of skills, good and bad, through its public names.

mod irregular;
