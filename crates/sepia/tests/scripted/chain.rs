//! Two Sepias one behind the other, and one before itself.

use sepia::base::Reason;
use testkit::script::ScriptedOrigin;

use super::answers::{HOST, in_turn_seeing, not_modified, ok};
use super::bed::{each_pair, each_path};

#[test]
fn rfc9111_5_1_ages_add_up_along_a_chain_and_validations_go_along_it() {
    each_pair(|inner, outer| {
        let origin = ScriptedOrigin::start();
        let fields = "Cache-Control: max-age=20\r\nETag: \"1\"\r\n";
        let turns = vec![
            ("GET / via=1.1 inner", ok(fields, "content")),
            ("GET / via=1.1 outer via=1.1 inner if-none-match=\"1\"", not_modified(fields)),
        ];
        in_turn_seeing(&origin, &["via", "if-none-match"], turns);
        let inner = inner.with(|config| config.pseudonym = Some("inner".into())).gateway(&origin);
        let outer = outer
            .with(|config| config.pseudonym = Some("outer".into()))
            .gateway_to(&[inner.address()]);
        let pass = |seconds| [&inner, &outer].iter().for_each(|proxy| proxy.pass(seconds));
        inner.client().get("/", HOST, &[]);
        let mut client = outer.client();

        // Twelve seconds in the inner one have made it older for the outer one.
        pass(12);
        let first = client.get("/", HOST, &[]);
        assert_eq!(first.field_all("age"), ["12"]);
        assert_eq!(first.field_all("via"), ["1.1 inner", "1.1 outer"]);
        let hows = ["sepia; hit; ttl=8", "sepia; fwd=uri-miss; stored"];
        assert_eq!(first.field_all("cache-status"), hows);
        pass(5);
        let second = client.get("/", HOST, &[]);
        assert_eq!(second.field_all("age"), ["17"]);
        assert_eq!(second.field_all("cache-status").last(), Some(&"sepia; hit; ttl=3"));

        // Stale in both: the outer one asks the inner one, which asks the origin.
        pass(3);
        let last = client.get("/", HOST, &[]);
        assert_eq!((last.status, &*last.text()), (200, "content"));
        assert_eq!(last.field_all("via"), ["1.1 inner", "1.1 outer"]);
        assert_eq!(outer.client().get("/", HOST, &[]).field("age"), Some("0"));
    });
}

/// Via names this proxy already: a forward proxy that is asked for itself.
#[test]
fn rfc9110_7_6_3_a_proxy_that_asks_itself_says_so() {
    each_path(|bed| {
        let proxy = bed.forward();
        let target = format!("http://{}/", proxy.address());
        let response = proxy.client().get(&target, "ignored", &[]);
        assert_eq!(response.status, 508);
        assert_eq!(proxy.reasons(Reason::LoopDetected), 1);
    });
}
