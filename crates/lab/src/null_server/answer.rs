//! The prebuilt answer of the null server, repeated so that pipelined requests take one write.
//!
//! Its length is its purpose: it must never differ from what was asked for, or the floor would be
//! that of another response.

use std::error::Error;
use std::fs;

use super::Options;

/// Answers that can be sent with one write, in bytes; a longer answer stands alone.
const REPEATED_BYTES: usize = 256 << 10;
/// The field that fills a head up to a demanded length.
const PADDING: &str = "Padding: ";

/// The same answer several times in a row.
#[derive(Debug)]
pub(super) struct Answers {
    bytes: Vec<u8>,
    answer_bytes: usize,
}

impl Answers {
    /// # Errors
    /// When the head's file cannot be read or holds no head, a field line is none, or the head is
    /// longer without padding than it has to be.
    pub(super) fn new(options: &Options) -> Result<Answers, Box<dyn Error>> {
        let mut answer = match &options.head_file {
            Some(path) => {
                let head =
                    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
                if !head.ends_with(b"\r\n\r\n") {
                    return Err(format!("{}: no head, no empty line", path.display()).into());
                }
                head
            }
            None => head(options)?.into_bytes(),
        };
        answer.resize(answer.len() + usize::try_from(options.content_bytes)?, b'.');
        let answer_bytes = answer.len();
        Ok(Answers { bytes: answer.repeat((REPEATED_BYTES / answer_bytes).max(1)), answer_bytes })
    }

    /// Length of one answer.
    pub(super) fn answer_bytes(&self) -> usize {
        self.answer_bytes
    }

    /// The bytes to send when `owed` bytes are still to come: they end with the end of an answer,
    /// so what is owed tells where the next byte stands. At least one byte, if any is owed.
    pub(super) fn next(&self, owed: usize) -> &[u8] {
        let left_of_first = match owed % self.answer_bytes {
            0 => self.answer_bytes,
            partly => partly,
        };
        let start = self.answer_bytes - left_of_first;
        let end = self.bytes.len().min(start.saturating_add(owed));
        &self.bytes[start..end]
    }
}

fn head(options: &Options) -> Result<String, String> {
    let mut head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", options.content_bytes);
    for line in &options.field {
        if !line.contains(':') || line.contains(['\r', '\n']) {
            return Err(format!("{line:?} is no field line, such as 'Cache-Control: max-age=60'"));
        }
        head.push_str(line);
        head.push_str("\r\n");
    }
    if let Some(length) = options.head_bytes {
        let length = usize::try_from(length).map_err(|_| "too long a head")?;
        // The padding field and the empty line each end with CRLF.
        let least = head.len() + PADDING.len() + 4;
        let padding = length
            .checked_sub(least)
            .ok_or_else(|| format!("the head has at least {least} bytes, not {length}"))?;
        head.push_str(&format!("{PADDING}{}\r\n", "x".repeat(padding)));
    }
    head.push_str("\r\n");
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::{Answers, REPEATED_BYTES};
    use crate::null_server::Options;

    fn options(head_bytes: Option<u32>, content_bytes: u32, fields: &[&str]) -> Options {
        Options {
            listen: "127.0.0.1:0".parse().unwrap(),
            head_file: None,
            head_bytes,
            field: fields.iter().map(|&line| line.to_owned()).collect(),
            content_bytes,
            until_stdin_closes: false,
        }
    }

    #[test]
    fn an_answer_is_as_long_as_was_asked() {
        for (head_bytes, content_bytes) in [(52, 0), (60, 100), (300, 1_000), (65_536, 100_000)] {
            let answers = match Answers::new(&options(Some(head_bytes), content_bytes, &[])) {
                Ok(answers) => answers,
                Err(error) => panic!("{head_bytes} {content_bytes}: {error}"),
            };
            assert_eq!(answers.answer_bytes(), (head_bytes + content_bytes) as usize);
            let one = answers.next(answers.answer_bytes());
            let end_of_head = one.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
            assert_eq!(end_of_head, head_bytes as usize);
        }
    }

    #[test]
    fn a_head_that_cannot_be_built_is_an_error() {
        assert!(Answers::new(&options(Some(20), 0, &[])).is_err());
        assert!(Answers::new(&options(None, 0, &["no field"])).is_err());
        assert!(Answers::new(&options(None, 0, &["A: b\r\nC: d"])).is_err());
    }

    #[test]
    fn what_is_owed_is_sent_from_the_right_place_on() {
        let answers = Answers::new(&options(None, 10, &["A: b"])).unwrap();
        let one = answers.answer_bytes();
        let all = answers.next(one).repeat(5);
        for owed in 1..=all.len() {
            assert_eq!(answers.next(owed), &all[all.len() - owed..], "{owed}");
        }
        assert!(answers.next(usize::MAX).len() <= REPEATED_BYTES);
    }
}
