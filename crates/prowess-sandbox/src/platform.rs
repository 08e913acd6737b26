//! What differs between operating systems: open directories, and work on whole ones.
//!
//! Each system offers the same names.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;

pub(crate) use self::system::{
    Directory, create_private_directory, create_private_script, create_temporary, is_own,
    is_plain_name, leads_outside, open_folder_lock, plain_path,
};
pub use self::system::{ProgramStream, folder_size, remove_folder};
