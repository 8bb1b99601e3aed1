//! How much memory this program may use if nobody says: a quarter of what there is.
//!
//! What there is, is the machine's memory or the tightest limit of the control groups around this
//! process (version 2 first, then 1). Whatever cannot be read counts as no limit.

use std::fs;
use std::path::Path;

/// The budget where not even the machine's memory can be read: 256 MiB.
const FALLBACK_BYTES: u64 = 256 << 20;
/// Less than this serves nobody: 16 MiB.
const BYTES_MIN: u64 = 16 << 20;

/// The default budget in bytes, by what lies below this root of a file system.
pub(super) fn default_budget(root: &Path) -> u64 {
    let limits = [machine_bytes(root), group_bytes(root)];
    let available = limits.into_iter().flatten().min();
    available.map_or(FALLBACK_BYTES, |bytes| (bytes / 4).max(BYTES_MIN))
}

fn machine_bytes(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The lowest limit of this process's groups and of all groups above them.
fn group_bytes(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let limits = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        let is_memory = controllers.split(',').any(|name| name == "memory");
        match (controllers.is_empty(), is_memory) {
            (true, _) => lowest_limit(&root.join("sys/fs/cgroup"), group, "memory.max"),
            (_, true) => {
                let mount = root.join("sys/fs/cgroup/memory");
                lowest_limit(&mount, group, "memory.limit_in_bytes")
            }
            _ => None,
        }
    });
    limits.min()
}

/// Walks from a group up to its mount. Inside a container the group's own path may not be visible;
/// the mount itself then carries the container's limit.
fn lowest_limit(mount: &Path, group: &str, file: &str) -> Option<u64> {
    let group = mount.join(group.trim_start_matches('/'));
    let levels = group.ancestors().take_while(|level| level.starts_with(mount));
    // "max" (version 2) is no number and therefore no limit; neither is a number beyond any
    // machine.
    let limit =
        |level: &Path| fs::read_to_string(level.join(file)).ok()?.trim().parse::<u64>().ok();
    levels.filter_map(limit).filter(|&bytes| bytes > 0 && bytes < 1 << 60).min()
}

#[cfg(test)]
mod tests {
    use super::default_budget;
    use std::fs;
    use std::path::PathBuf;

    const GIB: u64 = 1 << 30;

    /// Name, files with their texts, and the budget that follows.
    type Case = (&'static str, &'static [(&'static str, &'static str)], u64);

    /// A root of a file system with these files, removed at the end.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str, files: &[(&str, &str)]) -> Root {
            let path = std::env::temp_dir().join(format!("sepia-{}-{name}", std::process::id()));
            for (file, text) in files {
                let file = path.join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            Root(path)
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    #[test]
    fn a_quarter_of_what_there_is() {
        const MACHINE: (&str, &str) = ("proc/meminfo", "MemFree: 1 kB\nMemTotal:    8388608 kB\n");
        const V2: (&str, &str) = ("proc/self/cgroup", "0::/a/b\n");
        const V1: (&str, &str) = ("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a\n");
        let cases: &[Case] = &[
            ("machine", &[MACHINE], 2 * GIB),
            ("nothing", &[("x", "")], 256 << 20),
            ("v2-own", &[MACHINE, V2, ("sys/fs/cgroup/a/b/memory.max", "1073741824\n")], GIB / 4),
            (
                "v2-parent",
                &[
                    MACHINE,
                    V2,
                    ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                    ("sys/fs/cgroup/a/memory.max", "2147483648\n"),
                ],
                GIB / 2,
            ),
            ("v2-mount", &[MACHINE, V2, ("sys/fs/cgroup/memory.max", "4294967296\n")], GIB),
            (
                "v1",
                &[MACHINE, V1, ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1073741824\n")],
                GIB / 4,
            ),
            (
                "v1-unlimited",
                &[
                    MACHINE,
                    V1,
                    ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
                ],
                2 * GIB,
            ),
            ("tiny", &[MACHINE, V2, ("sys/fs/cgroup/a/b/memory.max", "1048576\n")], 16 << 20),
        ];
        for (name, files, bytes) in cases {
            let root = Root::new(name, files);
            assert_eq!(default_budget(&root.0), *bytes, "{name}");
        }
    }
}
