// SPDX-License-Identifier: Apache-2.0
#include "runtime/log_observer.hpp"

#include "base/log.hpp"

namespace artel::runtime {

void LogObserver::note(cluster::Severity severity, const std::string& text) {
    switch (severity) {
        case cluster::Severity::Debug:
            return log_debug(text);
        case cluster::Severity::Info:
            return log_info(text);
        case cluster::Severity::Warning:
            return log_warning(text);
    }
}

void LogObserver::worker_lost(cluster::NodeId, const std::string& name, const Error& why) {
    log_warning("worker lost", {{"worker", name}, {"reason", std::string(why.message())}});
    if (on_worker_lost) on_worker_lost(name);
}

void LogObserver::health_changed() {
    if (on_health_changed) on_health_changed();
}

}  // namespace artel::runtime
