//! The median of paired ratios, with an interval that assumes nothing about their distribution.

/// A median and the order statistics around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Median {
    /// The median itself.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// How likely the interval holds the true median: at least 0.95 where there are enough pairs,
    /// else what the smallest and the largest give.
    pub confidence: f64,
}

/// The median of these values. The interval goes from the k-th smallest to the k-th largest; the
/// true median lies outside of it when fewer than k of n fair coins fall on one side, so k is the
/// largest for which both tails together have at most 5 %.
///
/// # Panics
/// Without any value.
pub fn median(values: &[f64]) -> Median {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let mut rank = 1;
    while 2 * (rank + 1) <= count && confidence(count, rank + 1) >= 0.95 {
        rank += 1;
    }
    Median {
        value: f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]),
        low: sorted[rank - 1],
        high: sorted[count - rank],
        confidence: confidence(count, rank),
    }
}

/// 1 - 2 P(fewer than `rank` heads in `count` tosses).
fn confidence(count: usize, rank: usize) -> f64 {
    let mut probability = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut tail = 0.0;
    for heads in 0..rank {
        tail += probability;
        probability *= (count - heads) as f64 / (heads + 1) as f64;
    }
    1.0 - 2.0 * tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_tables() {
        // Sample size, rank, confidence: as in tables of the sign test.
        for (count, rank, expected) in [(20, 6, 0.9586), (10, 2, 0.9785), (6, 1, 0.9688)] {
            let values: Vec<f64> = (1..=count).map(f64::from).collect();
            let found = median(&values);
            assert!((found.low - f64::from(rank)).abs() < 1e-9, "{count}: {found:?}");
            assert!((found.high - f64::from(count + 1 - rank)).abs() < 1e-9, "{count}: {found:?}");
            assert!((found.confidence - expected).abs() < 1e-4, "{count}: {found:?}");
        }
    }

    #[test]
    fn few_values_give_all_they_have() {
        let found = median(&[3.0, 1.0, 2.0, 5.0, 4.0]);
        assert_eq!((found.value, found.low, found.high), (3.0, 1.0, 5.0));
        assert!((found.confidence - 0.9375).abs() < 1e-9);
        assert_eq!(median(&[1.0, 2.0]).value, 1.5);
    }
}
