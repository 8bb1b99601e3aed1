//! What a lookup costs with two workers and one writer: the index against sharded maps under locks
//! whose values are reference counted. The figures stand in docs/decisions/0002-index.md:
//! `cargo run -p store --release --example index_cost`
//!
//! Contenders alternate, so that a noisy moment hits all of them; the median round is printed.

use std::collections::HashMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, RwLock};
use std::thread;
use std::time::Instant;

use store::index::{Change, Index};
use store::turn::Turns;

const READERS: usize = 2;
const ROUNDS: usize = 15;
const LOOKUPS: usize = 1_000_000;
/// What a worker's loop may find ready at once, between two calls of `quiesce`.
const LOOKUPS_IN_A_TURN: usize = 16;
const SHARDS: usize = 64;

type Value = [u64; 8];
type Hasher = foldhash::fast::FixedState;

/// Each contender hashes the key once in a lookup; the locked ones get their shard for nothing.
struct Key {
    bytes: Vec<u8>,
    shard: usize,
}

trait Contender: Sync {
    fn name(&self) -> &'static str;
    fn update(&self, key: &Key, value: Value);
    /// Runs `turns` times [`LOOKUPS_IN_A_TURN`] lookups and adds up what they find.
    fn look_up(&self, turns: usize, keys: &[Key]) -> u64;
}

struct OurIndex {
    turns: Arc<Turns>,
    index: Index<Value>,
    hasher: Hasher,
}

impl Contender for OurIndex {
    fn name(&self) -> &'static str {
        "index"
    }

    fn update(&self, key: &Key, value: Value) {
        let hash = self.hasher.hash_one(key.bytes.as_slice());
        self.index.update(hash, &key.bytes, |_| (Change::Put(value), ()));
    }

    fn look_up(&self, turns: usize, keys: &[Key]) -> u64 {
        let reader = self.turns.reader().expect("a place for each");
        let mut keys = keys.iter().cycle();
        let mut sum = 0;
        for _ in 0..turns {
            let turn = reader.turn();
            for key in keys.by_ref().take(LOOKUPS_IN_A_TURN) {
                let hash = self.hasher.hash_one(key.bytes.as_slice());
                let value = self.index.lookup(&turn, hash, &key.bytes);
                sum += value.map_or(0, |value| value[0]);
            }
            drop(turn);
            reader.quiesce();
        }
        sum
    }
}

type Map = HashMap<Vec<u8>, Arc<Value>, Hasher>;

/// Looks keys up through `get`, which takes its lock and counts its reference as it likes.
fn look_up_with(turns: usize, keys: &[Key], get: impl Fn(&Key) -> Option<Arc<Value>>) -> u64 {
    let keys = keys.iter().cycle().take(turns * LOOKUPS_IN_A_TURN);
    keys.map(|key| get(key).map_or(0, |value| black_box(value)[0])).sum()
}

struct Locked<L> {
    name: &'static str,
    shards: Vec<L>,
}

impl Contender for Locked<Mutex<Map>> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn update(&self, key: &Key, value: Value) {
        let mut shard = self.shards[key.shard].lock().expect("no panics");
        let old = shard.insert(key.bytes.clone(), Arc::new(value));
        drop(shard);
        drop(old);
    }

    fn look_up(&self, turns: usize, keys: &[Key]) -> u64 {
        look_up_with(turns, keys, |key| {
            self.shards[key.shard].lock().expect("no panics").get(&key.bytes).cloned()
        })
    }
}

impl Contender for Locked<RwLock<Map>> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn update(&self, key: &Key, value: Value) {
        let mut shard = self.shards[key.shard].write().expect("no panics");
        let old = shard.insert(key.bytes.clone(), Arc::new(value));
        drop(shard);
        drop(old);
    }

    fn look_up(&self, turns: usize, keys: &[Key]) -> u64 {
        look_up_with(turns, keys, |key| {
            self.shards[key.shard].read().expect("no panics").get(&key.bytes).cloned()
        })
    }
}

/// Nanoseconds that this thread has been on a processor.
fn processor_time_ns() -> u64 {
    let line = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux with schedstats");
    let first = line.split(' ').next().expect("split has a first part");
    first.parse().expect("a number of nanoseconds")
}

/// Nanoseconds of a lookup and of an update; `wall_ns` includes waiting for locks and processors.
struct Cost {
    processor_ns: f64,
    wall_ns: f64,
    update_ns: f64,
}

fn measure(contender: &dyn Contender, keys: &[Key], with_writer: bool) -> Cost {
    let start = Barrier::new(READERS);
    let stop = AtomicBool::new(false);
    let (costs, update_ns): (Vec<(u64, u64)>, f64) = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let processor = processor_time_ns();
            let mut updates = 0;
            for key in keys.iter().cycle() {
                if !with_writer || stop.load(Ordering::Relaxed) {
                    break;
                }
                contender.update(key, [updates; 8]);
                updates += 1;
            }
            (processor_time_ns() - processor) as f64 / updates.max(1) as f64
        });
        let read = || {
            start.wait();
            let (processor, wall) = (processor_time_ns(), Instant::now());
            black_box(contender.look_up(LOOKUPS / LOOKUPS_IN_A_TURN, keys));
            let wall_ns = u64::try_from(wall.elapsed().as_nanos()).expect("seconds");
            (processor_time_ns() - processor, wall_ns)
        };
        let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(read)).collect();
        let costs = readers.into_iter().map(|reader| reader.join().expect("reads")).collect();
        stop.store(true, Ordering::Relaxed);
        (costs, writer.join().expect("writes"))
    });
    let per_lookup = |total: u64| total as f64 / (LOOKUPS * READERS) as f64;
    Cost {
        processor_ns: per_lookup(costs.iter().map(|cost| cost.0).sum()),
        wall_ns: per_lookup(costs.iter().map(|cost| cost.1).sum()),
        update_ns,
    }
}

fn median(costs: &[Cost], of: impl Fn(&Cost) -> f64) -> f64 {
    let mut figures: Vec<f64> = costs.iter().map(of).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn contenders() -> Vec<Box<dyn Contender>> {
    // A place for each reader, as a process has one for each worker.
    let turns = Turns::new(READERS);
    let index = Index::new(Arc::clone(&turns));
    let mutexes = (0..SHARDS).map(|_| Mutex::new(Map::default())).collect();
    let locks = (0..SHARDS).map(|_| RwLock::new(Map::default())).collect();
    vec![
        Box::new(OurIndex { turns, index, hasher: Hasher::default() }),
        Box::new(Locked { name: "mutex + Arc", shards: mutexes }),
        Box::new(Locked { name: "rwlock + Arc", shards: locks }),
    ]
}

fn main() {
    let shards = RandomState::new();
    println!("keys  writer  contender      lookup ns  with waiting  update ns");
    for (count, with_writer) in [(1000, false), (1000, true), (1, false), (1, true)] {
        let key = |number: usize| {
            let bytes =
                format!("site\0http\0www.example.org\x0080\0/pages/{number}.html").into_bytes();
            let shard = usize::try_from(shards.hash_one(number) % 64).expect("below 64");
            Key { bytes, shard }
        };
        let keys: Vec<Key> = (0..count).map(key).collect();
        let contenders = contenders();
        for key in &keys {
            contenders.iter().for_each(|contender| contender.update(key, [1; 8]));
        }
        let mut costs: Vec<Vec<Cost>> = contenders.iter().map(|_| Vec::new()).collect();
        for _ in 0..ROUNDS {
            for (contender, costs) in contenders.iter().zip(&mut costs) {
                costs.push(measure(contender.as_ref(), &keys, with_writer));
            }
        }
        for (contender, costs) in contenders.iter().zip(&costs) {
            println!(
                "{count:4}  {:6}  {:12}  {:10.1}  {:12.1}  {:9.0}",
                if with_writer { "busy" } else { "none" },
                contender.name(),
                median(costs, |cost| cost.processor_ns),
                median(costs, |cost| cost.wall_ns),
                median(costs, |cost| cost.update_ns),
            );
        }
    }
}
