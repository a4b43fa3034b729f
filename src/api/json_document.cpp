// SPDX-License-Identifier: Apache-2.0
#include "api/json_document.hpp"

#include <exception>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace artel::api {
namespace {

using Json = nlohmann::ordered_json;

/// Builds the tree from the parser's events. nlohmann's own builder would look every key up in a
/// list, which is quadratic, and would let the last of two equal keys win.
class TreeBuilder {
  public:
    using number_integer_t = Json::number_integer_t;
    using number_unsigned_t = Json::number_unsigned_t;
    using number_float_t = Json::number_float_t;
    using string_t = Json::string_t;
    using binary_t = Json::binary_t;

    bool null() { return add(nullptr); }
    bool boolean(bool value) { return add(value); }
    bool number_integer(number_integer_t value) { return add(value); }
    bool number_unsigned(number_unsigned_t value) { return add(value); }
    bool number_float(number_float_t value, const string_t&) { return add(value); }
    bool string(string_t& value) { return add(std::move(value)); }
    bool binary(binary_t&) { return refuse("binary value"); }
    bool start_object(std::size_t) { return open(Json::object()); }
    bool start_array(std::size_t) { return open(Json::array()); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }
    bool key(string_t& name) {
        if (!open_.back().keys.insert(name).second)
            return refuse(fmt::format("the key '{:.64}' appears twice in one object", name));
        key_ = std::move(name);
        return true;
    }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
        return refuse(fmt::format("not valid JSON at byte {}", position));
    }

    Json take() { return std::move(root_); }
    const std::string& problem() const { return problem_; }

  private:
    struct Open {
        Json* value;
        std::unordered_set<std::string> keys;  // of an object
    };

    bool refuse(std::string problem) {
        problem_ = std::move(problem);
        return false;
    }
    Json* place(Json value) {
        if (++values_ > kJsonValuesMax) {
            refuse(fmt::format("more than {} JSON values", kJsonValuesMax));
            return nullptr;
        }
        if (open_.empty()) {
            root_ = std::move(value);
            return &root_;
        }
        Json& parent = *open_.back().value;
        if (parent.is_array())
            return &parent.get_ref<Json::array_t&>().emplace_back(std::move(value));
        auto& members = static_cast<Json::object_t::Container&>(parent.get_ref<Json::object_t&>());
        return &members.emplace_back(std::move(key_), std::move(value)).second;
    }
    bool add(Json value) { return place(std::move(value)) != nullptr; }
    bool open(Json value) {
        if (open_.size() >= kJsonDepthMax)
            return refuse(fmt::format("JSON nested deeper than {} levels", kJsonDepthMax));
        Json* placed = place(std::move(value));
        // A container grows only while it is the innermost, so outer pointers stay good.
        if (placed != nullptr) open_.push_back({placed, {}});
        return placed != nullptr;
    }
    bool close() {
        open_.pop_back();
        return true;
    }

    Json root_;
    std::vector<Open> open_;
    std::string key_;
    std::size_t values_ = 0;
    std::string problem_;
};

}  // namespace

Result<Json> parse_json(std::string_view text) {
    TreeBuilder builder;
    bool is_complete = false;
    try {
        is_complete = Json::sax_parse(text.begin(), text.end(), &builder);
    } catch (const std::exception&) {  // a length error of some container
        return invalid_argument("JSON too large");
    }
    if (!is_complete) return invalid_argument("{}", builder.problem());
    return builder.take();
}

Result<Json> parse_object(std::string_view body) {
    auto parsed = parse_json(body);
    if (!parsed.ok()) return with_context(parsed.status(), "request body");
    if (!parsed->is_object()) return invalid_argument("request body: must be a JSON object");
    return parsed;
}

std::string to_text(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace artel::api
