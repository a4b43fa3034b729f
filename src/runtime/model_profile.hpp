// SPDX-License-Identifier: Apache-2.0
// From a model's dry run to the numbers the planner works with. Pure.
#pragma once

#include <string>

#include "cluster/profile.hpp"
#include "gguf/gguf_index.hpp"
#include "models/description.hpp"

namespace artel::runtime {

/// `rows_max`: rows of the largest step, for scratch memory.
cluster::ModelProfile model_profile(const std::string& name, const gguf::GgufIndex& index,
                                    const protocol::Hash128& digest,
                                    const models::ModelDescription& description,
                                    std::uint32_t rows_max);

/// Everything this build can run, for a worker's report.
std::vector<std::string> architecture_names();
std::vector<std::string> format_names();

}  // namespace artel::runtime
