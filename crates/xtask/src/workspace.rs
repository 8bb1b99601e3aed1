//! Where things are: the root of the workspace, its target folder, its crates, its tracked files.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Outcome, children};

/// The root of the workspace: the folder of the root `Cargo.toml`.
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("crates/xtask stands two folders below the root").to_path_buf()
}

/// Where cargo puts what it builds.
pub fn target_folder() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// The cargo that runs us, at the root of the workspace.
pub fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// Builds a binary of the workspace in the release profile and says where it is.
///
/// # Errors
/// When it does not compile; the compiler has then said why.
pub fn release_binary(package: &str, binary: &str) -> Outcome<PathBuf> {
    let arguments = ["build", "--quiet", "--release", "--package", package, "--bin", binary];
    children::succeed(&mut cargo(&arguments))?;
    Ok(target_folder().join("release").join(binary))
}

/// The files of the tree: tracked ones and new ones that are not ignored, relative to the root.
///
/// # Errors
/// When git cannot list them.
pub fn files() -> Outcome<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
    git.current_dir(root());
    let listed = children::output(&mut git)?;
    let mut files: Vec<PathBuf> =
        listed.split('\0').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    files.retain(|path| root().join(path).is_file());
    files.sort();
    files.dedup();
    Ok(files)
}

/// Reads a text file, named relative to the root or absolutely.
///
/// # Errors
/// When it cannot be read; the sentence names it.
pub fn read(path: impl AsRef<Path>) -> Outcome<String> {
    let path = root().join(path);
    Ok(std::fs::read_to_string(&path).map_err(|fault| format!("{}: {fault}", path.display()))?)
}
