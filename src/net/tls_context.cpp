// SPDX-License-Identifier: Apache-2.0
#include "net/tls_context.hpp"

#include <boost/asio/buffer.hpp>

#include "net/openssl_pointers.hpp"

namespace artel::net {
namespace {

namespace ssl = boost::asio::ssl;

Result<X509Ptr> peer_certificate(SSL* connection) {
    X509Ptr certificate(SSL_get1_peer_certificate(connection));
    if (!certificate) return unauthenticated("the peer sent no certificate");
    return certificate;
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::create(const NodeIdentity& identity) {
    std::shared_ptr<TlsContext> made(new TlsContext(identity));
    try {
        ssl::context& context = made->context_;
        // The authority's certificate goes along, so that a joining worker can pin it by
        // fingerprint.
        const std::string chain = identity.certificate_pem + identity.authority_pem;
        context.use_certificate_chain(boost::asio::buffer(chain));
        context.use_private_key(boost::asio::buffer(identity.key_pem), ssl::context::pem);
        context.set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
        context.set_verify_callback(
            [](bool, ssl::verify_context&) { return true; });  // see check_peer()
        SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_3_VERSION);
        SSL_CTX_set_num_tickets(context.native_handle(), 0);
        SSL_CTX_set_session_cache_mode(context.native_handle(), SSL_SESS_CACHE_OFF);
    } catch (const boost::system::system_error& failure) {
        return invalid_argument("this node's key or certificate cannot be used: {}",
                                failure.what());
    }
    return made;
}

Result<Peer> TlsContext::check_peer(SSL* connection) const {
    ARTEL_ASSIGN(const X509Ptr certificate, peer_certificate(connection));
    if (!verify_certificate(certificate.get(), identity_.authority_pem).ok()) return Peer{};
    ARTEL_ASSIGN(PeerName name, peer_name(certificate.get()));
    return Peer{std::move(name), identity_.authority_pem};
}

Result<Peer> TlsContext::check_pinned_peer(SSL* connection, const Fingerprint& authority) {
    ARTEL_ASSIGN(const X509Ptr certificate, peer_certificate(connection));
    STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(connection);
    for (int i = 0; i < sk_X509_num(chain); ++i) {
        X509* const candidate = sk_X509_value(chain, i);
        ARTEL_ASSIGN(const Fingerprint fingerprint, certificate_fingerprint(candidate));
        if (fingerprint != authority) continue;
        ARTEL_ASSIGN(const std::string authority_pem, certificate_to_pem(candidate));
        ARTEL_TRY(verify_certificate(certificate.get(), authority_pem));
        ARTEL_ASSIGN(PeerName name, peer_name(certificate.get()));
        return Peer{std::move(name), authority_pem};
    }
    return unauthenticated(
        "the coordinator is not the one that made the join key (its authority's fingerprint "
        "differs)");
}

}  // namespace artel::net
