//! What scripts need to run: interpreters, and files that a user names.

mod interpreter;
mod version;
mod arguments;

pub use arguments::ScriptArguments;
pub use interpreter::{Interpreter, InterpreterError, InterpreterOrigin, InterpreterSearch};
