// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.hpp"

#include <algorithm>
#include <array>

#include "text/bpe_tokenizer.hpp"
#include "text/special_matcher.hpp"
#include "text/spm_tokenizer.hpp"

namespace artel::text {
namespace {

/// Control tokens with these spellings end a turn or a text in some family of models.
constexpr std::array<std::string_view, 23> kEndSpellings = {
    "</s>",
    "<eos>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|end|>",
    "<|eot|>",
    "<|EOT|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<|end_of_turn|>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
    "[EOS]",
    "<|endofturn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<end_of_utterance>",
    "<|role_end|>",
    "[e~[",
    "<EOT>",
    "_<EOT>",
};

std::set<TokenId> find_end_of_generation(const Vocabulary& vocabulary) {
    std::set<TokenId> ids;
    for (const auto& id : {vocabulary.eos, vocabulary.eot, vocabulary.eom})
        if (id) ids.insert(*id);
    for (TokenId id = 0; id < vocabulary.texts.size(); ++id)
        if (vocabulary.type(id) == TokenType::Control &&
            std::ranges::find(kEndSpellings, vocabulary.texts[id]) != kEndSpellings.end())
            ids.insert(id);
    return ids;
}

/// Where control tokens count: for a position, the end of the run of special-parsing text that
/// holds it (0: none does). Asked with ascending positions.
class ControlRuns {
  public:
    explicit ControlRuns(std::span<const PromptSegment> segments) {
        std::size_t begin = 0;
        for (const PromptSegment& segment : segments) {
            const std::size_t end = begin + segment.text.size();
            if (segment.special == ParseSpecial::Yes && end > begin) {
                if (!runs_.empty() && runs_.back().end == begin)
                    runs_.back().end = end;
                else
                    runs_.push_back({begin, end});
            }
            begin = end;
        }
    }

    std::size_t end_of_run(std::size_t position) {
        while (next_ < runs_.size() && runs_[next_].end <= position) ++next_;
        return next_ < runs_.size() && runs_[next_].begin <= position ? runs_[next_].end : 0;
    }

  private:
    struct Run {
        std::size_t begin;
        std::size_t end;
    };
    std::vector<Run> runs_;
    std::size_t next_ = 0;
};

}  // namespace

Tokenizer::Tokenizer(Vocabulary vocabulary, Defaults defaults)
    : vocabulary_(std::move(vocabulary)),
      adds_bos_(vocabulary_.adds_bos.value_or(defaults.adds_bos)),
      adds_space_prefix_(defaults.adds_space_prefix &&
                         vocabulary_.adds_space_prefix.value_or(true)),
      end_of_generation_(find_end_of_generation(vocabulary_)),
      special_matcher_(std::make_unique<SpecialMatcher>(vocabulary_)) {}

Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(Vocabulary vocabulary) {
    ARTEL_TRY(vocabulary.validate());
    if (vocabulary.model == "gpt2") return BpeTokenizer::create(std::move(vocabulary));
    if (vocabulary.model == "llama") return SpmTokenizer::create(std::move(vocabulary));
    return unimplemented(
        "tokenizer.ggml.model: '{}' is not supported; supported are gpt2 (byte-level BPE) and "
        "llama (SentencePiece)",
        vocabulary.model.substr(0, 64));
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(const gguf::Metadata& metadata) {
    ARTEL_ASSIGN(Vocabulary vocabulary, Vocabulary::from_metadata(metadata));
    return create(std::move(vocabulary));
}

std::vector<TokenId> Tokenizer::tokenize(std::string_view bytes, TokenizeOptions options) const {
    const PromptSegment whole{std::string(bytes), options.special};
    return tokenize(std::span(&whole, 1), options.bos);
}

std::vector<TokenId> Tokenizer::tokenize(std::span<const PromptSegment> segments,
                                         AddBos add_bos) const {
    std::string joined;
    if (segments.size() != 1)
        for (const PromptSegment& segment : segments) joined += segment.text;
    const std::string_view text = segments.size() == 1 ? segments[0].text : joined;

    std::vector<TokenId> ids;
    ControlRuns runs(segments);
    std::size_t plain = 0;  // where the text before the next special token begins
    for (std::size_t position = 0; position < text.size();) {
        const auto match = special_matcher_->match(text, position, runs.end_of_run(position));
        if (!match) {
            ++position;
            continue;
        }
        append_plain(text.substr(plain, position - plain), ids);
        ids.push_back(match->id);
        plain = position += match->count;
    }
    append_plain(text.substr(plain), ids);

    const bool wants_bos = add_bos == AddBos::IfModelSays && adds_bos();
    if (wants_bos && (ids.empty() || ids.front() != *bos())) ids.insert(ids.begin(), *bos());
    return ids;
}

void Tokenizer::set_token_bytes(std::vector<std::string> bytes) {
    token_bytes_ = std::move(bytes);
    longest_token_ = 4;  // the unknown token stands for one character
    for (const auto* texts : {&vocabulary_.texts, &token_bytes_})
        for (const std::string& text : *texts)
            longest_token_ = std::max<std::uint64_t>(longest_token_, text.size());
}

std::string_view Tokenizer::token_bytes(TokenId id) const {
    if (id >= token_bytes_.size() || is_control(id)) return {};
    return token_bytes_[id];
}

std::string_view Tokenizer::token_spelling(TokenId id) const {
    if (id >= vocabulary_.texts.size()) return {};
    return vocabulary_.texts[id];
}

bool Tokenizer::is_control(TokenId id) const {
    if (id >= vocabulary_.texts.size()) return false;
    const TokenType type = vocabulary_.type(id);
    return type == TokenType::Control || type == TokenType::Unknown;
}

std::vector<std::string> Tokenizer::control_spellings() const {
    std::vector<std::string> spellings;
    for (TokenId id = 0; id < vocabulary_.texts.size(); ++id)
        if (is_control(id) && !vocabulary_.texts[id].empty())
            spellings.push_back(vocabulary_.texts[id]);
    return spellings;
}

}  // namespace artel::text
