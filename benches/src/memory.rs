//! The memory of a process, from `/proc`.

use std::fs;

use crate::BenchResult;

pub const MIB: f64 = 1024.0 * 1024.0;

/// Returns one of the sizes in a process's status, such as `RssAnon`, in bytes.
pub fn read_size(process: &str, name: &str) -> BenchResult<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")).ok_or_else(|| format!("no {name}"))?;
    Ok(kibibytes.parse::<f64>()? * 1024.0)
}

/// Runs something in this process. Returns by how much its peak memory exceeded the memory before.
pub fn measure_growth(run: impl FnOnce() -> BenchResult<()>) -> BenchResult<f64> {
    // This resets the peak in the kernel.
    fs::write("/proc/self/clear_refs", "5")?;
    let before = read_size("self", "VmRSS")?;
    run()?;
    Ok((read_size("self", "VmHWM")? - before).max(0.0))
}
