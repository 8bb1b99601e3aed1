//! `/metrics`: the counters' declarations as OpenMetrics text.
//!
//! The declarations are the only source: a counter that exists is here, with its sentence, without
//! anybody having written it down twice.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::live::Live;
use crate::base::{Counter, Gauge, Reason, Snapshot};

/// The media type of the answer (OpenMetrics 1.0).
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The whole answer.
///
/// # Errors
/// When a name or sentence cannot be encoded, which a test excludes.
pub fn encode(live: &dyn Live) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("sepia");
    registry.register_collector(Box::new(Scrape {
        snapshot: live.snapshot(),
        store_use: live.store_use(),
        facts: (live.facts().memory, live.facts().uptime.as_secs()),
        ready: live.ready(),
    }));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

/// The values of one scrape.
struct Scrape {
    snapshot: Snapshot,
    store_use: Vec<(&'static str, u64)>,
    facts: (u64, u64),
    ready: bool,
}

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrape")
    }
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for counter in Counter::ALL {
            let metric = ConstCounter::new(self.snapshot.counter(*counter));
            let (name, help) = (counter.name(), counter.sentence());
            let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            metric.encode(descriptor)?;
        }
        for gauge in Gauge::ALL {
            encode_gauge(
                &mut encoder,
                gauge.name(),
                gauge.sentence(),
                self.snapshot.gauge(*gauge),
            )?;
        }
        self.encode_reasons(&mut encoder)?;
        self.encode_store(&mut encoder)?;
        let (memory, uptime) = self.facts;
        encode_gauge(&mut encoder, "memory_budget_bytes", "The byte budget.", memory)?;
        encode_gauge(&mut encoder, "uptime_seconds", "Since the start.", uptime)?;
        encode_gauge(&mut encoder, "ready", "Whether connections are welcome.", self.ready.into())
    }
}

impl Scrape {
    /// One family with the reason as label, so that a dashboard can sum and sort them.
    fn encode_reasons(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Exchanges and sessions that ended by a reason.";
        let mut family = encoder.encode_descriptor("reasons", help, None, MetricType::Counter)?;
        for reason in Reason::ALL {
            let labels = [("reason", reason.token()), ("source", reason.source().name())];
            let metric = ConstCounter::new(self.snapshot.reason(*reason));
            metric.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn encode_store(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "The byte budget's use by kind.";
        let unit = Some(&Unit::Bytes);
        let mut family = encoder.encode_descriptor("store_use", help, unit, MetricType::Gauge)?;
        for (kind, bytes) in &self.store_use {
            let metric = ConstGauge::new(signed(*bytes));
            metric.encode(family.encode_family(&[("kind", *kind)])?)?;
        }
        Ok(())
    }
}

fn encode_gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> fmt::Result {
    let metric = ConstGauge::new(signed(value));
    metric.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

/// The encoder knows signed gauges.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::encode;
    use crate::admin::live::tests::Still;
    use crate::base::{Counter, Gauge, Reason};
    use std::collections::HashSet;

    #[test]
    fn every_declaration_is_there_once_with_its_sentence() {
        let text = encode(&Still::new()).unwrap();
        let mut families = HashSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                assert!(families.insert(rest), "{rest} twice");
            }
        }
        for counter in Counter::ALL {
            let (name, sentence) = (counter.name(), counter.sentence());
            assert!(text.contains(&format!("# HELP sepia_{name} {sentence}\n")), "{name}");
            assert!(text.contains(&format!("\nsepia_{name}_total ")), "{name}");
        }
        for gauge in Gauge::ALL {
            assert!(text.contains(&format!("\nsepia_{} ", gauge.name())), "{}", gauge.name());
        }
        for reason in Reason::ALL {
            assert!(
                text.contains(&format!("sepia_reasons_total{{reason=\"{reason}\"")),
                "{reason}"
            );
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn values_are_the_snapshots() {
        let text = encode(&Still::new()).unwrap();
        for line in [
            "sepia_hits_total 1234",
            "sepia_sessions_open 2",
            "sepia_reasons_total{reason=\"origin-refused\",source=\"origin\"} 3",
            "sepia_store_use_bytes{kind=\"content\"} 5242880",
            "sepia_memory_budget_bytes 67108864",
            "sepia_ready 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
