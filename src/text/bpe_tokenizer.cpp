// SPDX-License-Identifier: Apache-2.0
#include "text/bpe_tokenizer.hpp"

#include <algorithm>

#include "text/utf8.hpp"

namespace artel::text {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

/// The character that spells each byte: printable Latin-1 characters stand for themselves, the
/// other bytes, in ascending order, for U+0100 and up.
std::array<std::uint32_t, 256> byte_spellings() {
    std::array<std::uint32_t, 256> spellings{};
    std::uint32_t next = 0x100;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        const bool is_printable =
            (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
        spellings[byte] = is_printable ? byte : next++;
    }
    return spellings;
}

/// The bytes that a token's spelling stands for. A character that spells no byte is kept.
std::string bytes_of_spelling(std::string_view spelling) {
    static constexpr std::uint32_t kSpellingsMax = 0x100 + 68;
    std::array<int, kSpellingsMax> byte_of;
    byte_of.fill(-1);
    const auto spellings = byte_spellings();
    for (std::size_t byte = 0; byte < 256; ++byte)
        byte_of[spellings[byte]] = static_cast<int>(byte);

    std::string bytes;
    while (!spelling.empty()) {
        const Utf8Prefix prefix = read_utf8(spelling);
        const std::string_view character = spelling.substr(0, prefix.count);
        const std::uint32_t code_point =
            prefix.kind == Utf8Prefix::Kind::Character ? decode_utf8(character) : kSpellingsMax;
        if (code_point < kSpellingsMax && byte_of[code_point] >= 0)
            bytes.push_back(static_cast<char>(byte_of[code_point]));
        else
            bytes += character;
        spelling.remove_prefix(prefix.count);
    }
    return bytes;
}

bool takes_part_in_merging(TokenType type) {
    return type == TokenType::Normal || type == TokenType::Unused;
}

std::uint64_t pair_key(TokenId left, TokenId right) {
    return (static_cast<std::uint64_t>(left) << 32) | right;
}

}  // namespace

/// Merges one piece at a time; keeps its memory from piece to piece.
class BpeTokenizer::Merger {
  public:
    explicit Merger(const BpeTokenizer& tokenizer) : tokenizer_(tokenizer) {}

    void append(std::string_view piece, std::vector<TokenId>& ids) {
        read_symbols(piece);
        merge_all();
        for (std::uint32_t at = symbols_.empty() ? kNone : 0; at != kNone; at = symbols_[at].next)
            ids.push_back(symbols_[at].id);
    }

  private:
    struct Symbol {
        TokenId id;
        std::uint32_t previous;
        std::uint32_t next;
        bool is_gone;
    };
    struct Candidate {
        std::uint32_t rank;
        std::uint32_t position;  // of the left symbol
        TokenId left;
        TokenId right;
    };
    /// Heap order: the best (lowest) rank on top, then the leftmost.
    static bool is_worse(const Candidate& a, const Candidate& b) {
        return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
    }

    void read_symbols(std::string_view piece) {
        symbols_.clear();
        for (const char byte : piece)
            if (const auto id = tokenizer_.id_of_byte_[static_cast<unsigned char>(byte)]) {
                const auto at = static_cast<std::uint32_t>(symbols_.size());
                symbols_.push_back({*id, at == 0 ? kNone : at - 1, at + 1, false});
            }
        if (!symbols_.empty()) symbols_.back().next = kNone;
    }

    void merge_all() {
        heap_.clear();
        for (std::uint32_t at = 0; at + 1 < symbols_.size(); ++at) add_candidate(at);
        std::make_heap(heap_.begin(), heap_.end(), is_worse);
        while (!heap_.empty()) {
            std::pop_heap(heap_.begin(), heap_.end(), is_worse);
            const Candidate best = heap_.back();
            heap_.pop_back();
            if (is_stale(best)) continue;
            merge(best);
        }
    }

    bool add_candidate(std::uint32_t left) {
        const std::uint32_t right = symbols_[left].next;
        if (right == kNone) return false;
        const auto found = tokenizer_.merges_.find(pair_key(symbols_[left].id, symbols_[right].id));
        if (found == tokenizer_.merges_.end()) return false;
        heap_.push_back({found->second.rank, left, symbols_[left].id, symbols_[right].id});
        return true;
    }

    /// A neighbour was merged since: the pair no longer stands there.
    bool is_stale(const Candidate& candidate) const {
        const Symbol& left = symbols_[candidate.position];
        return left.is_gone || left.id != candidate.left || left.next == kNone ||
               symbols_[left.next].id != candidate.right;
    }

    void merge(const Candidate& candidate) {
        Symbol& left = symbols_[candidate.position];
        Symbol& right = symbols_[left.next];
        left.id = tokenizer_.merges_.at(pair_key(left.id, right.id)).merged;
        right.is_gone = true;
        left.next = right.next;
        if (left.next != kNone) symbols_[left.next].previous = candidate.position;
        push_candidate(candidate.position);
        if (left.previous != kNone) push_candidate(left.previous);
    }

    void push_candidate(std::uint32_t left) {
        if (add_candidate(left)) std::push_heap(heap_.begin(), heap_.end(), is_worse);
    }

    const BpeTokenizer& tokenizer_;
    std::vector<Symbol> symbols_;
    std::vector<Candidate> heap_;
};

Result<std::unique_ptr<Tokenizer>> BpeTokenizer::create(Vocabulary vocabulary) {
    if (vocabulary.pre.empty())
        return unimplemented(
            "tokenizer.ggml.pre is missing, so how text is cut is not known; supported are: {}",
            pre_tokenizer_kind_names());
    const PreTokenizerKind* kind = find_pre_tokenizer_kind(vocabulary.pre);
    if (!kind)
        return unimplemented("tokenizer.ggml.pre: '{}' is not supported; supported are: {}",
                             vocabulary.pre.substr(0, 64), pre_tokenizer_kind_names());
    ARTEL_ASSIGN(PreTokenizer pre_tokenizer, PreTokenizer::create(*kind));
    std::unique_ptr<BpeTokenizer> tokenizer(
        new BpeTokenizer(std::move(vocabulary), *kind, std::move(pre_tokenizer)));
    tokenizer->index_tokens();
    ARTEL_TRY(tokenizer->read_merges());
    return tokenizer;
}

BpeTokenizer::BpeTokenizer(Vocabulary vocabulary, const PreTokenizerKind& kind,
                           PreTokenizer pre_tokenizer)
    : Tokenizer(std::move(vocabulary), {.adds_bos = kind.adds_bos, .adds_space_prefix = false}),
      pre_tokenizer_(std::move(pre_tokenizer)),
      prefers_whole_pieces_(kind.prefers_whole_pieces) {}

void BpeTokenizer::index_tokens() {
    const std::vector<std::string>& texts = vocabulary().texts;
    std::vector<std::string> bytes(texts.size());
    for (TokenId id = 0; id < texts.size(); ++id)
        bytes[id] =
            takes_part_in_merging(vocabulary().type(id)) ? bytes_of_spelling(texts[id]) : texts[id];
    set_token_bytes(std::move(bytes));
    for (TokenId id = 0; id < texts.size(); ++id) {
        if (!takes_part_in_merging(vocabulary().type(id))) continue;
        const std::string_view text = token_bytes(id);
        if (text.size() == 1) id_of_byte_[static_cast<unsigned char>(text[0])] = id;
        if (prefers_whole_pieces_) id_of_.emplace(text, id);
    }
}

Error BpeTokenizer::read_merges() {
    const Vocabulary& vocabulary = this->vocabulary();
    std::unordered_map<std::string_view, TokenId> id_of;
    id_of.reserve(vocabulary.texts.size());
    for (TokenId id = 0; id < vocabulary.texts.size(); ++id)
        id_of.emplace(vocabulary.texts[id], id);

    merges_.reserve(vocabulary.merges.size());
    for (std::uint32_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
        const std::string_view merge = vocabulary.merges[rank];
        const std::size_t space = merge.find(' ');
        const std::string_view left = merge.substr(0, space);
        const std::string_view right = merge.substr(space + 1);
        const std::string merged = std::string(left) + std::string(right);
        TokenId ids[3];
        bool can_merge = true;
        for (std::size_t i = 0;
             const std::string_view part : {left, right, std::string_view(merged)}) {
            const auto found = id_of.find(part);
            if (found == id_of.end())
                return invalid_argument("tokenizer.ggml.merges: merge {}: '{}' is not a token",
                                        rank, part.substr(0, 64));
            // Tokens that are matched as a whole never come out of merging.
            can_merge = can_merge && takes_part_in_merging(vocabulary.type(found->second));
            ids[i++] = found->second;
        }
        if (can_merge) merges_.emplace(pair_key(ids[0], ids[1]), Merge{rank, ids[2]});
    }
    return ok();
}

void BpeTokenizer::append_valid(std::string_view text, Merger& merger,
                                std::vector<TokenId>& ids) const {
    for (const std::string_view piece : pre_tokenizer_.split(text)) {
        if (prefers_whole_pieces_) {
            if (const auto found = id_of_.find(piece); found != id_of_.end()) {
                ids.push_back(found->second);
                continue;
            }
        }
        merger.append(piece, ids);
    }
}

void BpeTokenizer::append_plain(std::string_view bytes, std::vector<TokenId>& ids) const {
    Merger merger(*this);
    while (!bytes.empty()) {
        const std::size_t valid = valid_utf8_bytes(bytes);
        append_valid(bytes.substr(0, valid), merger, ids);
        bytes.remove_prefix(valid);
        // A run of wrong bytes is a piece of its own.
        std::string wrong;
        while (!bytes.empty()) {
            const Utf8Prefix prefix = read_utf8(bytes);
            if (prefix.kind == Utf8Prefix::Kind::Character) break;
            for (const char byte : bytes.substr(0, prefix.count)) {
                if (id_of_byte_[static_cast<unsigned char>(byte)])
                    wrong.push_back(byte);
                else
                    wrong += kReplacementCharacter;
            }
            bytes.remove_prefix(prefix.count);
        }
        merger.append(wrong, ids);
    }
}

}  // namespace artel::text
