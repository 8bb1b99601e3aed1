//! The site's HTML: a first page that lists what there is to try, and eight short pages.

use std::fmt::Write as _;

use super::{IMAGES, PAGES};

/// The one style sheet, for light and dark, wide and narrow.
pub(super) const STYLE: &str = include_str!("style.css");

/// Title and text of each page.
const NOTES: [(&str, &str); 8] = [
    (
        "Tide",
        "Twice a day the water comes back to the same stones. Whoever keeps a table of the tides \
         need not walk down to the shore to know.",
    ),
    (
        "Harbour",
        "What is wanted often is kept near the quay; what is wanted once a year stays in the \
         warehouse behind the hill.",
    ),
    (
        "Lighthouse",
        "A light that turns says the same to every ship. Nobody has to ask for it alone.",
    ),
    (
        "Fog",
        "When the far shore cannot be seen, an old chart is better than none, as long as it says \
         how old it is.",
    ),
    (
        "Ferry",
        "Ten travellers who want the same crossing take one boat. The last to come need not wait \
         for the next.",
    ),
    (
        "Current",
        "A stream that never stops cannot be put into a barrel before it is passed on; it has to \
         be handed over while it flows.",
    ),
    (
        "Anchor",
        "A mark on the chain tells whether the depth has changed. If it has not, there is nothing \
         to measure again.",
    ),
    (
        "Ink",
        "The cuttlefish leaves a brown cloud behind. People found that it writes well, and named \
         a colour after the animal.",
    ),
];

/// What the first page offers besides pages: path, what it does.
const PATHS: [(&str, &str); 9] = [
    ("/download", "20 MB with an entity tag; parts can be asked for"),
    ("/slow", "five lines, one each fifth of a second; fresh for a minute"),
    ("/vary", "German or English, as Accept-Language asks"),
    ("/etag", "may be kept, and has to be validated each time"),
    ("/never", "no-store: another answer each time"),
    ("/cookie", "sets a cookie"),
    ("/private", "for one reader, not for a shared cache"),
    ("/error", "always a 500"),
    ("/bytes/1000", "any number of bytes you name"),
];

/// The first page.
pub(super) fn index() -> String {
    let mut main = String::from(
        "<h1>Notes from the shore</h1>\n<p>A small site to read through a cache: a few pages with \
         pictures, and one path for each way in which a response may be kept, or may not.</p>\n",
    );
    main.push_str("<div class=\"pictures\">\n");
    (1..=IMAGES).for_each(|number| push_picture(&mut main, number, number));
    main.push_str("</div>\n<h2>More to ask for</h2>\n<div class=\"wide\"><table>\n");
    for (path, what) in PATHS {
        let _ = writeln!(
            main,
            "<tr><td><a href=\"{path}\"><code>{path}</code></a></td><td>{what}</td></tr>"
        );
    }
    main.push_str("</table></div>\n");
    frame("Notes from the shore", 0, &main)
}

/// Page `number`, from 1 to [`PAGES`].
pub(super) fn page(number: u64) -> String {
    let (title, text) = usize::try_from(number - 1)
        .ok()
        .and_then(|place| NOTES.get(place))
        .expect("a note for each page number");
    let mut main = format!("<h1>{title}</h1>\n<p>{text}</p>\n<div class=\"pictures\">\n");
    for step in 0..2 {
        let image = (number - 1 + step * 3) % IMAGES + 1;
        push_picture(&mut main, image, number % PAGES + 1);
    }
    let next = number % PAGES + 1;
    let _ = writeln!(main, "</div>\n<p><a href=\"/page/{next}\">Go on to page {next}</a></p>");
    frame(title, number, &main)
}

fn push_picture(html: &mut String, image: u64, page: u64) {
    let _ = writeln!(
        html,
        "<figure><a href=\"/page/{page}\"><img src=\"/image/{image}.svg\" width=\"480\" \
         height=\"270\" alt=\"Waves under a low sun\"></a><figcaption>Picture {image}</figcaption>\
         </figure>"
    );
}

fn frame(title: &str, current: u64, main: &str) -> String {
    let mut links = String::new();
    for number in 1..=PAGES {
        let mark = if number == current { " aria-current=\"page\"" } else { "" };
        let _ = write!(links, "<a href=\"/page/{number}\"{mark}>{number}</a>");
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<link rel=\"icon\" href=\"/icon.png\">\n\
         <link rel=\"stylesheet\" href=\"/style.css\">\n</head>\n<body>\n\
         <header><img src=\"/icon.png\" width=\"64\" height=\"64\" alt=\"\">\
         <strong><a href=\"/\">Notes from the shore</a></strong>\n\
         <nav aria-label=\"Pages\">{links}</nav></header>\n\
         <main>\n{main}</main>\n\
         <footer>A generated site: the same bytes on every machine.</footer>\n</body>\n</html>\n"
    )
}
