// SPDX-License-Identifier: Apache-2.0
// What the text commands (tokenize, detokenize, render) read: a model file's tokenizer and chat
// template, and their inputs. Needs the index of the file only.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "gguf/gguf_index.hpp"
#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace artel::cli {

constexpr std::uint64_t kInputBytesMax = 256ULL << 20;

struct ModelText {
    gguf::GgufIndex index;
    std::unique_ptr<text::Tokenizer> tokenizer;
};

Result<ModelText> load_model_text(const std::string& path);

/// The model's own template. Errors: FailedPrecondition where the file has none.
Result<std::unique_ptr<text::ChatTemplate>> load_chat_template(const ModelText& model);

/// The template in `file`, or the model's own where `file` is empty.
Result<std::unique_ptr<text::ChatTemplate>> open_chat_template(const ModelText& model,
                                                               const std::string& file);

/// Standard input to its end.
Result<std::string> read_standard_input();
/// To standard output, exactly.
Error write_output(std::string_view text);

}  // namespace artel::cli
