//! Panics of the host, which runs on the thread of its runner.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// How many panics there were on this thread since the first call of this function. The host
/// survives the panic of a task of it, so that nobody else notices.
pub(super) fn count() -> u64 {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let earlier = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            COUNT.set(COUNT.get() + 1);
            earlier(info);
        }));
    });
    COUNT.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::panic, reason = "this is about panics")]
    fn panics_of_this_thread_count() {
        let before = count();
        std::thread::spawn(|| panic!("on another thread")).join().unwrap_err();
        assert_eq!(count(), before);
        panic::catch_unwind(|| panic!("on this thread")).unwrap_err();
        assert_eq!(count(), before + 1);
    }
}
