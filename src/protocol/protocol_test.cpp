// SPDX-License-Identifier: Apache-2.0
// Codec, frames and version: every message comes back as it was, and no bytes from outside do more
// than make an Error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "base/random.hpp"
#include "protocol/codec.hpp"
#include "protocol/frame.hpp"
#include "protocol/hash.hpp"
#include "protocol/limits.hpp"
#include "protocol/random_message.hpp"
#include "protocol/version.hpp"

namespace artel::protocol {
namespace {

using ::testing::HasSubstr;
using namespace random_message;

SharedBytes payload_of(const Message& message) {
    const auto encoded = encode(message);
    return encoded.ok() ? encoded->payload : SharedBytes{};
}

/// Two messages are the same if they have the same bytes: protobuf writes fields in a fixed order.
void expect_same(const Message& a, const Message& b) {
    const auto one = encode(a);
    const auto other = encode(b);
    ASSERT_TRUE(one.ok() && other.ok());
    EXPECT_EQ(a.index(), b.index());
    EXPECT_EQ(one->body, other->body);
    EXPECT_EQ(one->lane, other->lane);
    EXPECT_EQ(one->epoch, other->epoch);
    EXPECT_TRUE(std::ranges::equal(one->payload.span(), other->payload.span()));
}

// ---- codec ----

TEST(Codec, EveryMessageComesBackAsItWas) {
    Random random(20240501);
    for (int round = 0; round < 200; ++round)
        for (std::size_t type = 0; type < std::variant_size_v<Message>; ++type) {
            const Message message = make(type, random);
            const auto encoded = encode(message);
            ASSERT_TRUE(encoded.ok()) << encoded.status();
            const auto decoded = decode(*encoded);
            ASSERT_TRUE(decoded.ok()) << decoded.status();
            expect_same(message, *decoded);
        }
}

// The comparison above goes through the encoder; this one looks at fields.
TEST(Codec, KeepsEveryFieldOfAStep) {
    Step step;
    step.epoch = {7, 9};
    step.number = StepNumber{12};
    step.returned_through = StepNumber{10};
    step.lane = Lane::Prefill;
    step.page_changes = {{GroupIndex{1}, SequenceId{5}, 2, 3, {PageId{8}, PageId{9}}}};
    step.drops = {SequenceId{4}};
    StepRun run{SequenceId{5}, 192, {11, 12}, true, true, SamplingSetup{}};
    run.sampling->parameters.temperature = 0.5F;
    run.sampling->parameters.logit_bias = {{3, -1.5F}};
    run.sampling->counts = {{6, 2, 1}};
    step.runs = {run};
    step.activations = SharedBytes::copy_of(as_bytes("abcd"));
    const auto decoded = decode(*encode(step));
    ASSERT_TRUE(decoded.ok());
    const Step& back = std::get<Step>(*decoded);
    EXPECT_EQ(back.epoch, (Epoch{7, 9}));
    EXPECT_EQ(back.number.value, 12U);
    EXPECT_EQ(back.returned_through.value, 10U);
    EXPECT_EQ(back.lane, Lane::Prefill);
    ASSERT_EQ(back.page_changes.size(), 1U);
    EXPECT_EQ(back.page_changes[0].group.value, 1U);
    EXPECT_EQ(back.page_changes[0].first_valid, 2U);
    EXPECT_EQ(back.page_changes[0].first_index, 3U);
    EXPECT_EQ(back.page_changes[0].pages, (std::vector{PageId{8}, PageId{9}}));
    EXPECT_EQ(back.drops, std::vector{SequenceId{4}});
    ASSERT_EQ(back.runs.size(), 1U);
    EXPECT_EQ(back.runs[0].first_position, 192U);
    EXPECT_EQ(back.runs[0].tokens, (std::vector<TokenId>{11, 12}));
    EXPECT_TRUE(back.runs[0].wants_logits);
    ASSERT_TRUE(back.runs[0].sampling.has_value());
    EXPECT_EQ(back.runs[0].sampling->parameters.temperature, 0.5F);
    EXPECT_EQ(back.runs[0].sampling->parameters.repetition_penalty, 1.0F);
    EXPECT_EQ(back.runs[0].sampling->parameters.logit_bias[0].bias, -1.5F);
    EXPECT_EQ(back.runs[0].sampling->counts[0].in_prompt, 2U);
    EXPECT_EQ(as_text(back.activations.span()), "abcd");
}

TEST(Codec, RefusesWhatIsOutOfRange) {
    Random random(3);
    const auto refused = [](const Message& message, const char* why) {
        const auto encoded = encode(message);
        ASSERT_TRUE(encoded.ok());
        const auto decoded = decode(*encoded);
        ASSERT_FALSE(decoded.ok()) << why;
        EXPECT_THAT(std::string(decoded.status().message()), HasSubstr(why));
    };
    Step step = std::get<Step>(make(11, random));
    step.runs = {StepRun{SequenceId{0}, 0, {1}, false, false, {}}};
    refused(step, "runs.sequence is 0");
    step.runs = {StepRun{SequenceId{1}, 0, {}, false, false, {}}};
    refused(step, "runs.tokens' count is 0");
    step.runs = {StepRun{SequenceId{1}, 0, {kVocabularyMax}, false, false, {}}};
    refused(step, "runs.tokens is 16777216");
    step.runs = {StepRun{SequenceId{1}, kPositionsMax + 1, {1}, false, false, {}}};
    refused(step, "runs.first_position");
    step.runs = {
        StepRun{SequenceId{1}, 0, std::vector<TokenId>(kRowsMax + 1, 1), false, false, {}}};
    refused(step, "runs.tokens: 4097 entries, at most 4096");
    step.runs = {};
    refused(step, "runs' count is 0");
    StepRun nan{SequenceId{1}, 0, {1}, false, true, SamplingSetup{}};
    nan.sampling->parameters.temperature = std::nanf("");
    step.runs = {nan};
    refused(step, "not finite");
    AssignStage assign = std::get<AssignStage>(make(3, random));
    assign.groups = {{static_cast<StateKind>(3), 0, 1}};
    refused(assign, "groups.kind is 3, at most 2");
    refused(StageRefused{{}, static_cast<StageRefusal>(200), "", 0, 0, {}}, "reason is 200");
    refused(WeightsRequest{{}, {}, {ModelPart::Tensor, 0, ~0ULL, 2}}, "range.offset");
    refused(WeightsRequest{{}, {}, {ModelPart::Tensor, 0, 0, kChunkBytesMax + 1}}, "range.bytes");
    refused(PeerLost{{}, NodeId{0}, ""}, "peer is 0");
}

TEST(Codec, RefusesUnknownTypesWrongLanesAndStrayPayloads) {
    const auto heartbeat = encode(Heartbeat{});
    EXPECT_FALSE(decode(15, Lane::Control, heartbeat->body, {}).ok());
    EXPECT_FALSE(decode(255, Lane::Control, {}, {}).ok());
    EXPECT_FALSE(decode(heartbeat->type, Lane::Decode, heartbeat->body, {}).ok());
    Random random(1);
    EXPECT_FALSE(decode(heartbeat->type, Lane::Control, heartbeat->body, bytes(random, 1)).ok());
    EXPECT_TRUE(decode(heartbeat->type, Lane::Control, heartbeat->body, {}).ok());
}

TEST(Codec, CutsWordsForPeopleAndRefusesGiants) {
    const auto decoded = decode(*encode(Drain{std::string(100000, 'x')}));
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(std::get<Drain>(*decoded).reason.size(), kTextBytesMax);
    WorkerReport report;
    report.name = std::string(2U << 20U, 'x');
    EXPECT_EQ(encode(report).status().code(), ErrorCode::kResourceExhausted);
}

TEST(Codec, SurvivesDamagedBodies) {
    Random random(99);
    int refused = 0;
    for (int round = 0; round < 3000; ++round) {
        auto encoded = *encode(make(random.below(std::variant_size_v<Message>), random));
        for (std::uint64_t i = 1 + random.below(4); i > 0 && !encoded.body.empty(); --i)
            encoded.body[random.below(encoded.body.size())] =
                static_cast<std::byte>(random.below(256));
        if (coin(random)) encoded.body.resize(random.below(encoded.body.size() + 1));
        if (!decode(encoded).ok()) ++refused;
    }
    EXPECT_GT(refused, 500);
}

// ---- frames ----

std::vector<std::byte> wire_bytes(const std::vector<EncodedMessage>& messages) {
    std::vector<std::byte> all;
    for (const EncodedMessage& message : messages)
        for (const Frame& frame : make_frames(message, kVersion)) {
            EXPECT_LE(frame.size(), kFrameBytesMax);
            const SharedBytes whole = frame.to_bytes();
            EXPECT_EQ(*frame_bytes(whole.span()), whole.size());
            all.insert(all.end(), whole.span().begin(), whole.span().end());
        }
    return all;
}

TEST(Frame, CarriesMessagesInAnyPieces) {
    Random random(5);
    std::vector<EncodedMessage> messages;
    for (const std::size_t payload : {0UL, 1UL, 70000UL, 1048575UL, 1048576UL, 3500000UL, 0UL}) {
        Step step = std::get<Step>(make(11, random));
        step.lane = Lane::Prefill;
        step.activations = bytes(random, payload);
        messages.push_back(*encode(step));
    }
    const std::vector<std::byte> all = wire_bytes(messages);
    for (const std::size_t piece : {1000000007UL, 1UL << 20U, 65537UL, 113UL}) {
        FrameReader reader(Lane::Prefill);
        std::vector<EncodedMessage> out;
        for (std::size_t at = 0; at < all.size(); at += piece)
            ASSERT_TRUE(
                reader.read(std::span(all).subspan(at, std::min(piece, all.size() - at)), out)
                    .ok());
        ASSERT_EQ(out.size(), messages.size());
        EXPECT_EQ(reader.pending_bytes(), 0U);
        for (std::size_t i = 0; i < out.size(); ++i) {
            EXPECT_EQ(out[i].body, messages[i].body);
            EXPECT_EQ(out[i].epoch, messages[i].epoch);
            EXPECT_TRUE(std::ranges::equal(out[i].payload.span(), messages[i].payload.span()));
        }
    }
}

TEST(Frame, CatchesEveryFlippedBit) {
    Random random(6);
    Step step = std::get<Step>(make(11, random));
    step.lane = Lane::Decode;
    const std::vector<std::byte> whole = wire_bytes({*encode(step)});
    for (std::size_t at = 0; at < whole.size(); ++at) {
        // The reserved word, spare flag bits, the version and the epoch are not read by frames.
        if ((at >= 20 && at < 40) || at == 4 || at == 5 || at == 9 || at == 10 || at == 11)
            continue;
        std::vector<std::byte> damaged = whole;
        damaged[at] ^= static_cast<std::byte>(1U << random.below(8));
        FrameReader reader(Lane::Decode);
        std::vector<EncodedMessage> out;
        const Error error = reader.read(damaged, out);
        EXPECT_TRUE(!error.ok() || out.empty()) << "byte " << at;  // an error, or bytes missing
    }
}

TEST(Frame, RefusesForeignersAndLies) {
    const auto refused = [](std::string_view text, const char* why) {
        FrameReader reader;
        std::vector<EncodedMessage> out;
        std::string padded(text);
        padded.resize(100, 'x');
        const Error error = reader.read(as_bytes(padded), out);
        ASSERT_FALSE(error.ok());
        EXPECT_THAT(std::string(error.message()), HasSubstr(why));
    };
    refused("GET / HTTP/1.1\r\n", "HTTP request");
    refused("\x16\x03\x01", "TLS hello");
    refused(std::string_view("\0\0\0\0", 4), "starts with");
    FrameHeader header;
    header.payload_total = ~0ULL;
    header.payload_len = 1;
    EXPECT_FALSE(read_frame_header(write_frame_header(header)).ok());
    header = {};
    header.body_len = ~0U;
    EXPECT_FALSE(read_frame_header(write_frame_header(header)).ok());
    header = {};
    header.has_more = true;  // but nothing is missing
    EXPECT_FALSE(read_frame_header(write_frame_header(header)).ok());
    header = {};
    header.header_len = 8;
    EXPECT_FALSE(read_frame_header(write_frame_header(header)).ok());
}

TEST(Frame, RefusesAnotherLaneAndBrokenContinuations) {
    Random random(7);
    Step step = std::get<Step>(make(11, random));
    step.lane = Lane::Prefill;
    step.activations = bytes(random, 2500000);
    const auto frames = make_frames(*encode(step), kVersion);
    ASSERT_EQ(frames.size(), 3U);
    std::vector<EncodedMessage> out;
    FrameReader other_lane(Lane::Decode);
    EXPECT_FALSE(other_lane.read(frames[0].to_bytes().span(), out).ok());
    FrameReader skips;
    EXPECT_TRUE(skips.read(frames[0].to_bytes().span(), out).ok());
    EXPECT_FALSE(skips.read(frames[2].to_bytes().span(), out).ok());
    FrameReader starts_late;
    EXPECT_FALSE(starts_late.read(frames[1].to_bytes().span(), out).ok());
    EXPECT_TRUE(out.empty());
}

TEST(Frame, ALongerHeaderOfALaterVersionIsSkipped) {
    const auto encoded = *encode(Heartbeat{{1, 2}, 3});
    FrameHeader header;
    header.version = 2;
    header.header_len = kFrameHeaderBytes + 8;
    header.type = encoded.type;
    header.epoch = encoded.epoch;
    header.body_len = static_cast<std::uint32_t>(encoded.body.size());
    header.checksum = frame_checksum(encoded.body, {});
    const auto head = write_frame_header(header);
    std::vector<std::byte> all(head.begin(), head.end());
    all.resize(all.size() + 8);
    all.insert(all.end(), encoded.body.begin(), encoded.body.end());
    FrameReader reader;
    std::vector<EncodedMessage> out;
    ASSERT_TRUE(reader.read(all, out).ok());
    ASSERT_EQ(out.size(), 1U);
    EXPECT_EQ(out[0].body, encoded.body);
}

// ---- version and ids ----

TEST(Version, TheSchemaHashIsThatOfArtelProto) {
    std::ifstream file(ARTEL_SOURCE_DIR "/src/protocol/artel.proto");
    std::stringstream content;
    content << file.rdbuf();
    ASSERT_FALSE(content.str().empty());
    // A released version's hash is frozen: a new schema is a new row and a new kVersion.
    const std::map<std::uint32_t, std::uint64_t> released = {{1, 0xE2BD6C3258F386FEULL}};
    EXPECT_EQ(schema_hash(content.str()), kSchemaHash)
        << "artel.proto has changed: raise kVersion (once released) and set kSchemaHash";
    EXPECT_EQ(released.at(kVersion), kSchemaHash);
    EXPECT_LE(kVersionMin, kVersion);
}

TEST(Version, TheSchemaHashIgnoresCommentsAndSpacesOnly) {
    EXPECT_EQ(schema_hash("message A { }  // words\n"), schema_hash("message A{}"));
    EXPECT_NE(schema_hash("message A { }"), schema_hash("message B { }"));
}

TEST(Ids, NodeIdsComeFromNames) {
    EXPECT_EQ(node_id("worker-1"), node_id("worker-1"));
    EXPECT_NE(node_id("worker-1"), node_id("worker-2"));
    EXPECT_NE(node_id(""), NodeId{});
}

TEST(Hash, IsTheReferenceXxh3) {
    // XXH3-128 of no bytes, from the xxHash specification.
    EXPECT_EQ(to_hex(hash_bytes({})), "99aa06d3014798d86001c324468d497f");
    EXPECT_EQ(frame_checksum({}, {}), frame_checksum({}, {}));
    EXPECT_NE(frame_checksum(as_bytes("ab"), as_bytes("c")),
              frame_checksum(as_bytes("a"), as_bytes("bc")));
    EXPECT_TRUE(payload_of(Heartbeat{}).empty());
}

}  // namespace
}  // namespace artel::protocol
