//! Every package that we build on has a row in docs/dependencies.md: what for, and why this one.
//! Direct dependencies of any kind, and whatever they bring into the programs.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::Finding;
use crate::{Outcome, children, workspace};

/// The page with the rows, relative to the root of the workspace.
const PAGE: &str = "docs/dependencies.md";

/// Cargo's description of our own packages and their direct dependencies.
///
/// # Errors
/// When cargo fails or prints what is no JSON.
pub fn metadata() -> Outcome<Value> {
    let mut cargo = workspace::cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    Ok(serde_json::from_str(&children::output(&mut cargo)?)?)
}

/// Packages without a row, and rows without a package.
///
/// # Errors
/// When cargo fails, or the page cannot be read.
pub fn check(metadata: &Value) -> Outcome<Vec<Finding>> {
    let page = workspace::read(PAGE)?;
    let arguments = ["tree", "--workspace", "--edges", "normal", "--prefix", "none"];
    let tree = children::output(&mut workspace::cargo(&arguments))?;
    let lock = workspace::read("Cargo.lock")?;

    let ours = names(metadata, &["packages"]);
    let mut used = names(metadata, &["packages", "dependencies"]);
    used.extend(tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned));
    used.retain(|name| !name.is_empty() && !ours.contains(name));
    // Rows may be ahead of this platform, not of the lock file.
    let locked: BTreeSet<String> = lock.lines().filter_map(locked_name).collect();
    Ok(compare(&used, &locked, &page))
}

fn compare(used: &BTreeSet<String>, locked: &BTreeSet<String>, page: &str) -> Vec<Finding> {
    let rows = names_in_rows(page);
    let mut findings = Vec::new();
    for name in used.iter().filter(|name| !rows.iter().any(|(_, row)| row == *name)) {
        findings.push(Finding::new(Path::new(PAGE), 0, format!("{name} has no row")));
    }
    for (line, name) in rows.iter().filter(|(_, name)| !locked.contains(name)) {
        let fault = format!("{name} is no package of the lock file");
        findings.push(Finding::new(Path::new(PAGE), *line, fault));
    }
    findings
}

/// The values of `name` in the lists that these keys lead to.
fn names(value: &Value, keys: &[&str]) -> BTreeSet<String> {
    let Some((first, rest)) = keys.split_first() else {
        return value["name"].as_str().map(str::to_owned).into_iter().collect();
    };
    value[*first].as_array().into_iter().flatten().flat_map(|one| names(one, rest)).collect()
}

fn locked_name(line: &str) -> Option<String> {
    line.strip_prefix("name = \"")?.strip_suffix('"').map(str::to_owned)
}

/// The names in backticks in the first two columns of all rows of tables, with the line.
fn names_in_rows(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, row) in page.lines().enumerate() {
        let Some(row) = row.strip_prefix('|') else { continue };
        for column in row.split('|').take(2) {
            let quoted = column.split('`').skip(1).step_by(2);
            found.extend(quoted.map(|name| (index + 1, name.to_owned())));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn every_package_has_a_row_and_every_row_a_package() {
        let page = "`prose` is no row\n\n| crate | brings |\n|---|---|\n\
            | `mio` | `log`, `libc` | why `this` |\n| `gone` | – | |\n";
        let found = compare(&set(&["mio", "log", "clap"]), &set(&["mio", "log", "libc"]), page);
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        let expected = [
            format!("{PAGE}: clap has no row"),
            format!("{PAGE}:6: gone is no package of the lock file"),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn names_are_found_in_what_cargo_says() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "wire", "dependencies": [{ "name": "memchr" }] },
            { "name": "lab", "dependencies": [{ "name": "clap" }, { "name": "wire" }] },
        ]});
        assert_eq!(names(&metadata, &["packages"]), set(&["lab", "wire"]));
        let direct = names(&metadata, &["packages", "dependencies"]);
        assert_eq!(direct, set(&["clap", "memchr", "wire"]));
        assert_eq!(locked_name("name = \"mio\""), Some("mio".to_owned()));
    }
}
