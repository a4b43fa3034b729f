// SPDX-License-Identifier: Apache-2.0
#include "net/join_desk.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "base/log.hpp"

namespace artel::net {
namespace {

constexpr auto kKeyLife = std::chrono::hours(1);
constexpr std::size_t kSecretsMax = 1024;

}  // namespace

Result<JoinKey> JoinDesk::make_key(const std::string& address, std::uint32_t uses, TimePoint now,
                                   const std::string& only_name) {
    std::erase_if(secrets_, [now](const auto& entry) {
        return entry.second.expires < now || entry.second.uses_left == 0;
    });
    if (secrets_.size() >= kSecretsMax)
        return resource_exhausted("{} join keys are in use already", secrets_.size());
    JoinKey key;
    if (RAND_bytes(key.secret_id.data(), static_cast<int>(key.secret_id.size())) != 1 ||
        RAND_bytes(key.secret.data(), static_cast<int>(key.secret.size())) != 1)
        return internal_error("no random numbers for a join key");
    ARTEL_ASSIGN(key.authority, authority_.fingerprint());
    key.address = address;
    secrets_[std::string(key.secret_id.begin(), key.secret_id.end())] = {key.secret, uses,
                                                                         now + kKeyLife, only_name};
    return key;
}

EnrolReply JoinDesk::enrol(const EnrolRequest& request, TimePoint now, bool is_name_taken) {
    const auto refuse = [&](const char* why) {
        log_warning("refused to enrol a worker", {{"node", request.node}, {"reason", why}});
        return EnrolReply{why, {}, {}};
    };
    const auto found = secrets_.find(request.secret_id);
    if (found == secrets_.end())
        return refuse("the join key is unknown here (it may be of an earlier start)");
    Secret& secret = found->second;
    if (request.secret.size() != secret.bytes.size() ||
        CRYPTO_memcmp(request.secret.data(), secret.bytes.data(), secret.bytes.size()) != 0)
        return refuse("the join key is wrong");
    if (secret.expires < now) return refuse("the join key has expired; make a new one");
    if (secret.uses_left == 0)
        return refuse("the join key has been used by as many workers as it was made for");
    if (request.node == "coordinator" || request.node == "authority")
        return refuse("this name is taken by the cluster itself");
    if (!secret.only_name.empty() && secret.only_name != request.node)
        return refuse("the join key is for another worker");
    if (is_name_taken)
        return refuse("a worker of this name is connected; give this one another (--name)");
    const auto certificate = authority_.sign(request.request_pem, request.node);
    if (!certificate.ok()) return refuse(std::string(certificate.status().message()).c_str());
    --secret.uses_left;
    log_info("enrolled a worker", {{"node", request.node}});
    return {{}, *certificate, authority_.certificate_pem()};
}

}  // namespace artel::net
