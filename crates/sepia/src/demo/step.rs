//! The steps of the tour and what each of them promises.
//!
//! The promises are written down and never taken from an answer: what the proxy says of itself is
//! one column, what the origin saw is another, and both have to be as stated here.

use testkit::site::Site;

use super::cache_status::AnsweredBy;

/// The language of a client that says none.
const NO_LANGUAGE: &str = "";

/// One request, and what is to come of it.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// What the table says of the request.
    pub(super) label: &'static str,
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) fields: Vec<(&'static str, String)>,
    pub(super) content: &'static str,
    pub(super) promise: Promise,
}

/// What is to come of a request.
#[derive(Clone, Debug)]
pub(super) struct Promise {
    pub(super) status: u16,
    pub(super) answered_by: AnsweredBy,
    /// What the origin sees of it, as [`super::tour`] writes it.
    pub(super) seen: &'static str,
    pub(super) content: ContentPromise,
}

/// What content an answer is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ContentPromise {
    /// All that the site has there, for a client of this language.
    Whole(&'static str),
    /// These positions of it, both included.
    Part(usize, usize),
    /// None, but its length in the head (RFC 9110 §9.3.2).
    LengthAlone,
    /// None.
    Nothing,
    /// This text.
    Text(&'static str),
    /// Some sentence for a person.
    Sentence,
}

/// What the origin sees of a request that does not reach it.
pub(super) const UNSEEN: &str = "nothing";

impl Step {
    fn new(label: &'static str, method: &'static str, path: &'static str) -> Step {
        let promise = Promise {
            status: 200,
            answered_by: AnsweredBy::Origin,
            seen: UNSEEN,
            content: ContentPromise::Whole(NO_LANGUAGE),
        };
        Step { label, method, path, fields: Vec::new(), content: "", promise }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Step {
        self.fields.push((name, value.into()));
        self
    }

    fn by(mut self, answered_by: AnsweredBy, seen: &'static str) -> Step {
        (self.promise.answered_by, self.promise.seen) = (answered_by, seen);
        self
    }

    fn by_origin(self) -> Step {
        self.by(AnsweredBy::Origin, "GET 200")
    }

    fn by_store(self) -> Step {
        self.by(AnsweredBy::Store, UNSEEN)
    }

    fn status(mut self, status: u16) -> Step {
        self.promise.status = status;
        self
    }

    fn content(mut self, content: ContentPromise) -> Step {
        self.promise.content = content;
        self
    }
}

fn get(label: &'static str, path: &'static str) -> Step {
    Step::new(label, "GET", path)
}

/// Through the gateway: the first client fetches, the others profit, and what must not be shared
/// is not.
pub(super) fn through_gateway(site: &Site) -> Vec<Step> {
    [reuse(site), variants(), not_to_be_shared(), large()].concat()
}

/// RFC 9111 §4 and §4.3.2: one response for several requests.
fn reuse(site: &Site) -> Vec<Step> {
    let page = site.resource("/page/1", NO_LANGUAGE);
    let etag = page.as_ref().and_then(|page| page.etag()).unwrap_or_default();
    let head = Step::new("HEAD /page/1", "HEAD", "/page/1");
    vec![
        get("GET /page/1", "/page/1").by_origin(),
        get("GET /page/1", "/page/1").by_store(),
        head.by_store().content(ContentPromise::LengthAlone),
        get("GET /page/1, If-None-Match", "/page/1")
            .with("If-None-Match", etag)
            .by_store()
            .status(304)
            .content(ContentPromise::Nothing),
        get("GET /page/1, Range: bytes=100-299", "/page/1")
            .with("Range", "bytes=100-299")
            .by_store()
            .status(206)
            .content(ContentPromise::Part(100, 299)),
        get("GET /page/2, only-if-cached", "/page/2")
            .with("Cache-Control", "only-if-cached")
            .by(AnsweredBy::Proxy, UNSEEN)
            .status(504)
            .content(ContentPromise::Sentence),
    ]
}

/// RFC 9111 §4.1: what Vary names is part of what selects a stored response.
fn variants() -> Vec<Step> {
    let speaking = |label, language| {
        get(label, "/vary")
            .with("Accept-Language", language)
            .content(ContentPromise::Whole(language))
    };
    vec![
        speaking("GET /vary, in German", "de").by_origin(),
        speaking("GET /vary, in English", "en").by_origin(),
        speaking("GET /vary, in German", "de").by_store(),
    ]
}

/// RFC 9111 §3 and §4.3: what is not stored, and what is validated each time.
fn not_to_be_shared() -> Vec<Step> {
    let form = Step::new("POST /form", "POST", "/form");
    let form = Step { content: "wind=west", ..form };
    vec![
        get("GET /never", "/never")
            .by_origin()
            .content(ContentPromise::Text("This is answer number 1.\n")),
        get("GET /never", "/never")
            .by_origin()
            .content(ContentPromise::Text("This is answer number 2.\n")),
        get("GET /cookie", "/cookie").by_origin(),
        get("GET /cookie", "/cookie").by_origin(),
        get("GET /etag", "/etag").by_origin(),
        get("GET /etag", "/etag").by(AnsweredBy::Validated, "GET 304"),
        form.by(AnsweredBy::Origin, "POST 200").content(ContentPromise::Text("wind=west")),
    ]
}

fn large() -> Vec<Step> {
    vec![
        get("GET /download, 20 MB", "/download").by_origin(),
        get("GET /download, 20 MB", "/download").by_store(),
    ]
}

/// Two clients of one slow page: the second while the first is still reading.
pub(super) fn slow_pair() -> [Step; 2] {
    [
        get("GET /slow, a first client", "/slow").by_origin(),
        get("GET /slow, a second meanwhile", "/slow").by(AnsweredBy::Joined, UNSEEN),
    ]
}

/// Through the forward proxy, which has a store of its own.
pub(super) fn through_forward_proxy() -> Vec<Step> {
    vec![
        get("GET http://origin/page/1", "/page/1").by_origin(),
        get("GET http://origin/page/1", "/page/1").by_store(),
    ]
}

/// Inside a tunnel through the forward proxy.
pub(super) fn through_tunnel() -> Step {
    get("CONNECT origin, GET /page/1", "/page/1").by(AnsweredBy::Direct, "GET 200")
}
