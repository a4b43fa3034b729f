// SPDX-License-Identifier: Apache-2.0
// What a command with threads and children sets up for its process: SIGTERM and SIGINT become
// something that the main thread asks for, so that folders and child processes are cleaned up; and
// the limit of open files. Call block_stop_signals() before the first thread is started: threads
// inherit the mask.
#pragma once

#include <chrono>

namespace artel::cli {

/// SIGTERM and SIGINT wait for stop_was_asked(); SIGPIPE is ignored. Calling it again is harmless.
void block_stop_signals();

/// Waits up to `patience` for SIGTERM or SIGINT; 0 looks only. True from the first one on. That one
/// also makes a second one end the process at once.
bool stop_was_asked(std::chrono::milliseconds patience);

/// Every peer is a descriptor: as many as the system lets us have.
void raise_descriptor_limit();

}  // namespace artel::cli
