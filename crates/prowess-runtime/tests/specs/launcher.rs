//! The program that holds scripts for the tests, as `prowess` does for itself.

use prowess_sandbox::Launcher;

fn main() {
    Launcher::hook();
}
