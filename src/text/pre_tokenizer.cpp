// SPDX-License-Identifier: Apache-2.0
#include "text/pre_tokenizer.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <cstdint>

#include "text/utf8.hpp"

namespace artel::text {
namespace {

struct FreePcre2 {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
    void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};
template <class T>
using Pcre2Ptr = std::unique_ptr<T, FreePcre2>;

/// What one match at a time needs. Not shared between threads.
struct Workspace {
    Pcre2Ptr<pcre2_match_data> match_data{pcre2_match_data_create(1, nullptr)};
    Pcre2Ptr<pcre2_match_context> context{pcre2_match_context_create(nullptr)};
    Pcre2Ptr<pcre2_jit_stack> stack{pcre2_jit_stack_create(64 << 10, 8 << 20, nullptr)};

    Workspace() {
        // Long runs of one character class exceed the default limit although matching is linear.
        pcre2_set_match_limit(context.get(), UINT32_MAX);
        pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    }
};

std::string pcre2_message(int code) {
    std::array<PCRE2_UCHAR, 256> text{};
    pcre2_get_error_message(code, text.data(), text.size());
    return reinterpret_cast<const char*>(text.data());
}

}  // namespace

class PreTokenizer::Pattern {
  public:
    static Result<Pattern> compile(std::string_view pattern) {
        int code = 0;
        PCRE2_SIZE offset = 0;
        Pcre2Ptr<pcre2_code> compiled(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()),
                                                    pattern.size(), PCRE2_UTF | PCRE2_UCP, &code,
                                                    &offset, nullptr));
        if (!compiled)
            return internal_error("pre-tokenizer pattern, byte {}: {}", offset,
                                  pcre2_message(code));
        // Without JIT (not allowed by some systems) pcre2_match interprets: slower, same result.
        pcre2_jit_compile(compiled.get(), PCRE2_JIT_COMPLETE);
        return Pattern(std::move(compiled));
    }

    /// Appends the matches in `text` and what lies between them.
    void split(std::string_view text, Workspace& workspace,
               std::vector<std::string_view>& pieces) const {
        std::size_t unmatched = 0;  // where the piece before the next match begins
        std::size_t position = 0;
        while (position < text.size()) {
            const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                          text.size(), position, PCRE2_NO_UTF_CHECK,
                                          workspace.match_data.get(), workspace.context.get());
            if (found == PCRE2_ERROR_NOMATCH) break;
            const auto* bounds = pcre2_get_ovector_pointer(workspace.match_data.get());
            if (found < 0 || bounds[1] <= bounds[0]) {
                position += read_utf8(text.substr(position)).count;
                continue;
            }
            if (bounds[0] > unmatched)
                pieces.push_back(text.substr(unmatched, bounds[0] - unmatched));
            pieces.push_back(text.substr(bounds[0], bounds[1] - bounds[0]));
            unmatched = position = bounds[1];
        }
        if (unmatched < text.size()) pieces.push_back(text.substr(unmatched));
    }

  private:
    explicit Pattern(Pcre2Ptr<pcre2_code> code) : code_(std::move(code)) {}
    Pcre2Ptr<pcre2_code> code_;
};

PreTokenizer::PreTokenizer(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::create(const PreTokenizerKind& kind) {
    std::vector<Pattern> patterns;
    for (const char* pattern : kind.patterns) {
        ARTEL_ASSIGN(Pattern compiled, Pattern::compile(pattern));
        patterns.push_back(std::move(compiled));
    }
    return PreTokenizer(std::move(patterns));
}

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
    std::vector<std::string_view> pieces;
    if (text.empty()) return pieces;
    Workspace workspace;
    pieces.push_back(text);
    for (const Pattern& pattern : patterns_) {
        std::vector<std::string_view> finer;
        finer.reserve(pieces.size() * 2);
        for (const std::string_view piece : pieces) pattern.split(piece, workspace, finer);
        pieces = std::move(finer);
    }
    return pieces;
}

}  // namespace artel::text
