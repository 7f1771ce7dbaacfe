//! The randomness of the operating system, replaced in this test binary alone.
//!
//! All secrets of a party come from the crate `getrandom`: seeds, base OTs, keys of MACs, tosses. On Linux that crate looks up the C function
//! `getrandom` at run time, and a function of the executable goes before the one of the C library. So sessions run their production
//! code, and nothing in the library can be made deterministic.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hint::black_box;
use std::io::Read;

use keyquorum_math::{Prg, os_random};

thread_local! {
    static STREAM: RefCell<Option<Prg>> = const { RefCell::new(None) };
}

/// From now on this thread gets the bytes of this seed in place of the operating system's.
///
/// # Panics
/// If the C function is not replaced: then traces would differ from run to run.
pub fn seed(seed: [u8; 16]) {
    black_box(getrandom as *const ());
    // The keys of hash tables are drawn once a thread, from the same function.
    black_box(RandomState::new());
    let draw = || {
        STREAM.set(Some(Prg::new(seed, 0)));
        let mut bytes = [0; 32];
        os_random(&mut bytes).unwrap();
        bytes
    };
    assert_eq!(
        draw(),
        draw(),
        "getrandom(3) is not replaced here: the traces need Linux and a C library that is linked dynamically"
    );
    STREAM.set(Some(Prg::new(seed, 0)));
}

/// In place of the C library's function. A thread without a seed, such as one of the test runner, gets true randomness.
///
/// # Safety
/// `out` is valid for writes of `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(out: *mut u8, length: usize, _flags: u32) -> isize {
    if length == 0 {
        // A probe, whose pointer may dangle.
        return 0;
    }
    // SAFETY: the caller gives a buffer of this length. Zeros come first: it may be uninitialised.
    let out = unsafe {
        out.write_bytes(0, length);
        std::slice::from_raw_parts_mut(out, length)
    };
    let seeded = STREAM.with_borrow_mut(|stream| stream.as_mut().map(|prg| prg.fill(out)));
    let filled = match seeded {
        Some(()) => Ok(()),
        None => File::open("/dev/urandom").and_then(|mut file| file.read_exact(out)),
    };
    if filled.is_ok() { length as isize } else { -1 }
}
