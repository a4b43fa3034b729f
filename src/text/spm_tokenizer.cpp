// SPDX-License-Identifier: Apache-2.0
#include "text/spm_tokenizer.hpp"

#include <algorithm>
#include <cstdint>

#include "text/utf8.hpp"

namespace artel::text {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

std::string mark_spaces(std::string_view text) {
    std::string marked;
    marked.reserve(text.size() + text.size() / 2);
    for (const char byte : text) {
        if (byte == ' ')
            marked += kSpaceMark;
        else
            marked.push_back(byte);
    }
    return marked;
}

std::string unmark_spaces(std::string_view text) {
    std::string plain;
    while (!text.empty()) {
        const bool is_mark = text.starts_with(kSpaceMark);
        plain.push_back(is_mark ? ' ' : text[0]);
        text.remove_prefix(is_mark ? kSpaceMark.size() : 1);
    }
    return plain;
}

}  // namespace

/// Merges one text. Positions are 32 bits wide: callers limit requests and files far below that.
class SpmTokenizer::Merger {
  public:
    Merger(const SpmTokenizer& tokenizer, std::string_view text)
        : tokenizer_(tokenizer), text_(text) {}

    void append(std::vector<TokenId>& ids) {
        read_symbols();
        merge_all();
        for (std::uint32_t at = symbols_.empty() ? kNone : 0; at != kNone; at = symbols_[at].next)
            append_symbol(symbols_[at].piece, ids);
    }

  private:
    struct Symbol {
        std::string_view piece;  // of text_; empty once merged into its left neighbour
        std::uint32_t previous;
        std::uint32_t next;
    };
    struct Candidate {
        float score;
        std::uint32_t position;  // of the left symbol
        std::size_t bytes;       // of both; differs if one of them was merged since
    };
    /// Heap order: the highest score on top, then the leftmost.
    static bool is_worse(const Candidate& a, const Candidate& b) {
        return a.score != b.score ? a.score < b.score : a.position > b.position;
    }

    void read_symbols() {
        std::string_view rest = text_;
        while (!rest.empty()) {
            const Utf8Prefix prefix = read_utf8(rest);
            const bool is_whole = prefix.kind == Utf8Prefix::Kind::Character;
            const std::size_t count = is_whole ? prefix.count : 1;
            const auto at = static_cast<std::uint32_t>(symbols_.size());
            symbols_.push_back({rest.substr(0, count), at == 0 ? kNone : at - 1, at + 1});
            rest.remove_prefix(count);
        }
        if (!symbols_.empty()) symbols_.back().next = kNone;
    }

    void merge_all() {
        for (std::uint32_t at = 0; at + 1 < symbols_.size(); ++at) add_candidate(at);
        std::make_heap(heap_.begin(), heap_.end(), is_worse);
        while (!heap_.empty()) {
            std::pop_heap(heap_.begin(), heap_.end(), is_worse);
            const Candidate best = heap_.back();
            heap_.pop_back();
            if (!is_stale(best)) merge(best);
        }
    }

    std::string_view joined(std::uint32_t left) const {
        const std::string_view piece = symbols_[left].piece;
        return {piece.data(), piece.size() + symbols_[symbols_[left].next].piece.size()};
    }

    bool add_candidate(std::uint32_t left) {
        if (symbols_[left].next == kNone) return false;
        const std::string_view piece = joined(left);
        const auto id = tokenizer_.find_piece(piece);
        if (!id) return false;
        heap_.push_back({tokenizer_.vocabulary().scores[*id], left, piece.size()});
        return true;
    }

    bool is_stale(const Candidate& candidate) const {
        const Symbol& left = symbols_[candidate.position];
        return left.piece.empty() || left.next == kNone ||
               joined(candidate.position).size() != candidate.bytes;
    }

    void merge(const Candidate& candidate) {
        Symbol& left = symbols_[candidate.position];
        Symbol& right = symbols_[left.next];
        const std::string_view merged = joined(candidate.position);
        remember_parts(merged, left.piece.size());
        left.piece = merged;
        right.piece = {};
        left.next = right.next;
        if (left.next != kNone) symbols_[left.next].previous = candidate.position;
        push_candidate(candidate.position);
        if (left.previous != kNone) push_candidate(left.previous);
    }

    void push_candidate(std::uint32_t left) {
        if (add_candidate(left)) std::push_heap(heap_.begin(), heap_.end(), is_worse);
    }

    /// An unused token is taken apart again in the end.
    void remember_parts(std::string_view merged, std::size_t left_bytes) {
        const auto id = tokenizer_.find_piece(merged);
        if (id && tokenizer_.vocabulary().type(*id) == TokenType::Unused)
            left_bytes_of_unused_[merged] = left_bytes;
    }

    void append_symbol(std::string_view symbol, std::vector<TokenId>& ids) const {
        std::vector<std::string_view> stack = {symbol};
        while (!stack.empty()) {
            const std::string_view piece = stack.back();
            stack.pop_back();
            if (const auto parts = left_bytes_of_unused_.find(piece);
                parts != left_bytes_of_unused_.end()) {
                stack.push_back(piece.substr(parts->second));
                stack.push_back(piece.substr(0, parts->second));
            } else if (const auto id = tokenizer_.find_piece(piece)) {
                ids.push_back(*id);
            } else {
                append_bytes(piece, ids);
            }
        }
    }

    void append_bytes(std::string_view piece, std::vector<TokenId>& ids) const {
        for (const char byte : piece) {
            if (const auto id = tokenizer_.id_of_byte_[static_cast<unsigned char>(byte)]) {
                ids.push_back(*id);
            } else if (tokenizer_.vocabulary().unknown) {
                ids.push_back(*tokenizer_.vocabulary().unknown);
                return;  // once for the whole character
            }
        }
    }

    const SpmTokenizer& tokenizer_;
    std::string_view text_;
    std::vector<Symbol> symbols_;
    std::vector<Candidate> heap_;
    std::unordered_map<std::string_view, std::size_t> left_bytes_of_unused_;
};

Result<std::unique_ptr<Tokenizer>> SpmTokenizer::create(Vocabulary vocabulary) {
    std::unique_ptr<SpmTokenizer> tokenizer(new SpmTokenizer(std::move(vocabulary)));
    tokenizer->index_tokens();
    return tokenizer;
}

SpmTokenizer::SpmTokenizer(Vocabulary vocabulary)
    : Tokenizer(std::move(vocabulary), {.adds_bos = true, .adds_space_prefix = true}) {}

void SpmTokenizer::index_tokens() {
    const std::vector<std::string>& texts = vocabulary().texts;
    std::vector<std::string> bytes(texts.size());
    for (TokenId id = 0; id < texts.size(); ++id) {
        const TokenType type = vocabulary().type(id);
        bytes[id] = texts[id];
        if (type == TokenType::Byte) {
            const std::uint8_t byte = *byte_of_spelling(texts[id]);
            bytes[id] = std::string(1, static_cast<char>(byte));
            id_of_byte_[byte] = id;
        } else if (type == TokenType::Normal || type == TokenType::Unused) {
            bytes[id] = unmark_spaces(texts[id]);
            id_of_.emplace(texts[id], id);
            piece_bytes_max_ = std::max(piece_bytes_max_, texts[id].size());
        }
    }
    set_token_bytes(std::move(bytes));
}

std::optional<TokenId> SpmTokenizer::find_piece(std::string_view piece) const {
    // The limit keeps hashing, and so the whole, linear in the length of the text.
    if (piece.size() > piece_bytes_max_) return std::nullopt;
    const auto found = id_of_.find(piece);
    if (found == id_of_.end()) return std::nullopt;
    return found->second;
}

void SpmTokenizer::append_plain(std::string_view bytes, std::vector<TokenId>& ids) const {
    if (bytes.empty()) return;
    std::string text = adds_space_prefix() ? std::string(kSpaceMark) : std::string();
    text += mark_spaces(bytes);
    Merger(*this, text).append(ids);
}

}  // namespace artel::text
