//! Scripted cases: an origin, the proxy between, a client. Each reads as a story, and each runs
//! twice: answers straight from the readiness event, and by tasks. The bytes must be the same.

#[path = "scripted/answers.rs"]
mod answers;
#[path = "scripted/bed.rs"]
mod bed;
#[path = "scripted/chain.rs"]
mod chain;
#[path = "scripted/collapsing.rs"]
mod collapsing;
#[path = "scripted/conditions.rs"]
mod conditions;
#[path = "scripted/drains.rs"]
mod drains;
#[path = "scripted/edges.rs"]
mod edges;
#[path = "scripted/expectations.rs"]
mod expectations;
#[path = "scripted/faults.rs"]
mod faults;
#[path = "scripted/forwarding.rs"]
mod forwarding;
#[path = "scripted/framing.rs"]
mod framing;
#[path = "scripted/freshness.rs"]
mod freshness;
#[path = "scripted/heads.rs"]
mod heads;
#[path = "scripted/hits.rs"]
mod hits;
#[path = "scripted/invalidation.rs"]
mod invalidation;
#[path = "scripted/lines.rs"]
mod lines;
#[path = "scripted/listeners.rs"]
mod listeners;
#[path = "scripted/memory.rs"]
mod memory;
#[path = "scripted/methods.rs"]
mod methods;
#[path = "scripted/operators.rs"]
mod operators;
#[path = "scripted/refusals.rs"]
mod refusals;
#[path = "scripted/reloads.rs"]
mod reloads;
#[path = "scripted/reuse.rs"]
mod reuse;
#[path = "scripted/sessions.rs"]
mod sessions;
#[path = "scripted/storing.rs"]
mod storing;
#[path = "scripted/streaming.rs"]
mod streaming;
#[path = "scripted/targets.rs"]
mod targets;
#[path = "scripted/tunnels.rs"]
mod tunnels;
#[path = "scripted/uploads.rs"]
mod uploads;
#[path = "scripted/validation.rs"]
mod validation;
#[path = "scripted/variants.rs"]
mod variants;
