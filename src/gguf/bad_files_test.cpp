// SPDX-License-Identifier: Apache-2.0
// Every file of the collection of bad and odd GGUF files: a few kept in tests/data/gguf, and all of
// the oracle's (ARTEL_ORACLE, by default ../shared/oracle) where that folder is there. Files whose
// fault is in what the metadata means, not in the file, must open here; whoever reads the meaning
// refuses them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "gguf/gguf_test_files.hpp"

namespace artel::gguf {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> kMeaningPrefixes = {
    "arch_", "embd_", "kv_heads_", "tok_", "block_count_", "head_count_"};
constexpr std::array<std::string_view, 6> kMeaningNames = {
    "vocab_rows_mismatch.gguf", "tensor_missing.gguf", "tensor_wrong_shape.gguf", "eps_nan.gguf",
    "rope_dim_odd.gguf",        "ctx_0.gguf"};

bool is_fault_of_meaning(std::string_view name) {
    return std::ranges::any_of(kMeaningPrefixes, [&](auto p) { return name.starts_with(p); }) ||
           std::ranges::find(kMeaningNames, name) != kMeaningNames.end();
}

Error open_whole(const fs::path& path) {
    ARTEL_ASSIGN(const GgufIndex index, GgufIndex::open(path, test_block_size));
    return check_data_present(index);
}

void expect_outcome(const fs::path& path, bool is_refused) {
    const Error error = open_whole(path);
    EXPECT_EQ(!error.ok(), is_refused) << path << ": " << error;
    if (!error.ok()) {
        EXPECT_THAT(std::string(error.message()), testing::HasSubstr(path.filename().string()));
    }
}

long peak_kilobytes() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

TEST(BadFiles, Kept) {
    const fs::path folder = fs::path(ARTEL_SOURCE_DIR) / "tests/data/gguf";
    for (const char* name : {"ok_base", "ok_extra_keys", "ok_tensor_order"})
        expect_outcome(folder / (std::string(name) + ".gguf"), false);
    for (const char* name : {"trunc_counts", "trunc_kv_key", "trunc_kv_mid", "trunc_before_infos",
                             "trunc_infos", "trunc_data_start"})
        expect_outcome(folder / (std::string(name) + ".gguf"), true);
}

TEST(BadFiles, WholeOracle) {
    const char* given = std::getenv("ARTEL_ORACLE");
    const fs::path oracle = given != nullptr
                                ? fs::path(given)
                                : fs::path(ARTEL_SOURCE_DIR).parent_path() / "shared/oracle";
    const fs::path folder = oracle / "badgguf";
    if (!fs::exists(folder / "index.json")) {
        std::printf("NOT CHECKED: no oracle at %s (set ARTEL_ORACLE)\n", folder.c_str());
        GTEST_SKIP();
    }
    const auto index =
        nlohmann::json::parse(read_file(folder / "index.json", 1 << 20).value())["files"];
    ASSERT_GE(index.size(), 70U);
    const long peak_before = peak_kilobytes();
    for (const auto& file : index) {
        const auto name = file["file"].get<std::string>();
        const auto start = std::chrono::steady_clock::now();
        const bool is_refused = file["must"].get<std::string>().starts_with("refuse");
        expect_outcome(folder / name, is_refused && !is_fault_of_meaning(name));
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1)) << name;
    }
    EXPECT_LT(peak_kilobytes() - peak_before, 64 << 10);
}

}  // namespace
}  // namespace artel::gguf
