//! The control socket's place: where it is, who may use it, and how a dead instance's is replaced.
//!
//! One directory per user, mode 0700 and owned by that user, holds one socket per instance, mode
//! 0600, named after the instance's first listener. Whoever can open the socket may reload and look
//! at everything; the file system is the whole of the access control.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::config::ListenAddress;
use crate::io::socket_file::{SocketFile, is_answered};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;

/// A bound control socket; dropping it removes it from the file system.
#[derive(Debug)]
pub struct ControlSocket {
    file: SocketFile,
    listener: UnixListener,
}

impl ControlSocket {
    /// Binds the socket; one that a dead instance has left behind is replaced.
    ///
    /// # Errors
    /// `AddrInUse` when another instance answers there, or what the system says about the path.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let (listener, file) = SocketFile::bind(path, bind_private)?;
        Ok(ControlSocket { file, listener })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

/// Makes a socket that has mode 0600 from its first moment: on Linux a unix socket's file takes the
/// mode of the unbound socket.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// The default path of an instance with this first listener; makes the directory if need be.
///
/// # Errors
/// When the directory cannot be made, or belongs to somebody else or is open to others.
pub fn default_path(first: &ListenAddress) -> io::Result<PathBuf> {
    let directory = own_directory();
    make_private(&directory).map_err(|error| {
        let advice = format!("no place for the control socket: {error}; name one with `control`");
        io::Error::new(error.kind(), advice)
    })?;
    Ok(directory.join(format!("{}.sock", instance_name(first))))
}

/// The name of an instance: its first listener, as a file's name.
#[must_use]
pub fn instance_name(first: &ListenAddress) -> String {
    let text = match first {
        ListenAddress::Tcp(address) => format!("{}-{}", address.ip(), address.port()),
        ListenAddress::Unix(path) => path.display().to_string(),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String =
        text.trim_matches('/').chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    // A unix socket's path has room for 107 bytes; the directory needs some of them.
    name.chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect()
}

/// The directory of this user's instances.
fn own_directory() -> PathBuf {
    let user = rustix::process::geteuid();
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(directory) if directory.is_absolute() && directory.is_dir() => directory.join("sepia"),
        _ if user.is_root() => "/run/sepia".into(),
        _ => format!("/tmp/sepia-{}", user.as_raw()).into(),
    }
}

/// Makes a directory of mode 0700, or accepts one that is this user's and nobody else's: in `/tmp`
/// a stranger may have been there first.
fn make_private(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot make {}: {error}", directory.display()))
        })?,
    }
    if is_private(directory) {
        return Ok(());
    }
    let message =
        format!("{} must be a directory of this user with mode 0700", directory.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

fn is_private(directory: &Path) -> bool {
    fs::symlink_metadata(directory).is_ok_and(|found| {
        let is_closed = found.permissions().mode() & 0o022 == 0;
        found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && is_closed
    })
}

/// The control sockets of this user's running instances, sorted.
#[must_use]
pub fn running_instances() -> Vec<PathBuf> {
    let directory = own_directory();
    if is_private(&directory) { running_in(&directory) } else { Vec::new() }
}

fn running_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "sock");
    let mut live: Vec<_> =
        entries.filter(is_socket).filter(|path| is_answered(path).unwrap_or(false)).collect();
    live.sort();
    live
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{ControlSocket, instance_name, make_private, running_in};
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    /// A directory of this test, removed at the end.
    pub(crate) struct Scratch(pub(crate) PathBuf);

    impl Scratch {
        pub(crate) fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("sepia-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    #[test]
    fn only_the_owner_may_use_it_and_the_end_removes_it() {
        let scratch = Scratch::new("owner");
        let path = scratch.0.join("a.sock");
        let socket = ControlSocket::bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(running_in(&scratch.0), std::slice::from_ref(&path));
        drop(socket);
        assert!(!path.exists());
        assert!(running_in(&scratch.0).is_empty());
    }

    #[test]
    fn a_dead_instances_socket_is_replaced_and_a_live_ones_is_not() {
        let scratch = Scratch::new("dead");
        let path = scratch.0.join("a.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "left behind");
        let live = ControlSocket::bind(&path).unwrap();
        let error = ControlSocket::bind(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(error.to_string().starts_with("another instance answers on /"));
        drop(live);
    }

    #[test]
    fn nothing_but_a_socket_is_ever_removed() {
        let scratch = Scratch::new("file");
        let path = scratch.0.join("a.sock");
        fs::write(&path, "precious").unwrap();
        assert!(ControlSocket::bind(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");

        let path = scratch.0.join("b.sock");
        let first = ControlSocket::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let second = ControlSocket::bind(&path).unwrap();
        drop(first);
        assert!(path.exists(), "the second instance keeps its socket");
        drop(second);
    }

    #[test]
    fn a_directory_that_is_open_to_others_is_refused() {
        let scratch = Scratch::new("open");
        let directory = scratch.0.join("sepia");
        make_private(&directory).unwrap();
        assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        let error = make_private(&directory).unwrap_err().to_string();
        assert!(error.ends_with("must be a directory of this user with mode 0700"), "{error}");
    }

    #[test]
    fn instances_are_named_after_their_first_listener() {
        let cases = [
            ("127.0.0.1:8080", "127.0.0.1-8080"),
            ("[::1]:8080", "--1-8080"),
            ("unix:/run/x/y.sock", "run-x-y.sock"),
        ];
        for (address, name) in cases {
            assert_eq!(instance_name(&address.parse().unwrap()), name);
        }
        let long = format!("unix:/{}", "x".repeat(100));
        assert_eq!(instance_name(&long.parse().unwrap()).len(), 60);
    }
}
