//! The commands and their arguments, made from the table of options.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::base::{ByteSize, Period};
use crate::config::Config;
use crate::config::draft::{Draft, RoleName};
use crate::config::option::{Kind, OPTIONS, OptionRow, Preset};

/// The widest help text, in columns.
const COLUMNS: usize = 100;

const REVERSE_EXAMPLES: &str = "\
Examples:
  sepia reverse --to http://127.0.0.1:3000
  sepia reverse --to http://10.0.0.5 --to http://10.0.0.6 --listen 0.0.0.0:80 --memory 2GiB
  sepia reverse --to http://127.0.0.1:3000 --listen unix:/run/sepia/site.sock --log access";

const FORWARD_EXAMPLES: &str = "\
Examples:
  sepia forward
  sepia forward --listen '[::1]:8123' --connect-ports 443,8443-8450
  http_proxy=http://127.0.0.1:8123 curl http://example.com/";

const EXAMPLES: &str = "\
Examples:
  sepia demo                                  a tour, nothing else needed
  sepia reverse --to http://127.0.0.1:3000    a cache in front of a site
  sepia forward                               a cache for a browser
  sepia status                                what the running one does

Exit codes: 0 all is well, 1 something failed, 2 the command was not understood.";

/// The whole command line.
pub(super) fn command() -> Command {
    Command::new("sepia")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A caching HTTP proxy: a gateway in front of a site, or a proxy for its clients")
        .after_help(EXAMPLES)
        .max_term_width(COLUMNS)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(role_command(RoleName::Reverse))
        .subcommand(role_command(RoleName::Forward))
        .subcommand(
            Command::new("serve").about("Runs what a configuration file says").arg(config_arg()),
        )
        .subcommand(
            Command::new("check")
                .about("Looks for mistakes in a configuration file and starts nothing")
                .after_help("Exits with 1 if there is one; shows all of them.")
                .arg(config_arg()),
        )
        .subcommand(config_command())
        .subcommand(status_command())
        .subcommand(
            Command::new("reload")
                .about("Makes a running instance take over its configuration file again")
                .after_help("A faulty file leaves the old configuration running; exits with 1.")
                .arg(control_arg()),
        )
        .subcommand(demo_command())
        .subcommand(docs_command())
}

/// The command of a role.
pub(super) fn role_command(role: RoleName) -> Command {
    let (about, examples) = match role {
        RoleName::Reverse => ("A caching gateway in front of origin servers", REVERSE_EXAMPLES),
        RoleName::Forward => ("A caching proxy for the clients that choose it", FORWARD_EXAMPLES),
    };
    let rows = OPTIONS.iter().filter(|row| row.role.is_none_or(|of| of == role));
    let args = rows.filter_map(|row| option_arg(row, role));
    Command::new(role.name()).about(about).after_help(examples).args(args)
}

/// An option's argument; `None` if it stands in files only.
fn option_arg(row: &'static OptionRow, role: RoleName) -> Option<Arg> {
    let flag = row.flag?;
    let arg = Arg::new(flag).long(flag).value_name(row.value).help(help(row, role));
    let arg = match row.kind {
        Kind::Switch { word, .. } => arg.value_parser(PossibleValuesParser::new([word])),
        _ => arg.value_parser(move |text: &str| {
            row.take_text(&mut Draft::new(), text).map(|()| text.to_owned())
        }),
    };
    let arg = match row.kind {
        // A path may contain a comma.
        Kind::List { .. } if row.is_address() => arg.action(ArgAction::Append),
        Kind::List { .. } => arg.action(ArgAction::Append).value_delimiter(','),
        _ => arg,
    };
    Some(arg.required(row.preset == Preset::Needed && !row.is_address()))
}

fn help(row: &OptionRow, role: RoleName) -> String {
    let mut help = row.sentence.trim_end_matches('.').to_owned();
    if matches!(row.kind, Kind::List { .. }) {
        help.push_str("; may be repeated");
    }
    let preset = match row.preset {
        Preset::Needed if row.is_address() => role.default_listen(),
        Preset::Is("" | "false") | Preset::Needed => return help,
        Preset::Is(preset) | Preset::Depends(preset) => preset,
    };
    help.push_str(&format!(" [default: {preset}]"));
    help
}

fn config_arg() -> Arg {
    Arg::new("config")
        .long("config")
        .short('c')
        .value_name("FILE")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help("The configuration file; `sepia config --default` prints one to begin with")
}

fn control_arg() -> Arg {
    Arg::new("control")
        .long("control")
        .value_name("PATH")
        .value_parser(value_parser!(PathBuf))
        .help("The control socket, as the banner shows it [default: the only running instance's]")
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn config_command() -> Command {
    Command::new("config")
        .about("Prints what a configuration file may contain")
        .after_help("Example:\n  sepia config --default > sepia.toml")
        .arg(flag("default", "A commented file with the defaults"))
        .arg(flag("schema", "A JSON Schema (draft 2020-12), for editors"))
        .group(clap::ArgGroup::new("what").args(["default", "schema"]).required(true))
}

fn status_command() -> Command {
    Command::new("status")
        .about("Shows what a running instance does, with a sentence for each number")
        .arg(control_arg())
        .arg(flag("all", "Also what is zero"))
        .arg(flag("json", "As JSON").conflicts_with("all"))
}

fn demo_command() -> Command {
    Command::new("demo")
        .about("A tour: an origin server, a gateway and a forward proxy on loopback")
        .arg(
            Arg::new("port")
                .long("port")
                .value_name("PORT")
                .value_parser(value_parser!(u16))
                .help("The gateway's port [default: any free one]"),
        )
        .arg(flag("once", "End after the tour: exit with 0 if all was as promised, else with 1"))
}

fn docs_command() -> Command {
    Command::new("docs")
        .about("Writes the generated reference pages")
        .hide(true)
        .arg(flag("check", "Only compare; exit with 1 if a page is not up to date"))
        .arg(
            Arg::new("directory")
                .value_name("DIRECTORY")
                .value_parser(value_parser!(PathBuf))
                .default_value("docs/reference"),
        )
}

/// The configuration that the arguments of a role's command describe.
///
/// # Errors
/// What contradicts itself, for a message of the command line.
pub(super) fn config_of(role: RoleName, matches: &ArgMatches) -> Result<Config, String> {
    let mut draft = Draft::new();
    for row in OPTIONS.iter().filter(|row| row.role.is_none_or(|of| of == role)) {
        let Some(flag) = row.flag else { continue };
        let values = matches.get_many::<String>(flag);
        if let (Kind::List { clear, .. }, Some(_)) = (row.kind, &values) {
            clear(&mut draft);
        }
        for value in values.into_iter().flatten() {
            row.take_text(&mut draft, value)?;
        }
        if matches.value_source(flag).is_none() && row.is_address() {
            row.take_text(&mut draft, role.default_listen())?;
        }
    }
    draft.into_config(role)
}

/// The reference page of all commands.
pub(super) fn reference_page() -> String {
    let mut page = String::from("# Command line\n\nThe help of each command.\n");
    let mut whole = command().term_width(COLUMNS);
    whole.build();
    page.push_str(&format!("\n## sepia\n\n```text\n{}\n```\n", whole.render_long_help()));
    for command in whole.get_subcommands_mut().filter(|command| !command.is_hide_set()) {
        let mut command = command.clone().term_width(COLUMNS);
        let help = command.render_long_help().to_string();
        page.push_str(&format!("\n## {}\n\n```text\n{help}\n```\n", command.get_name()));
    }
    page.push_str(&format!(
        "\nSizes look like `{}` or `{}`, periods like `{}`.\n",
        ByteSize(64 << 20),
        ByteSize(10_000),
        Period(std::time::Duration::from_secs(90)),
    ));
    // Help pads its columns to the right; a page need not.
    page.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::{command, config_of};
    use crate::config::draft::RoleName;
    use crate::config::{Config, HostHeader, Role};

    fn parse(words: &str) -> Result<Config, String> {
        let matches = command().try_get_matches_from(words.split(' '));
        let matches = matches.map_err(|error| error.to_string())?;
        let (name, matches) = matches.subcommand().unwrap();
        let role = RoleName::ALL.iter().find(|role| role.name() == name).unwrap();
        config_of(*role, matches)
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_gateway_with_its_defaults() {
        let config = parse("sepia reverse --to http://127.0.0.1:3000").unwrap();
        assert_eq!(config.listeners.len(), 1);
        assert_eq!(config.listeners[0].address.to_string(), "127.0.0.1:8080");
        let Role::Reverse(reverse) = &config.listeners[0].role else { panic!("a gateway") };
        assert_eq!(reverse.to[0].to_string(), "127.0.0.1:3000");
        assert_eq!(reverse.host_header, HostHeader::Keep);
        assert!(!config.access_log && config.admin_listen.is_none());
    }

    #[test]
    fn everything_said() {
        let config = parse(
            "sepia reverse --to http://a,http://b --to http://c --listen :80 --listen unix:/a,b \
             --memory 64MiB --workers 3 --host-header origin --trust 10.0.0.0/8,::1 --log access \
             --admin-listen 127.0.0.1:9100 --control /run/x.sock --drain 5s --pseudonym edge \
             --head-timeout 1s --max-sessions 10",
        )
        .unwrap();
        let addresses: Vec<_> = config.listeners.iter().map(|l| l.address.to_string()).collect();
        assert_eq!(addresses, ["127.0.0.1:80", "unix:/a,b"]);
        let Role::Reverse(reverse) = &config.listeners[1].role else { panic!("a gateway") };
        assert_eq!(reverse.to.len(), 3);
        assert_eq!(reverse.host_header, HostHeader::Origin);
        assert_eq!((config.memory, config.workers, config.max_sessions), (64 << 20, 3, 10));
        assert_eq!(config.trust.len(), 2);
        assert!(config.access_log);
        assert_eq!(config.pseudonym.as_deref(), Some("edge"));
        assert_eq!(config.timeouts.head.as_secs(), 1);
    }

    #[test]
    fn a_forward_proxy() {
        let config = parse("sepia forward --connect-ports 443,8443-8450").unwrap();
        assert_eq!(config.listeners[0].address.to_string(), "127.0.0.1:8123");
        let Role::Forward(forward) = &config.listeners[0].role else { panic!("a proxy") };
        assert_eq!(forward.connect_ports.len(), 2);
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        let cases = [
            ("sepia reverse", "--to <URL>"),
            ("sepia reverse --to 127.0.0.1:3000", "write http://127.0.0.1:3000"),
            ("sepia reverse --to https://a", "TLS to origins is not available yet; use http://"),
            ("sepia reverse --to http://a --memory 64M", "write MiB (1,048,576)"),
            ("sepia reverse --to http://a --memroy 64MiB", "similar argument exists: '--memory'"),
            ("sepia reverse --to http://a --drain 30", "write 30s for seconds"),
            ("sepia reverse --to http://a --log everything", "[possible values: access]"),
            ("sepia reverse --to http://a --workers 0", "write a number from 1 to 1024"),
            ("sepia reverse --to http://a --listen :80 --listen :80", "two listeners on 127"),
            ("sepia forward --listen :80 --listen 0.0.0.0:80", "127.0.0.1:80 has it already"),
            ("sepia forward --to http://a", "unexpected argument '--to'"),
            ("sepia forward --allow-private inside", "write a network"),
        ];
        for (words, right) in cases {
            let message = parse(words).unwrap_err();
            assert!(message.contains(right), "{words}\n{message}");
        }
    }

    #[test]
    fn help_has_every_flag_and_no_line_too_wide() {
        let page = super::reference_page();
        for row in crate::config::option::OPTIONS {
            if let Some(flag) = row.flag {
                assert!(page.contains(&format!("--{flag}")), "{flag}");
            }
        }
        for line in page.lines() {
            assert!(line.chars().count() <= super::COLUMNS, "{line}");
        }
    }
}
