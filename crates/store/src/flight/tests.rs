//! Who leads, who waits, who is woken.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::{Boarding, Flight, Flights, Landing, Leader, WAITERS_MAX};
use crate::key::Key;
use crate::samples::{Bell, idle};

fn lead(flights: &Arc<Flights>, key: &Key) -> Leader {
    match flights.board(key) {
        Boarding::Lead(leader) => leader,
        Boarding::Wait(_) => panic!("somebody else leads"),
    }
}

fn wait(flights: &Arc<Flights>, key: &Key) -> Flight {
    match flights.board(key) {
        Boarding::Lead(_) => panic!("nobody leads"),
        Boarding::Wait(flight) => flight,
    }
}

#[test]
fn one_leads_and_all_who_wait_are_woken_by_the_landing() {
    for landing in [Landing::Stored, Landing::NotShared, Landing::Failed(502)] {
        let (flights, key) = (Arc::<Flights>::default(), Key::new(b"/"));
        let leader = lead(&flights, &key);
        let other = lead(&flights, &Key::new(b"/other"));
        let waiters: Vec<_> = (0..3).map(|_| (wait(&flights, &key), Bell::new())).collect();
        for (flight, (_, waker)) in &waiters {
            assert!(flight.poll_landing(&Context::from_waker(waker)).is_pending());
        }
        let late = wait(&flights, &key);
        assert_eq!(flights.len(), 2);
        leader.land(landing);
        for (flight, (bell, waker)) in &waiters {
            assert_eq!(bell.rang(), 1);
            let landed = flight.poll_landing(&Context::from_waker(waker));
            assert_eq!(landed, Poll::Ready(landing));
        }
        assert_eq!(late.poll_landing(&idle()), Poll::Ready(landing), "whoever asks late");
        assert_eq!(flights.len(), 1);
        drop(other);
    }
}

#[test]
fn a_leader_that_vanishes_releases_its_waiters() {
    let (flights, key) = (Arc::<Flights>::default(), Key::new(b"/"));
    let leader = lead(&flights, &key);
    let flight = wait(&flights, &key);
    let (bell, waker) = Bell::new();
    assert!(flight.poll_landing(&Context::from_waker(&waker)).is_pending());
    drop(leader);
    assert_eq!(bell.rang(), 1);
    assert_eq!(flight.poll_landing(&idle()), Poll::Ready(Landing::NotShared));
}

#[test]
fn after_a_landing_the_next_leads_a_flight_of_its_own() {
    let (flights, key) = (Arc::<Flights>::default(), Key::new(b"/"));
    let first = lead(&flights, &key);
    let waits_for_first = wait(&flights, &key);
    first.land(Landing::Stored);
    let second = lead(&flights, &key);
    let waits_for_second = wait(&flights, &key);
    assert_eq!(waits_for_first.poll_landing(&idle()), Poll::Ready(Landing::Stored));
    assert!(waits_for_second.poll_landing(&idle()).is_pending());
    second.land(Landing::Failed(504));
    assert_eq!(waits_for_second.poll_landing(&idle()), Poll::Ready(Landing::Failed(504)));
    assert_eq!(flights.len(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "hundreds of thousands of polls")]
fn a_waiter_counts_once_and_only_while_it_waits() {
    let (flights, key) = (Arc::<Flights>::default(), Key::new(b"/"));
    let leader = lead(&flights, &key);
    let (first_bell, first_waker) = Bell::new();
    let (last_bell, last_waker) = Bell::new();
    let patient = wait(&flights, &key);
    // Polled often, as beside an upload that makes progress.
    for _ in 0..2 * WAITERS_MAX {
        assert!(patient.poll_landing(&Context::from_waker(&first_waker)).is_pending());
    }
    assert!(patient.poll_landing(&Context::from_waker(&last_waker)).is_pending());
    for _ in 0..2 * WAITERS_MAX {
        let gone = wait(&flights, &key);
        assert!(gone.poll_landing(&Context::from_waker(&first_waker)).is_pending());
    }
    assert_eq!(Arc::strong_count(&first_bell), 2, "whoever is gone has left no waker");
    let many: Vec<_> = (1..WAITERS_MAX).map(|_| wait(&flights, &key)).collect();
    assert!(many.iter().all(|flight| flight.poll_landing(&idle()).is_pending()));
    let beyond = wait(&flights, &key);
    assert_eq!(beyond.poll_landing(&idle()), Poll::Ready(Landing::NotShared));
    leader.land(Landing::Stored);
    assert_eq!((first_bell.rang(), last_bell.rang()), (0, 1), "the waker of the last poll");
}

/// A waker that boards again at once, as a worker that polls in place.
struct Boards(Arc<Flights>, Key);

impl Wake for Boards {
    fn wake(self: Arc<Self>) {
        drop(self.0.board(&self.1));
    }
}

#[test]
fn a_waker_may_board_again() {
    let (flights, key) = (Arc::<Flights>::default(), Key::new(b"/"));
    let leader = lead(&flights, &key);
    let flight = wait(&flights, &key);
    let waker = Waker::from(Arc::new(Boards(Arc::clone(&flights), key.clone())));
    assert!(flight.poll_landing(&Context::from_waker(&waker)).is_pending());
    leader.land(Landing::Stored);
    assert_eq!(flights.len(), 0);
}
