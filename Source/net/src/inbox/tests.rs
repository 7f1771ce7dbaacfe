#![allow(clippy::unwrap_used)] // a failed test may panic

use super::*;
use crate::shape::LinkShape;

const SOON: Duration = Duration::from_millis(10);

fn is_internal<T>(result: &Result<T, NetError>) -> bool {
    matches!(result, Err(NetError::Internal { .. }))
}

#[test]
fn missing_parts_blocked_a_message_without_a_queue_ends_the_session() {
    let inbox = Inbox::new(0, 2, DEFAULT_QUEUE_LIMIT);
    let message = || Message {
        payload: vec![1, 2, 3],
        wire: 3,
        leaves: None,
    };
    // The message is not lost without an error.
    for refused in [inbox.push(2, message(), SOON), inbox.deliver(2, message())] {
        assert!(matches!(
            refused,
            Err(PushError::Ended(NetError::Internal { .. }))
        ));
    }
    assert!(is_internal(&inbox.note_progress(2, 3)));
    assert!(is_internal(&inbox.has_ended(2)));
    assert!(is_internal(&inbox.shape(
        2,
        LinkShape::new(Duration::ZERO, None).unwrap(),
        Duration::ZERO
    )));
    // These calls return no error: every wait of the session ends with it.
    inbox.peer_closed(2);
    assert!(is_internal(&inbox.pop(1, 3, SOON, String::new).map(drop)));
    assert!(is_internal(&inbox.check_open(1)));
}

#[test]
fn missing_parts_blocked_a_party_without_a_queue_is_not_read() {
    let inbox = Inbox::new(0, 2, DEFAULT_QUEUE_LIMIT);
    assert!(!inbox.may_read(2));
    assert!(inbox.failure().is_some());
}
