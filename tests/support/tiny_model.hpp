// SPDX-License-Identifier: Apache-2.0
// TinyModel: a random model of a few kilobytes for each architecture, made through GgufWriter, with
// its tensors served from memory. For tests that need a real Stage and no download.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights.hpp"
#include "gguf/gguf_index.hpp"

namespace artel::test {

struct TinyShape {
    std::uint32_t layers = 4;
    std::uint32_t width = 32;
    std::uint32_t heads = 4;
    std::uint32_t kv_heads = 2;
    std::uint32_t head_dim = 16;
    std::uint32_t ffn_width = 64;
    std::uint32_t vocabulary = 96;
    std::uint32_t context = 512;
    std::uint32_t window = 96;         // of architectures that have one
    std::uint32_t window_pattern = 2;  // gemma3 only: of so many layers the last is a full one
    std::uint32_t experts = 6;         // of architectures that have some
    std::uint32_t experts_used = 2;
    std::uint32_t expert_width = 32;
    bool has_own_head = true;  // else the head is the embedding
    std::uint64_t seed = 1;
};

/// A WeightSource that also remembers which tensors were read.
class MemoryWeightSource final : public engine::WeightSource {
  public:
    MemoryWeightSource(const gguf::GgufIndex& index, std::span<const std::byte> file)
        : index_(index), file_(file) {}
    Error read(std::string_view tensor, std::uint64_t offset, std::span<std::byte> target) override;
    /// In order of first read, each once.
    const std::vector<std::string>& tensors_read() const { return tensors_read_; }

  private:
    const gguf::GgufIndex& index_;
    std::span<const std::byte> file_;
    std::vector<std::string> tensors_read_;
};

class TinyModel {
  public:
    /// `architecture`: any that this file can write; the test fails for others.
    static std::unique_ptr<TinyModel> create(std::string_view architecture,
                                             const TinyShape& shape = {});
    const gguf::GgufIndex& index() const { return *index_; }
    MemoryWeightSource source() const { return {*index_, file_}; }
    std::span<const std::byte> file() const { return file_; }

  private:
    TinyModel() = default;
    std::vector<std::byte> file_;
    std::unique_ptr<gguf::GgufIndex> index_;
};

}  // namespace artel::test
