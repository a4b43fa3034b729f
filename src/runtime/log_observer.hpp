// SPDX-License-Identifier: Apache-2.0
// LogObserver: what a node tells, as log lines and callbacks. Called on the loop.
#pragma once

#include <functional>
#include <string>

#include "cluster/environment.hpp"

namespace artel::runtime {

class LogObserver : public cluster::Observer {
  public:
    std::function<void(const std::string& name)> on_worker_lost;
    std::function<void()> on_health_changed;

    void note(cluster::Severity severity, const std::string& text) override;
    void covered(std::string_view) override {}
    void worker_lost(cluster::NodeId node, const std::string& name, const Error& why) override;
    void health_changed() override;
};

}  // namespace artel::runtime
