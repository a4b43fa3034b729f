// SPDX-License-Identifier: Apache-2.0
// Any text through both kinds of tokenizer, back through the detokenizer and the stop strings, and
// any vocabulary file through Tokenizer::create. The first byte chooses; the rest is the input.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/check.hpp"
#include "gguf/gguf_index.hpp"
#include "text/detokenizer.hpp"
#include "text/stop_strings.hpp"
#include "text/test_vocabularies.hpp"
#include "text/tokenizer.hpp"
#include "text/utf8.hpp"

namespace {

using namespace artel;
using namespace artel::text;

const Tokenizer& bpe() {
    static const auto tokenizer = *Tokenizer::create(bpe_vocabulary());
    return *tokenizer;
}
const Tokenizer& spm() {
    static const auto tokenizer = *Tokenizer::create(spm_vocabulary());
    return *tokenizer;
}

void check_streams(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
    StreamDetokenizer detokenizer(tokenizer);
    StopStrings stops = *StopStrings::create({"the", "th", "e\xEF\xBF\xBD", "aaaa"});
    std::string text;
    std::string shown;
    for (const TokenId id : ids) {
        const std::string part = detokenizer.add(id);
        ARTEL_CHECK(is_valid_utf8(part), "a stream is valid at every step");
        text += part;
        shown += stops.add(part);
        ARTEL_CHECK(std::string_view(text).starts_with(shown), "each byte is shown once");
    }
    text += detokenizer.finish();
    ARTEL_CHECK(text == detokenize(tokenizer, ids, {}), "streaming changes nothing");
}

void check_text(const Tokenizer& tokenizer, std::string_view text, ParseSpecial special) {
    const auto ids = tokenizer.tokenize(text, {.special = special});
    std::string bytes;
    for (const TokenId id : ids) {
        ARTEL_CHECK(id < tokenizer.vocabulary_size(), "ids are in the vocabulary");
        ARTEL_CHECK(special == ParseSpecial::Yes || !tokenizer.is_control(id),
                    "plain text gives no control token");
        bytes +=
            tokenizer.is_control(id) ? tokenizer.token_spelling(id) : tokenizer.token_bytes(id);
    }
    if (!tokenizer.adds_space_prefix())
        ARTEL_CHECK(bytes == text, "tokens hold every byte of the text");
    check_streams(tokenizer, ids);
}

void check_file(std::span<const std::byte> file) {
    const auto index = gguf::GgufIndex::parse(std::span(&file, 1), [](std::uint32_t) {
        return Result<BlockSize>(BlockSize{.elements = 32, .bytes = 18});
    });
    if (!index.ok()) return;
    const auto tokenizer = Tokenizer::create(index->metadata());
    if (!tokenizer.ok()) return;
    for (const TokenId id : (*tokenizer)->tokenize("the <|im_end|> \xC3\xA9\xFF", {}))
        ARTEL_CHECK(id < (*tokenizer)->vocabulary_size(), "ids are in the vocabulary");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    switch (data[0] % 5) {
        case 0:
            check_text(bpe(), rest, ParseSpecial::No);
            break;
        case 1:
            check_text(bpe(), rest, ParseSpecial::Yes);
            break;
        case 2:
            check_text(spm(), rest, ParseSpecial::No);
            break;
        case 3:
            check_text(spm(), rest, ParseSpecial::Yes);
            break;
        default:
            check_file(std::as_bytes(std::span(data + 1, size - 1)));
    }
    return 0;
}
