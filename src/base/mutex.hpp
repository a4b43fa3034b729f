// SPDX-License-Identifier: Apache-2.0
// Mutex and MutexLock: std::mutex with Clang's thread-safety annotations, so that a member marked
// ARTEL_GUARDED_BY(mutex_) can't be touched without the lock (checked by Clang's -Wthread-safety,
// nothing under GCC). Waiting: std::condition_variable_any on a Mutex that is held.
#pragma once

#include <mutex>

#if defined(__clang__)
#define ARTEL_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define ARTEL_THREAD_ANNOTATION(x)
#endif

#define ARTEL_GUARDED_BY(mutex) ARTEL_THREAD_ANNOTATION(guarded_by(mutex))
#define ARTEL_REQUIRES(mutex) ARTEL_THREAD_ANNOTATION(requires_capability(mutex))

namespace artel {

class ARTEL_THREAD_ANNOTATION(capability("mutex")) Mutex {
  public:
    void lock() ARTEL_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
    void unlock() ARTEL_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

  private:
    std::mutex mutex_;
};

class ARTEL_THREAD_ANNOTATION(scoped_lockable) MutexLock {
  public:
    explicit MutexLock(Mutex& mutex) ARTEL_THREAD_ANNOTATION(acquire_capability(mutex))
        : mutex_(mutex) {
        mutex_.lock();
    }
    ~MutexLock() ARTEL_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;

  private:
    Mutex& mutex_;
};

}  // namespace artel
