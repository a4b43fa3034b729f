// SPDX-License-Identifier: Apache-2.0
// The only file that sees protobuf. For each struct two functions: write (struct -> wire) and read
// (wire -> struct, with every check). Ids that must name something are refused when 0.
#include "protocol/codec.hpp"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include "protocol/artel.pb.h"
#include "protocol/limits.hpp"

namespace artel::protocol {

namespace {

// ---- checks ----

Error check_count(std::uint64_t count, std::uint64_t max, const char* field) {
    if (count <= max) return ok();
    return invalid_argument("{}: {} entries, at most {}", field, count, max);
}

Error check_at_most(std::uint64_t value, std::uint64_t max, const char* field) {
    if (value <= max) return ok();
    return invalid_argument("{} is {}, at most {}", field, value, max);
}

Error check_set(std::uint64_t value, const char* field) {
    if (value != 0) return ok();
    return invalid_argument("{} is 0", field);
}

Error check_text(const std::string& text, const char* field) {
    if (text.size() <= kTextBytesMax) return ok();
    return invalid_argument("{} has {} bytes, at most {}", field, text.size(), kTextBytesMax);
}

Error check_finite(std::initializer_list<float> values, const char* field) {
    for (const float value : values)
        if (!std::isfinite(value)) return invalid_argument("{} is not finite", field);
    return ok();
}

template <class Enum>
Error read_enum(std::uint32_t value, Enum last, const char* field, Enum& out) {
    ARTEL_TRY(check_at_most(value, static_cast<std::uint64_t>(last), field));
    out = static_cast<Enum>(value);
    return ok();
}

Error check_no_payload(const SharedBytes& payload) {
    if (payload.empty()) return ok();
    return invalid_argument("carries a payload of {} bytes, expected none", payload.size());
}

/// Words for a person are cut rather than refused.
std::string clipped(const std::string& text) {
    return text.substr(0, kTextBytesMax);
}

// ---- small parts ----

void write(const Epoch& in, wire::Epoch* out) {
    out->set_term(in.term);
    out->set_number(in.number);
}
Epoch read(const wire::Epoch& in) {
    return {in.term(), in.number()};
}

void write(const LayerRange& in, wire::LayerRange* out) {
    out->set_first(in.first);
    out->set_count(in.count);
}
Error read(const wire::LayerRange& in, LayerRange& out) {
    ARTEL_TRY(check_at_most(in.first(), kLayersMax, "layers.first"));
    ARTEL_TRY(check_at_most(in.count(), kLayersMax, "layers.count"));
    out = {in.first(), in.count()};
    return ok();
}

void write(const Hash128& in, wire::Hash128* out) {
    out->set_high(in.high);
    out->set_low(in.low);
}
Hash128 read(const wire::Hash128& in) {
    return {in.high(), in.low()};
}

void write(const WeightsRange& in, wire::WeightsRange* out) {
    out->set_part(static_cast<std::uint32_t>(in.part));
    out->set_tensor(in.tensor);
    out->set_offset(in.offset);
    out->set_bytes(in.bytes);
}
Error read(const wire::WeightsRange& in, WeightsRange& out) {
    ARTEL_TRY(read_enum(in.part(), ModelPart::Manifest, "range.part", out.part));
    ARTEL_TRY(check_at_most(in.bytes(), kChunkBytesMax, "range.bytes"));
    ARTEL_TRY(check_at_most(in.offset(), std::numeric_limits<std::uint64_t>::max() - in.bytes(),
                            "range.offset"));
    out.tensor = in.tensor();
    out.offset = in.offset();
    out.bytes = in.bytes();
    return ok();
}

// ---- membership ----

void write(const WorkerReport& in, wire::WorkerReport* out) {
    out->set_name(in.name);
    out->set_build_id(in.build_id);
    out->set_machine_id(in.machine_id);
    out->set_machine_memory_bytes(in.machine_memory_bytes);
    out->set_threads(in.threads);
    for (const DeviceReport& device : in.devices) {
        wire::DeviceReport* wire_device = out->add_devices();
        wire_device->set_name(device.name);
        wire_device->set_memory_bytes(device.memory_bytes);
        wire_device->set_bandwidth_bytes_per_second(device.bandwidth_bytes_per_second);
        wire_device->set_flops_per_second(device.flops_per_second);
        wire_device->set_arithmetic_class(device.arithmetic_class);
    }
    for (const std::string& name : in.architectures) out->add_architectures(name);
    for (const std::string& name : in.formats) out->add_formats(name);
    write(in.epoch_obeyed, out->mutable_epoch_obeyed());
    out->set_listen_address(in.listen_address);
    wire::HeldStage* held = out->mutable_held();
    write(in.held.epoch, held->mutable_epoch());
    write(in.held.layers, held->mutable_layers());
    write(in.held.model, held->mutable_model());
    held->set_is_ready(in.held.is_ready);
    out->set_process(in.process);
}

Error read(const wire::DeviceReport& in, DeviceReport& out) {
    ARTEL_TRY(check_text(in.name(), "devices.name"));
    ARTEL_TRY(check_text(in.arithmetic_class(), "devices.arithmetic_class"));
    out = {in.name(), in.memory_bytes(), in.bandwidth_bytes_per_second(), in.flops_per_second(),
           in.arithmetic_class()};
    return ok();
}

Error read_names(const google::protobuf::RepeatedPtrField<std::string>& in, const char* field,
                 std::vector<std::string>& out) {
    ARTEL_TRY(check_count(static_cast<std::uint64_t>(in.size()), kNamesMax, field));
    for (const std::string& name : in) {
        ARTEL_TRY(check_text(name, field));
        out.push_back(name);
    }
    return ok();
}

Error read(const wire::WorkerReport& in, const SharedBytes& payload, WorkerReport& out) {
    ARTEL_TRY(check_no_payload(payload));
    ARTEL_TRY(check_set(in.name().size(), "name's length"));
    for (const std::string* text :
         {&in.name(), &in.build_id(), &in.machine_id(), &in.listen_address()})
        ARTEL_TRY(check_text(*text, "a text"));
    ARTEL_TRY(check_at_most(in.threads(), kThreadsMax, "threads"));
    ARTEL_TRY(check_count(static_cast<std::uint64_t>(in.devices_size()), kDevicesMax, "devices"));
    for (const wire::DeviceReport& device : in.devices())
        ARTEL_TRY(read(device, out.devices.emplace_back()));
    ARTEL_TRY(read_names(in.architectures(), "architectures", out.architectures));
    ARTEL_TRY(read_names(in.formats(), "formats", out.formats));
    out.name = in.name();
    out.build_id = in.build_id();
    out.machine_id = in.machine_id();
    out.machine_memory_bytes = in.machine_memory_bytes();
    out.threads = in.threads();
    out.epoch_obeyed = read(in.epoch_obeyed());
    out.listen_address = in.listen_address();
    out.held.epoch = read(in.held().epoch());
    out.held.model = read(in.held().model());
    out.held.is_ready = in.held().is_ready();
    out.process = in.process();
    return read(in.held().layers(), out.held.layers);
}

void write(const Heartbeat& in, wire::Heartbeat* out) {
    write(in.epoch, out->mutable_epoch());
    out->set_progress(in.progress);
}
Error read(const wire::Heartbeat& in, const SharedBytes& payload, Heartbeat& out) {
    ARTEL_TRY(check_no_payload(payload));
    out = {read(in.epoch()), in.progress()};
    return ok();
}

void write(const PeerLost& in, wire::PeerLost* out) {
    write(in.epoch, out->mutable_epoch());
    out->set_peer(in.peer.value);
    out->set_reason(clipped(in.reason));
}
Error read(const wire::PeerLost& in, const SharedBytes& payload, PeerLost& out) {
    ARTEL_TRY(check_no_payload(payload));
    ARTEL_TRY(check_set(in.peer(), "peer"));
    ARTEL_TRY(check_text(in.reason(), "reason"));
    out = {read(in.epoch()), NodeId{in.peer()}, in.reason()};
    return ok();
}

// ---- plan ----

void write(const AssignStage& in, wire::AssignStage* out) {
    write(in.epoch, out->mutable_epoch());
    write(in.model, out->mutable_model());
    out->set_model_name(in.model_name);
    out->set_model_bytes(in.model_bytes);
    write(in.layers, out->mutable_layers());
    out->set_layer_count(in.layer_count);
    out->set_has_input(in.has_input);
    out->set_has_output(in.has_output);
    out->set_vocabulary_size(in.vocabulary_size);
    out->set_context(in.context);
    out->set_rows_max(in.rows_max);
    out->set_sequences_max(in.sequences_max);
    out->set_row_bytes(in.row_bytes);
    out->set_state_type(static_cast<std::uint32_t>(in.state_type));
    for (const StateGroup& group : in.groups) {
        wire::StateGroup* wire_group = out->add_groups();
        wire_group->set_kind(static_cast<std::uint32_t>(group.kind));
        wire_group->set_window(group.window);
        wire_group->set_page_count(group.page_count);
    }
    out->set_memory_bytes(in.memory_bytes);
    out->set_previous(in.previous.value);
    out->set_next(in.next.value);
    out->set_next_address(in.next_address);
}

Error read_groups(const wire::AssignStage& in, std::vector<StateGroup>& out) {
    ARTEL_TRY(check_count(static_cast<std::uint64_t>(in.groups_size()), kGroupsMax, "groups"));
    for (const wire::StateGroup& group : in.groups()) {
        StateGroup& read_group = out.emplace_back();
        ARTEL_TRY(read_enum(group.kind(), StateKind::Slot, "groups.kind", read_group.kind));
        ARTEL_TRY(check_at_most(group.window(), kPositionsMax, "groups.window"));
        ARTEL_TRY(check_at_most(group.page_count(), kPagesMax, "groups.page_count"));
        read_group.window = group.window();
        read_group.page_count = group.page_count();
    }
    return ok();
}

Error read(const wire::AssignStage& in, const SharedBytes& payload, AssignStage& out) {
    ARTEL_TRY(check_no_payload(payload));
    ARTEL_TRY(check_text(in.model_name(), "model_name"));
    ARTEL_TRY(check_text(in.next_address(), "next_address"));
    ARTEL_TRY(check_at_most(in.layer_count(), kLayersMax, "layer_count"));
    ARTEL_TRY(check_at_most(in.vocabulary_size(), kVocabularyMax, "vocabulary_size"));
    ARTEL_TRY(check_at_most(in.context(), kPositionsMax, "context"));
    ARTEL_TRY(check_at_most(in.rows_max(), kRowsMax, "rows_max"));
    ARTEL_TRY(check_at_most(in.sequences_max(), kRunsMax, "sequences_max"));
    ARTEL_TRY(check_at_most(in.row_bytes(), kRowBytesMax, "row_bytes"));
    ARTEL_TRY(read_enum(in.state_type(), StateType::F32, "state_type", out.state_type));
    ARTEL_TRY(read(in.layers(), out.layers));
    ARTEL_TRY(read_groups(in, out.groups));
    out.epoch = read(in.epoch());
    out.model = read(in.model());
    out.model_name = in.model_name();
    out.model_bytes = in.model_bytes();
    out.layer_count = in.layer_count();
    out.has_input = in.has_input();
    out.has_output = in.has_output();
    out.vocabulary_size = in.vocabulary_size();
    out.context = in.context();
    out.rows_max = in.rows_max();
    out.sequences_max = in.sequences_max();
    out.row_bytes = in.row_bytes();
    out.memory_bytes = in.memory_bytes();
    out.previous = NodeId{in.previous()};
    out.next = NodeId{in.next()};
    out.next_address = in.next_address();
    return ok();
}

void write(const LoadProgress& in, wire::LoadProgress* out) {
    write(in.epoch, out->mutable_epoch());
    out->set_bytes_done(in.bytes_done);
    out->set_bytes_total(in.bytes_total);
}
Error read(const wire::LoadProgress& in, const SharedBytes& payload, LoadProgress& out) {
    ARTEL_TRY(check_no_payload(payload));
    ARTEL_TRY(check_at_most(in.bytes_done(), in.bytes_total(), "bytes_done"));
    out = {read(in.epoch()), in.bytes_done(), in.bytes_total()};
    return ok();
}

void write(const StageReady& in, wire::StageReady* out) {
    write(in.epoch, out->mutable_epoch());
}
Error read(const wire::StageReady& in, const SharedBytes& payload, StageReady& out) {
    ARTEL_TRY(check_no_payload(payload));
    out = {read(in.epoch())};
    return ok();
}

void write(const StageRefused& in, wire::StageRefused* out) {
    write(in.epoch, out->mutable_epoch());
    out->set_reason(static_cast<std::uint32_t>(in.reason));
    out->set_message(clipped(in.message));
    out->set_bytes_needed(in.bytes_needed);
    out->set_bytes_available(in.bytes_available);
    write(in.epoch_obeyed, out->mutable_epoch_obeyed());
}
Error read(const wire::StageRefused& in, const SharedBytes& payload, StageRefused& out) {
    ARTEL_TRY(check_no_payload(payload));
    ARTEL_TRY(check_text(in.message(), "message"));
    ARTEL_TRY(read_enum(in.reason(), StageRefusal::BadStep, "reason", out.reason));
    out.epoch = read(in.epoch());
    out.message = in.message();
    out.bytes_needed = in.bytes_needed();
    out.bytes_available = in.bytes_available();
    out.epoch_obeyed = read(in.epoch_obeyed());
    return ok();
}

void write(const UnloadStage& in, wire::UnloadStage* out) {
    write(in.epoch, out->mutable_epoch());
}
Error read(const wire::UnloadStage& in, const SharedBytes& payload, UnloadStage& out) {
    ARTEL_TRY(check_no_payload(payload));
    out = {read(in.epoch())};
    return ok();
}

void write(const Drain& in, wire::Drain* out) {
    out->set_reason(clipped(in.reason));
}
Error read(const wire::Drain& in, const SharedBytes& payload, Drain& out) {
    ARTEL_TRY(check_no_payload(payload));
    ARTEL_TRY(check_text(in.reason(), "reason"));
    out = {in.reason()};
    return ok();
}

// ---- weights ----

void write(const WeightsRequest& in, wire::WeightsRequest* out) {
    write(in.epoch, out->mutable_epoch());
    write(in.model, out->mutable_model());
    write(in.range, out->mutable_range());
}
Error read(const wire::WeightsRequest& in, const SharedBytes& payload, WeightsRequest& out) {
    ARTEL_TRY(check_no_payload(payload));
    out.epoch = read(in.epoch());
    out.model = read(in.model());
    return read(in.range(), out.range);
}

void write(const WeightsChunk& in, wire::WeightsChunk* out) {
    write(in.epoch, out->mutable_epoch());
    write(in.model, out->mutable_model());
    write(in.range, out->mutable_range());
    out->set_bytes_total(in.bytes_total);
    write(in.hash, out->mutable_hash());
    out->set_error(clipped(in.error));
}
Error read(const wire::WeightsChunk& in, const SharedBytes& payload, WeightsChunk& out) {
    ARTEL_TRY(check_text(in.error(), "error"));
    ARTEL_TRY(read(in.range(), out.range));
    ARTEL_TRY(check_at_most(payload.size(), out.range.bytes, "payload's bytes"));
    out.epoch = read(in.epoch());
    out.model = read(in.model());
    out.bytes_total = in.bytes_total();
    out.hash = read(in.hash());
    out.error = in.error();
    out.payload = payload;
    return ok();
}

// ---- steps ----

void write(const SamplingSetup& in, wire::SamplingSetup* out) {
    const SamplingParameters& p = in.parameters;
    wire::SamplingParameters* parameters = out->mutable_parameters();
    parameters->set_temperature(p.temperature);
    parameters->set_top_k(p.top_k);
    parameters->set_top_p(p.top_p);
    parameters->set_min_p(p.min_p);
    parameters->set_presence_penalty(p.presence_penalty);
    parameters->set_frequency_penalty(p.frequency_penalty);
    parameters->set_repetition_penalty(p.repetition_penalty);
    parameters->set_seed(p.seed);
    parameters->set_choice(p.choice);
    parameters->set_wants_logprob(p.wants_logprob);
    parameters->set_top_logprobs(p.top_logprobs);
    for (const TokenBias& bias : p.logit_bias) {
        wire::TokenBias* wire_bias = parameters->add_logit_bias();
        wire_bias->set_token(bias.token);
        wire_bias->set_bias(bias.bias);
    }
    for (const TokenCount& count : in.counts) {
        wire::TokenCount* wire_count = out->add_counts();
        wire_count->set_token(count.token);
        wire_count->set_in_prompt(count.in_prompt);
        wire_count->set_generated(count.generated);
    }
}

Error read(const wire::SamplingParameters& in, SamplingParameters& out) {
    ARTEL_TRY(check_finite({in.temperature(), in.top_p(), in.min_p(), in.presence_penalty(),
                            in.frequency_penalty(), in.repetition_penalty()},
                           "a sampling parameter"));
    ARTEL_TRY(check_at_most(in.top_logprobs(), kTopLogprobsMax, "top_logprobs"));
    ARTEL_TRY(
        check_count(static_cast<std::uint64_t>(in.logit_bias_size()), kBiasesMax, "logit_bias"));
    for (const wire::TokenBias& bias : in.logit_bias()) {
        ARTEL_TRY(check_at_most(bias.token(), kVocabularyMax - 1, "logit_bias.token"));
        ARTEL_TRY(check_finite({bias.bias()}, "logit_bias.bias"));
        out.logit_bias.push_back({bias.token(), bias.bias()});
    }
    out.temperature = in.temperature();
    out.top_k = in.top_k();
    out.top_p = in.top_p();
    out.min_p = in.min_p();
    out.presence_penalty = in.presence_penalty();
    out.frequency_penalty = in.frequency_penalty();
    out.repetition_penalty = in.repetition_penalty();
    out.seed = in.seed();
    out.choice = in.choice();
    out.wants_logprob = in.wants_logprob();
    out.top_logprobs = in.top_logprobs();
    return ok();
}

Error read(const wire::SamplingSetup& in, SamplingSetup& out) {
    ARTEL_TRY(read(in.parameters(), out.parameters));
    ARTEL_TRY(check_count(static_cast<std::uint64_t>(in.counts_size()), kCountsMax, "counts"));
    for (const wire::TokenCount& count : in.counts()) {
        ARTEL_TRY(check_at_most(count.token(), kVocabularyMax - 1, "counts.token"));
        out.counts.push_back({count.token(), count.in_prompt(), count.generated()});
    }
    return ok();
}

void write(const PageTableChange& in, wire::PageTableChange* out) {
    out->set_group(in.group.value);
    out->set_sequence(in.sequence.value);
    out->set_first_valid(in.first_valid);
    out->set_first_index(in.first_index);
    for (const PageId page : in.pages) out->add_pages(page.value);
}
Error read(const wire::PageTableChange& in, PageTableChange& out) {
    ARTEL_TRY(check_at_most(in.group(), kGroupsMax - 1, "page_changes.group"));
    ARTEL_TRY(check_set(in.sequence(), "page_changes.sequence"));
    ARTEL_TRY(check_at_most(in.first_valid(), kPositionsMax, "page_changes.first_valid"));
    ARTEL_TRY(check_at_most(in.first_index(), kPositionsMax, "page_changes.first_index"));
    ARTEL_TRY(check_count(static_cast<std::uint64_t>(in.pages_size()), kPagesPerChangeMax,
                          "page_changes.pages"));
    out.group = GroupIndex{in.group()};
    out.sequence = SequenceId{in.sequence()};
    out.first_valid = in.first_valid();
    out.first_index = in.first_index();
    for (const std::uint32_t page : in.pages()) {
        ARTEL_TRY(check_at_most(page, kPagesMax - 1, "page_changes.pages"));
        out.pages.push_back(PageId{page});
    }
    return ok();
}

void write(const StepRun& in, wire::StepRun* out) {
    out->set_sequence(in.sequence.value);
    out->set_first_position(in.first_position);
    for (const TokenId token : in.tokens) out->add_tokens(token);
    out->set_wants_logits(in.wants_logits);
    out->set_samples(in.samples);
    if (in.sampling) write(*in.sampling, out->mutable_sampling());
}
Error read(const wire::StepRun& in, StepRun& out) {
    ARTEL_TRY(check_set(in.sequence(), "runs.sequence"));
    ARTEL_TRY(check_at_most(in.first_position(), kPositionsMax, "runs.first_position"));
    ARTEL_TRY(check_set(static_cast<std::uint64_t>(in.tokens_size()), "runs.tokens' count"));
    ARTEL_TRY(check_count(static_cast<std::uint64_t>(in.tokens_size()), kRowsMax, "runs.tokens"));
    if (in.has_sampling() && !in.samples())
        return invalid_argument("runs.sampling is there, but the run does not sample");
    out.sequence = SequenceId{in.sequence()};
    out.first_position = in.first_position();
    for (const std::uint32_t token : in.tokens()) {
        ARTEL_TRY(check_at_most(token, kVocabularyMax - 1, "runs.tokens"));
        out.tokens.push_back(token);
    }
    out.wants_logits = in.wants_logits();
    out.samples = in.samples();
    return in.has_sampling() ? read(in.sampling(), out.sampling.emplace()) : ok();
}

void write(const Step& in, wire::Step* out) {
    write(in.epoch, out->mutable_epoch());
    out->set_number(in.number.value);
    out->set_returned_through(in.returned_through.value);
    for (const PageTableChange& change : in.page_changes) write(change, out->add_page_changes());
    for (const SequenceId sequence : in.drops) out->add_drops(sequence.value);
    for (const StepRun& run : in.runs) write(run, out->add_runs());
}
Error read(const wire::Step& in, const SharedBytes& payload, Step& out) {
    ARTEL_TRY(check_set(in.number(), "number"));
    ARTEL_TRY(check_count(static_cast<std::uint64_t>(in.page_changes_size()), kPageChangesMax,
                          "page_changes"));
    ARTEL_TRY(check_count(static_cast<std::uint64_t>(in.drops_size()), kDropsMax, "drops"));
    ARTEL_TRY(check_set(static_cast<std::uint64_t>(in.runs_size()), "runs' count"));
    ARTEL_TRY(check_count(static_cast<std::uint64_t>(in.runs_size()), kRunsMax, "runs"));
    for (const wire::PageTableChange& change : in.page_changes())
        ARTEL_TRY(read(change, out.page_changes.emplace_back()));
    for (const std::uint64_t sequence : in.drops()) {
        ARTEL_TRY(check_set(sequence, "drops"));
        out.drops.push_back(SequenceId{sequence});
    }
    for (const wire::StepRun& run : in.runs()) ARTEL_TRY(read(run, out.runs.emplace_back()));
    out.epoch = read(in.epoch());
    out.number = StepNumber{in.number()};
    out.returned_through = StepNumber{in.returned_through()};
    out.activations = payload;
    return check_count(row_count(out), kRowsMax, "rows");
}

void write(const StepLogits& in, wire::StepLogits* out) {
    write(in.epoch, out->mutable_epoch());
    out->set_number(in.number.value);
    out->set_first_row(in.first_row);
    out->set_row_count(in.row_count);
}
Error read(const wire::StepLogits& in, const SharedBytes& payload, StepLogits& out) {
    ARTEL_TRY(check_set(in.number(), "number"));
    ARTEL_TRY(check_set(in.row_count(), "row_count"));
    ARTEL_TRY(check_at_most(in.row_count(), kRowsMax, "row_count"));
    ARTEL_TRY(check_at_most(in.first_row(), kRowsMax, "first_row"));
    out.epoch = read(in.epoch());
    out.number = StepNumber{in.number()};
    out.first_row = in.first_row();
    out.row_count = in.row_count();
    out.payload = payload;
    return ok();
}

void write(const StepResult& in, wire::StepResult* out) {
    write(in.epoch, out->mutable_epoch());
    out->set_number(in.number.value);
    for (const SampledToken& token : in.tokens) {
        wire::SampledToken* wire_token = out->add_tokens();
        wire_token->set_sequence(token.sequence.value);
        wire_token->set_position(token.position);
        wire_token->set_token(token.token);
        wire_token->set_logprob(token.logprob);
        for (const TokenLogprob& top : token.top_logprobs) {
            wire::TokenLogprob* wire_top = wire_token->add_top_logprobs();
            wire_top->set_token(top.token);
            wire_top->set_logprob(top.logprob);
        }
    }
}
Error read(const wire::SampledToken& in, SampledToken& out) {
    ARTEL_TRY(check_set(in.sequence(), "tokens.sequence"));
    ARTEL_TRY(check_at_most(in.position(), kPositionsMax, "tokens.position"));
    ARTEL_TRY(check_at_most(in.token(), kVocabularyMax - 1, "tokens.token"));
    ARTEL_TRY(check_finite({in.logprob()}, "tokens.logprob"));
    ARTEL_TRY(check_count(static_cast<std::uint64_t>(in.top_logprobs_size()), kTopLogprobsMax,
                          "tokens.top_logprobs"));
    out.sequence = SequenceId{in.sequence()};
    out.position = in.position();
    out.token = in.token();
    out.logprob = in.logprob();
    for (const wire::TokenLogprob& top : in.top_logprobs()) {
        ARTEL_TRY(check_at_most(top.token(), kVocabularyMax - 1, "top_logprobs.token"));
        ARTEL_TRY(check_finite({top.logprob()}, "top_logprobs.logprob"));
        out.top_logprobs.push_back({top.token(), top.logprob()});
    }
    return ok();
}
Error read(const wire::StepResult& in, const SharedBytes& payload, StepResult& out) {
    ARTEL_TRY(check_no_payload(payload));
    ARTEL_TRY(check_set(in.number(), "number"));
    ARTEL_TRY(check_count(static_cast<std::uint64_t>(in.tokens_size()), kRunsMax, "tokens"));
    for (const wire::SampledToken& token : in.tokens())
        ARTEL_TRY(read(token, out.tokens.emplace_back()));
    out.epoch = read(in.epoch());
    out.number = StepNumber{in.number()};
    return ok();
}

void write(const StepFailed& in, wire::StepFailed* out) {
    write(in.epoch, out->mutable_epoch());
    out->set_number(in.number.value);
    out->set_reason(static_cast<std::uint32_t>(in.reason));
    out->set_message(clipped(in.message));
}
Error read(const wire::StepFailed& in, const SharedBytes& payload, StepFailed& out) {
    ARTEL_TRY(check_no_payload(payload));
    ARTEL_TRY(check_set(in.number(), "number"));
    ARTEL_TRY(check_text(in.message(), "message"));
    ARTEL_TRY(read_enum(in.reason(), StageRefusal::BadStep, "reason", out.reason));
    out.epoch = read(in.epoch());
    out.number = StepNumber{in.number()};
    out.message = in.message();
    return ok();
}

// ---- the variant ----

// Which protobuf message carries which struct.
template <class Plain>
struct WireOf;
#define ARTEL_WIRE(Name)         \
    template <>                  \
    struct WireOf<Name> {        \
        using Type = wire::Name; \
    };
ARTEL_WIRE(WorkerReport)
ARTEL_WIRE(Heartbeat)
ARTEL_WIRE(PeerLost)
ARTEL_WIRE(AssignStage)
ARTEL_WIRE(LoadProgress)
ARTEL_WIRE(StageReady)
ARTEL_WIRE(StageRefused)
ARTEL_WIRE(UnloadStage)
ARTEL_WIRE(Drain)
ARTEL_WIRE(WeightsRequest)
ARTEL_WIRE(WeightsChunk)
ARTEL_WIRE(Step)
ARTEL_WIRE(StepLogits)
ARTEL_WIRE(StepResult)
ARTEL_WIRE(StepFailed)
#undef ARTEL_WIRE

SharedBytes payload_of(const Message& message) {
    if (const auto* step = std::get_if<Step>(&message)) return step->activations;
    if (const auto* logits = std::get_if<StepLogits>(&message)) return logits->payload;
    if (const auto* chunk = std::get_if<WeightsChunk>(&message)) return chunk->payload;
    return {};
}

/// Messages about steps may use two lanes, all others have one.
Error check_lane(const Message& message, Lane lane) {
    const bool is_step_lane = lane == Lane::Decode || lane == Lane::Prefill;
    const Lane expected = lane_of(message);
    if (lane == expected && (expected == Lane::Control || expected == Lane::Weights)) return ok();
    if (is_step_lane && expected != Lane::Control && expected != Lane::Weights) return ok();
    return invalid_argument("came on lane {}", static_cast<int>(lane));
}

template <class Plain>
Result<Message> decode_as(Lane lane, std::span<const std::byte> body, const SharedBytes& payload) {
    typename WireOf<Plain>::Type wire_message;
    if (!wire_message.ParseFromArray(body.data(), static_cast<int>(body.size())))
        return data_loss("{} bytes are not such a message", body.size());
    Plain plain;
    ARTEL_TRY(read(wire_message, payload, plain));
    if constexpr (requires { plain.lane; }) plain.lane = lane;
    Message message(std::move(plain));
    ARTEL_TRY(check_lane(message, lane));
    return message;
}

template <std::size_t... Index>
Result<Message> decode_type(std::size_t type, Lane lane, std::span<const std::byte> body,
                            const SharedBytes& payload, std::index_sequence<Index...>) {
    Result<Message> message = internal_error("no such type");
    static_cast<void>(
        ((Index == type &&
          (message = decode_as<std::variant_alternative_t<Index, Message>>(lane, body, payload),
           true)) ||
         ...));
    return message;
}

}  // namespace

Result<EncodedMessage> encode(const Message& message) {
    EncodedMessage encoded;
    encoded.type = static_cast<std::uint8_t>(message.index());
    encoded.lane = lane_of(message);
    encoded.epoch = epoch_of(message);
    encoded.payload = payload_of(message);
    const bool is_written = std::visit(
        [&](const auto& plain) {
            typename WireOf<std::decay_t<decltype(plain)>>::Type wire_message;
            write(plain, &wire_message);
            const std::size_t bytes = wire_message.ByteSizeLong();
            if (bytes > kMessageBodyBytesMax) return false;
            encoded.body.resize(bytes);
            return wire_message.SerializeToArray(encoded.body.data(), static_cast<int>(bytes));
        },
        message);
    if (!is_written)
        return resource_exhausted("a {} of more than {} bytes", name_of(message),
                                  kMessageBodyBytesMax);
    if (encoded.payload.size() > kMessagePayloadBytesMax)
        return resource_exhausted("a {} with {} bytes of payload, at most {}", name_of(message),
                                  encoded.payload.size(), kMessagePayloadBytesMax);
    return encoded;
}

Result<Message> decode(std::uint8_t type, Lane lane, std::span<const std::byte> body,
                       SharedBytes payload) {
    constexpr std::size_t kTypes = std::variant_size_v<Message>;
    if (type >= kTypes)
        return invalid_argument("message type {}, this build knows 0 to {}", type, kTypes - 1);
    if (body.size() > kMessageBodyBytesMax || payload.size() > kMessagePayloadBytesMax)
        return invalid_argument("a message of {} and {} bytes, at most {} and {}", body.size(),
                                payload.size(), kMessageBodyBytesMax, kMessagePayloadBytesMax);
    auto message = decode_type(type, lane, body, payload, std::make_index_sequence<kTypes>{});
    if (!message.ok()) return with_context(message.status(), name_of_type(type));
    return message;
}

}  // namespace artel::protocol
