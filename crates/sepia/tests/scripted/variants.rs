//! Several stored responses under one key (RFC 9111 section 4.1).

use testkit::script::ScriptedOrigin;

use super::answers::{HOST, in_turn, in_turn_seeing, not_modified, ok};
use super::bed::each_path;

const BY_LANGUAGE: &str = "Cache-Control: max-age=20\r\nVary: Accept-Language\r\n";

#[test]
fn rfc9111_4_1_each_variant_is_kept_beside_the_others() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let turns = vec![
            ("GET / accept-language=de", ok(BY_LANGUAGE, "hallo")),
            ("GET / accept-language=en", ok(BY_LANGUAGE, "hello")),
            ("GET /", ok(BY_LANGUAGE, "?")),
            ("GET / accept-language=", ok(BY_LANGUAGE, "empty")),
        ];
        in_turn_seeing(&origin, &["accept-language"], turns);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        let german = ("Accept-Language", "de");
        let first = client.get("/", HOST, &[german]);
        assert_eq!(first.field("cache-status"), Some("sepia; fwd=uri-miss; stored"));
        let english = client.get("/", HOST, &[("Accept-Language", "en")]);
        assert_eq!(english.field("cache-status"), Some("sepia; fwd=vary-miss; stored"));
        assert_eq!(client.get("/", HOST, &[]).text(), "?", "a missing field is none of them");
        let empty = client.get("/", HOST, &[("Accept-Language", "")]);
        assert_eq!(empty.text(), "empty", "missing and empty differ");

        assert_eq!(client.get("/", HOST, &[german]).text(), "hallo");
        assert_eq!(client.get("/", HOST, &[("accept-LANGUAGE", "en")]).text(), "hello");
        assert_eq!(client.get("/", HOST, &[]).text(), "?");
        assert_eq!(client.get("/", HOST, &[("Accept-Language", "")]).text(), "empty");
    });
}

#[test]
fn rfc9111_4_1_what_means_the_same_is_one_variant() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let fields = "Cache-Control: max-age=20\r\nVary: Accept-Encoding\r\nVary: X-A\r\n";
        in_turn(&origin, vec![ok(fields, "1"), ok(fields, "2")]);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[("Accept-Encoding", "gzip, br"), ("X-A", "1, 2")]);
        let same = [("X-A", "1"), ("Accept-Encoding", "BR,gzip"), ("X-A", "2")];
        assert_eq!(client.get("/", HOST, &same).text(), "1");
        let other = [("X-A", "2"), ("Accept-Encoding", "br,gzip"), ("X-A", "1")];
        assert_eq!(client.get("/", HOST, &other).text(), "2", "order may matter in X-A");
    });
}

#[test]
fn rfc9111_4_3_a_variant_is_validated_by_itself() {
    each_path(|bed| {
        let origin = ScriptedOrigin::start();
        let variant = |tag: &str| format!("{BY_LANGUAGE}ETag: \"{tag}\"\r\n");
        let turns = vec![
            ("GET / accept-language=de", ok(&variant("de"), "hallo")),
            ("GET / accept-language=en", ok(&variant("en"), "hello")),
            ("GET / accept-language=de if-none-match=\"de\"", not_modified(&variant("de"))),
        ];
        in_turn_seeing(&origin, &["accept-language", "if-none-match"], turns);
        let proxy = bed.gateway(&origin);
        let mut client = proxy.client();
        client.get("/", HOST, &[("Accept-Language", "de")]);
        client.get("/", HOST, &[("Accept-Language", "en")]);
        proxy.pass(25);
        assert_eq!(client.get("/", HOST, &[("Accept-Language", "de")]).text(), "hallo");
        let english = [("Accept-Language", "en"), ("Cache-Control", "max-stale")];
        let english = client.get("/", HOST, &english);
        assert_eq!((&*english.text(), english.field("age")), ("hello", Some("25")));
        let german = client.get("/", HOST, &[("Accept-Language", "de")]);
        assert_eq!((&*german.text(), german.field("age")), ("hallo", Some("0")));
    });
}

/// The origin chose by a field that the gateway writes: what the client sent says nothing.
#[test]
fn rfc9111_4_1_fields_that_the_gateway_writes_select_nothing() {
    for name in ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Request-ID"] {
        each_path(|bed| {
            let origin = ScriptedOrigin::start();
            let fields = format!("Cache-Control: max-age=20\r\nVary: {name}\r\n");
            in_turn(&origin, vec![ok(&fields, "1"), ok(&fields, "2")]);
            let proxy = bed.gateway(&origin);
            let mut client = proxy.client();
            for content in ["1", "2"] {
                let response = client.get("/", HOST, &[]);
                assert_eq!(response.text(), content, "{name}");
                let how = response.field("cache-status");
                assert_eq!(how, Some("sepia; fwd=uri-miss; detail=vary-star"), "{name}");
            }
        });
    }
}
