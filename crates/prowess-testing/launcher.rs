//! The program that confines scripts for the tests of a crate, like `prowess` itself.

use prowess_runtime::Launcher;

fn main() {
    Launcher::hook();
}
