//! Each policy against a slow one that follows its definition with plain queues, and laws that all of them keep.

use std::collections::VecDeque;

use iowhy_core::rng::Rng;
use proptest::prelude::*;

use super::*;

/// A block in a plain queue.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Item {
    id: u64,
    uses: u64,
}

/// Plain queues, the head first. What each is for depends on the policy.
#[derive(Default)]
struct Slow {
    queues: [VecDeque<Item>; 4],
    hand: Option<u64>,
    target: f64,
}

impl Slow {
    fn place(&self, id: u64) -> Option<(usize, usize)> {
        (0..4).find_map(|q| Some((q, self.queues[q].iter().position(|item| item.id == id)?)))
    }

    fn take(&mut self, (queue, at): (usize, usize)) -> Item {
        self.queues[queue].remove(at).unwrap()
    }

    fn len(&self, queue: usize) -> usize {
        self.queues[queue].len()
    }

    /// One reference; true is a hit.
    fn reference(&mut self, policy: PolicyId, room: usize, id: u64) -> bool {
        let place = self.place(id);
        match policy {
            PolicyId::Fifo => self.simple(place, room, id, |_, _| {}, Slow::drop_last),
            PolicyId::Lru => self.simple(
                place,
                room,
                id,
                |slow, at| {
                    let item = slow.take(at);
                    slow.queues[0].push_front(item);
                },
                Slow::drop_last,
            ),
            PolicyId::Clock => self.simple(place, room, id, Slow::mark, |slow| {
                while let Some(mut item) = slow.queues[0].pop_back().filter(|item| item.uses > 0) {
                    item.uses = 0;
                    slow.queues[0].push_front(item);
                }
            }),
            PolicyId::Sieve => self.simple(place, room, id, Slow::mark, |slow| {
                let last = slow.len(0) - 1;
                let mut at = slow.hand.and_then(|id| slow.place(id)).map_or(last, |(_, at)| at);
                while slow.queues[0][at].uses > 0 {
                    slow.queues[0][at].uses = 0;
                    at = if at == 0 { last } else { at - 1 };
                }
                slow.hand = at.checked_sub(1).map(|before| slow.queues[0][before].id);
                slow.queues[0].remove(at);
            }),
            PolicyId::Lfu => self.simple(
                place,
                room,
                id,
                |slow, at| {
                    let mut item = slow.take(at);
                    item.uses += 1;
                    slow.queues[0].push_front(item);
                },
                |slow| {
                    let least = slow.queues[0].iter().map(|item| item.uses).min().unwrap();
                    let at = slow.queues[0].iter().rposition(|item| item.uses == least).unwrap();
                    slow.queues[0].remove(at);
                },
            ),
            PolicyId::Slru => self.slru(place, room, id),
            PolicyId::TwoQ => self.two_q(place, room, id),
            PolicyId::S3Fifo => self.s3_fifo(place, room, id),
            PolicyId::Arc => self.arc(place, room, id),
            PolicyId::Belady => unreachable!("no test asks for it"),
        }
    }

    fn drop_last(&mut self) {
        self.queues[0].pop_back();
    }

    fn mark(&mut self, (queue, at): (usize, usize)) {
        self.queues[queue][at].uses = 1;
    }

    fn simple(
        &mut self,
        place: Option<(usize, usize)>,
        room: usize,
        id: u64,
        hit: impl Fn(&mut Slow, (usize, usize)),
        evict: impl Fn(&mut Slow),
    ) -> bool {
        if let Some(place) = place {
            hit(self, place);
            return true;
        }
        if self.len(0) == room {
            evict(self);
        }
        self.queues[0].push_front(Item { id, uses: 0 });
        false
    }

    fn slru(&mut self, place: Option<(usize, usize)>, room: usize, id: u64) -> bool {
        let most = |i: usize| room / 4 + usize::from(i < room % 4);
        if let Some((segment, at)) = place {
            let item = self.take((segment, at));
            let above = if segment < 3 && most(segment + 1) > 0 { segment + 1 } else { segment };
            self.queues[above].push_front(item);
            if self.len(above) > most(above) {
                let sinks = self.queues[above].pop_back().unwrap();
                self.queues[segment].push_front(sinks);
            }
            return true;
        }
        if (0..4).map(|i| self.len(i)).sum::<usize>() == room {
            let lowest = (0..4).find(|i| self.len(*i) > 0).unwrap();
            self.queues[lowest].pop_back();
        }
        let free = (0..4).find(|i| self.len(*i) < most(*i)).unwrap();
        self.queues[free].push_front(Item { id, uses: 0 });
        false
    }

    /// Queues: first, main, ghosts.
    fn two_q(&mut self, place: Option<(usize, usize)>, room: usize, id: u64) -> bool {
        match place {
            Some((0, _)) => return true,
            Some(place @ (1, _)) => {
                let item = self.take(place);
                self.queues[1].push_front(item);
                return true;
            }
            Some(place) => drop(self.take(place)),
            None => {}
        }
        if self.len(0) + self.len(1) == room {
            if self.len(0) > room / 4 || self.len(1) == 0 {
                let gone = self.queues[0].pop_back().unwrap();
                self.queues[2].push_front(gone);
                self.queues[2].truncate(room / 2);
            } else {
                self.queues[1].pop_back();
            }
        }
        self.queues[usize::from(place.is_some())].push_front(Item { id, uses: 0 });
        false
    }

    /// Queues: small, main, ghosts.
    fn s3_fifo(&mut self, place: Option<(usize, usize)>, room: usize, id: u64) -> bool {
        let (small, ghosts) = ((room as f64 * 0.1) as usize, (room as f64 * 0.9) as usize);
        match place {
            Some((queue @ (0 | 1), at)) => {
                self.queues[queue][at].uses += 1;
                return true;
            }
            Some(place) => drop(self.take(place)),
            None => {}
        }
        while self.len(0) + self.len(1) == room {
            if self.len(1) > room - small || self.len(0) == 0 {
                let mut item = self.queues[1].pop_back().unwrap();
                if item.uses > 0 {
                    item.uses = item.uses.min(3) - 1;
                    self.queues[1].push_front(item);
                }
                continue;
            }
            // The small queue is gone through until one leaves.
            while let Some(Item { id, uses }) = self.queues[0].pop_back() {
                let list = if uses >= 2 { 1 } else { 2 };
                self.queues[list].push_front(Item { id, uses: 0 });
                self.queues[2].truncate(ghosts);
                if list == 2 {
                    break;
                }
            }
        }
        self.queues[usize::from(place.is_some())].push_front(Item { id, uses: 0 });
        false
    }

    /// Queues: T1, T2, B1, B2 of the paper.
    fn arc(&mut self, place: Option<(usize, usize)>, room: usize, id: u64) -> bool {
        let replace = |slow: &mut Slow, from_b2: bool| {
            let t1 = slow.len(0);
            if t1 > 0
                && (t1 as f64 > slow.target || (from_b2 && t1 as f64 == slow.target) || slow.len(1) == 0)
            {
                let item = slow.queues[0].pop_back().unwrap();
                slow.queues[2].push_front(item);
            } else {
                let item = slow.queues[1].pop_back().unwrap();
                slow.queues[3].push_front(item);
            }
        };
        let Some((queue, at)) = place else {
            if self.len(0) + self.len(2) == room {
                if self.len(0) < room {
                    self.queues[2].pop_back();
                    if self.len(0) + self.len(1) == room {
                        replace(self, false);
                    }
                } else {
                    self.queues[0].pop_back();
                }
            } else if self.len(0) + self.len(1) == room {
                if (0..4).map(|i| self.len(i)).sum::<usize>() == 2 * room {
                    self.queues[3].pop_back();
                }
                replace(self, false);
            }
            self.queues[0].push_front(Item { id, uses: 0 });
            return false;
        };
        let (b1, b2) = (self.len(2) as f64, self.len(3) as f64);
        let item = self.take((queue, at));
        match queue {
            2 => self.target = (self.target + (b2 / b1).max(1.0)).min(room as f64),
            3 => self.target = (self.target - (b1 / b2).max(1.0)).max(0.0),
            _ => {}
        }
        if queue >= 2 && self.len(0) + self.len(1) == room {
            replace(self, queue == 3);
        }
        self.queues[1].push_front(item);
        queue < 2
    }
}

/// Numbers with a few favourites, so that hits, ghosts and promotions all happen.
fn skewed() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(prop_oneof![0u32..8, 0u32..30, 0u32..90], 0..600)
}

proptest! {
    #[test]
    fn fast_and_slow_agree_on_every_reference(ids in skewed(), room in 1usize..40) {
        for policy in PolicyId::online() {
            let mut slow = Slow::default();
            let mut dense = bulk(policy, room).unwrap();
            let mut any = bulk_of_any(policy, room).unwrap();
            for (at, &id) in ids.iter().enumerate() {
                let hit = slow.reference(policy, room, u64::from(id));
                prop_assert_eq!(dense.reference(id), hit, "{} room {} at {}", policy, room, at);
                prop_assert_eq!(any.reference(u64::from(id).wrapping_mul(0x1234_5678_9abc_def1)), hit);
            }
        }
    }

    #[test]
    fn a_cache_never_holds_more_than_its_room_and_what_it_says(
        steps in prop::collection::vec((0u8..4, 0u64..60), 0..500), room in 1usize..20,
    ) {
        for policy in PolicyId::online() {
            let mut cache = new(policy, room).unwrap();
            let mut held = std::collections::HashSet::new();
            for &(step, block) in &steps {
                match step {
                    0 => prop_assert_eq!(cache.remove(block), held.remove(&block)),
                    1 => prop_assert_eq!(cache.contains(block), held.contains(&block)),
                    _ => {
                        let hit = cache.lookup(block);
                        prop_assert_eq!(hit, held.contains(&block), "{}", policy);
                        let mut gone = Vec::new();
                        cache.insert(block, &mut |left| gone.push(left));
                        prop_assert!(!hit || gone.is_empty());
                        for left in gone {
                            prop_assert!(held.remove(&left), "{} handed out {}, which was not there", policy, left);
                        }
                        held.insert(block);
                    }
                }
                prop_assert_eq!(cache.len(), held.len());
                prop_assert!(cache.len() <= cache.capacity());
                prop_assert_eq!(cache.is_empty(), held.is_empty());
            }
        }
    }

    #[test]
    fn nobody_beats_the_bound(ids in skewed(), room in 1usize..40) {
        let next = belady::next_uses(ids.clone(), 90).unwrap();
        let bound = belady::misses(&next, room as u64);
        for policy in PolicyId::online() {
            prop_assert!(bulk(policy, room).unwrap().references(&ids) >= bound, "{}", policy);
        }
    }
}

#[test]
fn references_at_once_and_one_by_one_count_alike() {
    let mut rng = Rng::new(3);
    let ids: Vec<u32> = (0..5000).map(|_| (rng.below(40) * rng.below(40)) as u32).collect();
    for policy in PolicyId::online() {
        let mut one = bulk(policy, 100).unwrap();
        let singly = ids.iter().filter(|id| !one.reference(**id)).count() as u64;
        assert_eq!(bulk(policy, 100).unwrap().references(&ids), singly, "{policy}");
    }
}

#[test]
fn lru_and_a_loop_larger_than_the_cache_never_meet() {
    let ids: Vec<u32> = (0..1000).map(|i| i % 101).collect();
    assert_eq!(bulk(PolicyId::Lru, 100).unwrap().references(&ids), 1000);
    assert_eq!(bulk(PolicyId::Lru, 101).unwrap().references(&ids), 101);
}

#[test]
fn a_cached_block_costs_at_most_40_bytes() {
    let distinct: Vec<u64> = (0..300_000u64).map(|id| id * 7919).collect();
    for policy in
        [PolicyId::Fifo, PolicyId::Lru, PolicyId::Clock, PolicyId::Sieve, PolicyId::Slru, PolicyId::Lfu]
    {
        let mut cache = bulk_of_any(policy, 100_000).unwrap();
        cache.references(&distinct);
        let each = cache.memory_bytes() as f64 / 100_000.0;
        assert!(each <= 40.0, "{policy}: {each} bytes");
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    for (policy, room) in [(PolicyId::Lru, 0), (PolicyId::Lru, MAX_BLOCKS + 1), (PolicyId::Belady, 10)] {
        let problem = new(policy, room).err().unwrap();
        assert!(problem.message.contains(policy.id()) && problem.hint.is_some(), "{problem}");
    }
    assert!(new(PolicyId::Lru, MAX_BLOCKS).is_ok(), "room alone costs no memory");
}

#[test]
fn policies_are_found_by_their_names() {
    for policy in PolicyId::ALL.iter().copied() {
        assert_eq!(PolicyId::parse(policy.id()), Ok(policy));
        assert_eq!(serde_json::to_string(&policy).unwrap(), format!("\"{}\"", policy.id()));
    }
    assert_eq!(PolicyId::parse("S3-FIFO"), Ok(PolicyId::S3Fifo));
    assert!(PolicyId::parse("best").unwrap_err().hint.unwrap().contains("sieve"));
}
