//! Puts skills where clients look, and takes them away again.
