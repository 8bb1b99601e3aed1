//! `sepia demo`: an origin with a small site, a gateway before it, a forward proxy, and a tour of
//! requests through both that explains itself and checks what it was promised.
//!
//! It needs nothing but loopback and stands above [`crate::proxy`] like any program that embeds a
//! proxy: it must never see more of one than such a program or a client does. Both listeners
//! belong to one proxy, as they could in anybody's configuration file; what they store is apart.

mod cache_status;
mod client;
mod step;
mod table;
mod tour;

use std::env;
use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use testkit::origin::SiteOrigin;
use testkit::site::Site;

use crate::config::{Config, ListenAddress};
use crate::proxy::{Proxy, Signals};
use table::{Table, grouped};
use tour::{Places, Tour, Verdict};

/// How `sepia demo` runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DemoOptions {
    /// The gateway's port; any free one if there is none.
    pub port: Option<u16>,
    /// Ends after the tour instead of staying for a browser.
    pub once: bool,
}

/// Walks the tour, and unless it is to end there stays until Ctrl-C or SIGTERM.
///
/// The exit code is 0 if everything was as promised, else 1.
#[must_use]
pub fn run(options: &DemoOptions) -> ExitCode {
    match show(options) {
        Ok(verdict) if verdict.broken == 0 => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            // Nobody is left to tell if standard error is closed.
            writeln!(io::stderr(), "sepia demo: {error}").ok();
            ExitCode::FAILURE
        }
    }
}

fn show(options: &DemoOptions) -> Result<Verdict, Box<dyn Error>> {
    let origin = SiteOrigin::start(Site::new())?;
    let proxy = start_proxy(origin.address(), options.port.unwrap_or(0))?;
    let places = places(&origin, &proxy)?;
    let mut out = io::stdout();
    let is_coloured = out.is_terminal() && env::var_os("NO_COLOR").is_none();
    writeln!(out, "{}", introduction(&places))?;
    let verdict = Tour::new(places, &origin, Table::new(io::stdout(), is_coloured)).walk()?;
    writeln!(out, "\n{}", summary(&verdict))?;
    if options.once {
        proxy.stop();
    } else {
        writeln!(out, "\n{}", invitation(&places))?;
        out.flush()?;
        proxy.wait(Signals::receive()?);
    }
    Ok(verdict)
}

/// One proxy with both listeners, configured as an operator would.
fn start_proxy(origin: SocketAddr, port: u16) -> Result<Proxy, Box<dyn Error>> {
    let text = format!(
        r#"
        memory = "128MiB"

        [[listen]]
        address = "127.0.0.1:{port}"
        role = "reverse"
        to = ["http://{origin}"]

        [[listen]]
        address = "127.0.0.1:0"
        role = "forward"
        connect-ports = ["443", "{}"]
        "#,
        origin.port()
    );
    let config = Config::from_text("the demo's own configuration", &text)?;
    Ok(Proxy::builder(config).start()?)
}

fn places(origin: &SiteOrigin, proxy: &Proxy) -> Result<Places, Box<dyn Error>> {
    match proxy.addresses()[..] {
        [ListenAddress::Tcp(gateway), ListenAddress::Tcp(forward_proxy)] => {
            Ok(Places { origin: origin.address(), gateway, forward_proxy })
        }
        ref others => Err(format!("of two TCP listeners {} came", others.len()).into()),
    }
}

fn introduction(places: &Places) -> String {
    let Places { origin, gateway, forward_proxy } = places;
    format!(
        "An origin server with a small site, and Sepia before it twice:\n\
         \x20 origin         http://{origin}/\n\
         \x20 gateway        http://{gateway}/\n\
         \x20 forward proxy  http://{forward_proxy}/\n"
    )
}

fn summary(verdict: &Verdict) -> String {
    let Verdict { steps, broken, reached_origin, elapsed } = verdict;
    let kept = match broken {
        0 => format!("All {steps} steps were as promised"),
        broken => format!("{broken} of {steps} steps were NOT as promised"),
    };
    let milliseconds = grouped(elapsed.as_millis());
    format!("{kept}; {reached_origin} requests reached the origin; {milliseconds} ms in all.")
}

fn invitation(places: &Places) -> String {
    let Places { origin, gateway, forward_proxy } = places;
    format!(
        "Now it is yours, until Ctrl-C. Open http://{gateway}/ in a browser, or try\n\
         \x20 curl -i http://{gateway}/never\n\
         \x20 curl -sD - -o /dev/null http://{gateway}/download\n\
         \x20 curl -i -H 'Accept-Language: de' -x http://{forward_proxy} http://{origin}/vary\n\
         \x20 chromium --proxy-server={forward_proxy} --proxy-bypass-list='<-loopback>' \
         http://{origin}/\n\
         and read Cache-Status in the answers: hit, or fwd= with the reason."
    )
}

#[cfg(test)]
mod tests {
    use testkit::origin::SiteOrigin;
    use testkit::site::Site;

    use super::table::Table;
    use super::tour::{Places, Tour, Verdict};
    use super::{introduction, invitation, places, start_proxy};

    /// The terminal that the table has to fit.
    const COLUMNS: usize = 120;

    fn walk(origin: &SiteOrigin, places: Places) -> (Verdict, String) {
        let mut out = Vec::new();
        let verdict = Tour::new(places, origin, Table::new(&mut out, false)).walk().unwrap();
        (verdict, String::from_utf8(out).unwrap())
    }

    #[test]
    fn all_is_as_promised() {
        let origin = SiteOrigin::start(Site::new()).unwrap();
        let proxy = start_proxy(origin.address(), 0).unwrap();
        let places = places(&origin, &proxy).unwrap();
        let (verdict, text) = walk(&origin, places);
        assert_eq!((verdict.broken, text.contains('✗')), (0, false), "{text}");
        for line in text.lines().chain(introduction(&places).lines()) {
            assert!(line.chars().count() <= COLUMNS, "{line}");
        }
        assert!(invitation(&places).lines().all(|line| line.chars().count() <= COLUMNS));
        proxy.stop();
    }

    /// With nothing in between, each promise of a cache is broken and told as such.
    #[test]
    fn an_origin_alone_keeps_no_promise_of_a_cache() {
        let origin = SiteOrigin::start(Site::new()).unwrap();
        let address = origin.address();
        let places = Places { origin: address, gateway: address, forward_proxy: address };
        let (verdict, text) = walk(&origin, places);
        assert_eq!(verdict.broken, verdict.steps, "{text}");
        assert!(text.contains("origin saw: expected nothing, got GET 200"), "{text}");
        assert!(text.contains("from: expected store, got direct"), "{text}");
        assert_eq!(text.matches('✗').count(), verdict.steps);
    }

    #[test]
    fn an_occupied_port_is_told() {
        let origin = SiteOrigin::start(Site::new()).unwrap();
        let error = start_proxy(origin.address(), origin.address().port()).err();
        let message = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(message.contains(&origin.address().to_string()), "{message}");
    }
}
