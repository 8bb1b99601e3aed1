//! The field names this proxy has a word for, as small integers.
//!
//! A name is found with one multiplication, one table and one comparison; the table is built and
//! proven free of collisions while compiling. At most 64 names fit, so that the names present in
//! a field section are the bits of one integer. Names are compared without case (RFC 9110 §5.1).

macro_rules! known {
    ($($variant:ident $name:literal;)+) => {
        /// A field name with a word of its own.
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Known {
            $(#[doc = concat!("`", $name, "`")] $variant,)+
        }

        impl Known {
            /// Every name, in the order of declaration.
            pub const ALL: &[Known] = &[$(Known::$variant,)+];

            /// The name as it is registered.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Known::$variant => $name,)+ }
            }
        }
    };
}

known! {
    Accept "Accept";
    AcceptCharset "Accept-Charset";
    AcceptEncoding "Accept-Encoding";
    AcceptLanguage "Accept-Language";
    AcceptRanges "Accept-Ranges";
    Age "Age";
    Allow "Allow";
    AltSvc "Alt-Svc";
    Authorization "Authorization";
    CacheControl "Cache-Control";
    CacheStatus "Cache-Status";
    CdnCacheControl "CDN-Cache-Control";
    Connection "Connection";
    ContentEncoding "Content-Encoding";
    ContentLanguage "Content-Language";
    ContentLength "Content-Length";
    ContentLocation "Content-Location";
    ContentRange "Content-Range";
    ContentType "Content-Type";
    Cookie "Cookie";
    Date "Date";
    ETag "ETag";
    Expect "Expect";
    Expires "Expires";
    Forwarded "Forwarded";
    Host "Host";
    Http2Settings "HTTP2-Settings";
    IfMatch "If-Match";
    IfModifiedSince "If-Modified-Since";
    IfNoneMatch "If-None-Match";
    IfRange "If-Range";
    IfUnmodifiedSince "If-Unmodified-Since";
    KeepAlive "Keep-Alive";
    LastModified "Last-Modified";
    Link "Link";
    Location "Location";
    MaxForwards "Max-Forwards";
    NoVarySearch "No-Vary-Search";
    Origin "Origin";
    Pragma "Pragma";
    ProxyAuthenticate "Proxy-Authenticate";
    ProxyAuthenticationInfo "Proxy-Authentication-Info";
    ProxyAuthorization "Proxy-Authorization";
    ProxyConnection "Proxy-Connection";
    ProxyStatus "Proxy-Status";
    Range "Range";
    Referer "Referer";
    RetryAfter "Retry-After";
    Server "Server";
    SetCookie "Set-Cookie";
    Te "TE";
    Trailer "Trailer";
    TransferEncoding "Transfer-Encoding";
    Upgrade "Upgrade";
    UserAgent "User-Agent";
    Vary "Vary";
    Via "Via";
    XForwardedFor "X-Forwarded-For";
    XForwardedHost "X-Forwarded-Host";
    XForwardedPort "X-Forwarded-Port";
    XForwardedProto "X-Forwarded-Proto";
    XRealIp "X-Real-IP";
    XRequestId "X-Request-ID";
}

const _: () = assert!(Known::ALL.len() <= 64, "one bit of a u64 for each name");

impl Known {
    /// The known name equal to `name`, in any case.
    #[must_use]
    #[inline]
    pub fn from_name(name: &[u8]) -> Option<Known> {
        let known = SLOTS[slot(name)?]?;
        name.eq_ignore_ascii_case(known.name().as_bytes()).then_some(known)
    }

    /// This name's bit in the set of names present in a field section.
    pub(crate) const fn bit(self) -> u64 {
        1 << self as u8
    }
}

/// The place of a name in [`SLOTS`]: its length and three of its letters, mixed by a factor that
/// was found by trial. `None` for names too short to have three letters' places.
const fn slot(name: &[u8]) -> Option<usize> {
    const FACTOR: u32 = 1_075_921_733;
    const LOWER: u8 = 0x20;
    if name.len() < 2 || name.len() > 255 {
        return None;
    }
    let letters = [
        name.len().to_le_bytes()[0],
        name[0] | LOWER,
        name[name.len() / 2] | LOWER,
        name[name.len() - 2] | LOWER,
    ];
    Some((u32::from_le_bytes(letters).wrapping_mul(FACTOR) >> 24) as usize)
}

static SLOTS: [Option<Known>; 256] = {
    let mut slots = [None; 256];
    let mut at = 0;
    while at < Known::ALL.len() {
        let known = Known::ALL[at];
        let Some(slot) = slot(known.name().as_bytes()) else { panic!("a name of one letter") };
        assert!(slots[slot].is_none(), "two names share a slot: look for another factor");
        slots[slot] = Some(known);
        at += 1;
    }
    slots
};
