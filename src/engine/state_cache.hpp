// SPDX-License-Identifier: Apache-2.0
// StateCache: the memory of a stage's pages, one buffer for each state group that has layers here.
// It knows no sequences: which page belongs to whom is decided by the coordinator, whose page ids
// are the same on every stage. What a page holds stays until it is written again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/backend.hpp"
#include "base/result.hpp"
#include "graph/graph.hpp"

namespace artel::engine {

/// Part of a step, before its rows: the bytes of page `source` become those of `target`.
struct PageCopy {
    std::uint32_t group = 0;
    std::uint32_t source = 0;
    std::uint32_t target = 0;
};

class StateCache {
  public:
    /// `pages`: of each group of the graph. Errors: ResourceExhausted, InvalidArgument (another
    /// number of groups, sizes beyond 64 bits).
    static Result<StateCache> create(const graph::Graph& graph,
                                     std::span<const std::uint32_t> pages,
                                     backends::Backend& backend);

    /// In the order of Graph::groups; null for groups without layers here.
    std::vector<backends::Buffer*> buffers() const;
    std::uint64_t bytes() const;
    /// 0 for a group without layers here.
    std::uint64_t page_bytes(std::uint32_t group) const { return groups_[group].page_bytes; }
    std::uint32_t pages(std::uint32_t group) const { return groups_[group].pages; }

    /// Errors: InvalidArgument where there is no such group or page.
    Error check_copy(const PageCopy& copy) const;
    /// Requires a copy that has passed check_copy().
    Error copy_page(const PageCopy& copy, backends::Backend& backend);

  private:
    struct Group {
        std::uint32_t pages = 0;
        std::uint64_t page_bytes = 0;
        std::unique_ptr<backends::Buffer> buffer;
    };
    std::vector<Group> groups_;
    std::vector<std::byte> page_;  // on its way
};

}  // namespace artel::engine
