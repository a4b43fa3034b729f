// SPDX-License-Identifier: Apache-2.0
// PageTables: who owns which page of each state group, kept by the coordinator alone; stages only
// follow. An id means the same page on every stage.
// Invariants:
// 1. A page is free, or owned by one sequence, or in limbo (owned by none, but named by a step that
//    has not come back).
// 2. A page in limbo is free again when the last step that names it has come back.
// 3. Lowest free id first, so that the same history gives the same ids.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "cluster/profile.hpp"
#include "protocol/messages.hpp"

namespace artel::cluster {

class PageTables {
  public:
    struct Group {
        GroupProfile profile;
        std::uint32_t page_count = 0;
    };
    /// `frees_twice`: a deliberate bug for the simulator's canaries.
    explicit PageTables(std::vector<Group> groups = {}, bool frees_twice = false);

    /// Makes room for positions [0, end) of `sequence` and lets windowed pages go that no position
    /// from `first` on can see. Appends what changed. False, with nothing changed, when a group has
    /// too few free pages.
    bool extend(SequenceId sequence, std::uint32_t first, std::uint32_t end,
                std::vector<protocol::PageTableChange>& changes);
    /// `number` names all pages that the sequence owns now.
    void step_sent(SequenceId sequence, StepNumber number);
    /// The step has come back from the last stage; steps of one sequence come back in order.
    void step_returned(StepNumber number);
    /// The sequence has ended: its pages go free, or to limbo while steps name them.
    void drop(SequenceId sequence);

    std::uint32_t free_pages(std::size_t group) const;
    std::uint32_t pages_in_use(std::size_t group) const;  // owned or in limbo
    std::size_t group_count() const { return groups_.size(); }
    const Group& group(std::size_t index) const { return groups_[index]; }

  private:
    struct Table {                      // of one sequence in one group
        std::uint32_t first_valid = 0;  // index of pages.front()
        std::vector<PageId> pages;
    };
    struct Sequence {
        std::vector<Table> tables;  // one a group
        StepNumber last_step;       // sent; none: {0}
    };
    struct Limbo {
        std::size_t group;
        PageId page;
    };
    void release(std::size_t group, PageId page, StepNumber last_step);

    std::vector<Group> groups_;
    std::vector<std::set<PageId>> free_;  // one a group
    std::map<SequenceId, Sequence> sequences_;
    std::map<StepNumber, std::vector<Limbo>> limbo_;  // by the last step that names the page
    std::set<StepNumber> in_flight_;
    bool frees_twice_;
    std::vector<Limbo> freed_before_;  // by that bug only
};

}  // namespace artel::cluster
