//! What the kernel says about a process's memory.

/// The memory of a process at one time, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// Resident now.
    pub(crate) resident: u64,
    /// The most that was ever resident.
    pub(crate) peak: u64,
}

impl Memory {
    /// Returns the memory of this process.
    pub(crate) fn now() -> Self {
        Self::of_process(std::process::id())
    }

    /// Returns the memory of the process with this id (proc(5), `status`), or zeros if the system does not tell.
    pub(crate) fn of_process(id: u32) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        Self { resident: field(&status, "VmRSS:"), peak: field(&status, "VmHWM:") }
    }
}

/// Returns a field's value in bytes. The kernel writes kilobytes.
fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1_024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_in_bytes() {
        let status = "VmPeak:\t  9 kB\nVmHWM:\t    12 kB\nVmRSS:\t     8 kB\n";
        assert_eq!((field(status, "VmRSS:"), field(status, "VmHWM:"), field(status, "VmSwap:")), (8_192, 12_288, 0));
    }

    #[test]
    fn a_process_has_memory() {
        let memory = Memory::now();
        assert!(memory.resident > 0 && memory.peak >= memory.resident);
    }
}
