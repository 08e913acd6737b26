//! The quality of answers, in numbers.

use std::ops::AddAssign;

/// The number of ranks that count.
pub(crate) const TOP: usize = 10;

/// The quality of rankings: sums over requests, from which [`mean`](Self::mean) makes shares.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Quality {
    pub(crate) requests: usize,
    /// Hit@1, Recall@3, Recall@5, Recall@10, MRR@10 and nDCG@10.
    sums: [f64; 6],
}

impl Quality {
    /// The names of the figures.
    pub(crate) const FIGURES: [&str; 6] = ["Hit@1", "R@3", "R@5", "R@10", "MRR@10", "nDCG@10"];

    /// Judges one ranking, best first, by what is right.
    pub(crate) fn new<T: PartialEq<U>, U>(ranking: &[T], right: &[U]) -> Self {
        let is_right = |at: usize| ranking.get(at).is_some_and(|it| right.iter().any(|r| it == r));
        let count = |top: usize| (0..top).filter(|at| is_right(*at)).count() as f64;
        let recall = |top: usize| count(top) / right.len() as f64;
        let gain = |at: usize| 1.0 / (at as f64 + 2.0).log2();
        let ideal: f64 = (0..right.len().min(TOP)).map(gain).sum();
        let found: f64 = (0..TOP).filter(|at| is_right(*at)).map(gain).sum();
        let first = (0..TOP).find(|at| is_right(*at)).map_or(0.0, |at| 1.0 / (at as f64 + 1.0));
        let sums = [count(1), recall(3), recall(5), recall(TOP), first, found / ideal];
        Self { requests: 1, sums }
    }

    /// Returns the mean figures of all requests.
    pub(crate) fn mean(&self) -> [f64; 6] {
        self.sums.map(|it| it / self.requests.max(1) as f64)
    }
}

impl AddAssign for Quality {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.sums.iter_mut().zip(other.sums).for_each(|(sum, it)| *sum += it);
    }
}

/// An answer that came with a confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Answer {
    pub(crate) confidence: f64,
    pub(crate) is_right: bool,
}

/// Answers of about the same confidence.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Bin {
    pub(crate) answers: usize,
    /// The mean of their confidences.
    pub(crate) confidence: f64,
    /// The share of them that is right.
    pub(crate) right: f64,
}

/// Sorts answers into ten bins of a tenth of confidence each.
pub(crate) fn bins(answers: &[Answer]) -> [Bin; 10] {
    let mut bins = [Bin::default(); 10];
    for answer in answers {
        let bin = &mut bins[((answer.confidence * 10.0) as usize).min(9)];
        bin.answers += 1;
        bin.confidence += answer.confidence;
        bin.right += f64::from(u8::from(answer.is_right));
    }
    bins.map(|Bin { answers, confidence, right }| {
        let count = answers.max(1) as f64;
        Bin { answers, confidence: confidence / count, right: right / count }
    })
}

/// Returns the expected calibration error: the mean distance of confidence from the truth.
pub(crate) fn calibration_error(answers: &[Answer]) -> f64 {
    let off = |it: &Bin| it.answers as f64 * (it.confidence - it.right).abs();
    bins(answers).iter().map(off).sum::<f64>() / answers.len().max(1) as f64
}

/// Returns the probability that a right answer has more confidence than a wrong one; ties count
/// half.
pub(crate) fn auroc(answers: &[Answer]) -> f64 {
    let mut sorted = answers.to_vec();
    sorted.sort_by(|a, b| a.confidence.total_cmp(&b.confidence));
    let (mut wrong_below, mut pairs) = (0.0, 0.0);
    for equal in sorted.chunk_by(|a, b| a.confidence == b.confidence) {
        let right = equal.iter().filter(|it| it.is_right).count() as f64;
        let wrong = equal.len() as f64 - right;
        pairs += right * (wrong_below + wrong / 2.0);
        wrong_below += wrong;
    }
    pairs / (wrong_below * (answers.len() as f64 - wrong_below))
}

/// Returns the figure that `percent` of sorted figures do not exceed.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(figures: [f64; 6], expected: [f64; 6]) {
        let is_near = figures.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(is_near, "{figures:?} is not {expected:?}");
    }

    fn answers(pairs: &[(f64, bool)]) -> Vec<Answer> {
        pairs.iter().map(|&(confidence, is_right)| Answer { confidence, is_right }).collect()
    }

    #[test]
    fn the_right_skill_first_is_all_that_can_be_had() {
        near(Quality::new(&["a", "b"], &["a"]).mean(), [1.0; 6]);
    }

    #[test]
    fn the_right_skill_in_fourth_place_counts_less() {
        // 1 ÷ 4, and 1 ÷ log2(5).
        let expected = [0.0, 0.0, 1.0, 1.0, 0.25, 0.4307];
        near(Quality::new(&["x", "y", "z", "a"], &["a"]).mean(), expected);
    }

    #[test]
    fn of_several_right_skills_each_counts() {
        // Second and fourth of three right ones: (1 ÷ log2(3) + 1 ÷ log2(5)) ÷ 2.1309.
        let expected = [0.0, 1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0, 0.5, 0.4982];
        near(Quality::new(&["x", "a", "y", "b"], &["a", "b", "c"]).mean(), expected);
    }

    #[test]
    fn nothing_behind_the_tenth_place_counts() {
        let ranking: Vec<u8> = (0..20).collect();
        near(Quality::new(&ranking, &[10]).mean(), [0.0; 6]);
        near(Quality::new::<u8, u8>(&[], &[1]).mean(), [0.0; 6]);
    }

    #[test]
    fn requests_count_the_same() {
        let mut quality = Quality::new(&["a"], &["a"]);
        quality += Quality::new(&["b"], &["a"]);
        assert_eq!(quality.requests, 2);
        near(quality.mean(), [0.5; 6]);
    }

    #[test]
    fn calibration_is_the_distance_from_the_truth() {
        // One bin says 0.95 and is right half of the time, one says 0.25 and never is.
        let answers = answers(&[(0.9, true), (1.0, false), (0.2, false), (0.3 - 1e-9, false)]);
        let bins = bins(&answers);
        assert_eq!((bins[9].answers, bins[2].answers, bins[5].answers), (2, 2, 0));
        assert!((bins[9].right - 0.5).abs() < 1e-9);
        assert!((calibration_error(&answers) - (0.45 + 0.25) / 2.0).abs() < 1e-6);
        assert!(calibration_error(&[]).abs() < 1e-9);
    }

    #[test]
    fn auroc_counts_pairs_in_order() {
        let ordered = answers(&[(0.9, true), (0.5, true), (0.4, false), (0.1, false)]);
        assert!((auroc(&ordered) - 1.0).abs() < 1e-9);
        // Of the six pairs of a right and a wrong one, four are in order and one is equal.
        let mixed = answers(&[(0.9, true), (0.5, true), (0.2, true), (0.5, false), (0.1, false)]);
        assert!((auroc(&mixed) - 4.5 / 6.0).abs() < 1e-9);
        assert!((auroc(&answers(&[(0.3, true), (0.3, false)])) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_percentile_is_one_of_the_figures() {
        let figures: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(
            [50, 95, 99, 100].map(|it| percentile(&figures, it)),
            [100.0, 190.0, 198.0, 200.0]
        );
        assert_eq!(percentile(&[7.0], 1), 7.0);
        assert!(percentile(&[], 50).is_nan());
    }
}
