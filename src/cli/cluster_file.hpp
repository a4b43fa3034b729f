// SPDX-License-Identifier: Apache-2.0
// A cluster described in a file (docs/cluster-file.md), for planning without the machines.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cluster/profile.hpp"

namespace artel::cli {

/// The workers in the order of the file. Errors (InvalidArgument) name file, line and key.
Result<std::vector<cluster::WorkerProfile>> read_cluster_file(const std::string& path);

}  // namespace artel::cli
