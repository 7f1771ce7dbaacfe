//! Simulated links: a delay and a token bucket for each direction between two parties. The links of a party can share a bucket for each
//! direction instead ([`LinkShape::shared`]), like an interface with a limit.
//!
//! Shaping is done where messages arrive. A link delivers bytes at its rate once its bucket is empty, and all bytes a
//! fixed delay later than they came. Nothing is lost or reordered, and no privileges are needed. The sender does not wait,
//! as if it had an unbounded socket buffer. All functions here take the time as an argument and never read a clock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::NetError;

/// Depth of the token bucket: bytes that an idle link passes on at once. About ten packets.
pub const BUCKET_BYTES: u64 = 15_000;

/// Longest round trip that can be simulated.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(10);

/// Slowest link that can be simulated, in bits a second: the waits of a session are bounded.
const SLOWEST_LINK: u64 = 100_000;

/// A link between two parties, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkShape {
    round_trip: Duration,
    bits_per_second: Option<u64>,
    shared: bool,
}

impl LinkShape {
    /// A link with this round-trip time, and this bandwidth in each direction (`None`: no limit).
    ///
    /// # Errors
    /// [`NetError::Config`] for round trips above 10 s and bandwidths below 100 kbit/s.
    pub fn new(round_trip: Duration, bits_per_second: Option<u64>) -> Result<Self, NetError> {
        if round_trip > LONGEST_ROUND_TRIP {
            return Err(NetError::Config {
                detail: format!(
                    "a simulated round trip of {} s: at most {} s are possible",
                    round_trip.as_secs_f64(),
                    LONGEST_ROUND_TRIP.as_secs()
                ),
            });
        }
        if let Some(bits) = bits_per_second.filter(|bits| *bits < SLOWEST_LINK) {
            return Err(NetError::Config {
                detail: format!(
                    "a simulated bandwidth of {bits} bit/s: at least {SLOWEST_LINK} bit/s are possible"
                ),
            });
        }
        Ok(Self {
            round_trip,
            bits_per_second,
            shared: false,
        })
    }

    /// The same link, whose bandwidth is that of all links of a party together, in each direction.
    #[must_use]
    pub fn shared(self) -> Self {
        Self {
            shared: true,
            ..self
        }
    }

    /// Whether the links of a party share the bandwidth.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Time from sending a small message to getting a small answer.
    #[must_use]
    pub fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// Bandwidth of each direction; `None`: no limit.
    #[must_use]
    pub fn bits_per_second(&self) -> Option<u64> {
        self.bits_per_second
    }
}

/// Token bucket, in its form as a virtual clock.
#[derive(Debug)]
pub(crate) struct Bucket {
    bits_per_second: Option<u64>,
    /// When all bytes that came have passed.
    free_at: Option<Instant>,
}

impl Bucket {
    /// A full bucket with the bandwidth of this shape.
    pub(crate) fn new(shape: LinkShape) -> Self {
        Self {
            bits_per_second: shape.bits_per_second,
            free_at: None,
        }
    }

    /// When `bytes` more that come `now` have passed.
    pub(crate) fn pass(&mut self, bytes: usize, now: Instant) -> Instant {
        let Some(bits_per_second) = self.bits_per_second else {
            return now;
        };
        let cost =
            |bytes: u64| Duration::from_secs_f64(bytes as f64 * 8.0 / bits_per_second as f64);
        // Right after the machine started there is no such moment.
        let full = now.checked_sub(cost(BUCKET_BYTES)).unwrap_or(now);
        let free_at = self.free_at.map_or(full, |at| at.max(full)) + cost(bytes as u64);
        self.free_at = Some(free_at);
        free_at.max(now)
    }
}

/// A bucket of several links.
pub(crate) type SharedBucket = Arc<Mutex<Bucket>>;

/// One direction of a simulated link.
#[derive(Debug)]
pub(crate) struct Pacer {
    delay: Duration,
    bucket: SharedBucket,
    /// Bytes of the message under way that were paced already.
    paced: usize,
}

impl Pacer {
    /// A direction of a link of this shape, over a path that has a round trip of `path` by itself. `bucket`: of this link, or of several.
    pub(crate) fn new(shape: LinkShape, path: Duration, bucket: SharedBucket) -> Self {
        Self {
            delay: shape.round_trip.saturating_sub(path) / 2,
            bucket,
            paced: 0,
        }
    }

    /// Notes that of the message under way `bytes` in all have come by `now`.
    pub(crate) fn part(&mut self, bytes: usize, now: Instant) -> Result<(), NetError> {
        self.more(bytes, now)?;
        self.paced = bytes;
        Ok(())
    }

    /// The message under way, of `bytes` in all, is complete: returns when the link delivers it. `left`: when the sender's own bucket has
    /// passed it on, if the message came earlier.
    pub(crate) fn last(
        &mut self,
        bytes: usize,
        now: Instant,
        left: Option<Instant>,
    ) -> Result<Instant, NetError> {
        let passed = self.more(bytes, now)?;
        self.paced = 0;
        Ok(left.map_or(passed, |left| passed.max(left)) + self.delay)
    }

    /// Passes on the new bytes of a message under way, of which `bytes` in all have come.
    fn more(&mut self, bytes: usize, now: Instant) -> Result<Instant, NetError> {
        let new = bytes.checked_sub(self.paced);
        let new = new.ok_or(NetError::internal("a message under way became shorter"))?;
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(bucket.pass(new, now))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MBIT: u64 = 1_000_000;

    fn pacer(ms: u64, mbit: Option<u64>) -> Pacer {
        let shape = LinkShape::new(Duration::from_millis(ms), mbit.map(|m| m * MBIT)).unwrap();
        over(shape, Duration::ZERO)
    }

    fn over(shape: LinkShape, path: Duration) -> Pacer {
        Pacer::new(shape, path, Arc::new(Mutex::new(Bucket::new(shape))))
    }

    #[test]
    fn small_messages_take_half_a_round_trip() {
        let start = Instant::now();
        let mut link = pacer(20, Some(100));
        assert_eq!(
            link.last(64, start, None).unwrap(),
            start + Duration::from_millis(10)
        );
        let later = start + Duration::from_secs(1);
        assert_eq!(
            link.last(64, later, None).unwrap(),
            later + Duration::from_millis(10)
        );
    }

    #[test]
    fn the_path_s_own_round_trip_is_part_of_the_simulated_one() {
        let start = Instant::now();
        let shape = LinkShape::new(Duration::from_millis(20), None).unwrap();
        let due = |path| {
            over(shape, Duration::from_millis(path))
                .last(1, start, None)
                .unwrap()
                - start
        };
        assert_eq!(due(4), Duration::from_millis(8));
        assert_eq!(due(30), Duration::ZERO);
    }

    #[test]
    fn a_long_transfer_has_the_bandwidth() {
        let start = Instant::now();
        let mut link = pacer(0, Some(80)); // 10 MB a second
        let bucket = BUCKET_BYTES as usize;
        for i in 1..=10u64 {
            let due = link
                .last(
                    if i == 1 {
                        1_000_000 + bucket
                    } else {
                        1_000_000
                    },
                    start,
                    None,
                )
                .unwrap();
            let error = (due - start).abs_diff(Duration::from_millis(100 * i));
            assert!(
                error < Duration::from_micros(1),
                "message {i} off by {error:?}"
            );
        }
    }

    #[test]
    fn an_idle_link_passes_one_bucket_at_once_and_no_more() {
        let start = Instant::now();
        let mut link = pacer(0, Some(8)); // 1 MB a second
        let bucket = BUCKET_BYTES as usize;
        assert_eq!(link.last(bucket, start, None).unwrap(), start);
        let due = link.last(bucket, start, None).unwrap() - start;
        assert!(due.abs_diff(Duration::from_millis(15)) < Duration::from_micros(1));
        // However long it was idle.
        let later = start + Duration::from_secs(3600);
        assert_eq!(link.last(bucket, later, None).unwrap(), later);
        assert!(link.last(1000, later, None).unwrap() > later);
    }

    #[test]
    fn links_that_share_a_bucket_have_the_bandwidth_of_one() {
        let start = Instant::now();
        let shape = LinkShape::new(Duration::ZERO, Some(80 * MBIT)).unwrap(); // 10 MB a second
        assert!(!shape.is_shared() && shape.shared().is_shared());
        let bucket = Arc::new(Mutex::new(Bucket::new(shape)));
        let mut links = [(); 3].map(|()| Pacer::new(shape, Duration::ZERO, Arc::clone(&bucket)));
        let mut due = start;
        for link in &mut links {
            due = due.max(link.last(1_000_000, start, None).unwrap());
        }
        let target = Duration::from_secs_f64((3e6 - BUCKET_BYTES as f64) / 1e7);
        assert!((due - start).abs_diff(target) < Duration::from_micros(1));
    }

    #[test]
    fn a_message_that_leaves_later_is_delivered_later() {
        let start = Instant::now();
        let leaves = start + Duration::from_millis(7);
        let due = pacer(20, Some(100)).last(64, start, Some(leaves)).unwrap();
        assert_eq!(due, leaves + Duration::from_millis(10));
    }

    #[test]
    fn bad_shapes_are_refused() {
        for (seconds, bits) in [(11, None), (1, Some(0)), (1, Some(99_999))] {
            let error = LinkShape::new(Duration::from_secs(seconds), bits).unwrap_err();
            assert!(error.to_string().contains("simulated"), "{error}");
        }
    }

    proptest! {
        /// A message that comes in parts is delivered when it would be if its parts were messages, in order; and no window
        /// of time passes more than a bucket and the rate's worth.
        #[test]
        fn parts_order_and_rate(
            steps in prop::collection::vec((0u64..5_000, 1usize..60_000, any::<bool>()), 1..60),
            mbit in 1u64..1000,
        ) {
            let start = Instant::now();
            let (mut whole, mut parts) = (pacer(1, Some(mbit)), pacer(1, Some(mbit)));
            let (mut now, mut under_way, mut total, mut previous) = (start, 0, 0u64, start);
            for (wait_us, bytes, complete) in steps {
                now += Duration::from_micros(wait_us);
                total += bytes as u64;
                under_way += bytes;
                let expected = whole.last(bytes, now, None).unwrap();
                if complete {
                    prop_assert_eq!(parts.last(under_way, now, None).unwrap(), expected);
                    under_way = 0;
                } else {
                    parts.part(under_way, now).unwrap();
                }
                prop_assert!(expected >= previous);
                prop_assert!(expected >= now + Duration::from_micros(500));
                previous = expected;
                let window = (expected - start).saturating_sub(Duration::from_micros(500));
                let most = BUCKET_BYTES as f64 + window.as_secs_f64() * (mbit * MBIT) as f64 / 8.0;
                prop_assert!(total as f64 <= most * (1.0 + 1e-6) + 1.0);
            }
        }
    }
}
