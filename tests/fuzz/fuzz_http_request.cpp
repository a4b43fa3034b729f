// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as what a client sends on one connection. The first byte says where the
// stream is cut into two reads: however it is cut, the same requests must come out.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/http_parser.hpp"
#include "base/check.hpp"

namespace artel::api {
namespace {

constexpr HttpParserLimits kLimits{.header_bytes_max = 512, .body_bytes_max = 2048};

struct Seen {
    std::vector<std::string> requests;
    bool is_refused = false;
};

/// Parses as a connection does: what is left of one read stands before the next.
class Reader {
  public:
    void read(std::string_view bytes) {
        pending_ += bytes;
        std::string_view rest = pending_;
        while (!seen.is_refused) {
            const auto progress = parser_.feed(rest);
            if (progress == HttpParser::Progress::NeedMore) break;
            if (progress == HttpParser::Progress::Refused) seen.is_refused = true;
            if (progress == HttpParser::Progress::Complete) {
                const HttpRequest request = parser_.take();
                ARTEL_CHECK(request.body.size() <= kLimits.body_bytes_max, "body above the limit");
                seen.requests.push_back(request.method + ' ' + request.path + '?' + request.query +
                                        '\n' + request.body);
            }
        }
        pending_.erase(0, pending_.size() - rest.size());
    }
    Seen seen;

  private:
    HttpParser parser_{kLimits};
    std::string pending_;
};

}  // namespace
}  // namespace artel::api

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace artel::api;
    if (size == 0) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
    const std::size_t cut = bytes.size() * data[0] / 256;
    Reader whole, halves;
    whole.read(bytes);
    halves.read(bytes.substr(0, cut));
    halves.read(bytes.substr(cut));
    // A limit may be noticed earlier in one way than in the other, but what both saw is the same.
    const std::size_t common = std::min(whole.seen.requests.size(), halves.seen.requests.size());
    for (std::size_t i = 0; i < common; ++i)
        ARTEL_CHECK(whole.seen.requests[i] == halves.seen.requests[i], "the cut changed a request");
    if (!whole.seen.is_refused && !halves.seen.is_refused)
        ARTEL_CHECK(whole.seen.requests.size() == halves.seen.requests.size(),
                    "the cut lost a request");
    return 0;
}
