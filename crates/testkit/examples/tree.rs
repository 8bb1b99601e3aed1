//! Writes the folder tree for recursive clients: `cargo run -p testkit --example tree -- DIR`.

use std::path::Path;
use std::process::ExitCode;

use testkit::tree::write_tree;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [folder] = &arguments[..] else {
        eprintln!("usage: tree DIR");
        return ExitCode::from(2);
    };
    match write_tree(Path::new(folder)) {
        Ok(tree) => {
            println!("{} files in {} folders, {} bytes", tree.files, tree.folders, tree.bytes);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot write the tree: {error}");
            ExitCode::FAILURE
        }
    }
}
