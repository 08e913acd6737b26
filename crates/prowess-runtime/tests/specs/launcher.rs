//! The program that confines scripts for the tests, like `prowess` itself.

use prowess_sandbox::Launcher;

fn main() {
    Launcher::hook();
}
