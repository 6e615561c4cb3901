//! Waiting for what happens seldom beside what happens often.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

/// A future that is polled only when it was woken itself.
///
/// With each request a connection waits anew for the end of its server, and for the moment at which
/// it will have been silent for too long. To poll these two each time is to take a dozen locks.
#[derive(Debug)]
pub(super) struct Seldom<F> {
    future: F,
    bell: Arc<Bell>,
    waker: Waker,
    /// The one that the bell wakes.
    task: Waker,
    /// Rings that the future was polled for.
    heard: u32,
}

/// What the future wakes.
#[derive(Debug)]
struct Bell {
    rings: AtomicU32,
    task: Mutex<Waker>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rings.fetch_add(1, Ordering::Release);
        let task = self.task.lock().clone();
        task.wake();
    }
}

impl<F: Future + Unpin> Seldom<F> {
    pub(super) fn new(future: F) -> Self {
        let task = Waker::noop().clone();
        let bell = Arc::new(Bell { rings: AtomicU32::new(0), task: Mutex::new(task.clone()) });
        // It is polled at first as if the bell had rung.
        Self { future, waker: Arc::clone(&bell).into(), bell, task, heard: u32::MAX }
    }

    /// Whether it was polled, and was never woken: it is certain to be pending.
    pub(super) fn is_asleep(&self) -> bool {
        self.heard == 0 && self.bell.rings.load(Ordering::Acquire) == 0
    }
}

impl<F: Future + Unpin> Future for Seldom<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if !this.task.will_wake(cx.waker()) {
            this.task.clone_from(cx.waker());
            // Before the look: if it rings later, this task is woken.
            this.bell.task.lock().clone_from(cx.waker());
        }
        let rings = this.bell.rings.load(Ordering::Acquire);
        if rings == this.heard {
            return Poll::Pending;
        }
        this.heard = rings;
        Pin::new(&mut this.future).poll(&mut Context::from_waker(&this.waker))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Counts how often it is woken.
    #[derive(Debug, Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn it_is_polled_once_and_then_each_time_that_it_was_woken() {
        let mut polls = 0;
        let future = poll_fn(|_| {
            polls += 1;
            if polls < 3 { Poll::Pending } else { Poll::Ready(polls) }
        });
        let (first, second) = (Arc::<Woken>::default(), Arc::<Woken>::default());
        let tasks = [Waker::from(Arc::clone(&first)), Waker::from(Arc::clone(&second))];
        let woken = || [&first, &second].map(|it| it.0.load(Ordering::Relaxed));
        let mut seldom = Seldom::new(future);
        let mut poll = |task: usize| {
            let polled = Pin::new(&mut seldom).poll(&mut Context::from_waker(&tasks[task]));
            (polled, seldom.waker.clone())
        };

        let (polled, bell) = poll(0);
        assert_eq!((polled, poll(0).0, woken()), (Poll::Pending, Poll::Pending, [0, 0]));
        bell.wake_by_ref();
        assert_eq!((woken(), poll(0).0), ([1, 0], Poll::Pending));
        assert_eq!(poll(1).0, Poll::Pending);
        bell.wake_by_ref();
        bell.wake_by_ref();
        assert_eq!((woken(), poll(1).0), ([1, 2], Poll::Ready(3)));
    }
}
