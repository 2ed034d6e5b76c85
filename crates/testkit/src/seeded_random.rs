//! Random numbers of a simulation: the same seed gives the same numbers on every machine.

use proptest::strategy::{Strategy, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A seeded random number generator (splitmix64).
#[derive(Debug, Clone)]
pub struct SeededRandom(u64);

impl SeededRandom {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn next_below(&mut self, count: u64) -> u64 {
        self.next_number() % count
    }

    /// Returns an index of a list with this many entries.
    pub fn next_index(&mut self, count: usize) -> usize {
        usize::try_from(self.next_below(count as u64)).expect("an index of a list")
    }

    /// Returns true in one of this many cases.
    pub fn is_one_in(&mut self, count: u64) -> bool {
        self.next_below(count) == 0
    }

    /// Returns a value of a strategy.
    pub fn generate_value<S: Strategy>(&mut self, strategy: &S) -> S::Value {
        let seed: Vec<u8> = (0..4).flat_map(|_| self.next_number().to_le_bytes()).collect();
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut runner = TestRunner::new_with_rng(Config::default(), random);
        strategy.new_tree(&mut runner).expect("the strategy rejects nothing").current()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_decides_all_values() {
        let values = |seed| {
            let mut random = SeededRandom::new(seed);
            let history = random.generate_value(&crate::histories(20));
            (random.next_number(), random.next_index(7), history)
        };
        assert_eq!(values(1), values(1));
        assert_ne!(values(1).2, values(2).2);
    }
}
