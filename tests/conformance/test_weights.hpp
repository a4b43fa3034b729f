// SPDX-License-Identifier: Apache-2.0
// TestWeights: a made-up model file in memory. Blocks are random bytes, so that every quant and
// sub-scale occurs, with finite scales of a usual size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "graph/graph_builder.hpp"
#include "quant/formats.hpp"

namespace artel::conformance {

class TestWeights final : public graph::WeightIndex {
  public:
    explicit TestWeights(std::uint64_t seed) : random_(seed) {}

    void add(const std::string& name, quant::FormatId format, std::uint64_t rows,
             std::uint64_t columns);
    /// F32, one row.
    void add_vector(const std::string& name, std::uint64_t columns) {
        add(name, quant::FormatId::F32, 1, columns);
    }
    /// F32 with these values, for vectors whose size matters.
    void set_vector(const std::string& name, const std::vector<float>& values);

    std::optional<graph::WeightEntry> find(std::string_view name) const override;
    const std::vector<std::byte>& bytes(const std::string& name) const;
    /// The same, for a test that chooses them.
    std::vector<std::byte>& bytes(const std::string& name) { return entries_.at(name).bytes; }
    /// Row `row`, decoded.
    std::vector<float> row(const std::string& name, std::uint64_t row) const;

  private:
    struct Entry {
        quant::FormatId format;
        std::uint64_t rows;
        std::uint64_t columns;
        std::vector<std::byte> bytes;
    };
    std::map<std::string, Entry, std::less<>> entries_;
    Random random_;
};

/// Uniform in [-1, 1).
float random_float(Random& random);
std::vector<float> random_floats(Random& random, std::size_t count);

}  // namespace artel::conformance
