// SPDX-License-Identifier: Apache-2.0
#include "cluster/page_tables.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "cluster/page_index.hpp"

namespace artel::cluster {

using protocol::PageTableChange;

PageTables::PageTables(std::vector<Group> groups, bool frees_twice)
    : groups_(std::move(groups)), frees_twice_(frees_twice) {
    free_.resize(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g)
        for (std::uint32_t page = 0; page < groups_[g].page_count; ++page)
            free_[g].insert(free_[g].end(), PageId{page});
}

bool PageTables::extend(SequenceId sequence, std::uint32_t first, std::uint32_t end,
                        std::vector<PageTableChange>& changes) {
    const auto found = sequences_.find(sequence);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        std::uint32_t held_end = 0;
        if (found != sequences_.end()) {
            const Table& table = found->second.tables[g];
            held_end = table.first_valid + static_cast<std::uint32_t>(table.pages.size());
        }
        const std::uint32_t wanted = end_index(groups_[g].profile.kind, end);
        if (wanted > held_end && wanted - held_end > free_[g].size()) return false;
    }
    Sequence& owner = sequences_[sequence];
    owner.tables.resize(groups_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        Table& table = owner.tables[g];
        const GroupProfile& profile = groups_[g].profile;
        const std::uint32_t visible = first_visible_index(profile.kind, profile.window, first);
        const std::uint32_t held = static_cast<std::uint32_t>(table.pages.size());
        const std::uint32_t gone =
            visible > table.first_valid ? std::min(visible - table.first_valid, held) : 0;
        for (std::uint32_t i = 0; i < gone; ++i) release(g, table.pages[i], owner.last_step);
        table.pages.erase(table.pages.begin(), table.pages.begin() + gone);
        table.first_valid += gone;
        PageTableChange change{GroupIndex{static_cast<std::uint32_t>(g)},
                               sequence,
                               table.first_valid,
                               table.first_valid + static_cast<std::uint32_t>(table.pages.size()),
                               {}};
        for (std::uint32_t index = change.first_index; index < end_index(profile.kind, end);
             ++index) {
            const PageId page = *free_[g].begin();
            free_[g].erase(free_[g].begin());
            table.pages.push_back(page);
            change.pages.push_back(page);
        }
        if (gone > 0 || !change.pages.empty()) changes.push_back(std::move(change));
    }
    return true;
}

void PageTables::step_sent(SequenceId sequence, StepNumber number) {
    const auto found = sequences_.find(sequence);
    ARTEL_CHECK(found != sequences_.end(), "a step names a sequence that owns no pages");
    ARTEL_CHECK(found->second.last_step < number, "steps of a sequence are numbered upwards");
    found->second.last_step = number;
    in_flight_.insert(number);
}

void PageTables::step_returned(StepNumber number) {
    in_flight_.erase(number);
    for (const Limbo& limbo : freed_before_) free_[limbo.group].insert(limbo.page);
    freed_before_.clear();
    const auto waiting = limbo_.find(number);
    if (waiting == limbo_.end()) return;
    for (const Limbo& limbo : waiting->second) {
        const bool is_new = free_[limbo.group].insert(limbo.page).second;
        ARTEL_CHECK(is_new || frees_twice_, "a page was freed twice");
    }
    limbo_.erase(waiting);
}

void PageTables::drop(SequenceId sequence) {
    const auto found = sequences_.find(sequence);
    if (found == sequences_.end()) return;
    for (std::size_t g = 0; g < groups_.size(); ++g)
        for (const PageId page : found->second.tables[g].pages)
            release(g, page, found->second.last_step);
    sequences_.erase(found);
}

void PageTables::release(std::size_t group, PageId page, StepNumber last_step) {
    if (in_flight_.contains(last_step)) {
        limbo_[last_step].push_back({group, page});
        return;
    }
    const bool is_new = free_[group].insert(page).second;
    ARTEL_CHECK(is_new || frees_twice_, "a page was freed twice");
    if (frees_twice_) freed_before_.push_back({group, page});
}

std::uint32_t PageTables::free_pages(std::size_t group) const {
    return static_cast<std::uint32_t>(free_[group].size());
}

std::uint32_t PageTables::pages_in_use(std::size_t group) const {
    return groups_[group].page_count - free_pages(group);
}

}  // namespace artel::cluster
