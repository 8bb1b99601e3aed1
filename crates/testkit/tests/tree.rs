//! The folder tree: whoever follows its links finds every file.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::tree::{FILES, write_tree};

/// Files reached from the index of `folder` on.
fn follow(folder: &Path) -> usize {
    let html = fs::read_to_string(folder.join("index.html")).expect("an index");
    let links = html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let below = links.map(|link| match link.strip_suffix('/') {
        Some(name) => follow(&folder.join(name)),
        None => {
            assert!(folder.join(link.replace("%20", " ")).is_file(), "{link}");
            1
        }
    });
    1 + below.sum::<usize>()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn links_lead_to_all_of_the_files() {
    let root = std::env::temp_dir().join(format!("testkit-tree-{}", std::process::id()));
    let tree = write_tree(&root).unwrap();
    let files = files_below(&root);
    let bytes: u64 = files.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert_eq!((tree.files, files.len(), follow(&root)), (FILES, FILES, FILES));
    assert_eq!((tree.folders, tree.bytes), (22, bytes));
    let index = fs::read(root.join("index.html")).unwrap();
    assert_eq!(write_tree(&root).unwrap(), tree);
    assert_eq!(fs::read(root.join("index.html")).unwrap(), index);
    fs::remove_dir_all(root).unwrap();
}
