// SPDX-License-Identifier: Apache-2.0
#include "cli/model_text.hpp"

#include <cstdio>
#include <vector>

#include "base/file.hpp"
#include "quant/type_names.hpp"

namespace artel::cli {

Result<ModelText> load_model_text(const std::string& path) {
    ARTEL_ASSIGN(gguf::GgufIndex index, gguf::GgufIndex::open(path, quant::block_size_of));
    auto tokenizer = text::Tokenizer::create(index.metadata());
    if (!tokenizer.ok()) return with_context(tokenizer.status(), path);
    return ModelText{std::move(index), *std::move(tokenizer)};
}

Result<std::unique_ptr<text::ChatTemplate>> load_chat_template(const ModelText& model) {
    ARTEL_ASSIGN(auto source, text::chat_template_text(model.index.metadata()));
    if (!source)
        return failed_precondition(
            "the model file has no chat template (tokenizer.chat_template); give one as a file");
    return text::ChatTemplate::create(*std::move(source),
                                      text::chat_template_options(*model.tokenizer));
}

Result<std::unique_ptr<text::ChatTemplate>> open_chat_template(const ModelText& model,
                                                               const std::string& file) {
    if (file.empty()) return load_chat_template(model);
    ARTEL_ASSIGN(std::string source, read_file(file, text::ChatTemplate::kTemplateBytesMax));
    if (source.empty()) return invalid_argument("the chat template {} is empty", file);
    return text::ChatTemplate::create(std::move(source),
                                      text::chat_template_options(*model.tokenizer));
}

Result<std::string> read_standard_input() {
    std::string bytes;
    std::vector<char> part(1 << 16);
    while (const std::size_t count = std::fread(part.data(), 1, part.size(), stdin)) {
        if (bytes.size() + count > kInputBytesMax)
            return resource_exhausted("standard input: more than {} bytes", kInputBytesMax);
        bytes.append(part.data(), count);
    }
    if (std::ferror(stdin)) return errno_error("reading standard input");
    return bytes;
}

Error write_output(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        return errno_error("writing to standard output");
    return ok();
}

}  // namespace artel::cli
