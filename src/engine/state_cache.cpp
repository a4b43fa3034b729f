// SPDX-License-Identifier: Apache-2.0
#include "engine/state_cache.hpp"

#include "base/byte_count.hpp"

namespace artel::engine {

Result<StateCache> StateCache::create(const graph::Graph& graph,
                                      std::span<const std::uint32_t> pages,
                                      backends::Backend& backend) {
    if (pages.size() != graph.groups.size())
        return invalid_argument("page counts of {} state groups, expected {}", pages.size(),
                                graph.groups.size());
    StateCache cache;
    for (std::size_t i = 0; i < pages.size(); ++i) {
        Group group{.pages = pages[i], .page_bytes = 0, .buffer = nullptr};
        if (!graph.groups[i].layers.empty()) {
            group.page_bytes = graph::page_layout(graph.groups[i]).page_bytes;
            const auto bytes = checked_multiply(group.page_bytes, pages[i]);
            if (!bytes)
                return invalid_argument("state group {}: {} pages of {} bytes", i, pages[i],
                                        group.page_bytes);
            auto buffer = backend.allocate(*bytes);
            if (!buffer.ok()) return with_context(buffer.status(), "pages of state");
            group.buffer = *std::move(buffer);
        }
        cache.groups_.push_back(std::move(group));
    }
    return cache;
}

std::vector<backends::Buffer*> StateCache::buffers() const {
    std::vector<backends::Buffer*> buffers;
    for (const Group& group : groups_) buffers.push_back(group.buffer.get());
    return buffers;
}

std::uint64_t StateCache::bytes() const {
    std::uint64_t sum = 0;
    for (const Group& group : groups_) sum += group.page_bytes * group.pages;
    return sum;
}

Error StateCache::check_copy(const PageCopy& copy) const {
    if (copy.group >= groups_.size())
        return invalid_argument("copy in state group {} of {}", copy.group, groups_.size());
    const Group& group = groups_[copy.group];
    if (copy.source >= group.pages || copy.target >= group.pages)
        return invalid_argument("copy of page {} to {} in state group {} of {} pages", copy.source,
                                copy.target, copy.group, group.pages);
    return ok();
}

Error StateCache::copy_page(const PageCopy& copy, backends::Backend& backend) {
    const Group& group = groups_[copy.group];
    if (group.buffer == nullptr || copy.source == copy.target) return ok();
    page_.resize(group.page_bytes);
    ARTEL_TRY(backend.download(*group.buffer, copy.source * group.page_bytes, page_));
    return backend.upload(*group.buffer, copy.target * group.page_bytes, page_);
}

}  // namespace artel::engine
