//! Sizes: functions of 70 lines, files of 900, lines of 100 columns.
//!
//! What reads better whole may be larger with a row in [`EXEMPTIONS`] that says why. That row
//! holds the size it was granted: the function may shrink without a word, and growing means
//! editing the row, where a reviewer sees it.

use std::path::Path;

use super::Finding;
use super::source::{Source, is_name};
use crate::{Outcome, workspace};

/// The list of exemptions, relative to the root of the workspace.
const EXEMPTIONS: &str = "crates/xtask/exemptions.txt";

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 900;
const LINE_COLUMNS_MAX: usize = 100;

/// What an exemption for a whole file has in place of a function's name.
const WHOLE_FILE: &str = "-";

/// What an exemption for wide lines has in place of a function's name.
const COLUMNS: &str = "columns";

/// The granted sizes, each with its reason.
pub struct Exemptions(Vec<Exemption>);

struct Exemption {
    path: String,
    name: String,
    size_max: usize,
    /// Where it stands in the list, counted from 1.
    line: usize,
}

impl Exemptions {
    /// Reads the list.
    ///
    /// # Errors
    /// When it is not there, or a line has another form than `path | name | size | why`.
    pub fn read() -> Outcome<Exemptions> {
        Exemptions::parse(&workspace::read(EXEMPTIONS)?)
    }

    fn parse(text: &str) -> Outcome<Exemptions> {
        let mut exemptions = Vec::new();
        for (index, row) in text.lines().enumerate() {
            if row.trim().is_empty() || row.starts_with('#') {
                continue;
            }
            let line = index + 1;
            let parts: Vec<&str> = row.split('|').map(str::trim).collect();
            let [path, name, size, why] = parts.as_slice() else {
                return Err(format!("{EXEMPTIONS}:{line}: path | name | size | why").into());
            };
            if why.is_empty() {
                return Err(format!("{EXEMPTIONS}:{line}: it does not say why").into());
            }
            let size_max =
                size.parse().map_err(|fault| format!("{EXEMPTIONS}:{line}: size: {fault}"))?;
            let (path, name) = ((*path).to_owned(), (*name).to_owned());
            exemptions.push(Exemption { path, name, size_max, line });
        }
        Ok(Exemptions(exemptions))
    }

    fn of(&self, path: &Path, name: &str) -> Option<&Exemption> {
        self.0.iter().find(|one| Path::new(&one.path) == path && one.name == name)
    }
}

/// Everything that is too large, and exemptions for what is not (any more).
pub fn check(sources: &[Source], exemptions: &Exemptions) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut needed = Vec::new();
    for source in sources {
        let wide = exemptions.of(&source.path, COLUMNS);
        let columns_max = wide.map_or(LINE_COLUMNS_MAX, |one| one.size_max);
        findings.extend(wide_lines(source, columns_max));
        if !wide_lines(source, LINE_COLUMNS_MAX).is_empty() {
            needed.extend(wide.map(|one| one.line));
        }
        let lines = source.text.lines().count();
        let whole = Measured { name: WHOLE_FILE.to_owned(), line: 0, lines };
        let file = (lines > FILE_LINES_MAX).then_some((whole, "file", FILE_LINES_MAX));
        let functions = functions(source).into_iter();
        let long = functions.filter(|function| function.lines > FUNCTION_LINES_MAX);
        let long = long.map(|function| (function, "function", FUNCTION_LINES_MAX));
        for (measured, kind, lines_max) in file.into_iter().chain(long) {
            let exemption = exemptions.of(&source.path, &measured.name);
            needed.extend(exemption.map(|one| one.line));
            let granted = exemption.map_or(lines_max, |one| one.size_max);
            if measured.lines > granted {
                let Measured { name, line, lines } = measured;
                let fault = format!("{kind} {name}: {lines} lines, {granted} are granted");
                findings.push(Finding::new(&source.path, line, fault));
            }
        }
    }
    for one in exemptions.0.iter().filter(|one| !needed.contains(&one.line)) {
        let fault = format!("no exemption is needed for {} {}", one.path, one.name);
        findings.push(Finding::new(Path::new(EXEMPTIONS), one.line, fault));
    }
    findings
}

fn wide_lines(source: &Source, columns_max: usize) -> Vec<Finding> {
    let lines = source.text.lines().enumerate();
    let wide = lines.map(|(index, line)| (index + 1, line.chars().count()));
    wide.filter(|(_, columns)| *columns > columns_max)
        .map(|(line, columns)| {
            let fault = format!("{columns} columns, {columns_max} are granted");
            Finding::new(&source.path, line, fault)
        })
        .collect()
}

/// A function or file with its size.
struct Measured {
    name: String,
    line: usize,
    lines: usize,
}

/// Functions with a body, from the line of `fn` to the line of the closing brace.
fn functions(source: &Source) -> Vec<Measured> {
    let mut functions = Vec::new();
    for (place, token) in source.tokens.iter().enumerate() {
        let name = source.word(place + 1);
        if token.text != "fn" || !is_name(name) {
            continue;
        }
        if let Some(end) = end_of_body(source, place) {
            let lines = end + 1 - token.line;
            functions.push(Measured { name: name.to_owned(), line: token.line, lines });
        }
    }
    functions
}

/// The line of a function's closing brace, if it has a body.
fn end_of_body(source: &Source, place: usize) -> Option<usize> {
    let mut braces = 0_usize;
    // Array types in the signature have semicolons too.
    let mut brackets = 0_usize;
    for token in &source.tokens[place..] {
        match token.text.as_str() {
            "(" | "[" => brackets += 1,
            ")" | "]" => brackets = brackets.saturating_sub(1),
            ";" if braces == 0 && brackets == 0 => return None,
            "{" => braces += 1,
            "}" if braces <= 1 => return Some(token.line),
            "}" => braces -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/a/src/b.rs";

    fn faults(text: &str, exemptions: &str) -> Vec<String> {
        let source = Source::new(PATH.into(), text.to_owned());
        let exemptions = Exemptions::parse(exemptions).expect("a well-formed list");
        check(&[source], &exemptions).iter().map(ToString::to_string).collect()
    }

    fn function_of(lines: usize) -> String {
        format!("fn long(a: [u8; 4]) {{\n{}}}\n", "    work();\n".repeat(lines - 2))
    }

    #[test]
    fn functions_are_measured_from_fn_to_the_closing_brace() {
        assert!(faults(&function_of(70), "").is_empty());
        let found = faults(&function_of(71), "");
        assert_eq!(found, [format!("{PATH}:1: function long: 71 lines, 70 are granted")]);
        assert!(faults("trait T { fn f(&self) -> [u8; 3]; }\n", "").is_empty());
    }

    #[test]
    fn an_exemption_grants_its_own_size_and_no_more() {
        let granted = format!("# why\n{PATH} | long | 80 | one table\n");
        assert!(faults(&function_of(75), &granted).is_empty());
        let found = faults(&function_of(81), &granted);
        assert_eq!(found, [format!("{PATH}:1: function long: 81 lines, 80 are granted")]);
        let needless = faults(&function_of(70), &granted);
        let fault = format!("{EXEMPTIONS}:2: no exemption is needed for {PATH} long");
        assert_eq!(needless, [fault]);
    }

    #[test]
    fn files_and_lines_have_a_size_too() {
        assert_eq!(faults(&"\n".repeat(901), "").len(), 1);
        assert!(faults(&"\n".repeat(901), &format!("{PATH} | - | 950 | a table")).is_empty());
        assert_eq!(faults(&format!("// {}\n", "ä".repeat(98)), "").len(), 1);
        assert!(faults(&format!("// {}\n", "ä".repeat(97)), "").is_empty());
        let granted = format!("{PATH} | columns | 120 | a table");
        assert!(faults(&format!("// {}\n", "ä".repeat(117)), &granted).is_empty());
        assert_eq!(faults(&format!("// {}\n", "ä".repeat(118)), &granted).len(), 1);
        assert_eq!(faults("", &granted).len(), 1);
    }

    #[test]
    fn a_malformed_exemption_is_refused() {
        for list in ["a | b | 80", "a | b | many | why", "a | b | 80 | "] {
            assert!(Exemptions::parse(list).is_err(), "{list}");
        }
    }
}
