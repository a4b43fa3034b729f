// SPDX-License-Identifier: Apache-2.0
#include "gguf/shard_paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <span>
#include <system_error>

#include "gguf/limits.hpp"

namespace artel::gguf {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".gguf";
constexpr std::size_t kNumberDigits = 5;
constexpr std::size_t kNamedMax = 8;  // names shown in a message

bool remove_suffix(std::string_view& text, std::string_view suffix) {
    if (!text.ends_with(suffix)) return false;
    text.remove_suffix(suffix.size());
    return true;
}

/// Takes five digits from the end of `text`.
std::optional<std::uint32_t> take_number(std::string_view& text) {
    if (text.size() < kNumberDigits) return std::nullopt;
    const std::string_view digits = text.substr(text.size() - kNumberDigits);
    if (!std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; }))
        return std::nullopt;
    std::uint32_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    text.remove_suffix(kNumberDigits);
    return number;
}

/// "model.gguf.part1of2": made with split(1), whole only when put together again.
bool is_raw_piece(std::string_view file_name) {
    const std::size_t part = file_name.rfind(".part");
    if (part == std::string_view::npos) return false;
    const std::string_view rest = file_name.substr(part + 5);
    return rest.find("of") != std::string_view::npos &&
           rest.find_first_not_of("0123456789of") == std::string_view::npos;
}

std::string list_names(const std::vector<std::string>& names) {
    const auto shown = std::span(names).first(std::min(names.size(), kNamedMax));
    return fmt::format("{}{}", fmt::join(shown, ", "), names.size() > kNamedMax ? ", ..." : "");
}

Result<std::vector<fs::path>> siblings(const fs::path& folder, const ShardName& name) {
    if (name.count > kShardsMax)
        return invalid_argument("{} parts are more than the limit of {}", name.count, kShardsMax);
    std::vector<fs::path> paths;
    std::vector<std::string> missing;
    for (std::uint32_t number = 1; number <= name.count; ++number) {
        const std::string file_name = shard_file_name({name.prefix, number, name.count});
        paths.push_back(folder / file_name);
        std::error_code error;
        if (!fs::exists(paths.back(), error)) missing.push_back(file_name);
    }
    if (!missing.empty())
        return not_found("{} of the {} parts of the model are missing in {}: {}", missing.size(),
                         name.count, folder.empty() ? "." : folder.string(), list_names(missing));
    return paths;
}

/// The one model in a directory: a set of parts, or one file.
Result<std::vector<fs::path>> find_in_directory(const fs::path& directory) {
    std::set<std::string> models;  // file name of the (first part of the) model
    std::error_code error;
    fs::directory_iterator entry(directory, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
        const std::string file_name = entry->path().filename().string();
        if (!file_name.ends_with(kExtension)) continue;
        const auto name = parse_shard_name(file_name);
        models.insert(name ? shard_file_name({name->prefix, 1, name->count}) : file_name);
    }
    if (error) return unavailable("reading {}: {}", directory.string(), error.message());
    if (models.empty()) return not_found("{} holds no .gguf file", directory.string());
    if (models.size() > 1)
        return invalid_argument("{} holds {} models, name one of them: {}", directory.string(),
                                models.size(),
                                list_names(std::vector(models.begin(), models.end())));
    if (const auto name = parse_shard_name(*models.begin())) return siblings(directory, *name);
    return std::vector{directory / *models.begin()};
}

}  // namespace

std::optional<ShardName> parse_shard_name(std::string_view file_name) {
    if (!remove_suffix(file_name, kExtension)) return std::nullopt;
    const auto count = take_number(file_name);
    if (!count || !remove_suffix(file_name, "-of-")) return std::nullopt;
    const auto number = take_number(file_name);
    if (!number || !remove_suffix(file_name, "-")) return std::nullopt;
    if (*number < 1 || *number > *count) return std::nullopt;
    return ShardName{std::string(file_name), *number, *count};
}

std::string shard_file_name(const ShardName& name) {
    return fmt::format("{}-{:05}-of-{:05}{}", name.prefix, name.number, name.count, kExtension);
}

Result<std::vector<fs::path>> find_shards(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::directory) return find_in_directory(path);
    if (status.type() == fs::file_type::not_found)
        return not_found("{} does not exist", path.string());
    const std::string file_name = path.filename().string();
    if (is_raw_piece(file_name))
        return invalid_argument(
            "{} is one piece of a file that was cut; put the pieces together "
            "with cat first",
            file_name);
    if (const auto name = parse_shard_name(file_name)) return siblings(path.parent_path(), *name);
    return std::vector{path};
}

}  // namespace artel::gguf
