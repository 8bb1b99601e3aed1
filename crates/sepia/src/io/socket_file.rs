//! The file of a unix socket: made by binding, replaced when its owner is gone, removed at the end.
//!
//! Binding fails where anything is in the way, so whoever wants a path must decide what may go:
//! never what is no socket, never a socket at which somebody answers, and at the end never a file
//! that another process has put there since.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// A bound socket's file; dropping it removes the file.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode, so that nobody else's file is removed.
    identity: (u64, u64),
}

impl SocketFile {
    /// Has a path bound by `bind`; a socket that a dead process has left behind is replaced.
    ///
    /// # Errors
    /// `AddrInUse` when somebody answers there, `AlreadyExists` when it is no socket, or what the
    /// system says about the path.
    pub(crate) fn bind<T>(
        path: &Path,
        bind: impl Fn(&Path) -> io::Result<T>,
    ) -> io::Result<(T, SocketFile)> {
        let listener = match bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                remove_dead(path)?;
                bind(path)?
            }
            bound => bound?,
        };
        let identity = identity(path)?;
        Ok((listener, SocketFile { path: path.into(), identity }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            // Whoever removed it a moment ago has done what is wanted.
            fs::remove_file(&self.path).ok();
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Removes the socket at a path if nobody answers there.
fn remove_dead(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        let taken = format!("{} is there and no socket", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, taken));
    }
    if is_answered(path)? {
        let live = format!("another instance answers on {}", path.display());
        return Err(io::Error::new(io::ErrorKind::AddrInUse, live));
    }
    fs::remove_file(path)
}

/// Whether a process listens at a socket. It does not wait for one that is too busy to accept.
///
/// # Errors
/// What the system says about the path, if that is no answer.
pub(crate) fn is_answered(path: &Path) -> io::Result<bool> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new(path)?) {
        // A full backlog is a listener's, and so is another type of socket.
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => Ok(true),
        Err(Errno::CONNREFUSED) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
