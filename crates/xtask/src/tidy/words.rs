//! Words that say nothing, unfinished work, unsafe code outside its list, and what belongs to a
//! machine and not into the tree.

use std::path::Path;

use super::Finding;
use super::source::{Source, is_name};

/// Parts of names that say nothing about the thing named.
const BANNED: &[&str] = &["util", "utils", "helper", "helpers", "manager", "misc", "info", "data"];

/// Names that others chose.
const FORCED: &[&str] = &[
    "AuthenticationInfo",      // RFC 9110 §11.6.3
    "ProxyAuthenticationInfo", // RFC 9110 §11.7.3
    "Info",                    // the log level, so called since syslog
    "InvalidData",             // std::io::ErrorKind
    "PanicHookInfo",           // std::panic
    "PhantomData",             // std::marker
    "EventData",               // rustix::event::epoll
];

/// Marks of unfinished work, written apart so that this file does not contain them.
const UNFINISHED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// The only files with unsafe code; each block says there why it is sound.
const UNSAFE: &[&str] = &[
    "crates/sepia/src/io/nested.rs", // one epoll set inside another
    "crates/store/src/index.rs",     // the index that readers walk without a lock
    "crates/store/src/index/loom_tests.rs", // its histories in the model checker
    "crates/store/src/turn.rs",      // when what they walk may be freed
    "tests/allocations.rs",          // of any crate: an allocator that counts
];

/// Hosts of package registries and folders of one machine: a clone builds anywhere, and where
/// packages come from is that machine's own affair.
const PLACES: &[&str] = &[
    concat!("crates", ".io"),
    concat!("npmjs", ".org"),
    concat!("pypi", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("deb.debian", ".org"),
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
];

/// Written by cargo, in its own words.
const LOCK_FILE: &str = "Cargo.lock";

/// What no file of the tree may contain.
pub fn in_any_file(path: &Path, text: &str) -> Vec<Finding> {
    if path.file_name().is_some_and(|name| name == LOCK_FILE) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut find = |fault: String| findings.push(Finding::new(path, index + 1, fault));
        for place in PLACES.iter().filter(|place| line.contains(**place)) {
            find(format!("{place} belongs to a machine"));
        }
        for mark in UNFINISHED.iter().filter(|mark| has_word(line, mark)) {
            find(format!("{mark}: unfinished work has an issue, not a comment"));
        }
    }
    findings
}

/// What no Rust file may contain.
pub fn in_rust(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |line, fault: String| findings.push(Finding::new(&source.path, line, fault));
    if source.path.ends_with("mod.rs") {
        find(0, "foo.rs stands beside foo/".to_owned());
    }
    let name = source.path.file_stem().unwrap_or_default().to_string_lossy();
    if let Some(word) = banned_part(&name) {
        find(0, format!("{word} in a file's name says nothing"));
    }
    let may_be_unsafe = UNSAFE.iter().any(|path| source.path.ends_with(path));
    for token in &source.tokens {
        if token.text == "unsafe" && !may_be_unsafe {
            find(token.line, "unsafe outside the files that are listed for it".to_owned());
        }
        if let Some(word) = banned_part(&token.text) {
            find(token.line, format!("{}: {word} says nothing", token.text));
        }
    }
    findings
}

fn banned_part(name: &str) -> Option<&'static str> {
    if !is_name(name) || FORCED.contains(&name) {
        return None;
    }
    let parts = parts_of(name);
    BANNED.iter().copied().find(|word| parts.iter().any(|part| part == word))
}

/// The parts of a snake_case or CamelCase name, in lower case.
fn parts_of(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        if character == '_' || (character.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        if character != '_' {
            parts.last_mut().expect("never empty").extend(character.to_lowercase());
        }
        was_lower = !character.is_uppercase();
    }
    parts
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |character: char| character == '_' || character.is_alphanumeric();
    line.match_indices(word).any(|(start, _)| {
        !line[..start].ends_with(is_part) && !line[start + word.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(path: &str, text: &str) -> usize {
        in_rust(&Source::new(path.into(), text.to_owned())).len()
    }

    #[test]
    fn names_are_judged_by_their_parts() {
        let judged = [
            ("metadata", false),
            ("database", false),
            ("informal", false),
            ("data", true),
            ("data_len", true),
            ("user_data", true),
            ("DataFrame", true),
            ("HttpUtil", true),
            ("INFO", true),
            ("Info", false),
            ("ConnectionManager", true),
        ];
        for (name, is_banned) in judged {
            assert_eq!(banned_part(name).is_some(), is_banned, "{name}");
        }
    }

    #[test]
    fn only_code_is_judged_for_names_and_unsafe() {
        assert_eq!(rust("a.rs", "// helper data\nlet x = \"unsafe info\";"), 0);
        assert_eq!(rust("a.rs", "let data = 1;"), 1);
        assert_eq!(rust("a.rs", "unsafe { f() }"), 1);
        assert_eq!(rust("crates/store/src/turn.rs", "unsafe { f() }"), 0);
        assert_eq!(rust("a.rs", "#![deny(unsafe_op_in_unsafe_fn)]"), 0);
    }

    #[test]
    fn files_have_names_too() {
        assert_eq!(rust("src/foo/mod.rs", ""), 1);
        assert_eq!(rust("src/utils.rs", ""), 1);
        assert_eq!(rust("src/model.rs", ""), 0);
    }

    #[test]
    fn unfinished_work_and_machines_are_found_in_any_file() {
        let mark = UNFINISHED[0];
        assert_eq!(in_any_file(Path::new("a.md"), &format!("a\n{mark}: b")).len(), 1);
        assert_eq!(in_any_file(Path::new("a.md"), &format!("{mark}S and a{mark}")).len(), 0);
        assert_eq!(in_any_file(Path::new("a.toml"), PLACES[0]).len(), 1);
        assert_eq!(in_any_file(Path::new("Cargo.lock"), PLACES[0]).len(), 0);
    }
}
