//! The most bytes that a thread has allocated at a time while it parses one input.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A single allocation of this size ends the process: the input is saved first.
const HOPELESS: usize = 1 << 30;

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
    static INPUT: Cell<(*const u8, usize)> = const { Cell::new((std::ptr::null(), 0)) };
    static TARGET: Cell<&'static str> = const { Cell::new("") };
}
static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// The system's allocator, which counts the bytes that a measured thread has allocated.
pub struct Measured;

impl Measured {
    fn grow(size: usize) {
        if !ARMED.get() {
            return;
        }
        if size >= HOPELESS {
            ARMED.set(false);
            let (start, len) = INPUT.get();
            // SAFETY: `begin` set both from a slice that outlives the measurement, which is under way.
            let input = unsafe { std::slice::from_raw_parts(start, len) };
            if let Some(folder) = FOLDER.get() {
                let path = crate::save(folder, TARGET.get(), input);
                eprintln!(
                    "\nfuzz: target={} crashes=1: {} asks for {size} bytes at once",
                    TARGET.get(),
                    path.display()
                );
            }
            std::process::abort();
        }
        let held = HELD.get() + size as isize;
        HELD.set(held);
        MOST.set(MOST.get().max(held));
    }

    fn shrink(size: usize) {
        if ARMED.get() {
            HELD.set(HELD.get() - size as isize);
        }
    }
}

// SAFETY: every call goes to the system's allocator unchanged; the counters are thread-local cells that allocate nothing.
unsafe impl GlobalAlloc for Measured {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::grow(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::grow(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::grow(size);
        Self::shrink(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::shrink(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Sets the folder for an input at which the process ends.
pub(crate) fn set_folder(folder: &Path) {
    FOLDER.get_or_init(|| folder.to_owned());
}

/// Starts to measure this thread.
pub(crate) fn begin(input: &[u8], target: &'static str) {
    INPUT.set((input.as_ptr(), input.len()));
    TARGET.set(target);
    HELD.set(0);
    MOST.set(0);
    ARMED.set(true);
}

/// Ends the measurement; returns the most bytes that were held at a time.
pub(crate) fn end() -> usize {
    ARMED.set(false);
    usize::try_from(MOST.get()).unwrap_or(0)
}

/// Whether allocations are seen at all.
pub(crate) fn works() -> bool {
    begin(&[], "");
    drop(std::hint::black_box(vec![0u8; 4096]));
    end() >= 4096
}
