//! A folder tree on disk for recursive clients such as `wget -r`.
//!
//! 500 files in 22 folders; every folder's `index.html` links to all it holds, so that a client
//! that follows links finds every file. It must never depend on the machine: equal calls write
//! equal bytes.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use crate::site::{content_at, mix};

/// Files of the tree, with the `index.html` of each folder.
pub const FILES: usize = 500;

const TOP_FOLDERS: [&str; 7] = ["bay", "cliff", "delta", "fjord", "island", "lagoon", "reef"];
const SUB_FOLDERS: [&str; 2] = ["east", "west"];
/// The one file of some size.
const LARGE_BYTES: usize = 2_000_000;

/// What has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Files, with the index of each folder.
    pub files: usize,
    /// Folders, with the root.
    pub folders: usize,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Writes the tree below `root`, which is made if it does not exist.
///
/// # Errors
/// When a folder or file cannot be written.
pub fn write_tree(root: &Path) -> io::Result<Tree> {
    let folders = folders();
    let ordinary = FILES - folders.len();
    let mut bytes = 0;
    for (place, folder) in folders.iter().enumerate() {
        let within = root.join(folder);
        fs::create_dir_all(&within)?;
        let mut names = Vec::new();
        for number in (place..ordinary).step_by(folders.len()) {
            let (name, content) = file(number);
            fs::write(within.join(&name), &content)?;
            bytes += content.len() as u64;
            names.push(name);
        }
        let index = index(folder, &names);
        fs::write(within.join("index.html"), &index)?;
        bytes += index.len() as u64;
    }
    Ok(Tree { files: FILES, folders: folders.len(), bytes })
}

/// Every folder, relative to the root, which is the empty one.
fn folders() -> Vec<String> {
    let mut folders = vec![String::new()];
    for top in TOP_FOLDERS {
        folders.push(format!("{top}/"));
        folders.extend(SUB_FOLDERS.iter().map(|sub| format!("{top}/{sub}/")));
    }
    folders
}

/// Name and content of file `number`: text, picture or bytes; the first is empty, one is large,
/// and some names have a space.
fn file(number: usize) -> (String, Vec<u8>) {
    let random = mix(number as u64);
    let length = match number {
        0 => 0,
        100 => LARGE_BYTES,
        _ => usize::try_from(random % 20_000).unwrap_or(0),
    };
    match number % 4 {
        0 => (format!("bytes-{number:03}.bin"), content_at(random >> 16, length)),
        1 => (format!("note-{number:03}.txt"), text(number, length)),
        2 => (format!("two words {number:03}.txt"), text(number, length)),
        _ => (format!("picture-{number:03}.svg"), picture(random)),
    }
}

fn text(number: usize, length: usize) -> Vec<u8> {
    format!("Note {number} from the shore. ").bytes().cycle().take(length).collect()
}

fn picture(random: u64) -> Vec<u8> {
    let (hue, radius) = (random % 360, 10 + random % 39);
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 100 100\">\
         <circle cx=\"50\" cy=\"50\" r=\"{radius}\" fill=\"hsl({hue} 60% 50%)\"/></svg>\n"
    );
    svg.into_bytes()
}

fn index(folder: &str, names: &[String]) -> String {
    let below: Vec<String> = match folder.matches('/').count() {
        0 => TOP_FOLDERS.iter().map(|name| format!("{name}/")).collect(),
        1 => SUB_FOLDERS.iter().map(|name| format!("{name}/")).collect(),
        _ => Vec::new(),
    };
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\
         <title>/{folder}</title></head>\n<body>\n<h1>/{folder}</h1>\n<ul>\n"
    );
    for name in below.iter().chain(names) {
        let link = name.replace(' ', "%20");
        let _ = writeln!(html, "<li><a href=\"{link}\">{name}</a></li>");
    }
    html.push_str("</ul>\n</body>\n</html>\n");
    html
}
