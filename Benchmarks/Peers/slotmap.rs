// SPDX-License-Identifier: Apache-2.0
//
// Rust's slotmap: get by key, and call through the function pointer. Nothing
// is synchronised, and everything is inlined.
use slotmap::{DefaultKey, SlotMap};
use std::cell::RefCell;
use std::hint::black_box;
use std::os::raw::{c_char, c_uint, c_void};

type Function = unsafe extern "C" fn(*mut c_void);
type Run = extern "C" fn(u64, c_uint);

extern "C" {
    fn bench_add(name: *const c_char, run: Run);
    fn bench_work(context: *mut c_void);
    static mut bench_context: u64;
}

struct Callback {
    function: Function,
    context: *mut c_void,
}

#[allow(unused_unsafe)]  // compilers before 1.77 ask for it
fn callback() -> Callback {
    let context = unsafe { std::ptr::addr_of_mut!(bench_context) };
    Callback { function: bench_work, context: context.cast() }
}

struct Table {
    map: SlotMap<DefaultKey, Callback>,
    key: DefaultKey,
}

thread_local! {
    static TABLE: RefCell<Table> = RefCell::new({
        let mut map = SlotMap::new();
        let key = map.insert(callback());
        Table { map, key }
    });
}

extern "C" fn run_call(count: u64, _thread: c_uint) {
    TABLE.with(|table| {
        let table = table.borrow();
        for _ in 0..count {
            let found = black_box(&table.map).get(black_box(table.key));
            let found = found.expect("live");
            unsafe { (found.function)(found.context) };
        }
    })
}

extern "C" fn run_is_live(count: u64, _thread: c_uint) {
    TABLE.with(|table| {
        let table = table.borrow();
        for _ in 0..count {
            let map = black_box(&table.map);
            black_box(map.contains_key(black_box(table.key)));
        }
    })
}

extern "C" fn run_lifetime(count: u64, _thread: c_uint) {
    TABLE.with(|table| {
        let map = &mut table.borrow_mut().map;
        for _ in 0..count {
            let key = black_box(map.insert(callback()));
            black_box(map.remove(key));
        }
    })
}

fn add(name: &'static str, run: Run) {
    assert!(name.ends_with('\0'));
    unsafe { bench_add(name.as_ptr().cast(), run) }
}

#[no_mangle]
pub extern "C" fn peer_calls() {
    add("Rust slotmap get + call (unsynchronised)\0", run_call);
    add("Rust slotmap contains_key (unsynchronised)\0", run_is_live);
}

#[no_mangle]
pub extern "C" fn peer_threads() {}

#[no_mangle]
pub extern "C" fn peer_lifetimes() {
    add("Rust slotmap insert + remove (unsynchronised)\0", run_lifetime);
}
