//! The main job: the second answer comes from the store.

use sepia::base::Counter;
use testkit::script::ScriptedOrigin;

use super::bed::{START_DATE, each_path};

#[test]
fn the_second_answer_comes_from_the_store() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        origin.connection(|c| {
            let request = c.expect_head();
            assert_eq!(request.field("host"), Some("example.org"));
            assert_eq!(request.field("via"), Some("1.1 bed"));
            c.send(format!(
                "HTTP/1.1 200 OK\r\nDate: {START_DATE}\r\nCache-Control: max-age=60\r\n\
                 Content-Length: 5\r\n\r\nhello"
            ));
            c.expect_end();
        });
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let first = client.get("/", "example.org", &[]);
        assert_eq!((first.status, first.text().as_str()), (200, "hello"));
        assert_eq!(first.field("cache-status"), Some("sepia; fwd=uri-miss; stored"));
        assert_eq!(first.field("age"), None);
        proxy.pass(7);
        let second = client.get("/", "example.org", &[]);
        assert_eq!((second.status, second.text().as_str()), (200, "hello"));
        assert_eq!(second.field("cache-status"), Some("sepia; hit; ttl=53"));
        assert_eq!(second.field("age"), Some("7"));
        assert_eq!(second.field("date"), Some(START_DATE));
        assert_eq!(proxy.count(Counter::Hits), 1);
        drop(proxy);
        origin.finish();
    });
}
