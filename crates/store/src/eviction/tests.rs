//! The order in which responses leave.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use caching::Variant;

use super::{LOOKS_MAX, Queue, SWEPT_PLACES_MIN};
use crate::content::Content;
use crate::key::Key;
use crate::stored::{Head, Stored};

fn stored(number: usize, content: Arc<Content>) -> Arc<Stored> {
    Arc::new(Stored {
        key: Key::new(&number.to_be_bytes()),
        head: Head::new(200, Vec::new()),
        freshness: None,
        variant: Variant::default(),
        declared_length: None,
        content,
        mark: AtomicBool::new(false),
        indexed: AtomicBool::new(true),
        charges: None,
    })
}

/// A queue of `count` complete responses.
fn filled(count: usize) -> (Queue, Vec<Arc<Stored>>) {
    let all: Vec<_> =
        (0..count).map(|number| stored(number, Content::complete_from("text".into()))).collect();
    let mut queue = Queue::default();
    all.iter().for_each(|stored| queue.push(stored));
    (queue, all)
}

fn next(queue: &mut Queue, all: &[Arc<Stored>]) -> Option<usize> {
    let victim = queue.victim()?;
    all.iter().position(|stored| Arc::ptr_eq(stored, &victim))
}

#[test]
fn the_oldest_leaves_first() {
    let (mut queue, all) = filled(3);
    let order: Vec<_> = (0..4).map(|_| next(&mut queue, &all)).collect();
    assert_eq!(order, [Some(0), Some(1), Some(2), None]);
}

#[test]
fn a_hit_gives_one_second_chance() {
    let (mut queue, all) = filled(4);
    all[0].touch();
    all[2].touch();
    all[2].touch();
    let order: Vec<_> = (0..4).map(|_| next(&mut queue, &all)).collect();
    assert_eq!(order, [Some(1), Some(3), Some(0), Some(2)]);
    let (mut queue, all) = filled(2);
    all.iter().for_each(|stored| stored.touch());
    assert_eq!(next(&mut queue, &all), Some(0), "when all were hit the oldest leaves all the same");
}

#[test]
fn what_is_being_written_stays() {
    let mut queue = Queue::default();
    let writing = Content::new(true, 64);
    let all = [stored(0, Arc::clone(&writing)), stored(1, Content::complete_from("".into()))];
    all.iter().for_each(|stored| queue.push(stored));
    assert_eq!(next(&mut queue, &all), Some(1));
    assert_eq!(next(&mut queue, &all), None);
    writing.finish(b"");
    assert_eq!(next(&mut queue, &all), Some(0));
}

#[test]
#[cfg_attr(miri, ignore = "thousands of places")]
fn what_has_left_is_skipped_and_swept() {
    let (mut queue, all) = filled(3);
    all[0].leave();
    let mut rest = all.clone();
    drop(all);
    rest.remove(1);
    assert_eq!(next(&mut queue, &rest), Some(1), "what is gone and what has left come never");

    let (mut queue, living) = filled(2 * SWEPT_PLACES_MIN);
    for number in 0..100 * SWEPT_PLACES_MIN {
        let short_lived = stored(number, Content::complete_from("".into()));
        queue.push(&short_lived);
        let bound = living.len() + living.len() / 4 + 1;
        assert!(queue.places.len() <= bound.max(SWEPT_PLACES_MIN * 3), "{}", queue.places.len());
    }
    let order: Vec<_> = living.iter().map(|_| next(&mut queue, &living)).collect();
    assert!(order.into_iter().eq((0..living.len()).map(Some)), "the order of the rest is kept");
}

#[test]
#[cfg_attr(miri, ignore = "thousands of places")]
fn a_search_is_bounded() {
    let (mut queue, all) = filled(3 * LOOKS_MAX);
    all.iter().for_each(|stored| stored.touch());
    assert_eq!(next(&mut queue, &all), Some(LOOKS_MAX));
    let marked = all.iter().filter(|stored| stored.mark.load(Ordering::Relaxed)).count();
    assert_eq!(marked, 2 * LOOKS_MAX, "the second half of the looks takes what it finds");
}
