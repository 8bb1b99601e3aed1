//! The nearest known word to one that is not known.

/// Words longer than this are not compared: the work grows with the product of the lengths.
const BYTES_MAX: usize = 64;

/// The known word that a typing person most likely meant: at most a third of its letters wrong.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > BYTES_MAX {
        return None;
    }
    let folded = word.to_ascii_lowercase().replace('_', "-");
    let near = known.into_iter().map(|candidate| (distance(&folded, candidate), candidate));
    let near = near.filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3));
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Insertions, deletions, substitutions and swaps of neighbours between two words (optimal string
/// alignment).
fn distance(one: &str, two: &str) -> usize {
    let (one, two) = (one.as_bytes(), two.as_bytes());
    let mut before_last = vec![0; two.len() + 1];
    let mut last: Vec<usize> = (0..=two.len()).collect();
    for i in 1..=one.len() {
        let mut row = vec![i; two.len() + 1];
        for j in 1..=two.len() {
            let substitution = last[j - 1] + usize::from(one[i - 1] != two[j - 1]);
            row[j] = substitution.min(last[j] + 1).min(row[j - 1] + 1);
            let is_swap = i > 1 && j > 1 && one[i - 1] == two[j - 2] && one[i - 2] == two[j - 1];
            if is_swap {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[two.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_of_the_pen() {
        let known = ["memory", "workers", "trust", "host-header", "head", "idle"];
        let cases = [
            ("memroy", Some("memory")),
            ("memory_", Some("memory")),
            ("host_header", Some("host-header")),
            ("HostHeader", Some("host-header")),
            ("worker", Some("workers")),
            ("hed", Some("head")),
            ("colour", None),
            ("", None),
        ];
        for (word, meant) in cases {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }
}
