//! A light scanner for Rust: what is code and what is comment or text, and the tokens of the code.
//!
//! It must never report a place that is not code. It knows nested comments, raw and byte strings,
//! and lifetimes beside character literals; it knows no macros and no grammar.

use std::path::PathBuf;

/// One Rust file.
pub struct Source {
    /// Relative to the root of the workspace.
    pub path: PathBuf,
    /// As it stands on disk.
    pub text: String,
    /// Identifiers, numbers and single punctuation characters, in order.
    pub tokens: Vec<Token>,
}

/// An identifier, a number, or one character of punctuation.
#[derive(Debug, PartialEq, Eq)]
pub struct Token {
    /// Its characters.
    pub text: String,
    /// Counted from 1.
    pub line: usize,
}

impl Source {
    /// Scans a file.
    pub fn new(path: PathBuf, text: String) -> Source {
        let tokens = tokens(&code_of(&text));
        Source { path, text, tokens }
    }

    /// The text of the token at this place, or nothing past the end.
    pub fn word(&self, place: usize) -> &str {
        self.tokens.get(place).map_or("", |token| &token.text)
    }

    /// Whether the tokens from this place on read like this.
    pub fn reads(&self, place: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(offset, word)| self.word(place + offset) == *word)
    }
}

/// Whether a token can be a name.
pub fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first == '_' || first.is_alphabetic())
}

/// The text with comments and the insides of literals turned into blanks; lines stay lines.
pub fn code_of(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut place = 0;
    while place < characters.len() {
        let length = not_code(&characters, place);
        let end = place + length.max(1);
        for &character in &characters[place..end.min(characters.len())] {
            let visible = length == 0 || character == '\n';
            code.push(if visible { character } else { ' ' });
        }
        place = end;
    }
    code
}

/// How many characters from here on are a comment or a literal; 0 when this is code.
fn not_code(characters: &[char], place: usize) -> usize {
    let rest = &characters[place..];
    let follows_name = place > 0 && is_name_part(characters[place - 1]);
    match rest {
        ['/', '/', ..] => rest.iter().position(|&c| c == '\n').unwrap_or(rest.len()),
        ['/', '*', ..] => block_comment(rest),
        ['"', ..] => quoted(rest, 0, '"'),
        ['b' | 'c', '"', ..] if !follows_name => quoted(rest, 1, '"'),
        ['b', '\'', ..] if !follows_name => quoted(rest, 1, '\''),
        ['r', '"' | '#', ..] if !follows_name => raw_string(rest, 1),
        ['b' | 'c', 'r', '"' | '#', ..] if !follows_name => raw_string(rest, 2),
        // A lifetime is a quote and a name with no quote behind its first character.
        ['\'', '\\', ..] => quoted(rest, 0, '\''),
        ['\'', _, '\'', ..] => 3,
        _ => 0,
    }
}

fn block_comment(rest: &[char]) -> usize {
    let mut depth = 0_usize;
    let mut place = 0;
    while place < rest.len() {
        match &rest[place..] {
            ['/', '*', ..] => {
                depth += 1;
                place += 2;
            }
            ['*', '/', ..] => {
                depth -= 1;
                place += 2;
                if depth == 0 {
                    return place;
                }
            }
            _ => place += 1,
        }
    }
    rest.len()
}

/// A literal with escapes, its opening quote at `open`.
fn quoted(rest: &[char], open: usize, quote: char) -> usize {
    let mut place = open + 1;
    while place < rest.len() {
        match rest[place] {
            '\\' => place += 2,
            other if other == quote => return place + 1,
            _ => place += 1,
        }
    }
    rest.len()
}

/// A literal without escapes, its number signs or quote starting at `open`; 0 when it is a raw
/// identifier.
fn raw_string(rest: &[char], open: usize) -> usize {
    let signs = rest[open..].iter().take_while(|&&c| c == '#').count();
    let start = open + signs;
    if rest.get(start) != Some(&'"') {
        return 0;
    }
    let closes = |place: usize| {
        rest[place] == '"'
            && rest[place + 1..].len() >= signs
            && rest[place + 1..place + 1 + signs].iter().all(|&c| c == '#')
    };
    let end = (start + 1..rest.len()).find(|&place| closes(place));
    end.map_or(rest.len(), |place| place + 1 + signs)
}

fn tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = match rest.find(|c| !is_name_part(c)) {
                Some(0) => first.len_utf8(),
                Some(end) => end,
                None => rest.len(),
            };
            let (text, behind) = rest.split_at(length);
            tokens.push(Token { text: text.to_owned(), line: index + 1 });
            rest = behind.trim_start();
        }
    }
    tokens
}

fn is_name_part(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of a line when blanks are folded.
    fn left_of(text: &str) -> String {
        code_of(text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        let cases = [
            ("a // b\nc", "a c"),
            ("a /* b /* c */ d */ e", "a e"),
            ("a /* never closed", "a"),
            (r#"f("b \" c") d"#, "f( ) d"),
            (r###"f(r#"b " c"#) d"###, "f( ) d"),
            (r##"f(b"x", br#"y"#, c"z")"##, "f( , , )"),
            (r"f('a', '\'', '\u{7f}', b'\n', '\\') 'x'", "f( , , , , )"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("'outer: loop { break 'outer }", "'outer: loop { break 'outer }"),
            ("let r#type = number\"\";", "let r#type = number ;"),
            ("'\"' a \"'\" b", "a b"),
        ];
        for (text, left) in cases {
            assert_eq!(left_of(text), left, "{text}");
        }
    }

    #[test]
    fn lines_stay_lines() {
        let text = "a\n\"b\nc\"\n/* d\n */ e\n";
        assert_eq!(code_of(text).lines().count(), text.lines().count());
        let found = tokens(&code_of(text));
        let e = Token { text: "e".to_owned(), line: 5 };
        assert_eq!(found.last(), Some(&e));
    }

    #[test]
    fn tokens_are_names_numbers_and_single_marks() {
        let found = tokens("use crate::a_b::{C, d1};");
        let words: Vec<&str> = found.iter().map(|token| token.text.as_str()).collect();
        let expected = ["use", "crate", ":", ":", "a_b", ":", ":", "{", "C", ",", "d1", "}", ";"];
        assert_eq!(words, expected);
    }
}
