// SPDX-License-Identifier: Apache-2.0
#include "cluster/planner.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/byte_count.hpp"
#include "cluster/plan_costs.hpp"
#include "protocol/limits.hpp"

namespace artel::cluster {

namespace {

using protocol::kPageTokens;
using protocol::StateKind;

constexpr std::uint32_t kPlanLayersMax = 1024;  // keeps the search within a second

std::uint32_t divide_up(std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>((a + b - 1) / b, protocol::kPagesMax));
}

/// Workers with those of one machine next to each other, and their share of its bandwidth.
std::vector<WorkerProfile> by_machine(const std::vector<WorkerProfile>& workers) {
    std::vector<WorkerProfile> ordered;
    std::map<std::string, std::uint64_t> sharers;
    for (const WorkerProfile& worker : workers) {
        if (!worker.machine_id.empty() && worker.unusable.empty()) ++sharers[worker.machine_id];
        auto place = ordered.end();
        if (!worker.machine_id.empty()) {
            const auto last = std::find_if(
                ordered.rbegin(), ordered.rend(),
                [&](const WorkerProfile& other) { return other.machine_id == worker.machine_id; });
            if (last != ordered.rend()) place = last.base();
        }
        ordered.insert(place, worker);
    }
    for (WorkerProfile& worker : ordered)
        if (const auto share = sharers.find(worker.machine_id); share != sharers.end())
            worker.bandwidth_bytes_per_second /= share->second;
    return ordered;
}

bool is_same_machine(const WorkerProfile& a, const WorkerProfile& b) {
    return !a.machine_id.empty() && a.machine_id == b.machine_id;
}

std::uint64_t machine_limit(const WorkerProfile& worker) {
    return worker.machine_memory_bytes == 0 ? kNever : worker.machine_memory_bytes;
}

std::vector<std::uint32_t> page_counts(const ModelProfile& model, std::uint32_t context,
                                       const PlanRequest& request, std::size_t worker_count) {
    // Two more than layers: an explicit split may give each end a stage of its own.
    const auto stages =
        static_cast<std::uint32_t>(std::min<std::size_t>(worker_count, model.layers.size() + 2));
    std::vector<std::uint32_t> counts;
    for (const GroupProfile& group : model.groups) {
        const std::uint64_t each = pages_per_sequence(group, context, request.chunk_rows, stages);
        counts.push_back(static_cast<std::uint32_t>(
            std::min<std::uint64_t>(each * std::max(request.parallel, 1U), protocol::kPagesMax)));
    }
    return counts;
}

/// How many layers each worker gets; 0: left out.
using Shares = std::vector<std::uint32_t>;

/// All ways to cut the layers over the workers, by dynamic programming. The state after the first i
/// workers have taken l layers is the least memory that their last machine can have given away:
/// what comes later depends on nothing else, so keeping only the least loses no solution.
class Cuts {
  public:
    Cuts(const PlanCosts& costs, const std::vector<WorkerProfile>& workers)
        : costs_(costs), workers_(workers), layers_(costs.layer_count()) {}

    /// A cut whose every stage takes at most `slowest_ns`, or nothing.
    std::optional<Shares> find(std::uint64_t slowest_ns) const;
    /// The cut whose slowest stage is fastest.
    std::optional<Shares> find_fastest() const;

  private:
    std::size_t at(std::size_t worker, std::uint32_t layers) const {
        return worker * (layers_ + 1) + layers;
    }
    void place(std::size_t worker, std::uint64_t slowest_ns, std::vector<std::uint64_t>& least,
               std::vector<std::uint32_t>& from) const;
    std::uint64_t slowest(const Shares& shares) const;

    const PlanCosts& costs_;
    const std::vector<WorkerProfile>& workers_;
    std::uint32_t layers_;
};

StageParts parts_of(std::uint32_t first, std::uint32_t end, std::uint32_t layers) {
    return {{first, end - first}, first == 0, end == layers};
}

void Cuts::place(std::size_t worker, std::uint64_t slowest_ns, std::vector<std::uint64_t>& least,
                 std::vector<std::uint32_t>& from) const {
    const WorkerProfile& profile = workers_[worker];
    const bool joins = worker > 0 && is_same_machine(workers_[worker - 1], profile);
    for (std::uint32_t end = 0; end <= layers_; ++end) {
        const std::uint64_t before = least[at(worker, end)];
        std::uint64_t& best = least[at(worker + 1, end)];
        if (before != kNever) best = joins ? before : 0;  // takes no layer
        from[at(worker + 1, end)] = end;
        if (!profile.unusable.empty()) continue;
        for (std::uint32_t first = end; first-- > 0;) {
            const StageParts parts = parts_of(first, end, layers_);
            const std::uint64_t bytes = costs_.total_bytes(parts);
            if (costs_.decode_ns(parts, profile) > slowest_ns || bytes > profile.memory_bytes)
                break;  // more layers cost more
            const std::uint64_t used = least[at(worker, first)];
            if (used == kNever) continue;
            const std::uint64_t together = joins ? add_saturated(used, bytes) : bytes;
            if (together > machine_limit(profile) || together >= best) continue;
            best = together;
            from[at(worker + 1, end)] = first;
        }
    }
}

std::optional<Shares> Cuts::find(std::uint64_t slowest_ns) const {
    std::vector<std::uint64_t> least((workers_.size() + 1) * (layers_ + 1), kNever);
    std::vector<std::uint32_t> from(least.size(), 0);
    least[at(0, 0)] = 0;
    for (std::size_t worker = 0; worker < workers_.size(); ++worker)
        place(worker, slowest_ns, least, from);
    if (least[at(workers_.size(), layers_)] == kNever) return std::nullopt;
    Shares shares(workers_.size());
    std::uint32_t end = layers_;
    for (std::size_t worker = workers_.size(); worker-- > 0;) {
        const std::uint32_t first = from[at(worker + 1, end)];
        shares[worker] = end - first;
        end = first;
    }
    return shares;
}

std::uint64_t Cuts::slowest(const Shares& shares) const {
    std::uint64_t slowest = 0;
    std::uint32_t first = 0;
    for (std::size_t worker = 0; worker < shares.size(); ++worker) {
        if (shares[worker] == 0) continue;
        const StageParts parts = parts_of(first, first + shares[worker], layers_);
        slowest = std::max(slowest, costs_.decode_ns(parts, workers_[worker]));
        first += shares[worker];
    }
    return slowest;
}

std::optional<Shares> Cuts::find_fastest() const {
    std::optional<Shares> best = find(kNever);
    if (!best) return std::nullopt;
    std::uint64_t low = 0;  // nothing at or below fits, unless it is the answer
    std::uint64_t high = slowest(*best);
    while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        if (auto found = find(middle)) {
            high = slowest(*found);
            best = std::move(found);
        } else {
            low = middle + 1;
        }
    }
    return best;
}

/// The shares of an explicit split, or why it cannot be.
std::optional<std::string> check_split(const std::vector<std::uint32_t>& split,
                                       const std::vector<WorkerProfile>& workers,
                                       std::uint32_t layers) {
    if (split.size() != workers.size())
        return fmt::format("the split names {} workers, {} are there", split.size(),
                           workers.size());
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < split.size(); ++i) {
        sum += split[i];
        if (split[i] > 0 && !workers[i].unusable.empty())
            return fmt::format("the split places {} layers on {}, but {}", split[i],
                               workers[i].name, workers[i].unusable);
    }
    if (sum != layers)
        return fmt::format("the split has {} layers in all, the model {}", sum, layers);
    return std::nullopt;
}

/// The parts of each worker that takes part. With a given split, a first or last 0 holds an end.
std::vector<std::pair<std::size_t, StageParts>> stages_of(const Shares& shares, bool is_explicit,
                                                          std::uint32_t layers) {
    std::vector<std::pair<std::size_t, StageParts>> stages;
    std::uint32_t first = 0;
    for (std::size_t worker = 0; worker < shares.size(); ++worker) {
        const bool is_end = is_explicit && (worker == 0 || worker + 1 == shares.size());
        if (shares[worker] > 0 || is_end) stages.push_back({worker, {{first, shares[worker]}}});
        first += shares[worker];
    }
    if (stages.empty() && layers == 0 && !shares.empty()) stages.push_back({0, {{0, 0}}});
    if (!stages.empty()) {
        stages.front().second.has_input = true;
        stages.back().second.has_output = true;
    }
    return stages;
}

class Planner {
  public:
    Planner(const ModelProfile& model, const std::vector<WorkerProfile>& workers,
            const PlanRequest& request)
        : model_(model), request_(request), workers_(by_machine(workers)) {}

    PlanOutcome run();

  private:
    std::optional<Shares> cut(std::uint32_t context, bool wants_fastest) const;
    struct SplitOverflow {
        std::size_t worker = 0;
        StageParts parts;
        std::uint64_t bytes = 0;
        std::uint64_t available = 0;
    };
    /// The first stage of an explicit split that its worker, or its machine, has no room for.
    std::optional<SplitOverflow> split_overflow(const PlanCosts& costs) const;
    PlanRefusal refuse_split(const SplitOverflow& overflow, std::uint32_t context) const;
    std::uint32_t largest_context(std::uint32_t at_most) const;
    Plan describe(const Shares& shares, std::uint32_t context) const;
    PlanRefusal refuse(std::uint32_t context) const;
    PlanRefusal refuse_because(std::string why) const;
    std::uint64_t missing_bytes(const PlanCosts& costs) const;

    const ModelProfile& model_;
    const PlanRequest& request_;
    std::vector<WorkerProfile> workers_;
};

std::optional<Planner::SplitOverflow> Planner::split_overflow(const PlanCosts& costs) const {
    std::map<std::string, std::uint64_t> used;
    for (const auto& [worker, parts] : stages_of(request_.split, true, costs.layer_count())) {
        const WorkerProfile& profile = workers_[worker];
        const std::uint64_t bytes = costs.total_bytes(parts);
        if (bytes > profile.memory_bytes)
            return SplitOverflow{worker, parts, bytes, profile.memory_bytes};
        if (profile.machine_id.empty()) continue;
        std::uint64_t& machine = used[profile.machine_id];
        const std::uint64_t left =
            machine_limit(profile) - std::min(machine_limit(profile), machine);
        if (bytes > left) return SplitOverflow{worker, parts, bytes, left};
        machine = add_saturated(machine, bytes);
    }
    return std::nullopt;
}

/// What of an explicit split cannot be held, in words.
PlanRefusal Planner::refuse_split(const SplitOverflow& overflow, std::uint32_t context) const {
    const LayerRange layers = overflow.parts.layers;
    std::string held = layers.count == 0 ? "no layer"
                       : layers.count == 1
                           ? fmt::format("layer {}", layers.first)
                           : fmt::format("layers {} to {}", layers.first, layers.end() - 1);
    if (overflow.parts.has_input) held += ", the input";
    if (overflow.parts.has_output) held += ", the output";
    PlanRefusal refusal;
    refusal.needed_bytes = overflow.bytes;
    refusal.available_bytes = overflow.available;
    refusal.missing_bytes = overflow.bytes - overflow.available;
    refusal.context_that_fits = largest_context(context);
    refusal.message = fmt::format(
        "the split does not fit: worker {} ({}) needs {} for a context of {} and {} requests at "
        "once and has {}; {} are missing{}",
        workers_[overflow.worker].name, held, format_byte_count(overflow.bytes), context,
        request_.parallel, format_byte_count(overflow.available),
        format_byte_count(refusal.missing_bytes),
        refusal.context_that_fits > 0
            ? fmt::format("; a context of {} would fit", refusal.context_that_fits)
            : "");
    return refusal;
}

std::optional<Shares> Planner::cut(std::uint32_t context, bool wants_fastest) const {
    const PlanCosts costs(model_, page_counts(model_, context, request_, workers_.size()));
    if (!request_.split.empty())
        return split_overflow(costs) ? std::nullopt : std::optional<Shares>(request_.split);
    const Cuts cuts(costs, workers_);
    return wants_fastest ? cuts.find_fastest() : cuts.find(kNever);
}

std::uint32_t Planner::largest_context(std::uint32_t at_most) const {
    std::uint32_t low = 0;  // pages that fit
    std::uint32_t high = divide_up(at_most, kPageTokens);
    while (low < high) {
        const std::uint32_t middle = low + (high - low + 1) / 2;
        if (cut(std::min(middle * kPageTokens, at_most), false))
            low = middle;
        else
            high = middle - 1;
    }
    return std::min(low * kPageTokens, at_most);
}

PlanOutcome Planner::run() {
    if (model_.layers.size() > kPlanLayersMax)
        return refuse_because(fmt::format("the model has {} layers, at most {} can be planned",
                                          model_.layers.size(), kPlanLayersMax));
    if (workers_.empty()) return refuse_because("there is no worker");
    if (request_.context > model_.context_max)
        return refuse_because(fmt::format("a context of {} was asked for, the model's is {}",
                                          request_.context, model_.context_max));
    if (!request_.split.empty()) {
        const auto layers = static_cast<std::uint32_t>(model_.layers.size());
        if (auto why = check_split(request_.split, workers_, layers)) return refuse_because(*why);
    }
    std::uint32_t context = request_.context;
    if (context == 0) context = largest_context(model_.context_max);
    if (context == 0) return refuse(std::min(kPageTokens, model_.context_max));
    const std::optional<Shares> shares = cut(context, true);
    if (!shares) return refuse(context);
    return describe(*shares, context);
}

Plan Planner::describe(const Shares& shares, std::uint32_t context) const {
    Plan plan;
    plan.context = context;
    plan.parallel = request_.parallel;
    plan.page_counts = page_counts(model_, context, request_, workers_.size());
    const PlanCosts costs(model_, plan.page_counts);
    std::uint64_t sum_ns = 0;
    std::uint64_t slowest_ns = 1;
    std::vector<bool> takes_part(workers_.size(), false);
    for (const auto& [worker, parts] :
         stages_of(shares, !request_.split.empty(), costs.layer_count())) {
        const WorkerProfile& profile = workers_[worker];
        PlanStage stage{profile.node, profile.name, parts.layers, parts.has_input,
                        parts.has_output};
        stage.weight_bytes = costs.weight_bytes(parts);
        stage.state_bytes = costs.state_bytes(parts.layers);
        stage.scratch_bytes = costs.scratch_bytes(parts);
        stage.memory_left = profile.memory_bytes - stage.total_bytes();
        stage.decode_ns = costs.decode_ns(parts, profile);
        stage.row_ns = costs.row_ns(parts, profile);
        sum_ns = add_saturated(sum_ns, stage.decode_ns);
        slowest_ns = std::max(slowest_ns, stage.decode_ns);
        takes_part[worker] = true;
        plan.stages.push_back(std::move(stage));
    }
    for (std::size_t worker = 0; worker < workers_.size(); ++worker)
        if (!takes_part[worker]) plan.spares.push_back(workers_[worker].node);
    plan.decode_tokens_per_second = 1e9 / static_cast<double>(std::max<std::uint64_t>(sum_ns, 1));
    plan.decode_tokens_per_second_max = 1e9 / static_cast<double>(slowest_ns);
    return plan;
}

std::uint64_t Planner::missing_bytes(const PlanCosts& costs) const {
    const StageParts everything{{0, costs.layer_count()}, true, true};
    std::uint64_t low = 0;
    std::uint64_t high = costs.total_bytes(everything);  // one machine for all does
    while (low < high) {
        const std::uint64_t middle = low + (high - low) / 2;
        std::vector<WorkerProfile> more = workers_;
        WorkerProfile extra;
        extra.memory_bytes = middle;
        more.push_back(extra);
        if (Cuts(costs, more).find(kNever))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

PlanRefusal Planner::refuse_because(std::string why) const {
    PlanRefusal refusal;
    refusal.message = std::move(why);
    return refusal;
}

PlanRefusal Planner::refuse(std::uint32_t context) const {
    const PlanCosts costs(model_, page_counts(model_, context, request_, workers_.size()));
    if (!request_.split.empty())
        if (const auto overflow = split_overflow(costs)) return refuse_split(*overflow, context);
    PlanRefusal refusal;
    refusal.needed_bytes = costs.total_bytes({{0, costs.layer_count()}, true, true});
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> machines;  // used, limit
    std::string unusable;
    for (const WorkerProfile& worker : workers_) {
        if (!worker.unusable.empty()) {
            unusable += fmt::format("; {} is not used: {}", worker.name, worker.unusable);
            continue;
        }
        const std::string key = worker.machine_id.empty() ? "/" + worker.name : worker.machine_id;
        auto& [used, limit] = machines[key];
        used = add_saturated(used, worker.memory_bytes);
        limit = machine_limit(worker);
    }
    for (const auto& [key, memory] : machines)
        refusal.available_bytes =
            add_saturated(refusal.available_bytes, std::min(memory.first, memory.second));
    refusal.missing_bytes = missing_bytes(costs);
    refusal.context_that_fits = largest_context(context);
    refusal.message = fmt::format(
        "{} does not fit: it needs {} for a context of {} and {} requests at once, the workers "
        "have {}; one more machine with {} would do{}{}",
        model_.name, format_byte_count(refusal.needed_bytes), context, request_.parallel,
        format_byte_count(refusal.available_bytes), format_byte_count(refusal.missing_bytes),
        refusal.context_that_fits > 0
            ? fmt::format(", or a context of {}", refusal.context_that_fits)
            : "",
        unusable);
    return refusal;
}

}  // namespace

std::uint32_t pages_per_sequence(const GroupProfile& group, std::uint32_t context,
                                 std::uint32_t chunk_rows, std::uint32_t stage_count) {
    if (group.kind == StateKind::Slot) return 1;
    const std::uint32_t all = divide_up(context, kPageTokens);
    if (group.kind == StateKind::Paged) return all;
    // The window, and the rows of the steps that may be in flight; one more for the cut page.
    const std::uint64_t rows =
        group.window + (static_cast<std::uint64_t>(stage_count) + 1) * chunk_rows;
    return std::min(all, divide_up(rows, kPageTokens) + 1);
}

std::uint64_t predicted_step_ns(const Plan& plan, std::uint64_t rows) {
    std::uint64_t sum = 0;
    for (const PlanStage& stage : plan.stages) {
        const std::uint64_t more = rows > 1 ? rows - 1 : 0;
        sum = add_saturated(sum, stage.decode_ns);
        sum = add_saturated(sum, multiply_saturated(stage.row_ns, more));
    }
    return sum;
}

PlanOutcome make_plan(const ModelProfile& model, const std::vector<WorkerProfile>& workers,
                      const PlanRequest& request) {
    return Planner(model, workers, request).run();
}

}  // namespace artel::cluster
