//! The program itself: words, exit codes, files, signals. Everything behind them has its own tests.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use testkit::script::{DEADLINE, Gate, ScriptedClient, ScriptedOrigin};

/// A folder that is a case's runtime directory too, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let mut number = [0; 8];
        getrandom::fill(&mut number).expect("randomness");
        let name = format!("sepia-command-{:016x}", u64::from_ne_bytes(number));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a folder");
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file");
        path
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sepia"));
        command.args(words).env("XDG_RUNTIME_DIR", &self.0).stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Ended {
        Ended::of(&self.command(words).output().expect("the program runs"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("the folder is there");
    }
}

/// How a command ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    output: String,
    errors: String,
}

impl Ended {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        Ended {
            code: output.status.code(),
            output: text(&output.stdout),
            errors: text(&output.stderr),
        }
    }
}

/// A running instance; its standard error is read line by line.
struct Instance {
    child: Child,
    banner: Vec<String>,
    errors: Option<JoinHandle<String>>,
    output: Option<ChildStdout>,
}

impl Instance {
    fn start(command: Command) -> Self {
        Instance::start_with(command, Stdio::piped())
    }

    fn start_with(mut command: Command, output: Stdio) -> Self {
        command.stdout(output).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        let mut errors = BufReader::new(child.stderr.take().expect("piped"));
        let mut banner = Vec::new();
        while banner.len() < 3 {
            let mut line = String::new();
            let count = errors.read_line(&mut line).expect("text");
            assert!(count > 0, "no banner, only {banner:?}");
            // A warning about the system may come before.
            if !banner.is_empty() || line.starts_with("sepia ") {
                banner.push(line.trim_end().to_owned());
            }
        }
        let rest = thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).expect("text");
            text
        });
        let output = child.stdout.take();
        Instance { child, banner, errors: Some(rest), output }
    }

    /// The address in the banner.
    fn address(&self) -> std::net::SocketAddr {
        let (_, rest) = self.banner[0].split_once("http://").expect("an address");
        rest.split(' ').next().expect("a word").parse().expect("an address")
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it runs");
    }

    /// Waits for the end: exit code, standard output, standard error behind the banner.
    fn end(mut self) -> Ended {
        let code = self.child.wait().expect("it ends").code();
        let mut output = String::new();
        if let Some(mut piped) = self.output.take() {
            piped.read_to_string(&mut output).expect("text");
        }
        let errors = self.errors.take().expect("taken once").join().expect("read");
        Ended { code, output, errors }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Only a failed case leaves it running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn gateway_file(folder: &Folder, to: &str) -> String {
    let socket = folder.0.join("gateway.sock");
    format!(
        "[[listen]]\naddress = \"unix:{}\"\nrole = \"reverse\"\nto = [\"http://{to}\"]\n",
        socket.display()
    )
}

fn text_of(path: &Path) -> &str {
    path.to_str().expect("a temporary path is text")
}

#[test]
fn help_and_version_are_for_standard_output() {
    let folder = Folder::new();
    for words in [&["--help"][..], &["reverse", "--help"], &["status", "--help"], &["--version"]] {
        let ended = folder.run(words);
        assert_eq!((ended.code, ended.errors.as_str()), (Some(0), ""), "{words:?}");
        assert!(ended.output.contains("sepia"), "{}", ended.output);
    }
    let help = folder.run(&["reverse", "--help"]).output;
    assert!(help.contains("Examples:") && help.contains("--memory"), "{help}");
}

#[test]
fn words_that_are_not_understood_end_with_2() {
    let folder = Folder::new();
    let cases: &[(&[&str], &str)] = &[
        (&[], "Usage"),
        (&["revers"], "reverse"),
        (&["reverse"], "--to"),
        (&["reverse", "--to", "http://a", "--memroy", "1MiB"], "--memory"),
        (&["reverse", "--to", "http://a", "--memory", "256Mb"], "256Mb"),
        (&["reverse", "--to", "https://a"], "http"),
        (&["forward", "--listen", "nowhere:at:all"], "nowhere:at:all"),
        (&["forward", "--connect-ports", "70000"], "70000"),
        (&["serve"], "--config"),
    ];
    for (words, part) in cases {
        let ended = folder.run(words);
        assert_eq!((ended.code, ended.output.as_str()), (Some(2), ""), "{words:?} {ended:?}");
        assert!(ended.errors.contains(part), "{words:?} {}", ended.errors);
    }
}

#[test]
fn the_default_file_passes_its_own_check() {
    let folder = Folder::new();
    let default = folder.run(&["config", "--default"]);
    assert_eq!(default.code, Some(0));
    let path = folder.write("sepia.toml", &default.output);
    let ended = folder.run(&["check", "--config", text_of(&path)]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.output.contains("is good: "), "{}", ended.output);
    let schema = folder.run(&["config", "--schema"]);
    let schema: serde_json::Value = serde_json::from_str(&schema.output).expect("JSON");
    assert!(schema["properties"]["listen"].is_object());
}

#[test]
fn check_shows_each_mistake_with_line_and_caret_and_starts_nothing() {
    let folder = Folder::new();
    let path = folder.write(
        "faulty.toml",
        "memroy = \"1MiB\"\n\n[[listen]]\naddress = \":8080\"\nrole = \"reverse\"\n\
         to = [\"http://127.0.0.1:3000\"]\n\n[timeouts]\nidle = \"60 parsecs\"\n",
    );
    for command in ["check", "serve"] {
        let ended = folder.run(&[command, "-c", text_of(&path)]);
        assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""), "{ended:?}");
        for part in ["faulty.toml:1:1", "faulty.toml:9:", "^^^^^^", "memory", "memroy"] {
            assert!(ended.errors.contains(part), "{part} in\n{}", ended.errors);
        }
    }
    let nowhere = folder.0.join("nowhere.toml");
    let ended = folder.run(&["check", "-c", text_of(&nowhere)]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.errors.contains("nowhere.toml"), "{}", ended.errors);
}

#[test]
fn it_serves_until_sigterm_and_logs_to_standard_output() {
    let folder = Folder::new();
    let origin = ScriptedOrigin::start();
    origin.connection(|c| {
        c.expect_head();
        c.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello");
        c.expect_closed();
    });
    let to = format!("http://{}", origin.address());
    let words =
        ["reverse", "--to", &to, "--listen", "127.0.0.1:0", "--memory", "16MiB", "--log", "access"];
    let instance = Instance::start(folder.command(&words));
    assert!(instance.banner[0].contains("(gateway)"), "{:?}", instance.banner);
    assert!(instance.banner[1].contains(&to), "{:?}", instance.banner);
    assert!(instance.banner[2].contains("memory 16MiB"), "{:?}", instance.banner);
    let address = instance.address();
    let control = folder.0.join(format!("sepia/127.0.0.1-{}.sock", address.port()));
    assert!(control.exists());
    let mut client = ScriptedClient::connect(address);
    assert_eq!(client.get("/", "a", &[]).text(), "hello");
    assert_eq!(client.get("/", "a", &[]).text(), "hello");
    let status = folder.run(&["status"]);
    assert_eq!(status.code, Some(0), "{status:?}");
    assert!(status.output.contains("1  hits"), "{}", status.output);
    instance.signal(Signal::TERM);
    client.expect_end();
    let ended = instance.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines: Vec<_> = ended.output.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].contains("GET http://a/ 200 5 "), "{lines:#?}");
    assert!(lines[1].contains("\"sepia; hit; ttl="), "{lines:#?}");
    assert!(!control.exists(), "the control socket goes with its instance");
    assert_eq!(folder.run(&["status"]).code, Some(1), "nobody is running");
    origin.finish();
}

#[test]
fn ctrl_c_finishes_what_is_in_hand() {
    let folder = Folder::new();
    let origin = ScriptedOrigin::start();
    let (asked, answer) = (Gate::new(), Gate::new());
    let (was_asked, may_answer) = (asked.clone(), answer.clone());
    origin.connection(move |c| {
        c.expect_head();
        was_asked.open();
        may_answer.wait();
        c.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        c.expect_closed();
    });
    let to = format!("http://{}", origin.address());
    let words = ["reverse", "--to", &to, "--listen", "127.0.0.1:0"];
    let instance = Instance::start(folder.command(&words));
    let address = instance.address();
    let mut client = ScriptedClient::connect(address);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    asked.wait();
    instance.signal(Signal::INT);
    while std::net::TcpStream::connect(address).is_ok() {
        thread::yield_now();
    }
    answer.open();
    let response = client.expect_response("GET");
    assert_eq!((response.text().as_str(), response.field("connection")), ("hello", Some("close")));
    client.close();
    assert_eq!(instance.end().code, Some(0));
    origin.finish();
}

#[test]
fn a_drain_whose_time_is_over_says_so_and_ends_with_1() {
    let folder = Folder::new();
    let origin = ScriptedOrigin::start();
    let asked = Gate::new();
    let was_asked = asked.clone();
    origin.connection(move |c| {
        c.expect_head();
        was_asked.open();
        c.expect_closed();
    });
    let to = format!("http://{}", origin.address());
    let words = ["reverse", "--to", &to, "--listen", "127.0.0.1:0", "--drain", "50ms"];
    let instance = Instance::start(folder.command(&words));
    let mut client = ScriptedClient::connect(instance.address());
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    asked.wait();
    instance.signal(Signal::TERM);
    client.expect_closed();
    let ended = instance.end();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("1 exchange was cut off"), "{}", ended.errors);
    origin.finish();
}

#[test]
fn sighup_and_reload_take_a_good_file_over_and_leave_a_faulty_one() {
    let folder = Folder::new();
    let (before, after) = (ScriptedOrigin::start(), ScriptedOrigin::start());
    for (origin, content) in [(&before, "before"), (&after, "behind")] {
        origin.connection(move |c| {
            while c.next_request().is_some() {
                let head = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 6\r\n";
                c.send(format!("{head}\r\n{content}"));
            }
        });
    }
    let first = gateway_file(&folder, &before.address().to_string());
    let path = folder.write("sepia.toml", &first);
    let instance = Instance::start(folder.command(&["serve", "-c", text_of(&path)]));
    let mut client = ScriptedClient::connect_unix(folder.0.join("gateway.sock"));
    assert_eq!(client.get("/", "a", &[]).text(), "before");

    folder.write("sepia.toml", &gateway_file(&folder, &after.address().to_string()));
    instance.signal(Signal::HUP);
    while client.get("/", "a", &[]).text() != "behind" {
        thread::yield_now();
    }

    folder.write("sepia.toml", "[[listen]]\nadress = \":1\"\n");
    let ended = folder.run(&["reload"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("sepia.toml:2:1"), "{}", ended.errors);
    assert_eq!(client.get("/", "a", &[]).text(), "behind");

    folder.write("sepia.toml", &first);
    let ended = folder.run(&["reload"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.output.contains("configuration taken over"), "{}", ended.output);
    assert_eq!(client.get("/", "a", &[]).text(), "before");
    client.close();
    instance.signal(Signal::TERM);
    let ended = instance.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.errors.contains("the old configuration goes on"), "{}", ended.errors);
    assert_eq!(ended.output, "", "standard output belongs to the access log");
    before.finish();
    after.finish();
}

#[test]
fn an_occupied_port_ends_the_start_with_1() {
    let folder = Folder::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let ended = folder.run(&["forward", "--listen", &address]);
    assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""), "{ended:?}");
    assert!(ended.errors.contains(&address), "{}", ended.errors);
    assert!(ended.errors.contains("another program listens there"), "{}", ended.errors);
}

#[test]
fn of_several_instances_one_must_be_chosen() {
    let folder = Folder::new();
    let words = ["forward", "--listen", "127.0.0.1:0"];
    let instances = [0, 1].map(|_| Instance::start(folder.command(&words)));
    let ended = folder.run(&["status"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for instance in &instances {
        let name = format!("127.0.0.1-{}.sock", instance.address().port());
        let control = folder.0.join("sepia").join(&name);
        assert!(ended.errors.contains(&name), "{}", ended.errors);
        let chosen = folder.run(&["status", "--control", text_of(&control)]);
        assert_eq!(chosen.code, Some(0), "{chosen:?}");
        assert!(chosen.output.contains("forward proxy"), "{}", chosen.output);
    }
    for instance in instances {
        instance.signal(Signal::TERM);
        assert_eq!(instance.end().code, Some(0));
    }
}

#[test]
fn whoever_asks_twice_does_not_wait() {
    let folder = Folder::new();
    let origin = ScriptedOrigin::start();
    let asked = Gate::new();
    let was_asked = asked.clone();
    origin.connection(move |c| {
        c.expect_head();
        was_asked.open();
        c.expect_closed();
    });
    let to = format!("http://{}", origin.address());
    let words = ["reverse", "--to", &to, "--listen", "127.0.0.1:0"];
    let mut instance = Instance::start(folder.command(&words));
    let mut client = ScriptedClient::connect(instance.address());
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    asked.wait();
    let deadline = Instant::now() + DEADLINE;
    while instance.child.try_wait().expect("a state").is_none() {
        assert!(Instant::now() < deadline, "it waits all the same");
        instance.signal(Signal::TERM);
        thread::yield_now();
    }
    client.expect_closed();
    assert_eq!(instance.end().code, Some(1));
    origin.finish();
}

#[test]
fn it_goes_on_when_it_has_no_descriptor_left() {
    const CLIENTS: usize = 40;
    let folder = Folder::new();
    let words = ["forward", "--listen", "127.0.0.1:0", "--workers", "1"];
    let instance = Instance::start(folder.command(&words));
    let pid = Pid::from_child(&instance.child);
    let open = fs::read_dir(format!("/proc/{}/fd", instance.child.id())).expect("its descriptors");
    let few = Some(open.count() as u64 + 10);
    prlimit(Some(pid), Resource::Nofile, Rlimit { current: few, maximum: few }).expect("a limit");
    let mut clients: Vec<_> =
        (0..CLIENTS).map(|_| ScriptedClient::connect(instance.address())).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for mut client in clients {
        assert_eq!(client.expect_response("GET").status, 200);
        client.close();
    }
    let status = folder.run(&["status"]);
    assert!(status.output.contains("descriptors-exhausted"), "{status:?}");
    instance.signal(Signal::TERM);
    assert_eq!(instance.end().code, Some(0));
}

#[test]
fn a_listeners_unix_socket_takes_nobodys_place() {
    let folder = Folder::new();
    let precious = folder.write("precious", "words");
    let ended = folder.run(&["forward", "--listen", &format!("unix:{}", text_of(&precious))]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("is there and no socket"), "{}", ended.errors);
    assert_eq!(fs::read_to_string(&precious).expect("it is still there"), "words");

    let path = folder.0.join("site.sock");
    let listen = format!("unix:{}", text_of(&path));
    let words = ["forward", "--listen", listen.as_str()];
    let mut killed = Instance::start(folder.command(&words));
    let ended = folder.run(&words);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("another instance answers"), "{}", ended.errors);
    killed.child.kill().expect("it runs");
    killed.end();
    assert!(path.exists(), "left behind");
    let first = Instance::start(folder.command(&words));
    fs::remove_file(&path).expect("it is there");
    let control = folder.0.join("second.sock");
    let words = ["forward", "--listen", listen.as_str(), "--control", text_of(&control)];
    let second = Instance::start(folder.command(&words));
    first.signal(Signal::TERM);
    assert_eq!(first.end().code, Some(0));
    assert!(path.exists(), "the second instance keeps its socket");
    second.signal(Signal::TERM);
    assert_eq!(second.end().code, Some(0));
    assert!(!path.exists());
}

#[test]
fn a_signal_during_the_start_is_obeyed_behind_it() {
    let folder = Folder::new();
    let control = folder.0.join("control.sock");
    for signal in [Signal::TERM, Signal::INT] {
        let words = ["forward", "--listen", "127.0.0.1:0", "--control", text_of(&control)];
        let mut child = folder.command(&words).stderr(Stdio::null()).spawn().expect("it runs");
        let deadline = Instant::now() + DEADLINE;
        while !control.exists() {
            assert!(Instant::now() < deadline, "it does not start");
            thread::yield_now();
        }
        for early in [Signal::HUP, signal] {
            kill_process(Pid::from_child(&child), early).expect("it runs");
        }
        assert_eq!(child.wait().expect("it ends").code(), Some(0));
        assert!(!control.exists(), "the control socket goes with its instance");
    }
}

#[test]
fn without_a_runtime_directory_the_control_socket_must_be_named() {
    let folder = Folder::new();
    let words = ["forward", "--listen", "127.0.0.1:0"];
    let closed = folder.0.join("sepia");
    fs::write(&closed, "no directory").expect("a file");
    let ended = folder.run(&words);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains(text_of(&closed)), "{}", ended.errors);
    assert!(ended.errors.contains("name one with `control`"), "{}", ended.errors);
    let control = folder.0.join("control.sock");
    let words = [&words[..], &["--control", text_of(&control)]].concat();
    let instance = Instance::start(folder.command(&words));
    instance.signal(Signal::TERM);
    assert_eq!(instance.end().code, Some(0));
}

#[test]
fn what_a_full_disk_does_not_take_is_told() {
    let folder = Folder::new();
    let full = || fs::File::create("/dev/full").expect("a device");
    for words in [&["config", "--default"][..], &["config", "--schema"]] {
        let ended = folder.command(words).stdout(full()).output().expect("the program runs");
        assert_eq!(ended.status.code(), Some(1), "{words:?}");
        assert!(Ended::of(&ended).errors.contains("cannot write to standard output"));
    }
    let control = folder.0.join("control.sock");
    let log = ["--log", "access", "--control", text_of(&control)];
    let words = [&["forward", "--listen", "127.0.0.1:0"][..], &log].concat();
    let command = folder.command(&words);
    let instance = Instance::start_with(command, full().into());
    let mut client = ScriptedClient::connect(instance.address());
    let deadline = Instant::now() + DEADLINE;
    loop {
        assert_eq!(client.get("/", "a", &[]).status, 200);
        let status = folder.run(&["status", "--control", text_of(&control)]).output;
        if status.contains("log lines dropped") || status.contains("log_lines_dropped") {
            break;
        }
        assert!(Instant::now() < deadline, "no line is missed:\n{status}");
    }
    client.close();
    instance.signal(Signal::TERM);
    assert_eq!(instance.end().code, Some(0));
}
