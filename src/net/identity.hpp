// SPDX-License-Identifier: Apache-2.0
// Who a node is: the cluster's certificate authority (on the coordinator), a node's key and
// certificate, and the checks of a peer's certificate. ECDSA P-256, X.509 v3; the name stands in
// the subject alternative name as URI artel://CLUSTER/NODE. Certificates start a day back, since
// home clocks are wrong. Not here: sockets (tls_transport) and join keys (join_key). Everything is
// a value; PEM text inside.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "net/join_key.hpp"

struct x509_st;  // OpenSSL's X509

namespace artel::net {

/// A node's own credentials. Holds a private key: never log it.
struct NodeIdentity {
    std::string cluster;          // 16 hex digits
    std::string node;             // node name
    std::string key_pem;          // private key
    std::string certificate_pem;  // signed by the authority
    std::string authority_pem;    // the authority's certificate

    Error store(const std::filesystem::path& state_dir) const;
    /// NotFound when `state_dir` holds no identity yet.
    static Result<NodeIdentity> load(const std::filesystem::path& state_dir);
};

/// What a peer's certificate says; only believed after the chain was verified.
struct PeerName {
    std::string cluster;
    std::string node;
};

/// A key pair and the request to have it signed, both PEM.
struct CertificateRequest {
    std::string key_pem;
    std::string request_pem;
};

class ClusterAuthority {
  public:
    /// Reads authority.key and authority.crt of `state_dir`, or makes a new cluster there.
    static Result<ClusterAuthority> load_or_create(const std::filesystem::path& state_dir);

    const std::string& cluster() const { return cluster_; }
    const std::string& certificate_pem() const { return certificate_pem_; }
    Result<Fingerprint> fingerprint() const;

    /// A certificate for the key of `request_pem`; the name in it is `node`, whatever the request
    /// says.
    Result<std::string> sign(std::string_view request_pem, std::string_view node) const;
    /// A fresh key and certificate for `node`.
    Result<NodeIdentity> issue(std::string_view node) const;

  private:
    std::string cluster_, key_pem_, certificate_pem_;
};

/// [A-Za-z0-9._-], 1 to 64 of them. Errors name the character.
Error check_node_name(std::string_view name);
Result<CertificateRequest> make_certificate_request(std::string_view node);
/// A self-signed identity, good for nothing but asking to be enrolled.
Result<NodeIdentity> make_unenrolled_identity(std::string_view node);
Result<std::string> certificate_to_pem(x509_st* certificate);
Result<Fingerprint> certificate_fingerprint(std::string_view certificate_pem);
Result<Fingerprint> certificate_fingerprint(const x509_st* certificate);
Result<PeerName> peer_name(const x509_st* certificate);
/// Whether `certificate` is in force and signed by `authority_pem`. A clock that is off is named.
Error verify_certificate(x509_st* certificate, std::string_view authority_pem);

}  // namespace artel::net
