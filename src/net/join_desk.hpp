// SPDX-License-Identifier: Apache-2.0
// JoinDesk: decides who may join: hands out secrets that hold for an hour and a number of uses, and
// signs the certificates of those who show one. Secrets live in memory only. Used on the loop.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "base/clock.hpp"
#include "net/identity.hpp"
#include "net/join_key.hpp"
#include "net/opening.hpp"

namespace artel::net {

class JoinDesk {
  public:
    explicit JoinDesk(ClusterAuthority authority) : authority_(std::move(authority)) {}

    const ClusterAuthority& authority() const { return authority_; }
    /// A key for `uses` workers; with `only_name` for the worker of that name alone.
    Result<JoinKey> make_key(const std::string& address, std::uint32_t uses, TimePoint now,
                             const std::string& only_name = "");
    /// `is_name_taken`: a worker of the wanted name is connected.
    EnrolReply enrol(const EnrolRequest& request, TimePoint now, bool is_name_taken);

  private:
    struct Secret {
        std::array<std::uint8_t, 16> bytes{};
        std::uint32_t uses_left = 0;
        TimePoint expires{};
        std::string only_name;
    };
    ClusterAuthority authority_;
    std::map<std::string, Secret> secrets_;  // by id
};

}  // namespace artel::net
