// SPDX-License-Identifier: Apache-2.0
// TlsContext: TLS 1.3 with certificates on both sides, made from a NodeIdentity. The handshake
// itself accepts any certificate; who the peer is gets decided right after it by check_peer(),
// because a worker that is not enrolled yet must be able to ask for enrolment (and for nothing
// else). Immutable after creation; shared by all connections of a node.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "net/identity.hpp"

namespace artel::net {

/// What a finished handshake tells of the peer.
struct Peer {
    std::optional<PeerName> name;  // nothing: a peer without a certificate of this cluster
    std::string authority_pem;  // of the authority that vouches for the peer; empty when none does
};

class TlsContext {
  public:
    static Result<std::shared_ptr<TlsContext>> create(const NodeIdentity& identity);

    boost::asio::ssl::context& native() { return context_; }
    const NodeIdentity& identity() const { return identity_; }

    /// A member of our cluster, or a Peer without a name. Errors: no certificate at all.
    Result<Peer> check_peer(SSL* connection) const;
    /// For a worker that is not enrolled: the peer's certificate must be signed by the authority
    /// with this fingerprint, sent along in its chain.
    static Result<Peer> check_pinned_peer(SSL* connection, const Fingerprint& authority);

  private:
    explicit TlsContext(const NodeIdentity& identity)
        : context_(boost::asio::ssl::context::tlsv13), identity_(identity) {}
    boost::asio::ssl::context context_;
    NodeIdentity identity_;
};

}  // namespace artel::net
