//! The rows of modules inside the crate `sepia`: a row uses only the rows below it, and modules
//! that share a row never use each other. The client side and the origin side meet at the stored
//! response alone; this rule is what keeps it so.

use super::Finding;
use super::source::{Source, is_name};

/// Where the modules of `sepia` live.
const FOLDER: &str = "crates/sepia/src";

/// From the top to the bottom. `lib` is the root of the library, which may name all of them.
const ROWS: &[&[&str]] = &[
    &["main", "lib"],
    // The command line, and the generated pages that describe it.
    &["cli"],
    // The tour: starts proxies as any other program would.
    &["demo"],
    // `sepia::Proxy`: configuration in, running engine out.
    &["proxy"],
    &["engine"],
    &["client", "admin"],
    &["exchange"],
    &["policy", "cache", "origin", "tunnel", "local"],
    &["tls"],
    &["io"],
    &["log", "config"],
    &["base"],
];

/// Uses of a module that stands beside or above the one that uses it.
pub fn check(source: &Source) -> Vec<Finding> {
    let Ok(inside) = source.path.strip_prefix(FOLDER) else { return Vec::new() };
    let parts: Vec<String> =
        inside.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let own = parts.first().map_or("", String::as_str);
    let Some(own_row) = row_of(own) else {
        let fault = format!("the module {own} stands in no row of crates/xtask/src/tidy/rows.rs");
        return vec![Finding::new(&source.path, 0, fault)];
    };
    if own_row == 0 {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (line, used) in uses(source, parts.len()) {
        if used == own {
            continue;
        }
        let fault = match row_of(&used) {
            Some(row) if row > own_row => continue,
            Some(row) if row == own_row => format!("{own} and {used} are siblings"),
            Some(_) => format!("{own} stands below {used} and may not use it"),
            None => format!("crate::{used} is no module of a row: name the module it lives in"),
        };
        findings.push(Finding::new(&source.path, line, fault));
    }
    findings
}

fn row_of(module: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&module))
}

/// The modules at the root of the crate that a file names, with the line. `depth` is how far below
/// the root the file's own module is.
fn uses(source: &Source, depth: usize) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    // Braces that are open, and of these the ones that opened a module.
    let mut open = 0_usize;
    let mut modules: Vec<usize> = Vec::new();
    let mut place = 0;
    while place < source.tokens.len() {
        match source.word(place) {
            "{" => {
                if place >= 2 && source.word(place - 2) == "mod" {
                    modules.push(open);
                }
                open += 1;
            }
            "}" => {
                open = open.saturating_sub(1);
                modules.pop_if(|opened_at| *opened_at == open);
            }
            "crate" if source.reads(place + 1, &[":", ":"]) => {
                found.extend(first_names(source, place + 3));
            }
            "super" if source.reads(place + 1, &[":", ":"]) => {
                let (supers, behind) = supers(source, place);
                if supers == depth + modules.len() {
                    found.extend(first_names(source, behind));
                }
                place = behind;
                continue;
            }
            _ => {}
        }
        place += 1;
    }
    found
}

/// How often `super::` stands here, and the place behind it.
fn supers(source: &Source, mut place: usize) -> (usize, usize) {
    let mut count = 0;
    while source.reads(place, &["super", ":", ":"]) {
        count += 1;
        place += 3;
    }
    (count, place)
}

/// The first names of a path, or of each path of a group in braces. Macros have no module.
fn first_names(source: &Source, place: usize) -> Vec<(usize, String)> {
    let is_macro = |place: usize| source.word(place + 1) == "!";
    let named = |place: usize| (source.tokens[place].line, source.word(place).to_owned());
    if is_name(source.word(place)) {
        return if is_macro(place) { Vec::new() } else { vec![named(place)] };
    }
    let mut names = Vec::new();
    let mut depth = 0_usize;
    for inside in place..source.tokens.len() {
        match source.word(inside) {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            word if depth == 1 && is_name(word) => {
                if matches!(source.word(inside - 1), "{" | ",") {
                    names.push(named(inside));
                }
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        let source = Source::new(format!("{FOLDER}/{path}").into(), text.to_owned());
        check(&source).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_row_uses_the_rows_below_it() {
        assert!(faults("main.rs", "use crate::engine::Worker;").is_empty());
        assert!(faults("exchange/driver.rs", "use crate::{base, cache::lookup};").is_empty());
        assert!(faults("base/reason.rs", "use crate::base::limits;").is_empty());
        assert!(faults("client.rs", "// crate::engine\nlet x = \"crate::engine\";").is_empty());
    }

    #[test]
    fn nobody_uses_a_sibling_or_what_is_above() {
        let path = format!("{FOLDER}/cache/lookup.rs");
        let sibling = faults("cache/lookup.rs", "\nuse crate::origin::Pool;");
        assert_eq!(sibling, [format!("{path}:2: cache and origin are siblings")]);
        let above = faults("cache/lookup.rs", "fn f() { crate::engine::stop() }");
        assert_eq!(above, [format!("{path}:1: cache stands below engine and may not use it")]);
        let grouped = faults("io.rs", "use crate::{base::{x, y}, log, tls::{a, b}};");
        assert_eq!(grouped.len(), 1, "{grouped:?}");
    }

    #[test]
    fn the_root_is_reached_by_super_too() {
        assert_eq!(faults("base.rs", "use super::engine;").len(), 1);
        assert_eq!(faults("base/size.rs", "use super::engine;").len(), 0);
        assert_eq!(faults("base/size.rs", "use super::super::{engine, base};").len(), 1);
        assert_eq!(faults("base.rs", "mod tests { use super::engine; }").len(), 0);
        assert_eq!(faults("base.rs", "mod tests { } use super::engine;").len(), 1);
        assert_eq!(faults("base.rs", "pub(super) fn f() {}").len(), 0);
    }

    #[test]
    fn every_module_has_a_row() {
        assert_eq!(faults("surprise.rs", "").len(), 1);
        assert_eq!(faults("io.rs", "use crate::Proxy;").len(), 1);
        assert_eq!(faults("io.rs", "crate::reasons! {}").len(), 0);
    }
}
