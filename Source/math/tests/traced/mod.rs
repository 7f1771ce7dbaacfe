//! Which instructions a function runs: a test starts itself once more, and steps through the calls one instruction at a time (ptrace). For tests of several crates, which include this file.
//!
//! Two calls that run the same instructions in the same order take no branch that their operands decide. Instructions of shared libraries (allocation, copies) are not looked at.

#![allow(clippy::unwrap_used)] // A failed test may panic.

use std::ffi::{c_int, c_long};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Set in the process that is stepped through.
const TRACED: &str = "KEYQUORUM_TRACED";

const TRACE_ME: c_long = 0;
const PEEK_USER: c_long = 3;
const CONTINUE: c_long = 7;
const SINGLE_STEP: c_long = 9;
const KILL_WITH_TRACER: c_long = 0x10_0000;
const SET_OPTIONS: c_long = 0x4200;
const GET_SIGNAL: c_long = 0x4202;
/// Offset of the instruction pointer in `struct user` of x86-64.
const INSTRUCTION_POINTER: usize = 16 * 8;
const TRAP: c_int = 5;
/// Cause of the trap of a breakpoint.
const BREAKPOINT: i32 = 0x80;
/// Threads too, and no children of other threads.
const WAIT: c_int = 0x4000_0000 | 0x2000_0000;

unsafe extern "C" {
    fn ptrace(request: c_long, thread: c_int, address: usize, data: usize) -> c_long;
    fn waitpid(thread: c_int, status: *mut c_int, options: c_int) -> c_int;
}

/// What one call ran: the number of instructions, and a hash of their addresses.
pub type Trace = (u64, u64);

/// Why nothing can be traced here, if so.
fn impossible() -> Option<&'static str> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        Some("not Linux on x86-64")
    } else if cfg!(debug_assertions) {
        Some("not optimised")
    } else {
        None
    }
}

/// Runs `call` with every operand twice, and traces the second time. `None` where nothing can be traced, and the reason is printed. `test`: the full name of the test that asks. In the traced process this returns `None` as well.
pub fn traces<T>(test: &str, operands: &[T], mut call: impl FnMut(&T)) -> Option<Vec<Trace>> {
    if let Some(reason) = impossible() {
        println!("not traced: {reason}");
        return None;
    }
    if std::env::var_os(TRACED).is_some() {
        operands.iter().for_each(&mut call);
        // SAFETY: the parent waits for this thread, and handles every trap.
        if unsafe { ptrace(TRACE_ME, 0, 0, 0) } != 0 {
            std::process::exit(3);
        }
        for operand in operands {
            between_breakpoints(std::hint::black_box(&mut call), operand);
        }
        std::process::exit(0);
    }
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(&program)
        .args(["--exact", test, "--test-threads=1"])
        .env(TRACED, "1")
        .arg0(&program)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let traces = stepped(&mut child, &program.to_string_lossy());
    if traces.is_none() {
        println!("not traced: ptrace is not permitted");
    }
    let traces = traces?;
    assert_eq!(
        traces.len(),
        operands.len(),
        "the traced process ended early"
    );
    Some(traces)
}

/// One copy of the code for all operands.
#[inline(never)]
fn between_breakpoints<T>(call: &mut dyn FnMut(&T), operand: &T) {
    breakpoint();
    call(operand);
    breakpoint();
}

#[inline(always)]
fn breakpoint() {
    // SAFETY: the tracer takes the trap.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("int3")
    };
}

/// The next stop: its thread and status.
fn wait() -> (c_int, c_int) {
    let mut status = 0;
    // SAFETY: `status` is a valid place.
    let thread = unsafe { waitpid(-1, &raw mut status, WAIT) };
    (thread, status)
}

/// Steps through what is between breakpoints. `None` if the child cannot be traced.
fn stepped(child: &mut Child, program: &str) -> Option<Vec<Trace>> {
    let id = child.id() as c_int;
    let (mut traces, mut current, mut code) = (Vec::new(), None, Vec::new());
    loop {
        let (thread, status) = wait();
        let stopped = status & 0xFF == 0x7F;
        if thread < 0 || (thread == id && !stopped) {
            let refused = thread == id && status >> 8 & 0xFF == 3;
            return (!refused).then_some(traces);
        }
        if !stopped {
            continue;
        }
        let signal = status >> 8 & 0xFF;
        let mut cause = [0i32; 32];
        // SAFETY: the thread is stopped, and the place has the 128 bytes of a siginfo.
        let address = unsafe {
            ptrace(SET_OPTIONS, thread, 0, KILL_WITH_TRACER as usize);
            ptrace(GET_SIGNAL, thread, 0, cause.as_mut_ptr() as usize);
            ptrace(PEEK_USER, thread, INSTRUCTION_POINTER, 0) as usize
        };
        let mut passed = 0;
        match (signal == TRAP, cause[2] == BREAKPOINT, &mut current) {
            (true, true, None) => {
                code = executable(thread, program);
                current = Some((0, 0xCBF2_9CE4_8422_2325));
            }
            (true, true, Some(_)) => traces.extend(current.take()),
            (true, false, Some((count, hash))) => {
                if code.iter().any(|range| range.contains(&address)) {
                    *count += 1;
                    *hash = (*hash ^ address as u64).wrapping_mul(0x0100_0000_01B3);
                }
            }
            (true, false, None) => {}
            (false, ..) => passed = signal as usize,
        }
        let step = if current.is_some() {
            SINGLE_STEP
        } else {
            CONTINUE
        };
        // SAFETY: the thread is stopped.
        unsafe { ptrace(step, thread, 0, passed) };
    }
}

/// Where the program's own code lies.
fn executable(thread: c_int, program: &str) -> Vec<std::ops::Range<usize>> {
    let maps = std::fs::read_to_string(format!("/proc/{thread}/maps")).unwrap();
    let ours = maps.lines().filter(|line| line.ends_with(program));
    let ranges = ours.filter_map(|line| {
        let (range, _) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let [from, to] = [from, to].map(|word| usize::from_str_radix(word, 16));
        Some(from.ok()?..to.ok()?)
    });
    ranges.collect()
}
