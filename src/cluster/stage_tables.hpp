// SPDX-License-Identifier: Apache-2.0
// StageTables: a stage's copy of the page tables and positions, built from what steps say, and the
// one check of a step against the assignment. Steps come from the wire: nothing in them is
// believed. The worker checks with it before a step is submitted; an executor may keep its own to
// find a row's pages. Applied in the order in which steps run.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/result.hpp"
#include "protocol/messages.hpp"

namespace artel::cluster {

class StageTables {
  public:
    struct Table {
        std::uint32_t first_valid = 0;  // index of pages.front()
        std::vector<protocol::PageId> pages;
        /// The page of `index`; requires first_valid <= index < first_valid + pages.size().
        protocol::PageId page(std::uint32_t index) const { return pages[index - first_valid]; }
    };
    struct Sequence {
        std::vector<Table> tables;  // one a group
        std::uint32_t next_position = 0;
    };

    StageTables() = default;
    explicit StageTables(const protocol::AssignStage& assignment);

    /// Checks the whole step, then applies its drops and table changes and counts its rows. On an
    /// error nothing has changed; the message names row, sequence and both numbers.
    Error apply(const protocol::Step& step);
    /// Requires that a step with this sequence was applied and it was not dropped since.
    const Sequence& sequence(protocol::SequenceId id) const { return sequences_.at(id); }
    std::size_t sequence_count() const { return sequences_.size(); }

  private:
    Error check_sizes(const protocol::Step& step) const;
    Error check_run(const protocol::StepRun& run) const;
    Error change_table(const protocol::PageTableChange& change,
                       std::map<protocol::SequenceId, Sequence>& changed) const;
    Error take_run(const protocol::StepRun& run,
                   std::map<protocol::SequenceId, Sequence>& changed) const;
    Sequence& touch(protocol::SequenceId id,
                    std::map<protocol::SequenceId, Sequence>& changed) const;

    protocol::AssignStage assignment_;
    std::map<protocol::SequenceId, Sequence> sequences_;
};

/// Whether an assignment makes sense by itself (ranges, ends, groups, sizes).
Error check_assignment(const protocol::AssignStage& assignment);

}  // namespace artel::cluster
