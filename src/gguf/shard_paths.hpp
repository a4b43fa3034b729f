// SPDX-License-Identifier: Apache-2.0
// From the path a person gives to the files of the model: a split model is files called
// NAME-00001-of-0000N.gguf in one folder, and any of them, or the folder, stands for all. Only
// names are looked at here; gguf_index.cpp checks that the contents agree.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace artel::gguf {

struct ShardName {
    std::string prefix;    // "NAME"
    std::uint32_t number;  // from 1
    std::uint32_t count;
};

/// "NAME-00002-of-00003.gguf" -> {"NAME", 2, 3}; nothing for any other name.
std::optional<ShardName> parse_shard_name(std::string_view file_name);
std::string shard_file_name(const ShardName& name);

/// The files of the model in order. Errors: NotFound (nothing there, or parts are missing: which),
/// InvalidArgument (a directory with several models, a piece that is not a GGUF file by itself).
Result<std::vector<std::filesystem::path>> find_shards(const std::filesystem::path& path);

}  // namespace artel::gguf
