//! How much memory a process has, as `/proc` tells.

use std::fs;

use crate::Outcome;

pub const MIB: f64 = 1024.0 * 1024.0;

/// One of the sizes in a process's status, such as `RssAnon`, in bytes.
pub fn size(process: &str, name: &str) -> Outcome<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or_else(|| format!("no {name}"))?;
    Ok(kibibytes.parse::<f64>()? * 1024.0)
}

/// Runs something in this process. By how much memory exceeded what there was before, at its highest.
pub fn growth(run: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    // This has the kernel forget the highest so far.
    fs::write("/proc/self/clear_refs", "5")?;
    let before = size("self", "VmRSS")?;
    run()?;
    Ok((size("self", "VmHWM")? - before).max(0.0))
}
