//! The reasons of decisions: every "no" of this crate is a row here or in a table of the same shape
//! beside its decision.
//!
//! One row gives the variant, its token for logs and Cache-Status details, the RFC section that
//! asks for it and the sentence for a person; so none of them can be forgotten or drift apart.

/// Declares an enum of rules with their token, section and sentence.
macro_rules! rules {
    (
        $(#[$meta:meta])*
        $name:ident { $($variant:ident: $token:literal, $section:literal, $sentence:literal;)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = concat!($sentence, " (", $section, ")")] $variant,)+
        }

        impl $name {
            /// Every variant, in the order of declaration.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// Stable kebab-case name for logs, counters and Cache-Status details.
            pub const fn token(self) -> &'static str {
                match self { $($name::$variant => $token,)+ }
            }

            /// The text that asks for this rule, such as "RFC 9111 §3".
            pub const fn section(self) -> &'static str {
                match self { $($name::$variant => $section,)+ }
            }

            /// The rule as a sentence for a person.
            pub const fn sentence(self) -> &'static str {
                match self { $($name::$variant => $sentence,)+ }
            }
        }
    };
}
pub(crate) use rules;

rules! {
    /// Why an exchange passes by the store: not looked up, or not stored.
    PassRule {
        Method: "method", "RFC 9111 §3",
            "Only GET is stored, and only GET and HEAD are answered from the store.";
        RequestContent: "request-content", "RFC 9110 §9.3.1",
            "The request has content, which may have shaped the answer.";
        Upgrade: "upgrade", "RFC 9110 §7.8",
            "The request asks to switch protocols; only the origin can.";
        OriginPrecondition: "origin-precondition", "RFC 9110 §13.1",
            "If-Match and If-Unmodified-Since are for the origin to judge.";
        RequestNoStore: "request-no-store", "RFC 9111 §5.2.1.5",
            "The request says no-store.";
        NoStore: "no-store", "RFC 9111 §5.2.2.5",
            "The response says no-store.";
        Private: "private", "RFC 9111 §5.2.2.7",
            "The response is private to its user; this cache is shared.";
        Authorization: "authorization", "RFC 9111 §3.5",
            "The request has Authorization, and no directive allows sharing the response.";
        SetCookie: "set-cookie", "RFC 9111 §7.3",
            "The response sets a cookie, which belongs to one client.";
        CookieWithoutFreshness: "cookie-without-freshness", "RFC 9111 §4.2.2",
            "The request has a Cookie and the response states no freshness of its own.";
        PartialContent: "partial-content", "RFC 9111 §3.3",
            "The response is a part of the representation.";
        Status: "status", "RFC 9111 §3",
            "A response with this status is not stored without an explicit freshness lifetime.";
        StatusNeverStored: "status-never-stored", "RFC 9111 §3",
            "This status is about the one request or hop, not about the target.";
        MustUnderstand: "must-understand", "RFC 9111 §5.2.2.3",
            "The response may be stored only where its status is understood; it is not here.";
        VaryStar: "vary-star", "RFC 9111 §4.1",
            "Vary names * (or what cannot be compared): no later request could ever match.";
        NoFreshness: "no-freshness", "RFC 9111 §4.2",
            "Neither a freshness lifetime nor a validator: it could never be reused.";
        NoValidator: "no-validator", "RFC 9111 §5.2.2.4",
            "It must be validated before each use, yet has no validator.";
        AmbiguousLength: "ambiguous-length", "RFC 9112 §6.3",
            "Content-Length and Transfer-Encoding contradict each other.";
    }
}

impl PassRule {
    /// Whether the rule is about the one request: the same response to another may be stored, and
    /// what is stored already may stay.
    pub const fn is_about_request(self) -> bool {
        matches!(
            self,
            PassRule::Method
                | PassRule::RequestContent
                | PassRule::Upgrade
                | PassRule::OriginPrecondition
                | PassRule::RequestNoStore
                | PassRule::Authorization
                | PassRule::CookieWithoutFreshness
        )
    }
}
