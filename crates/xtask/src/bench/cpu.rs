//! The CPU time of a process, and the two cores that a measurement uses.

use crate::{Outcome, workspace};

/// CPU time used so far by all threads of a process.
#[derive(Clone, Copy)]
pub struct CpuTime {
    /// On a core, in nanoseconds, from `schedstat`: exact, but not split.
    pub total_ns: u64,
    /// In user code, in clock ticks of 10 ms, from `stat`: good for a share over a long time.
    pub user_ticks: u64,
    /// In the kernel, in the same ticks.
    pub system_ticks: u64,
}

impl CpuTime {
    /// Reads what a process has used. A thread that ends takes its account along, so this fits
    /// servers that keep the threads that work.
    ///
    /// # Errors
    /// When the process is gone or the kernel keeps no such accounts.
    pub fn of(process: u32) -> Outcome<CpuTime> {
        let mut total_ns = 0;
        for task in std::fs::read_dir(format!("/proc/{process}/task"))? {
            let account = task?.path().join("schedstat");
            // A thread may end between the listing and here: nothing to add.
            let Ok(line) = std::fs::read_to_string(account) else { continue };
            let on_core = line.split_whitespace().next().ok_or("an empty schedstat")?;
            total_ns += on_core.parse::<u64>()?;
        }
        if total_ns == 0 {
            return Err("the kernel keeps no accounts of time on a core (schedstat)".into());
        }
        let stat = workspace::read(format!("/proc/{process}/stat"))?;
        let (user_ticks, system_ticks) = ticks_in(&stat).ok_or("stat has another shape")?;
        Ok(CpuTime { total_ns, user_ticks, system_ticks })
    }

    /// What was used since an earlier reading.
    pub fn since(self, earlier: CpuTime) -> CpuTime {
        CpuTime {
            total_ns: self.total_ns.saturating_sub(earlier.total_ns),
            user_ticks: self.user_ticks - earlier.user_ticks,
            system_ticks: self.system_ticks - earlier.system_ticks,
        }
    }
}

/// User and system time: the 14th and 15th field, counted behind the name, which may hold blanks.
fn ticks_in(stat: &str) -> Option<(u64, u64)> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// A core for the server and another for the generator.
///
/// # Errors
/// When this process may use one core only.
pub fn two_cores() -> Outcome<(usize, usize)> {
    let status = workspace::read("/proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    match cores_in(list.unwrap_or_default().trim()).as_slice() {
        [server, generator, ..] => Ok((*server, *generator)),
        _ => Err("server and generator need a core each, and there is one".into()),
    }
}

/// The cores of a list such as `0-1,4`.
fn cores_in(list: &str) -> Vec<usize> {
    let mut cores = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            cores.extend(first..=last);
        }
    }
    cores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stand_behind_a_name_with_blanks() {
        let stat = "12 (a b) c) S 1 2 3 4 5 6 7 8 9 10 111 222 0 0 20 0";
        assert_eq!(ticks_in(stat), Some((111, 222)));
        assert_eq!(ticks_in("12 (a) S"), None);
    }

    #[test]
    fn lists_of_cores_are_read() {
        assert_eq!(cores_in("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(cores_in("3"), [3]);
        assert_eq!(cores_in(""), [0; 0]);
    }

    #[test]
    fn our_own_time_is_read() {
        let used = CpuTime::of(std::process::id()).expect("our own accounts");
        assert!(used.total_ns > 0);
    }
}
