//! The site's origin as a client sees it over real connections.

use testkit::origin::SiteOrigin;
use testkit::script::ScriptedClient;
use testkit::site::{DOWNLOAD_BYTES, IMAGES, PAGES, Site, content_at};

fn start() -> (SiteOrigin, ScriptedClient) {
    let origin = SiteOrigin::start(Site::new()).expect("a loopback port");
    let client = ScriptedClient::connect(origin.address());
    (origin, client)
}

#[test]
fn every_link_of_every_page_leads_somewhere() {
    let (_origin, mut client) = start();
    let mut pages = vec!["/".to_owned()];
    pages.extend((1..=PAGES).map(|number| format!("/page/{number}")));
    for page in pages {
        let html = client.get(&page, "a", &[]).text();
        let links = html.split("href=\"").chain(html.split("src=\"")).skip(1);
        for link in links.filter_map(|rest| rest.split('"').next()).filter(|l| l.starts_with('/')) {
            client.send(format!("HEAD {link} HTTP/1.1\r\nHost: a\r\n\r\n"));
            let status = client.expect_response("HEAD").status;
            assert_eq!(status, if link == "/error" { 500 } else { 200 }, "{link} on {page}");
        }
    }
}

#[test]
fn pictures_are_what_they_say() {
    let (_origin, mut client) = start();
    for number in 1..=IMAGES {
        let response = client.get(&format!("/image/{number}.svg"), "a", &[]);
        assert_eq!(response.field("content-type"), Some("image/svg+xml"));
        assert!(response.text().starts_with("<svg") && response.text().ends_with("</svg>\n"));
    }
    let icon = client.get("/icon.png", "a", &[]);
    assert!(icon.content.starts_with(b"\x89PNG\r\n\x1a\n"));
    for path in ["/image/0.svg", "/image/7.svg", "/page/0", "/page/9", "/page/x", "/nothing"] {
        assert_eq!(client.get(path, "a", &[]).status, 404, "{path}");
    }
}

#[test]
fn rfc9110_14_parts_of_the_download() {
    let (_origin, mut client) = start();
    let whole = client.get("/download", "a", &[]);
    assert_eq!(whole.content.len() as u64, DOWNLOAD_BYTES);
    let etag = whole.field("etag").unwrap().to_owned();

    let part = client.get("/download", "a", &[("Range", "bytes=1000003-1000012")]);
    assert_eq!(part.status, 206);
    assert_eq!(part.field("content-range"), Some("bytes 1000003-1000012/20000000"));
    assert_eq!(part.content, content_at(1_000_003, 10));
    assert_eq!(part.content, whole.content[1_000_003..1_000_013]);

    let range = ("Range", "bytes=-5");
    assert_eq!(client.get("/download", "a", &[range, ("If-Range", &etag)]).content.len(), 5);
    assert_eq!(client.get("/download", "a", &[range, ("If-Range", "\"old\"")]).status, 200);
    let beyond = client.get("/download", "a", &[("Range", "bytes=20000000-")]);
    assert_eq!((beyond.status, beyond.field("content-range")), (416, Some("bytes */20000000")));
}

#[test]
fn content_at_agrees_with_what_is_served() {
    let (_origin, mut client) = start();
    let site = Site::new();
    for path in ["/", "/style.css", "/bytes/0", "/bytes/12345", "/etag", "/vary"] {
        let served = client.get(path, "a", &[]).content;
        assert_eq!(site.content_at(path, 0, usize::MAX), Some(served.clone()), "{path}");
        let start = served.len().min(7);
        assert_eq!(
            site.content_at(path, 7, 20),
            Some(served[start..].iter().copied().take(20).collect())
        );
    }
    assert_eq!(site.content_at("/never", 0, 1), None);
}

#[test]
fn rfc9110_13_1_2_an_unchanged_resource_is_not_sent_again() {
    let (_origin, mut client) = start();
    let etag = client.get("/etag", "a", &[]).field("etag").unwrap().to_owned();
    for tags in [etag.clone(), format!("\"x\", W/{etag}"), "*".to_owned()] {
        let response = client.get("/etag", "a", &[("If-None-Match", &tags)]);
        assert_eq!(response.status, 304, "{tags}");
        assert_eq!(response.field("etag"), Some(&*etag));
        assert_eq!(response.field("cache-control"), Some("max-age=0"));
    }
    assert_eq!(client.get("/etag", "a", &[("If-None-Match", "\"x\"")]).status, 200);
}

#[test]
fn each_caching_rule_has_its_path() {
    let (_origin, mut client) = start();
    let first = client.get("/never", "a", &[]);
    assert_eq!(first.field("cache-control"), Some("no-store"));
    assert_ne!(first.content, client.get("/never", "a", &[]).content);

    let german = client.get("/vary", "a", &[("Accept-Language", "de-AT, en;q=0.5")]);
    let english = client.get("/vary", "a", &[]);
    assert_eq!(german.field("vary"), Some("Accept-Language"));
    assert_ne!(german.content, english.content);
    assert_ne!(german.field("etag"), english.field("etag"));

    assert!(client.get("/cookie", "a", &[]).field("set-cookie").is_some());
    assert_eq!(
        client.get("/private", "a", &[]).field("cache-control"),
        Some("private, max-age=60")
    );
    assert_eq!(client.get("/error", "a", &[]).status, 500);
}

#[test]
fn rfc9112_7_1_a_stream_comes_line_by_line() {
    let (origin, mut client) = start();
    client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.expect_head().field("transfer-encoding"), Some("chunked"));
    for number in 1..=5 {
        let line = String::from_utf8(client.expect_chunk()).unwrap();
        assert_eq!(line, format!("Wave {number} of 5 has arrived.\n"));
    }
    assert!(client.expect_chunk().is_empty());
    client.expect_bytes("\r\n");

    let mut older = ScriptedClient::connect(origin.address());
    older.send("GET /slow HTTP/1.0\r\n\r\n");
    let response = older.expect_response("GET");
    assert_eq!(response.field("transfer-encoding"), None);
    assert_eq!(response.text().lines().count(), 5);
}

#[test]
fn a_form_comes_back_and_other_methods_do_not() {
    let (_origin, mut client) = start();
    client.send(
        "POST /form HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n",
    );
    assert_eq!(client.expect_head().status, 100);
    client.send("fish");
    assert_eq!(client.expect_response("POST").text(), "fish");
    client.send("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n");
    let refused = client.expect_response("DELETE");
    assert_eq!((refused.status, refused.field("allow")), (405, Some("GET, HEAD")));
}

#[test]
fn the_origin_tells_what_it_saw() {
    let (origin, mut client) = start();
    client.get("/?q=1", "a", &[("X-Test", "1")]);
    client.send("GET http://a/etag HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(client.expect_response("GET").text(), "Ask me each time.\n");
    client.expect_end();
    let seen = origin.take_seen();
    let targets: Vec<_> =
        seen.iter().map(|request| (&*request.target, request.connection)).collect();
    assert_eq!(targets, [("/?q=1", 1), ("http://a/etag", 1)]);
    assert_eq!((seen[0].fields.first("x-test"), seen[0].status), (Some("1"), 200));
    assert!(origin.seen().is_empty());
    assert_eq!(origin.connections(), 1);
}

#[test]
fn more_connections_than_threads_wait_and_a_drop_ends_them_all() {
    let (origin, _first) = start();
    let mut clients: Vec<_> = (0..70).map(|_| ScriptedClient::connect(origin.address())).collect();
    clients[0].get("/etag", "a", &[]);
    let mut last = clients.pop().unwrap();
    last.send("GET /etag HTTP/1.1\r\nHost: a\r\n\r\n");
    drop(clients);
    assert_eq!(last.expect_response("GET").status, 200);
    drop(origin);
    last.expect_closed();
}
