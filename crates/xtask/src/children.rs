//! Programs that we run: to their end, or as servers beside us that never outlive us.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Outcome;

/// How long a server may take until it answers, or to end after it was asked to.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often a condition outside of this process is looked at.
const GLANCE: Duration = Duration::from_millis(10);

/// Runs a program to its end, its output going where ours goes.
///
/// # Errors
/// When it cannot be started, or says no by its exit status.
pub fn succeed(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|fault| format!("{}: {fault}", shown(command)))?;
    judge(command, status)
}

/// Runs a program to its end and gives what it printed; its errors go where ours go.
///
/// # Errors
/// When it cannot be started, says no by its exit status, or prints what is no UTF-8.
pub fn output(command: &mut Command) -> Outcome<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|fault| format!("{}: {fault}", shown(command)))?;
    judge(command, output.status)?;
    Ok(String::from_utf8(output.stdout)?)
}

/// Whether a program of this name is on the path.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Looks again and again until something is there.
///
/// # Errors
/// When it is not there after [`PATIENCE`]; `what` names it in the sentence.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Outcome<Option<T>>) -> Outcome<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(format!("waited {} s for {what}", PATIENCE.as_secs()).into());
        }
        std::thread::sleep(GLANCE);
    }
}

/// A port of the loopback address that was free a moment ago, for servers that cannot choose one
/// themselves.
///
/// # Errors
/// When no port is free.
pub fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A program that serves while we work, killed at the latest when this value goes.
pub struct Server {
    child: Child,
    name: &'static str,
}

impl Server {
    /// Starts it. `name` is what faults call it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(name: &'static str, command: &mut Command) -> Outcome<Server> {
        let child = command.spawn().map_err(|fault| format!("{name}: {fault}"))?;
        Ok(Server { child, name })
    }

    /// Its output, once, when it was started with a pipe for it.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its errors, once, when it was started with a pipe for them.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// When it has ended.
    pub fn must_run(&mut self) -> Outcome {
        match self.child.try_wait()? {
            Some(status) => Err(format!("{} ended by itself: {status}", self.name).into()),
            None => Ok(()),
        }
    }

    /// Waits until it accepts connections.
    ///
    /// # Errors
    /// When it ends before, or takes longer than [`PATIENCE`].
    pub fn wait_until_it_accepts(&mut self, address: SocketAddr) -> Outcome {
        let what = format!("{} to accept on {address}", self.name);
        wait_for(&what, || {
            self.must_run()?;
            Ok(TcpStream::connect(address).ok().map(drop))
        })
    }

    /// Asks it to end by SIGTERM and waits until it has.
    ///
    /// # Errors
    /// When it does not end within [`PATIENCE`], or ends with a fault.
    pub fn stop(mut self) -> Outcome {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(id.ok_or("a process id out of range")?, Signal::TERM)?;
        let status = wait_for(&format!("{} to end", self.name), || Ok(self.child.try_wait()?))?;
        if status.success() {
            return Ok(());
        }
        Err(format!("{} ended with {status}", self.name).into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has already gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the output of a starting program line by line until one satisfies `pick`, then gives the
/// lines to come to `rest` from a thread of its own, so that a full pipe never stops the program.
///
/// # Errors
/// When the output ends before; the lines so far are in the sentence.
pub fn read_until<T>(
    stream: impl Read + Send + 'static,
    pick: impl Fn(&str) -> Option<T>,
    rest: fn(String),
) -> Outcome<T> {
    let mut lines = BufReader::new(stream).lines();
    let mut seen = Vec::new();
    for line in lines.by_ref() {
        let line = line?;
        if let Some(found) = pick(&line) {
            std::thread::spawn(move || lines.map_while(Result::ok).for_each(rest));
            return Ok(found);
        }
        seen.push(line);
    }
    Err(format!("it ended before it listened, having said:\n{}", seen.join("\n")).into())
}

fn judge(command: &Command, status: ExitStatus) -> Outcome {
    if status.success() {
        return Ok(());
    }
    Err(format!("{}: {status}", shown(command)).into())
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
