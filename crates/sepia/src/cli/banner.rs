//! The three lines that a proxy says when it has started.
//!
//! They go to standard error, because standard output belongs to the access log.

use crate::admin::Facts;
use crate::base::ByteSize;
use crate::config::{ListenAddress, Listener, Role};

/// What listens, in front of what, and with how much memory; each line ends in a line feed.
#[must_use]
pub fn banner(facts: &Facts) -> String {
    let listeners: Vec<_> = facts.listeners.iter().map(listening).collect();
    let mut aims: Vec<_> = facts.listeners.iter().map(aim).collect();
    // Several listeners of one role usually share their aim.
    aims.dedup();
    let memory = ByteSize(facts.memory).to_string();
    // An odd number of bytes is the machine's, not a person's: it is rounded.
    let memory = if memory.len() > 8 { ByteSize(facts.memory).rounded() } else { memory };
    let workers = match facts.workers {
        1 => "1 worker".to_owned(),
        workers => format!("{workers} workers"),
    };
    let control = facts.control.as_ref();
    let control = control.map_or(String::new(), |path| format!(" · control {}", path.display()));
    let admin = facts.admin_listen;
    let admin = admin.map_or(String::new(), |admin| format!(" · admin http://{admin}"));
    format!(
        "sepia {} listening on {}\n{}\nmemory {memory} · {workers}{control}{admin}\n",
        env!("CARGO_PKG_VERSION"),
        listeners.join(", "),
        aims.join("; "),
    )
}

fn listening(listener: &Listener) -> String {
    let role = match listener.role {
        Role::Reverse(_) => "gateway",
        Role::Forward(_) => "forward proxy",
    };
    match &listener.address {
        ListenAddress::Tcp(address) => format!("http://{address} ({role})"),
        unix @ ListenAddress::Unix(_) => format!("{unix} ({role})"),
    }
}

fn aim(listener: &Listener) -> String {
    match &listener.role {
        Role::Reverse(reverse) => {
            let to: Vec<_> = reverse.to.iter().map(|origin| format!("http://{origin}")).collect();
            format!("in front of {}", to.join(", "))
        }
        Role::Forward(forward) if forward.connect_ports.is_empty() => {
            "forward proxy; no CONNECT".into()
        }
        Role::Forward(forward) => {
            let ports: Vec<_> = forward.connect_ports.iter().map(ToString::to_string).collect();
            let is_one = forward.connect_ports.len() == 1
                && forward.connect_ports.iter().all(|range| range.first == range.last);
            let noun = if is_one { "port" } else { "ports" };
            format!("forward proxy; CONNECT to {noun} {}", ports.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::banner;
    use crate::admin::Facts;
    use crate::config::Config;
    use std::time::Duration;

    fn facts(listeners: &str, memory: u64) -> Facts {
        Facts {
            listeners: Config::from_text("test", listeners).unwrap().listeners,
            memory,
            workers: 2,
            uptime: Duration::ZERO,
            pseudonym: "sepia-1".into(),
            control: Some("/run/sepia/127.0.0.1-8080.sock".into()),
            admin_listen: None,
        }
    }

    #[test]
    fn three_lines() {
        let version = env!("CARGO_PKG_VERSION");
        let gateway = "[[listen]]\naddress = \":8080\"\nrole = \"reverse\"\n\
                       to = [\"http://127.0.0.1:3000\", \"http://[::1]:3001\"]\n";
        assert_eq!(
            banner(&facts(gateway, 256 << 20)),
            format!(
                "sepia {version} listening on http://127.0.0.1:8080 (gateway)\n\
                 in front of http://127.0.0.1:3000, http://[::1]:3001\n\
                 memory 256MiB · 2 workers · control /run/sepia/127.0.0.1-8080.sock\n"
            )
        );
        let both = "[[listen]]\naddress = \":8123\"\nrole = \"forward\"\n\
                    [[listen]]\naddress = \"unix:/run/a\"\nrole = \"forward\"\n\
                    [[listen]]\naddress = \":8124\"\nrole = \"forward\"\nconnect-ports = []\n";
        let mut facts = facts(both, 2_101_234_567);
        (facts.control, facts.workers) = (None, 1);
        facts.admin_listen = Some(([127, 0, 0, 1], 9100).into());
        assert_eq!(
            banner(&facts),
            format!(
                "sepia {version} listening on http://127.0.0.1:8123 (forward proxy), \
                 unix:/run/a (forward proxy), http://127.0.0.1:8124 (forward proxy)\n\
                 forward proxy; CONNECT to port 443; forward proxy; no CONNECT\n\
                 memory 1.96 GiB · 1 worker · admin http://127.0.0.1:9100\n"
            )
        );
    }
}
