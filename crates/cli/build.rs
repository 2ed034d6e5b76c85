//! Links the program to a fixed address, where the linker knows how.
//!
//! A program that can lie anywhere has to put tens of thousands of addresses right whenever it starts, on pages that it then
//! has for itself alone. Commands of two milliseconds would spend one of them on that.

#![expect(clippy::disallowed_methods, reason = "what is built for whom is in the environment of a build")]

fn main() {
    let of_target = |name: &str| std::env::var(name).unwrap_or_default();
    if of_target("CARGO_CFG_TARGET_OS") == "linux" && of_target("CARGO_CFG_TARGET_ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
