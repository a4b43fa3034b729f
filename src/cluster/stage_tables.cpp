// SPDX-License-Identifier: Apache-2.0
#include "cluster/stage_tables.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "cluster/page_index.hpp"
#include "protocol/limits.hpp"

namespace artel::cluster {

using protocol::AssignStage;
using protocol::kPageTokens;
using protocol::PageTableChange;
using protocol::SequenceId;
using protocol::StateGroup;
using protocol::StateKind;
using protocol::Step;
using protocol::StepRun;

StageTables::StageTables(const AssignStage& assignment) : assignment_(assignment) {}

Error StageTables::check_sizes(const Step& step) const {
    const std::uint64_t rows = row_count(step);
    if (rows == 0 || rows > assignment_.rows_max)
        return invalid_argument("step {} has {} rows, expected 1 to {}", step.number.value, rows,
                                assignment_.rows_max);
    const std::uint64_t bytes = assignment_.has_input ? 0 : rows * assignment_.row_bytes;
    if (step.activations.size() != bytes)
        return invalid_argument("step {} carries {} bytes of activations, expected {}",
                                step.number.value, step.activations.size(), bytes);
    std::set<SequenceId> sequences;
    for (const StepRun& run : step.runs) {
        if (!sequences.insert(run.sequence).second)
            return invalid_argument("step {} has two runs of sequence {}", step.number.value,
                                    run.sequence.value);
        ARTEL_TRY(check_run(run));
    }
    return ok();
}

Error StageTables::check_run(const StepRun& run) const {
    if (run.sequence == SequenceId{} || run.tokens.empty())
        return invalid_argument("a run of sequence {} with {} rows", run.sequence.value,
                                run.tokens.size());
    const std::uint64_t end = std::uint64_t{run.first_position} + run.tokens.size();
    if (end > assignment_.context)
        return invalid_argument("sequence {}: position {} is past the context of {}",
                                run.sequence.value, end - 1, assignment_.context);
    for (const protocol::TokenId token : run.tokens)
        if (token >= assignment_.vocabulary_size)
            return invalid_argument("sequence {}: token {} is not in the vocabulary of {}",
                                    run.sequence.value, token, assignment_.vocabulary_size);
    return ok();
}

StageTables::Sequence& StageTables::touch(SequenceId id,
                                          std::map<SequenceId, Sequence>& changed) const {
    const auto found = changed.find(id);
    if (found != changed.end()) return found->second;
    const auto known = sequences_.find(id);
    Sequence& sequence = changed[id];
    if (known != sequences_.end()) sequence = known->second;
    sequence.tables.resize(assignment_.groups.size());
    return sequence;
}

Error StageTables::change_table(const PageTableChange& change,
                                std::map<SequenceId, Sequence>& changed) const {
    if (change.sequence == SequenceId{} || change.group.value >= assignment_.groups.size())
        return invalid_argument("a page table of sequence {} in group {} of {}",
                                change.sequence.value, change.group.value,
                                assignment_.groups.size());
    const StateGroup& group = assignment_.groups[change.group.value];
    Table& table = touch(change.sequence, changed).tables[change.group.value];
    const std::uint64_t held_end = table.first_valid + table.pages.size();
    const std::uint64_t end = std::uint64_t{change.first_index} + change.pages.size();
    if (change.first_valid < table.first_valid || change.first_valid > held_end ||
        change.first_index != held_end || end > end_index(group.kind, assignment_.context))
        return invalid_argument(
            "sequence {}, group {}: pages [{}, {}) from {} on do not follow [{}, {})",
            change.sequence.value, change.group.value, change.first_index, end, change.first_valid,
            table.first_valid, held_end);
    for (const protocol::PageId page : change.pages)
        if (page.value >= group.page_count)
            return invalid_argument("sequence {}, group {}: page {} of {}", change.sequence.value,
                                    change.group.value, page.value, group.page_count);
    table.pages.erase(table.pages.begin(),
                      table.pages.begin() + (change.first_valid - table.first_valid));
    table.first_valid = change.first_valid;
    table.pages.insert(table.pages.end(), change.pages.begin(), change.pages.end());
    return ok();
}

Error StageTables::take_run(const StepRun& run, std::map<SequenceId, Sequence>& changed) const {
    Sequence& sequence = touch(run.sequence, changed);
    if (run.first_position != sequence.next_position)
        return invalid_argument("sequence {}: a run starts at position {}, expected {}",
                                run.sequence.value, run.first_position, sequence.next_position);
    const auto end = run.first_position + static_cast<std::uint32_t>(run.tokens.size());
    for (std::size_t g = 0; g < assignment_.groups.size(); ++g) {
        const StateGroup& group = assignment_.groups[g];
        const Table& table = sequence.tables[g];
        const std::uint32_t first =
            first_visible_index(group.kind, group.window, run.first_position);
        if (table.first_valid > first ||
            table.first_valid + table.pages.size() < end_index(group.kind, end))
            return invalid_argument(
                "sequence {}, group {}: positions [{}, {}) need pages [{}, {}), the table has "
                "[{}, {})",
                run.sequence.value, g, run.first_position, end, first, end_index(group.kind, end),
                table.first_valid, table.first_valid + table.pages.size());
    }
    sequence.next_position = end;
    return ok();
}

Error StageTables::apply(const Step& step) {
    ARTEL_TRY(check_sizes(step));
    std::map<SequenceId, Sequence> changed;
    for (const PageTableChange& change : step.page_changes)
        ARTEL_TRY(change_table(change, changed));
    for (const StepRun& run : step.runs) ARTEL_TRY(take_run(run, changed));
    for (const SequenceId dropped : step.drops)
        if (changed.contains(dropped))
            return invalid_argument("step {} drops sequence {} and uses it", step.number.value,
                                    dropped.value);
    // Drops ride on the next step, so ended sequences may outlive the limit for a while.
    const std::uint64_t sequences_max = 4ULL * assignment_.sequences_max + 64;
    if (sequences_.size() + changed.size() > sequences_max + step.drops.size())
        return resource_exhausted("{} sequences are held, at most {}", sequences_.size(),
                                  sequences_max);
    for (const SequenceId dropped : step.drops) sequences_.erase(dropped);
    for (auto& [id, sequence] : changed) sequences_[id] = std::move(sequence);
    return ok();
}

namespace {

Error check_groups(const AssignStage& assignment) {
    if (assignment.groups.size() > protocol::kGroupsMax)
        return invalid_argument("{} state groups, at most {}", assignment.groups.size(),
                                protocol::kGroupsMax);
    for (std::size_t g = 0; g < assignment.groups.size(); ++g) {
        const StateGroup& group = assignment.groups[g];
        if (group.page_count == 0 || group.page_count > protocol::kPagesMax)
            return invalid_argument("state group {} has {} pages, expected 1 to {}", g,
                                    group.page_count, protocol::kPagesMax);
        if (group.kind == StateKind::Windowed && group.window == 0)
            return invalid_argument("state group {} has a window of 0", g);
    }
    return ok();
}

}  // namespace

Error check_assignment(const AssignStage& a) {
    if (a.layer_count > protocol::kLayersMax || a.layers.first > a.layer_count ||
        a.layers.count > a.layer_count - a.layers.first)
        return invalid_argument("layers [{}, {}+{}) of {}", a.layers.first, a.layers.first,
                                a.layers.count, a.layer_count);
    if (a.layers.count == 0 && !a.has_input && !a.has_output)
        return invalid_argument("a stage without layers and ends");
    if (a.has_input != (a.previous == protocol::NodeId{}) ||
        a.has_output != (a.next == protocol::NodeId{}))
        return invalid_argument("the ends of the stage do not match its neighbours");
    if ((a.has_input && a.layers.first != 0) || (a.has_output && a.layers.end() != a.layer_count))
        return invalid_argument("layers [{}, {}) of {} do not match the ends", a.layers.first,
                                a.layers.end(), a.layer_count);
    if (a.vocabulary_size == 0 || a.vocabulary_size > protocol::kVocabularyMax)
        return invalid_argument("a vocabulary of {}", a.vocabulary_size);
    if (a.context == 0 || a.context > protocol::kPositionsMax)
        return invalid_argument("a context of {}", a.context);
    if (a.rows_max == 0 || a.rows_max > protocol::kRowsMax)
        return invalid_argument("{} rows a step, expected 1 to {}", a.rows_max, protocol::kRowsMax);
    if (a.sequences_max == 0 || a.sequences_max > protocol::kRunsMax)
        return invalid_argument("{} sequences, expected 1 to {}", a.sequences_max,
                                protocol::kRunsMax);
    if (a.row_bytes == 0 || a.row_bytes > protocol::kRowBytesMax)
        return invalid_argument("{} bytes a row, expected 1 to {}", a.row_bytes,
                                protocol::kRowBytesMax);
    if (!a.has_output && a.next_address.empty())
        return invalid_argument("no address of the next stage");
    return check_groups(a);
}

}  // namespace artel::cluster
