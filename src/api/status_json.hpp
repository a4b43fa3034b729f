// SPDX-License-Identifier: Apache-2.0
// The cluster's Health as JSON: for GET /health (small, for balancers) and GET /v1/cluster (all of
// it, for people and dashboards). Pure.
#pragma once

#include <string>
#include <string_view>

#include "cluster/request.hpp"

namespace artel::api {

std::string_view state_name(cluster::ServiceState state);
std::string to_health_json(const cluster::Health& health, std::string_view model);
std::string to_cluster_json(const cluster::Health& health, std::string_view model);

}  // namespace artel::api
