//! Every option, declared once.
//!
//! From these rows come the command line with its help, the file's keys and their checks, the
//! commented default file, the JSON Schema and the reference page. A row's setter is the only code
//! that knows where in the configuration its value goes.

use std::time::Duration;

use super::draft::{Draft, RoleName};
use super::{HostHeader, ListenAddress};
use crate::base::{ByteSize, Period};

/// The part of the file in which an option stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Section {
    /// Before all tables.
    Root,
    /// `[[listen]]`, once for each listener.
    Listen,
    /// `[limits]`
    Limits,
    /// `[timeouts]`
    Timeouts,
    /// `[log]`
    Log,
    /// `[admin]`
    Admin,
    /// `[caching]`
    Caching,
}

impl Section {
    /// All parts, in the order of the default file.
    pub const ALL: &[Section] = &[
        Section::Root,
        Section::Listen,
        Section::Limits,
        Section::Timeouts,
        Section::Log,
        Section::Admin,
        Section::Caching,
    ];

    /// The table's name; empty for what stands before all tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Section::Root => "",
            Section::Listen => "listen",
            Section::Limits => "limits",
            Section::Timeouts => "timeouts",
            Section::Log => "log",
            Section::Admin => "admin",
            Section::Caching => "caching",
        }
    }

    /// The header line in a file; empty for what stands before all tables.
    #[must_use]
    pub const fn header(self) -> &'static str {
        match self {
            Section::Root => "",
            Section::Listen => "[[listen]]",
            Section::Limits => "[limits]",
            Section::Timeouts => "[timeouts]",
            Section::Log => "[log]",
            Section::Admin => "[admin]",
            Section::Caching => "[caching]",
        }
    }

    /// What stands there, for a person.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Section::Root => "The process as a whole.",
            Section::Listen => "One listener; repeat the table for each.",
            Section::Limits => "Bounds of what a peer may make this proxy hold.",
            Section::Timeouts => "The separate clocks.",
            Section::Log => "What is written while it runs.",
            Section::Admin => "How it is watched and operated.",
            Section::Caching => "What RFC 9111 leaves to the operator.",
        }
    }

    /// The options that stand there.
    pub fn options(self) -> impl Iterator<Item = &'static OptionRow> {
        OPTIONS.iter().filter(move |option| option.section == self)
    }
}

/// What an option takes, and where it goes. Setters of texts return what to write instead.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A number of bytes, with a unit.
    Size {
        /// The least, in bytes.
        min: u64,
        /// The most, in bytes.
        max: u64,
        /// Takes the bytes.
        set: fn(&mut Draft, u64),
    },
    /// A length of time, with a unit.
    Time {
        /// The least.
        min: Duration,
        /// The most.
        max: Duration,
        /// Takes the length.
        set: fn(&mut Draft, Duration),
    },
    /// A whole number.
    Number {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
        /// Takes the number.
        set: fn(&mut Draft, u64),
    },
    /// True or false. On the command line its flag takes this word and means true.
    Switch {
        /// The word.
        word: &'static str,
        /// Takes the value.
        set: fn(&mut Draft, bool),
    },
    /// A text.
    Text {
        /// The whole of what is possible, if few words are.
        choices: &'static [&'static str],
        /// Takes the text.
        set: fn(&mut Draft, &str) -> Result<(), String>,
    },
    /// Several texts.
    List {
        /// Empties the list, before a file's or command line's first value.
        clear: fn(&mut Draft),
        /// Takes one more text.
        add: fn(&mut Draft, &str) -> Result<(), String>,
    },
}

/// The value of an option that nobody sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// This one; a list's values are separated by commas.
    Is(&'static str),
    /// It depends: on what, for a person.
    Depends(&'static str),
    /// There is none, and one is needed.
    Needed,
}

/// An option: a row of the table.
#[derive(Clone, Copy)]
pub struct OptionRow {
    /// Its table in the file.
    pub section: Section,
    /// Its key there.
    pub key: &'static str,
    /// Its flag on the command line, if it has one.
    pub flag: Option<&'static str>,
    /// The placeholder for its value in help.
    pub value: &'static str,
    /// The only role that it concerns, or all.
    pub role: Option<RoleName>,
    /// What it takes.
    pub kind: Kind,
    /// What holds if it is not set.
    pub preset: Preset,
    /// A value that works.
    pub example: &'static str,
    /// What it is for.
    pub sentence: &'static str,
}

/// The largest period that makes sense for a peer's silence: a day.
const DAY: Duration = Duration::from_secs(86_400);
const MILLISECOND: Duration = Duration::from_millis(1);

/// A clock's row; all of them take from 1 ms to a day.
const fn clock(
    key: &'static str,
    flag: &'static str,
    preset: &'static str,
    sentence: &'static str,
    set: fn(&mut Draft, Duration),
) -> OptionRow {
    OptionRow {
        section: Section::Timeouts,
        key,
        flag: Some(flag),
        value: "TIME",
        role: None,
        kind: Kind::Time { min: MILLISECOND, max: DAY, set },
        preset: Preset::Is(preset),
        example: "30s",
        sentence,
    }
}

/// A row that only the file has.
const fn in_file(
    (section, key): (Section, &'static str),
    kind: Kind,
    (preset, example): (&'static str, &'static str),
    sentence: &'static str,
) -> OptionRow {
    OptionRow {
        section,
        key,
        flag: None,
        value: "",
        role: None,
        kind,
        preset: Preset::Is(preset),
        example,
        sentence,
    }
}

/// All options, in the order of help and of the default file.
pub static OPTIONS: &[OptionRow] = &[
    OptionRow {
        section: Section::Listen,
        key: "address",
        flag: Some("listen"),
        value: "ADDRESS",
        role: None,
        kind: Kind::List {
            clear: |draft| draft.listener.addresses.clear(),
            add: |draft, text| {
                let address: ListenAddress = parsed(text)?;
                draft.listener.addresses.push(address);
                Ok(())
            },
        },
        preset: Preset::Needed,
        example: "127.0.0.1:8080",
        sentence: "Where clients connect: an IP address with a port, or unix:/path. A port alone \
                   means loopback.",
    },
    OptionRow {
        section: Section::Listen,
        key: "role",
        flag: None,
        value: "ROLE",
        role: None,
        kind: Kind::Text {
            choices: &["reverse", "forward"],
            set: |draft, text| {
                let role = RoleName::ALL.iter().find(|role| role.name() == text);
                draft.listener.role = Some(*role.ok_or("write \"reverse\" or \"forward\"")?);
                Ok(())
            },
        },
        preset: Preset::Needed,
        example: "reverse",
        sentence: "As what clients are answered there: a gateway in front of origin servers \
                   (reverse), or a proxy that they have chosen (forward).",
    },
    OptionRow {
        section: Section::Listen,
        key: "to",
        flag: Some("to"),
        value: "URL",
        role: Some(RoleName::Reverse),
        kind: Kind::List {
            clear: |draft| draft.listener.to.clear(),
            add: |draft, text| {
                draft.listener.to.push(parsed(text)?);
                Ok(())
            },
        },
        preset: Preset::Needed,
        example: "http://127.0.0.1:3000",
        sentence: "The origin servers behind the gateway; several are taken in turn.",
    },
    OptionRow {
        section: Section::Listen,
        key: "host-header",
        flag: Some("host-header"),
        value: "HOST",
        role: Some(RoleName::Reverse),
        kind: Kind::Text { choices: &[], set: set_host_header },
        preset: Preset::Is("keep"),
        example: "origin",
        sentence: "The Host that origin servers are told, which is also in the cache key: keep \
                   (the client's), origin (their own), or a value.",
    },
    OptionRow {
        section: Section::Listen,
        key: "connect-ports",
        flag: Some("connect-ports"),
        value: "PORTS",
        role: Some(RoleName::Forward),
        kind: Kind::List {
            clear: |draft| draft.listener.connect_ports.clear(),
            add: |draft, text| {
                draft.listener.connect_ports.push(parsed(text)?);
                Ok(())
            },
        },
        preset: Preset::Is("443"),
        example: "443,8443-8450",
        sentence: "Ports to which CONNECT may open a tunnel.",
    },
    OptionRow {
        section: Section::Listen,
        key: "allow-private",
        flag: Some("allow-private"),
        value: "NETWORK",
        role: Some(RoleName::Forward),
        kind: Kind::List {
            clear: |draft| draft.listener.allow_private.clear(),
            add: |draft, text| {
                draft.listener.allow_private.push(network(text)?);
                Ok(())
            },
        },
        preset: Preset::Is(""),
        example: "10.0.0.0/8",
        sentence: "Private networks into which a name may lead; others are refused, so that a \
                   site's name cannot open the inside to the outside.",
    },
    OptionRow {
        section: Section::Root,
        key: "memory",
        flag: Some("memory"),
        value: "SIZE",
        role: None,
        kind: Kind::Size {
            min: 1 << 20,
            max: 1 << 50,
            set: |draft, bytes| draft.config.memory = bytes,
        },
        preset: Preset::Depends("a quarter of the memory, or of the cgroup's limit"),
        example: "256MiB",
        sentence: "The budget for stored responses with their heads and the index. KiB, MiB, GiB \
                   are powers of 1,024 and kB, MB, GB of 1,000.",
    },
    OptionRow {
        section: Section::Root,
        key: "workers",
        flag: Some("workers"),
        value: "N",
        role: None,
        kind: Kind::Number {
            min: 1,
            max: 1_024,
            set: |draft, number| draft.config.workers = count(number),
        },
        preset: Preset::Depends("the cores that this process may use"),
        example: "2",
        sentence: "Threads that serve clients.",
    },
    OptionRow {
        section: Section::Root,
        key: "trust",
        flag: Some("trust"),
        value: "NETWORK",
        role: None,
        kind: Kind::List {
            clear: |draft| draft.config.trust.clear(),
            add: |draft, text| {
                draft.config.trust.push(network(text)?);
                Ok(())
            },
        },
        preset: Preset::Is(""),
        example: "10.0.0.0/8",
        sentence: "Peers whose Forwarded, X-Forwarded-* and X-Request-ID are believed, such as a \
                   load balancer in front.",
    },
    OptionRow {
        section: Section::Root,
        key: "pseudonym",
        flag: Some("pseudonym"),
        value: "NAME",
        role: None,
        kind: Kind::Text { choices: &[], set: set_pseudonym },
        preset: Preset::Depends("random for each instance"),
        example: "edge-1",
        sentence: "The name in Via, by which a loop is recognised.",
    },
    OptionRow {
        section: Section::Root,
        key: "drain",
        flag: Some("drain"),
        value: "TIME",
        role: None,
        kind: Kind::Time {
            min: Duration::ZERO,
            max: DAY,
            set: |draft, time| draft.config.drain = time,
        },
        preset: Preset::Is("30s"),
        example: "10s",
        sentence: "The most that finishing the exchanges in hand may take after Ctrl-C or SIGTERM.",
    },
    OptionRow {
        section: Section::Log,
        key: "access",
        flag: Some("log"),
        value: "WHAT",
        role: None,
        kind: Kind::Switch { word: "access", set: |draft, is_on| draft.config.access_log = is_on },
        preset: Preset::Is("false"),
        example: "true",
        sentence: "Write one line an exchange to standard output. Never slows the proxy: lines are \
                   dropped and counted when nobody reads them.",
    },
    OptionRow {
        section: Section::Admin,
        key: "listen",
        flag: Some("admin-listen"),
        value: "ADDRESS",
        role: None,
        kind: Kind::Text { choices: &[], set: set_admin_listen },
        preset: Preset::Depends("off"),
        example: "127.0.0.1:9100",
        sentence: "Where /metrics (OpenMetrics) and /ready are served.",
    },
    OptionRow {
        section: Section::Admin,
        key: "control",
        flag: Some("control"),
        value: "PATH",
        role: None,
        kind: Kind::Text { choices: &[], set: set_control },
        preset: Preset::Depends("named after the first listener, in the runtime directory"),
        example: "/run/sepia/edge.sock",
        sentence: "The control socket, over which `sepia status` and `sepia reload` speak.",
    },
    clock(
        "head",
        "head-timeout",
        "10s",
        "From a request's first byte to the end of its head.",
        |draft, time| draft.config.timeouts.head = time,
    ),
    clock(
        "idle",
        "idle-timeout",
        "60s",
        "A client connection without a request.",
        |draft, time| draft.config.timeouts.idle = time,
    ),
    clock(
        "client",
        "client-timeout",
        "30s",
        "A client that stops reading or sending.",
        |draft, time| draft.config.timeouts.client = time,
    ),
    clock(
        "connect",
        "connect-timeout",
        "5s",
        "Opening a connection to an origin server.",
        |draft, time| draft.config.timeouts.connect = time,
    ),
    clock(
        "first-byte",
        "first-byte-timeout",
        "60s",
        "From the request to the response's head.",
        |draft, time| draft.config.timeouts.first_byte = time,
    ),
    clock(
        "silence",
        "silence-timeout",
        "60s",
        "Silence in the middle of a response; off for text/event-stream.",
        |draft, time| draft.config.timeouts.silence = time,
    ),
    clock(
        "tunnel-idle",
        "tunnel-timeout",
        "10m",
        "A tunnel through which no byte goes.",
        |draft, time| draft.config.timeouts.tunnel_idle = time,
    ),
    OptionRow {
        section: Section::Limits,
        key: "sessions",
        flag: Some("max-sessions"),
        value: "N",
        role: None,
        kind: Kind::Number {
            min: 1,
            max: 10_000_000,
            set: |draft, number| draft.config.max_sessions = count(number),
        },
        preset: Preset::Is("100000"),
        example: "10000",
        sentence: "Client connections open at once; the process's descriptors may allow fewer.",
    },
    in_file(
        (Section::Limits, "head"),
        Kind::Size {
            min: 1 << 10,
            max: 1 << 20,
            set: |draft, bytes| draft.config.heads.head_bytes = count(bytes),
        },
        ("64KiB", "32KiB"),
        "A request's or response's head.",
    ),
    in_file(
        (Section::Limits, "line"),
        Kind::Size {
            min: 256,
            max: 1 << 20,
            set: |draft, bytes| draft.config.heads.line_bytes = count(bytes),
        },
        ("16KiB", "8KiB"),
        "One line of a head.",
    ),
    in_file(
        (Section::Limits, "fields"),
        Kind::Number {
            min: 8,
            max: 128,
            set: |draft, number| draft.config.heads.fields = count(number),
        },
        ("128", "100"),
        "Field lines of a head.",
    ),
    in_file(
        (Section::Caching, "heuristic-percent"),
        Kind::Number {
            min: 0,
            max: 100,
            set: |draft, number| draft.config.caching.heuristic_percent = seconds(number),
        },
        ("10", "0"),
        "Freshness of a response that says nothing about it, as percentage of the time since its \
         Last-Modified; 0 is none (RFC 9111 section 4.2.2).",
    ),
    in_file(
        (Section::Caching, "heuristic-max"),
        Kind::Time {
            min: Duration::ZERO,
            max: Duration::from_secs(365 * 86_400),
            set: |draft, time| draft.config.caching.heuristic_cap = seconds(time.as_secs()),
        },
        ("1d", "1h"),
        "The most that the heuristic may grant.",
    ),
    in_file(
        (Section::Caching, "store-set-cookie"),
        Kind::Switch {
            word: "set-cookie",
            set: |draft, is_on| draft.config.caching.store_set_cookie = is_on,
        },
        ("false", "true"),
        "Store responses with Set-Cookie too. A stored cookie logs one client in as another.",
    ),
];

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|wrong: T::Err| wrong.to_string())
}

/// A number that the row's range has already bounded.
fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A number of seconds that the row's range has already bounded.
fn seconds(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A network, or one address as the network that holds only it.
fn network(text: &str) -> Result<ipnet::IpNet, String> {
    let address = text.parse::<std::net::IpAddr>().map(ipnet::IpNet::from);
    address
        .or_else(|_| text.parse())
        .map_err(|_| "write a network (10.0.0.0/8, fd00::/8) or an IP address".into())
}

fn set_host_header(draft: &mut Draft, text: &str) -> Result<(), String> {
    draft.listener.host_header = match text {
        "keep" => HostHeader::Keep,
        "origin" => HostHeader::Origin,
        _ => {
            let is_host_byte = |b: u8| {
                b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b':' | b'[' | b']')
            };
            if text.is_empty() || text.len() > 255 || !text.bytes().all(is_host_byte) {
                return Err("write keep, origin, or a host such as example.com".into());
            }
            HostHeader::Value(text.to_owned())
        }
    };
    Ok(())
}

/// A pseudonym is a token (RFC 9110 §7.6.3); short, because each Via carries it.
fn set_pseudonym(draft: &mut Draft, text: &str) -> Result<(), String> {
    let is_name_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if text.is_empty() || text.len() > 64 || !text.bytes().all(is_name_byte) {
        return Err("a name has 1 to 64 letters, digits, dots, hyphens and underscores".into());
    }
    draft.config.pseudonym = Some(text.to_owned());
    Ok(())
}

fn set_admin_listen(draft: &mut Draft, text: &str) -> Result<(), String> {
    match parsed(text)? {
        ListenAddress::Tcp(address) => draft.config.admin_listen = Some(address),
        ListenAddress::Unix(_) => return Err("write an IP address with a port".into()),
    }
    Ok(())
}

fn set_control(draft: &mut Draft, text: &str) -> Result<(), String> {
    if !text.starts_with('/') || text.len() > 107 {
        return Err("write an absolute path of at most 107 bytes".into());
    }
    draft.config.control = Some(text.into());
    Ok(())
}

impl OptionRow {
    /// The name in messages and on the reference page: `timeouts.head`.
    #[must_use]
    pub fn name(&self) -> String {
        match self.section {
            Section::Root => self.key.into(),
            section => format!("{}.{}", section.name(), self.key),
        }
    }

    /// Takes a value that was written as text, as on the command line.
    ///
    /// # Errors
    /// What to write instead.
    pub fn take_text(&self, draft: &mut Draft, text: &str) -> Result<(), String> {
        match self.kind {
            Kind::Size { set, .. } => {
                let size: ByteSize = parsed(text)?;
                self.check_size(size.0)?;
                set(draft, size.0);
            }
            Kind::Time { min, max, set } => {
                let time: Period = parsed(text)?;
                if time.0 < min || time.0 > max {
                    return Err(self.range());
                }
                set(draft, time.0);
            }
            Kind::Number { set, .. } => {
                let number = text.parse().map_err(|_| "write a whole number".to_owned())?;
                self.check_number(number)?;
                set(draft, number);
            }
            Kind::Switch { word, set } if text == word => set(draft, true),
            Kind::Switch { word, .. } => return Err(format!("write {word}")),
            Kind::Text { set, .. } => set(draft, text)?,
            Kind::List { add, .. } => add(draft, text)?,
        }
        Ok(())
    }

    /// Takes a whole number, as a file may write it.
    ///
    /// # Errors
    /// What to write instead.
    pub(super) fn take_number(&self, draft: &mut Draft, number: u64) -> Result<(), String> {
        match self.kind {
            Kind::Size { set, .. } => {
                self.check_size(number)?;
                set(draft, number);
                Ok(())
            }
            Kind::Number { set, .. } => {
                self.check_number(number)?;
                set(draft, number);
                Ok(())
            }
            _ => self.take_text(draft, &number.to_string()),
        }
    }

    fn check_size(&self, bytes: u64) -> Result<(), String> {
        match self.kind {
            Kind::Size { min, max, .. } if bytes < min || bytes > max => Err(self.range()),
            _ => Ok(()),
        }
    }

    fn check_number(&self, number: u64) -> Result<(), String> {
        match self.kind {
            Kind::Number { min, max, .. } if number < min || number > max => Err(self.range()),
            _ => Ok(()),
        }
    }

    /// What the option takes, as an instruction.
    #[must_use]
    pub fn range(&self) -> String {
        match self.kind {
            Kind::Size { min, max, .. } => {
                format!("write a size from {} to {}", ByteSize(min), ByteSize(max))
            }
            Kind::Time { min, max, .. } => {
                format!("write a period from {} to {}", Period(min), Period(max))
            }
            Kind::Number { min, max, .. } => format!("write a number from {min} to {max}"),
            Kind::Switch { .. } => "write true or false".into(),
            Kind::Text { .. } | Kind::List { .. } => "write a text".into(),
        }
    }

    /// A value in the file's notation: quoted, bracketed or bare as the option's kind asks.
    #[must_use]
    pub fn file_notation(&self, value: &str) -> String {
        match self.kind {
            Kind::Number { .. } | Kind::Switch { .. } => value.to_owned(),
            // One table is one listener: its address is a single text.
            Kind::List { .. } if !self.is_single_in_file() => {
                let quoted = value.split(',').filter(|part| !part.is_empty());
                let quoted: Vec<_> = quoted.map(|part| format!("{part:?}")).collect();
                format!("[{}]", quoted.join(", "))
            }
            _ => format!("{value:?}"),
        }
    }

    /// Whether a file writes one value: everything but lists, and the address of a listener, of
    /// which only the command line takes several.
    #[must_use]
    pub fn is_single_in_file(&self) -> bool {
        !matches!(self.kind, Kind::List { .. }) || self.is_address()
    }

    /// Whether it is the address of a listener.
    #[must_use]
    pub fn is_address(&self) -> bool {
        self.section == Section::Listen && self.key == "address"
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, OPTIONS, Preset};
    use crate::config::draft::Draft;
    use std::collections::HashSet;

    #[test]
    fn names_and_flags_are_unique() {
        let mut seen = HashSet::new();
        for option in OPTIONS {
            assert!(seen.insert(option.name()), "{} twice", option.name());
            if let Some(flag) = option.flag {
                assert!(seen.insert(format!("--{flag}")), "--{flag} twice");
            }
        }
    }

    #[test]
    fn sentences_are_sentences() {
        for option in OPTIONS {
            assert!(option.sentence.ends_with('.'), "{}", option.name());
        }
    }

    #[test]
    fn examples_and_presets_are_valid_and_presets_change_nothing() {
        for option in OPTIONS {
            let is_list = matches!(option.kind, Kind::List { .. });
            let values = |text: &'static str| -> Vec<&'static str> {
                if is_list {
                    text.split(',').filter(|part| !part.is_empty()).collect()
                } else {
                    vec![text]
                }
            };
            if matches!(option.kind, Kind::Switch { .. }) {
                continue;
            }
            for value in values(option.example) {
                let taken = option.take_text(&mut Draft::new(), value);
                assert_eq!(taken, Ok(()), "{} = {value}", option.name());
            }
            let Preset::Is(preset) = option.preset else { continue };
            let mut draft = Draft::new();
            if let Kind::List { clear, .. } = option.kind {
                clear(&mut draft);
            }
            for value in values(preset) {
                option.take_text(&mut draft, value).unwrap();
            }
            let (with, without) = (format!("{draft:?}"), format!("{:?}", Draft::new()));
            assert_eq!(with, without, "{} = {preset} is the default", option.name());
        }
    }
}
