// SPDX-License-Identifier: Apache-2.0
// A prompt that remembers which of its text may hold control tokens: a chat template's own text
// does, text from messages does not.
#pragma once

#include <string>
#include <vector>

namespace artel::text {

/// Whether the spelling of a control token in a text is that token, or just text.
enum class ParseSpecial { No, Yes };

struct PromptSegment {
    std::string text = {};
    ParseSpecial special = ParseSpecial::No;
};

struct RenderedPrompt {
    std::vector<PromptSegment> segments;

    std::string text() const {
        std::string all;
        for (const PromptSegment& segment : segments) all += segment.text;
        return all;
    }
};

}  // namespace artel::text
