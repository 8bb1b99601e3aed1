//! `sepia status` and `sepia reload`: clients of a running instance's control socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ArgMatches;
use wire::{ContentDecoder, ContentLimits, Decoded, HeadLimits, Method, ResponseSpans};

use super::{fail, print, tell};
use crate::admin::control;
use crate::base::limits;

pub(super) fn status(matches: &ArgMatches) -> ExitCode {
    let target = match (matches.get_flag("all"), matches.get_flag("json")) {
        (true, _) => "/status?all",
        (_, true) => "/status?json",
        _ => "/status",
    };
    ask(matches, b"GET", target)
}

pub(super) fn reload(matches: &ArgMatches) -> ExitCode {
    ask(matches, b"POST", "/reload")
}

/// Sends a request to the chosen instance; its answer goes to standard output if it is a good one.
fn ask(matches: &ArgMatches, method: &[u8], target: &str) -> ExitCode {
    let path: Option<&PathBuf> = matches.get_one("control");
    let path = match path {
        Some(path) => path.clone(),
        None => match only_one(control::running_instances()) {
            Ok(path) => path,
            Err((message, code)) => {
                tell(&format_args!("sepia: {message}"));
                return ExitCode::from(code);
            }
        },
    };
    match exchange(&path, method, target) {
        Ok((200, content)) => print(&content),
        Ok((_, content)) => fail(&String::from_utf8_lossy(&content).trim_end()),
        Err(error) => fail(&format!("no answer on {}: {error}", path.display())),
    }
}

/// The only running instance, or a message and an exit code.
fn only_one(mut instances: Vec<PathBuf>) -> Result<PathBuf, (String, u8)> {
    match instances.len() {
        0 => Err(("no instance of this user is running; name one with --control PATH".into(), 1)),
        1 => Ok(instances.remove(0)),
        _ => {
            let paths: Vec<_> =
                instances.iter().map(|path| format!("  --control {}", path.display())).collect();
            Err((format!("several instances are running; choose one:\n{}", paths.join("\n")), 2))
        }
    }
}

/// One request on a control socket: the answer's status and content.
fn exchange(path: &Path, method: &[u8], target: &str) -> io::Result<(u16, Vec<u8>)> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(limits::ADMIN_SILENCE))?;
    stream.set_write_timeout(Some(limits::ADMIN_SILENCE))?;
    let mut request = Vec::new();
    wire::encode_request_line(&mut request, method, target.as_bytes());
    wire::encode_field(&mut request, b"Host", b"sepia");
    wire::encode_field(&mut request, b"Connection", b"close");
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request)?;
    let mut answer = Vec::new();
    stream.take(limits::ADMIN_ANSWER_BYTES).read_to_end(&mut answer)?;
    decode(&mut answer).ok_or_else(|| io::Error::other("it is no answer of a control socket"))
}

fn decode(answer: &mut [u8]) -> Option<(u16, Vec<u8>)> {
    let mut spans = ResponseSpans::default();
    let decoded =
        wire::decode_response(answer, &mut spans, Method::Get, &HeadLimits::default()).ok()?;
    let Decoded::Complete { head_len } = decoded else { return None };
    let head = spans.head(answer);
    let mut decoder = ContentDecoder::new(head.framing(), ContentLimits::default());
    let piece = decoder.decode(&answer[head_len..]).ok()?;
    let content = piece.content.to_vec();
    decoder.handle_end().ok()?;
    Some((head.status(), content))
}

#[cfg(test)]
mod tests {
    use super::{decode, exchange, only_one};
    use crate::admin::AdminServer;
    use crate::admin::control::tests::Scratch;
    use crate::admin::live::tests::Still;
    use std::sync::Arc;

    #[test]
    fn it_understands_its_own_server() {
        let scratch = Scratch::new("client");
        let path = scratch.0.join("control.sock");
        let _server = AdminServer::start(Some(&path), None, Arc::new(Still::new())).unwrap();
        let (status, content) = exchange(&path, b"GET", "/status").unwrap();
        assert_eq!(status, 200);
        assert!(String::from_utf8(content).unwrap().contains("origin-refused"));
        assert_eq!(exchange(&path, b"POST", "/reload").unwrap().0, 200);
        let (status, content) = exchange(&path, b"POST", "/reload").unwrap();
        assert_eq!((status, content.as_slice()), (422, &b"1 mistake in sepia.toml\n"[..]));
        assert!(exchange(&scratch.0.join("nobody.sock"), b"GET", "/status").is_err());
    }

    #[test]
    fn answers_that_are_none() {
        for bytes in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"] {
            assert!(decode(&mut bytes.as_bytes().to_vec()).is_none(), "{bytes}");
        }
    }

    #[test]
    fn the_only_instance_is_taken_and_several_are_listed() {
        assert_eq!(only_one(Vec::new()).unwrap_err().1, 1);
        assert_eq!(only_one(vec!["/a".into()]).unwrap().to_str(), Some("/a"));
        let (message, code) = only_one(vec!["/a".into(), "/b".into()]).unwrap_err();
        assert_eq!(code, 2);
        assert!(message.ends_with("choose one:\n  --control /a\n  --control /b"), "{message}");
    }
}
