//! The eight hops of a request: one word each, in the order in which they are taken.
//!
//! The word is the file, the variant here, the field in the log and the gauge's name, so that a
//! reader who has met it in one place knows it in all of them.

macro_rules! hops {
    ($($variant:ident, $name:literal, $sentence:literal;)+) => {
        /// One of the eight steps between a client's bytes and the answer.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        #[repr(u8)]
        pub enum Hop {
            $(#[doc = $sentence] $variant,)+
        }

        impl Hop {
            /// All hops, in their order.
            pub const ALL: &[Hop] = &[$(Hop::$variant),+];

            /// The hop's word.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Hop::$variant => $name,)+ }
            }

            /// What happens there, for a person.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Hop::$variant => $sentence,)+ }
            }
        }
    };
}

hops! {
    Accept, "accept", "A connection becomes a session of a worker.";
    Decode, "decode", "Bytes become a request head and its framing.";
    Decide, "decide", "A plan is made: local answer, tunnel, refusal, or a cache key to look up.";
    Lookup, "lookup", "The store is asked for a response that may be reused.";
    Forward, "forward", "The request goes to an origin server and its response head is awaited.";
    Admit, "admit", "The response is stored, freshens a stored one, or only passes.";
    Respond, "respond", "The client's conditions and range make the answer's head.";
    Deliver, "deliver", "The answer is written to the client.";
}
