//! From a TOML file to a configuration, or to all of its mistakes.
//!
//! The file is parsed into a tree with places and walked against the table of options; nothing is
//! deserialised blindly, so that each message can name the option, the place and what would be
//! right. A value that is wrong leaves the default standing and the walk goes on.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::draft::{Draft, Lack, ListenerDraft};
use super::mistake::{Mistake, Mistakes};
use super::nearest::nearest;
use super::option::{Kind, OptionRow, Section};
use super::{Config, ListenAddress};
use crate::base::limits;

/// Why a file is no configuration.
#[derive(Debug)]
pub enum LoadError {
    /// It cannot be read.
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// It can be read and has mistakes.
    Mistaken(Mistakes),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unreadable { path, error } => write!(f, "cannot read {path}: {error}"),
            LoadError::Mistaken(mistakes) => mistakes.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

impl Config {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// When it cannot be read, is larger than [`limits::CONFIG_BYTES`], or has mistakes.
    pub fn load(path: &Path) -> Result<Config, LoadError> {
        let shown = path.display().to_string();
        let text = read_bounded(path)
            .map_err(|error| LoadError::Unreadable { path: shown.clone(), error })?;
        Config::from_text(&shown, &text).map_err(LoadError::Mistaken)
    }

    /// Takes the text of a configuration file; `path` is for messages only.
    ///
    /// # Errors
    /// All mistakes of the text.
    pub fn from_text(path: &str, text: &str) -> Result<Config, Mistakes> {
        let (tree, errors) = DeTable::parse_recoverable(text);
        let mut walk = Walk::new();
        walk.document(tree.get_ref());
        if errors.is_empty() {
            walk.check_whole(text.len());
        }
        let mut mistakes = walk.mistakes;
        // Around a syntax error the tree is a guess: what it says about the same line is dropped.
        let lines: Vec<_> = errors.iter().map(|error| line_of(text, &span_of(error))).collect();
        mistakes.retain(|mistake| !lines.contains(&line_of(text, &mistake.span)));
        mistakes.extend(errors.iter().map(syntax_mistake));
        if mistakes.is_empty() {
            Ok(walk.draft.config)
        } else {
            Err(Mistakes::new(path.into(), text.into(), mistakes))
        }
    }
}

fn read_bounded(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(limits::CONFIG_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => io::Error::other("it is no text in UTF-8"),
        _ => error,
    })?;
    if text.len() as u64 > limits::CONFIG_BYTES {
        return Err(io::Error::other("it is larger than 4 MiB"));
    }
    Ok(text)
}

fn span_of(error: &toml::de::Error) -> Range<usize> {
    error.span().unwrap_or(0..0)
}

fn line_of(text: &str, span: &Range<usize>) -> usize {
    let before = text.as_bytes().iter().take(span.start);
    before.filter(|&&byte| byte == b'\n').count()
}

fn syntax_mistake(error: &toml::de::Error) -> Mistake {
    let mistake = Mistake::new("this is not valid TOML", span_of(error), error.message());
    match error.message() {
        message if message.contains("quoted") || message.contains("string") => {
            mistake.help("texts, sizes and periods stand in quotes: \"64MiB\"")
        }
        _ => mistake,
    }
}

/// A key as the parser gives it.
type Key<'i> = Cow<'i, str>;

/// A place in the file with the address that stands there.
type PlacedAddress = (Range<usize>, ListenAddress);

/// The walk through the tree: fills the draft, collects mistakes.
struct Walk {
    draft: Draft,
    mistakes: Vec<Mistake>,
    addresses: Vec<PlacedAddress>,
}

impl Walk {
    fn new() -> Self {
        Walk { draft: Draft::new(), mistakes: Vec::new(), addresses: Vec::new() }
    }

    fn document(&mut self, document: &DeTable<'_>) {
        for (key, value) in document {
            let section = Section::ALL.iter().find(|section| section.name() == key.get_ref());
            match (section, value.get_ref()) {
                (Some(Section::Listen), DeValue::Array(listeners)) => {
                    listeners.iter().for_each(|listener| self.listener(key.span(), listener));
                }
                (Some(section), DeValue::Table(table)) if *section != Section::Listen => {
                    self.table(*section, table);
                }
                (Some(section), _) => self.mistakes.push(
                    Mistake::new(
                        format!("`{}` is a table", section.name()),
                        key.span(),
                        format!("write {} on a line of its own", section.header()),
                    )
                    .help("its keys follow on the lines below"),
                ),
                (None, _) => self.option(Section::Root, key, value),
            }
        }
    }

    fn table(&mut self, section: Section, table: &DeTable<'_>) {
        for (key, value) in table {
            self.option(section, key, value);
        }
    }

    fn option(&mut self, section: Section, key: &Spanned<Key<'_>>, value: &Spanned<DeValue<'_>>) {
        match section.options().find(|option| option.key == key.get_ref()) {
            Some(option) => self.value(option, value),
            None => self.mistakes.push(unknown_key(section, key)),
        }
    }

    /// Takes a value for an option, or says why not.
    fn value(&mut self, option: &OptionRow, value: &Spanned<DeValue<'_>>) {
        if let Kind::List { clear, .. } = option.kind {
            clear(&mut self.draft);
        }
        match (option.kind, value.get_ref()) {
            (Kind::List { .. }, DeValue::Array(values)) if !option.is_single_in_file() => {
                values.iter().for_each(|value| self.scalar(option, value));
            }
            (Kind::List { .. }, _) if !option.is_single_in_file() => {
                self.mistakes.push(wrong_type(option, value));
            }
            _ => self.scalar(option, value),
        }
    }

    fn scalar(&mut self, option: &OptionRow, value: &Spanned<DeValue<'_>>) {
        let taken = match (option.kind, value.get_ref()) {
            (Kind::Switch { set, .. }, DeValue::Boolean(is_on)) => {
                set(&mut self.draft, *is_on);
                Ok(())
            }
            (Kind::Number { .. } | Kind::Switch { .. }, DeValue::String(_)) => {
                return self.mistakes.push(wrong_type(option, value));
            }
            (_, DeValue::String(text)) => option.take_text(&mut self.draft, text),
            (Kind::Text { .. } | Kind::Switch { .. }, DeValue::Integer(_)) => {
                return self.mistakes.push(wrong_type(option, value));
            }
            (_, DeValue::Integer(number)) => {
                match u64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => option.take_number(&mut self.draft, number),
                    Err(_) => Err(option.range()),
                }
            }
            _ => return self.mistakes.push(wrong_type(option, value)),
        };
        match taken {
            Ok(()) => {}
            Err(right) => {
                let title = format!("`{}` has a wrong value", option.name());
                let notation = option.file_notation(option.example);
                let mistake = Mistake::new(title, value.span(), right);
                let help = format!("for example: {} = {notation}", option.key);
                self.mistakes.push(mistake.help(help));
            }
        }
    }

    fn listener(&mut self, header: Range<usize>, listener: &Spanned<DeValue<'_>>) {
        let DeValue::Table(table) = listener.get_ref() else {
            let label = "write [[listen]] on a line of its own";
            let mistake = Mistake::new("a listener is a table", listener.span(), label);
            return self.mistakes.push(mistake);
        };
        let before = self.mistakes.len();
        self.draft.listener = ListenerDraft::default();
        self.table(Section::Listen, table);
        self.check_role(table);
        self.check_address(table);
        // A wrong value is not also a missing one.
        let has_faulty = self.mistakes.len() > before;
        let place = if listener.span().is_empty() { header } else { listener.span() };
        let kept = self.draft.listener.clone();
        for lack in self.draft.end_listener() {
            let is_told = has_faulty && table.keys().any(|key| key.get_ref() == lack.key());
            if !is_told {
                self.mistakes.push(lacking(lack, &kept, table, place.clone()));
            }
        }
    }

    /// An option of the other role is a misunderstanding that must not pass in silence.
    fn check_role(&mut self, table: &DeTable<'_>) {
        let Some(role) = self.draft.listener.role else { return };
        for key in table.keys() {
            let mut options = Section::Listen.options();
            let option = options.find(|option| option.key == key.get_ref());
            let Some(other) = option.and_then(|option| option.role).filter(|of| *of != role) else {
                continue;
            };
            let title = format!("`{}` is an option of the role {}", key.get_ref(), other.name());
            let label = format!("this listener is {}", role.name());
            self.mistakes.push(Mistake::new(title, key.span(), label));
        }
    }

    fn check_address(&mut self, table: &DeTable<'_>) {
        let entry = table.iter().find(|(key, _)| key.get_ref() == "address");
        let (Some((_, value)), Some(address)) = (entry, self.draft.listener.addresses.first())
        else {
            return;
        };
        let taken = self.addresses.iter().find(|(_, other)| other.conflicts_with(address));
        match taken {
            Some((span, other)) => self.mistakes.push(
                Mistake::new(format!("two listeners on {address}"), value.span(), "taken already")
                    .context(span.clone(), format!("by {other}")),
            ),
            None => self.addresses.push((value.span(), address.clone())),
        }
    }

    /// What only the whole file can be faulted for.
    fn check_whole(&mut self, end: usize) {
        if self.draft.config.listeners.is_empty() && self.mistakes.is_empty() {
            let mistake = Mistake::new("no listener", end..end, "add a [[listen]] table");
            self.mistakes.push(mistake.help(
                "[[listen]]\naddress = \"127.0.0.1:8080\"\nrole = \"reverse\"\n\
                 to = [\"http://127.0.0.1:3000\"]",
            ));
        }
    }
}

fn lacking(
    lack: Lack,
    listener: &ListenerDraft,
    table: &DeTable<'_>,
    place: Range<usize>,
) -> Mistake {
    match lack {
        Lack::Address => Mistake::new("a listener has no address", place, "here")
            .help("add: address = \"127.0.0.1:8080\""),
        Lack::Role => Mistake::new("a listener has no role", place, "here")
            .help("add: role = \"reverse\" (with to = […]) or role = \"forward\""),
        Lack::To => {
            let role = table.iter().find(|(key, _)| key.get_ref() == "role");
            let place = role.map_or(place, |(_, value)| value.span());
            let title = match listener.addresses.first() {
                Some(address) => format!("the gateway on {address} has no origin server"),
                None => "the gateway has no origin server".into(),
            };
            Mistake::new(title, place, "a reverse listener needs `to`")
                .help("add: to = [\"http://127.0.0.1:3000\"]")
        }
    }
}

fn unknown_key(section: Section, key: &Spanned<Key<'_>>) -> Mistake {
    let word = key.get_ref().as_ref();
    let title = format!("unknown key `{word}`");
    let mut known: Vec<_> = section.options().map(|option| option.key).collect();
    if section == Section::Root {
        let tables = Section::ALL.iter().map(|section| section.name());
        known.extend(tables.filter(|name| !name.is_empty()));
    }
    if let Some(near) = nearest(word, known.iter().copied()) {
        return Mistake::new(title, key.span(), format!("did you mean `{near}`?"));
    }
    let elsewhere = Section::ALL
        .iter()
        .find(|other| **other != section && other.options().any(|option| option.key == word));
    let mistake = match elsewhere {
        Some(Section::Root) => Mistake::new(title, key.span(), "it stands before the first table"),
        Some(other) => Mistake::new(title, key.span(), format!("it belongs to {}", other.header())),
        None => Mistake::new(title, key.span(), "nothing has this name"),
    };
    mistake.help(format!("known here: {}", known.join(", ")))
}

fn wrong_type(option: &OptionRow, value: &Spanned<DeValue<'_>>) -> Mistake {
    let written = match value.get_ref() {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    let title = format!("`{}` is {}", option.name(), option.what());
    let notation = option.file_notation(option.example);
    Mistake::new(title, value.span(), format!("this is {written}"))
        .help(format!("for example: {} = {notation}", option.key))
}

impl OptionRow {
    /// What the file's value is, for a person.
    pub(super) fn what(&self) -> &'static str {
        match self.kind {
            Kind::Size { .. } => "a size",
            Kind::Time { .. } => "a period",
            Kind::Number { .. } => "a whole number",
            Kind::Switch { .. } => "true or false",
            Kind::List { .. } if !self.is_single_in_file() => "a list of texts",
            Kind::Text { .. } | Kind::List { .. } => "a text",
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Role};
    use std::path::Path;
    use std::time::Duration;

    const GATEWAY: &str =
        "[[listen]]\naddress = \":80\"\nrole = \"reverse\"\nto = [\"http://a\"]\n";

    fn report(text: &str) -> String {
        Config::from_text("sepia.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_file() {
        let text = "memory = \"64MiB\"\nworkers = 3\ntrust = [\"10.0.0.0/8\", \"::1\"]\n\
                    limits.head = 32768\ntimeouts = { head = \"5s\" }\n\
                    [[listen]]\naddress = \":8123\"\nrole = \"forward\"\n\
                    connect-ports = [443, \"8443-8450\"]\n\
                    [log]\naccess = true\n[admin]\nlisten = \"127.0.0.1:9100\"\n";
        let config = Config::from_text("sepia.toml", text).unwrap();
        assert_eq!((config.memory, config.workers), (64 << 20, 3));
        assert_eq!(config.trust[1].to_string(), "::1/128");
        assert_eq!(config.heads.head_bytes, 32_768);
        assert_eq!(config.timeouts.head, Duration::from_secs(5));
        assert!(config.access_log && config.admin_listen.is_some());
        let Role::Forward(forward) = &config.listeners[0].role else { panic!("a forward proxy") };
        assert!(forward.connect_ports.iter().any(|range| range.contains(8445)));
        assert!(forward.connect_ports.iter().any(|range| range.contains(443)));
    }

    #[test]
    fn all_mistakes_are_shown_in_the_files_order() {
        let text = "memroy = \"64MiB\"\nmemory = \"64M\"\nworkers = \"two\"\n\
                    [timeouts]\nhead = 30\nmemory = \"1MiB\"\n";
        assert_eq!(
            report(&format!("{text}{GATEWAY}")),
            r#"error: unknown key `memroy`
 --> sepia.toml:1:1
  |
1 | memroy = "64MiB"
  | ^^^^^^ did you mean `memory`?

error: `memory` has a wrong value
 --> sepia.toml:2:10
  |
2 | memory = "64M"
  |          ^^^^^ unknown unit `M`; write MiB (1,048,576) or MB (1,000,000)
  |
  = help: for example: memory = "256MiB"

error: `workers` is a whole number
 --> sepia.toml:3:11
  |
3 | workers = "two"
  |           ^^^^^ this is a text
  |
  = help: for example: workers = 2

error: `timeouts.head` has a wrong value
 --> sepia.toml:5:8
  |
5 | head = 30
  |        ^^ `30` has no unit; write 30s for seconds or 30ms
  |
  = help: for example: head = "30s"

error: unknown key `memory`
 --> sepia.toml:6:1
  |
6 | memory = "1MiB"
  | ^^^^^^ it stands before the first table
  |
  = help: known here: head, idle, client, connect, first-byte, silence, tunnel-idle

5 mistakes in sepia.toml"#
        );
    }

    #[test]
    fn listeners_that_contradict_each_other_or_themselves() {
        let text = "[[listen]]\naddress = \"127.0.0.1:80\"\nrole = \"forward\"\n\
                    to = [\"http://a\"]\n[[listen]]\nrole = \"reverse\"\n";
        assert_eq!(
            report(&format!("{GATEWAY}{text}")),
            r#"error: two listeners on 127.0.0.1:80
 --> sepia.toml:6:11
  |
2 | address = ":80"
  |           ----- by 127.0.0.1:80
...
6 | address = "127.0.0.1:80"
  |           ^^^^^^^^^^^^^^ taken already

error: `to` is an option of the role reverse
 --> sepia.toml:8:1
  |
8 | to = ["http://a"]
  | ^^ this listener is forward

error: a listener has no address
 --> sepia.toml:9:1
  |
9 | [[listen]]
  | ^^^^^^^^^^ here
  |
  = help: add: address = "127.0.0.1:8080"

error: the gateway has no origin server
  --> sepia.toml:10:8
   |
10 | role = "reverse"
   |        ^^^^^^^^^ a reverse listener needs `to`
   |
   = help: add: to = ["http://127.0.0.1:3000"]

4 mistakes in sepia.toml"#
        );
    }

    #[test]
    fn mistakes_of_syntax() {
        assert_eq!(
            report("memory = 64MiB\nworkers = 2\nworkers = 3\n"),
            r#"error: this is not valid TOML
 --> sepia.toml:1:10
  |
1 | memory = 64MiB
  |          ^^^^^ string values must be quoted, expected literal string
  |
  = help: texts, sizes and periods stand in quotes: "64MiB"

error: this is not valid TOML
 --> sepia.toml:3:1
  |
3 | workers = 3
  | ^^^^^^^ duplicate key

2 mistakes in sepia.toml"#
        );
    }

    #[test]
    fn single_mistakes() {
        let cases = [
            ("", "add a [[listen]] table"),
            ("[listen]\naddress = \"x\"\n", "write [[listen]] on a line of its own"),
            ("log = true\n", "write [log] on a line of its own"),
            ("listen = [1]\n", "write [[listen]] on a line of its own"),
            ("trust = \"10.0.0.0/8\"\n", "trust = [\"10.0.0.0/8\"]"),
            ("trust = [\"10/8\"]\n", "write a network (10.0.0.0/8, fd00::/8) or an IP address"),
            ("workers = -1\n", "write a number from 1 to 1024"),
            ("workers = 2.0\n", "this is a number with a point"),
            ("limits.fields = 1000\n", "write a number from 8 to 128"),
            ("limits.head = \"64MiB\"\n", "write a size from 1KiB to 1MiB"),
            ("timeouts.head = \"0s\"\n", "write a period from 1ms to 1d"),
            ("drain = 99999999999999999999999\n", "write a period from 0s to 1d"),
            ("pseudonym = \"a b\"\n", "a name has 1 to 64 letters"),
            ("admin.listen = \"unix:/x\"\n", "write an IP address with a port"),
            ("colour = 1\n", "nothing has this name"),
            ("head = \"1s\"\n", "it belongs to [limits]"),
            ("[[listen]]\naddress = \"x\"\nrole = \"forward\"\n", "unix:/path"),
            ("[[listen]]\naddress = \":1\"\nrole = \"both\"\n", "write \"reverse\" or"),
            (
                "[[listen]]\naddress = \":1\"\nrole = \"reverse\"\nto = [\"https://a\"]\n",
                "TLS to origins is not available yet; use http://",
            ),
        ];
        for (text, right) in cases {
            let report = report(text);
            assert!(report.contains(right), "{text}\n{report}");
            assert!(report.contains("1 mistake in"), "{text}\n{report}");
        }
    }

    #[test]
    fn hostile_files_are_refused_without_a_panic() {
        let deep = format!("a = {}", "[".repeat(100_000));
        let cases =
            [deep.as_str(), "\u{0}", "é = \"é", "[[[", "=", "a.b.c.d = [{a={b=1}}]", "\u{feff}x"];
        for text in cases {
            assert!(Config::from_text("f", text).is_err());
        }
    }

    #[test]
    fn an_unreadable_file_is_named() {
        let error = Config::load(Path::new("/nowhere/sepia.toml")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read /nowhere/sepia.toml: "), "{error}");
    }
}
