// SPDX-License-Identifier: Apache-2.0
#include "net/identity.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <ctime>

#include "base/bytes.hpp"
#include "base/file.hpp"
#include "net/openssl_pointers.hpp"

namespace artel::net {
namespace {

constexpr long kSecondsBack = 24 * 3600;
constexpr long kSecondsValid = 10L * 365 * 24 * 3600;
constexpr std::uint64_t kPemBytesMax = 64 * 1024;
constexpr std::string_view kUriScheme = "artel://";

Error openssl_error(std::string_view what) {
    char text[256] = "no reason given";
    if (const unsigned long code = ERR_get_error(); code != 0)
        ERR_error_string_n(code, text, sizeof(text));
    ERR_clear_error();
    return internal_error("{}: {}", what, text);
}

BioPtr reader(std::string_view pem) {
    return BioPtr(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

std::string text_of(BIO* bio) {
    char* start = nullptr;
    const long length = BIO_get_mem_data(bio, &start);
    return std::string(start, static_cast<std::size_t>(length));
}

Result<KeyPtr> read_key(std::string_view pem) {
    KeyPtr key(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, nullptr, nullptr));
    if (!key) return openssl_error("reading a private key");
    return key;
}

Result<X509Ptr> read_certificate(std::string_view pem) {
    X509Ptr certificate(PEM_read_bio_X509(reader(pem).get(), nullptr, nullptr, nullptr));
    if (!certificate) return openssl_error("reading a certificate");
    return certificate;
}

Result<std::string> key_to_pem(EVP_PKEY* key) {
    const BioPtr bio(BIO_new(BIO_s_mem()));
    if (PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
        return openssl_error("writing a private key");
    return text_of(bio.get());
}

Result<KeyPtr> make_key() {
    KeyPtr key(EVP_EC_gen("P-256"));
    if (!key) return openssl_error("making a key");
    return key;
}

Error set_common_name(X509_NAME* name, std::string_view text) {
    if (X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()), -1, 0) != 1)
        return openssl_error("naming a certificate");
    return ok();
}

Error add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
    if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1)
        return openssl_error("adding a certificate extension");
    return ok();
}

struct CertificateSpec {
    std::string cluster;
    std::string node;
    bool is_authority = false;
};

/// A certificate for `subject_key`, signed by `issuer_key`; self-signed when `issuer` is null.
Result<X509Ptr> make_certificate(const CertificateSpec& spec, EVP_PKEY* subject_key, X509* issuer,
                                 EVP_PKEY* issuer_key) {
    X509Ptr certificate(X509_new());
    std::uint64_t serial = 0;
    if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) != 1)
        return openssl_error("drawing a serial number");
    X509_set_version(certificate.get(), X509_VERSION_3);
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), (serial >> 1) | 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kSecondsBack);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kSecondsValid);
    ARTEL_TRY(set_common_name(X509_get_subject_name(certificate.get()), spec.node));
    X509* const signer = issuer != nullptr ? issuer : certificate.get();
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(signer));
    X509_set_pubkey(certificate.get(), subject_key);
    ARTEL_TRY(
        add_extension(certificate.get(), signer, NID_basic_constraints,
                      spec.is_authority ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE"));
    ARTEL_TRY(
        add_extension(certificate.get(), signer, NID_key_usage,
                      spec.is_authority ? "critical,keyCertSign" : "critical,digitalSignature"));
    ARTEL_TRY(add_extension(certificate.get(), signer, NID_subject_alt_name,
                            fmt::format("URI:{}{}/{}", kUriScheme, spec.cluster, spec.node)));
    if (X509_sign(certificate.get(), issuer_key, EVP_sha256()) == 0)
        return openssl_error("signing a certificate");
    return certificate;
}

std::string time_text(const ASN1_TIME* time) {
    const BioPtr bio(BIO_new(BIO_s_mem()));
    ASN1_TIME_print(bio.get(), time);
    return text_of(bio.get());
}

std::string now_text() {
    const TimePtr now(ASN1_TIME_set(nullptr, std::time(nullptr)));
    return time_text(now.get());
}

}  // namespace

Error check_node_name(std::string_view name) {
    if (name.empty() || name.size() > 64)
        return invalid_argument("node name of {} characters; expected 1 to 64", name.size());
    for (const char c : name) {
        const bool is_fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                             (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        if (!is_fine)
            return invalid_argument(
                "node name holds byte {:#04x}; expected letters, digits, '.', '_' and '-'",
                static_cast<unsigned char>(c));
    }
    return ok();
}

Result<CertificateRequest> make_certificate_request(std::string_view node) {
    ARTEL_TRY(check_node_name(node));
    ARTEL_ASSIGN(const KeyPtr key, make_key());
    const RequestPtr request(X509_REQ_new());
    ARTEL_TRY(set_common_name(X509_REQ_get_subject_name(request.get()), node));
    X509_REQ_set_pubkey(request.get(), key.get());
    if (X509_REQ_sign(request.get(), key.get(), EVP_sha256()) == 0)
        return openssl_error("signing a request");
    const BioPtr bio(BIO_new(BIO_s_mem()));
    if (PEM_write_bio_X509_REQ(bio.get(), request.get()) != 1)
        return openssl_error("writing a request");
    CertificateRequest made;
    ARTEL_ASSIGN(made.key_pem, key_to_pem(key.get()));
    made.request_pem = text_of(bio.get());
    return made;
}

Result<NodeIdentity> make_unenrolled_identity(std::string_view node) {
    ARTEL_TRY(check_node_name(node));
    ARTEL_ASSIGN(const KeyPtr key, make_key());
    ARTEL_ASSIGN(const X509Ptr certificate,
                 make_certificate({.cluster = "none", .node = std::string(node)}, key.get(),
                                  nullptr, key.get()));
    NodeIdentity identity{.cluster = "none",
                          .node = std::string(node),
                          .key_pem = {},
                          .certificate_pem = {},
                          .authority_pem = {}};
    ARTEL_ASSIGN(identity.key_pem, key_to_pem(key.get()));
    ARTEL_ASSIGN(identity.certificate_pem, certificate_to_pem(certificate.get()));
    return identity;
}

Result<std::string> certificate_to_pem(X509* certificate) {
    const BioPtr bio(BIO_new(BIO_s_mem()));
    if (PEM_write_bio_X509(bio.get(), certificate) != 1)
        return openssl_error("writing a certificate");
    return text_of(bio.get());
}

Result<Fingerprint> certificate_fingerprint(const X509* certificate) {
    Fingerprint fingerprint{};
    unsigned length = 0;
    if (X509_digest(certificate, EVP_sha256(), fingerprint.data(), &length) != 1 ||
        length != fingerprint.size())
        return openssl_error("hashing a certificate");
    return fingerprint;
}

Result<Fingerprint> certificate_fingerprint(std::string_view certificate_pem) {
    ARTEL_ASSIGN(const X509Ptr certificate, read_certificate(certificate_pem));
    return certificate_fingerprint(certificate.get());
}

Result<PeerName> peer_name(const X509* certificate) {
    const NamesPtr names(static_cast<GENERAL_NAMES*>(
        X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
        const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
        if (name->type != GEN_URI) continue;
        const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
        std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                              static_cast<std::size_t>(ASN1_STRING_length(uri)));
        if (!text.starts_with(kUriScheme)) continue;
        text.remove_prefix(kUriScheme.size());
        const std::size_t slash = text.find('/');
        if (slash == std::string_view::npos) continue;
        ARTEL_TRY(check_node_name(text.substr(0, slash)));
        ARTEL_TRY(check_node_name(text.substr(slash + 1)));
        return PeerName{std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
    }
    return unauthenticated("the peer's certificate names no node (no URI {}CLUSTER/NODE)",
                           kUriScheme);
}

Error verify_certificate(X509* certificate, std::string_view authority_pem) {
    ARTEL_ASSIGN(const X509Ptr authority, read_certificate(authority_pem));
    const StorePtr store(X509_STORE_new());
    X509_STORE_add_cert(store.get(), authority.get());
    const StoreContextPtr context(X509_STORE_CTX_new());
    X509_STORE_CTX_init(context.get(), store.get(), certificate, nullptr);
    if (X509_verify_cert(context.get()) == 1) return ok();
    const int reason = X509_STORE_CTX_get_error(context.get());
    ERR_clear_error();
    if (reason == X509_V_ERR_CERT_NOT_YET_VALID)
        return unauthenticated(
            "certificate is valid from {} but this machine's clock says {}; set the clock",
            time_text(X509_get0_notBefore(certificate)), now_text());
    if (reason == X509_V_ERR_CERT_HAS_EXPIRED)
        return unauthenticated(
            "certificate was valid until {} and this machine's clock says {}; set the clock or "
            "join again",
            time_text(X509_get0_notAfter(certificate)), now_text());
    return unauthenticated("certificate is not of this cluster ({}); join with a fresh key",
                           X509_verify_cert_error_string(reason));
}

Result<ClusterAuthority> ClusterAuthority::load_or_create(const std::filesystem::path& state_dir) {
    ARTEL_TRY(make_private_directory(state_dir));
    ClusterAuthority authority;
    const auto key_pem = read_file(state_dir / "authority.key", kPemBytesMax);
    if (key_pem.ok()) {
        authority.key_pem_ = *key_pem;
        ARTEL_ASSIGN(authority.certificate_pem_,
                     read_file(state_dir / "authority.crt", kPemBytesMax));
        ARTEL_ASSIGN(const X509Ptr certificate, read_certificate(authority.certificate_pem_));
        ARTEL_ASSIGN(const PeerName name, peer_name(certificate.get()));
        authority.cluster_ = name.cluster;
        return authority;
    }
    if (key_pem.status().code() != ErrorCode::kNotFound) return key_pem.status();
    std::uint64_t number = 0;
    if (RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof(number)) != 1)
        return openssl_error("drawing a cluster id");
    authority.cluster_ = fmt::format("{:016x}", number);
    ARTEL_ASSIGN(const KeyPtr key, make_key());
    ARTEL_ASSIGN(
        const X509Ptr certificate,
        make_certificate({.cluster = authority.cluster_, .node = "authority", .is_authority = true},
                         key.get(), nullptr, key.get()));
    ARTEL_ASSIGN(authority.key_pem_, key_to_pem(key.get()));
    ARTEL_ASSIGN(authority.certificate_pem_, certificate_to_pem(certificate.get()));
    // The key goes last: its presence says that the pair is complete.
    ARTEL_TRY(write_file_atomically(state_dir / "authority.crt",
                                    as_bytes(authority.certificate_pem_), 0600));
    ARTEL_TRY(
        write_file_atomically(state_dir / "authority.key", as_bytes(authority.key_pem_), 0600));
    return authority;
}

Result<Fingerprint> ClusterAuthority::fingerprint() const {
    return certificate_fingerprint(certificate_pem_);
}

Result<std::string> ClusterAuthority::sign(std::string_view request_pem,
                                           std::string_view node) const {
    ARTEL_TRY(check_node_name(node));
    const RequestPtr request(
        PEM_read_bio_X509_REQ(reader(request_pem).get(), nullptr, nullptr, nullptr));
    ERR_clear_error();
    if (!request) return invalid_argument("not a certificate request in PEM form");
    EVP_PKEY* const subject_key = X509_REQ_get0_pubkey(request.get());
    if (subject_key == nullptr || X509_REQ_verify(request.get(), subject_key) != 1) {
        ERR_clear_error();
        return invalid_argument("certificate request is not signed by its own key");
    }
    ARTEL_ASSIGN(const KeyPtr key, read_key(key_pem_));
    ARTEL_ASSIGN(const X509Ptr issuer, read_certificate(certificate_pem_));
    ARTEL_ASSIGN(const X509Ptr certificate,
                 make_certificate({.cluster = cluster_, .node = std::string(node)}, subject_key,
                                  issuer.get(), key.get()));
    return certificate_to_pem(certificate.get());
}

Result<NodeIdentity> ClusterAuthority::issue(std::string_view node) const {
    ARTEL_ASSIGN(CertificateRequest request, make_certificate_request(node));
    ARTEL_ASSIGN(std::string certificate, sign(request.request_pem, node));
    return NodeIdentity{.cluster = cluster_,
                        .node = std::string(node),
                        .key_pem = std::move(request.key_pem),
                        .certificate_pem = std::move(certificate),
                        .authority_pem = certificate_pem_};
}

Error NodeIdentity::store(const std::filesystem::path& state_dir) const {
    ARTEL_TRY(make_private_directory(state_dir));
    ARTEL_TRY(write_file_atomically(state_dir / "cluster.crt", as_bytes(authority_pem), 0600));
    ARTEL_TRY(write_file_atomically(state_dir / "node.crt", as_bytes(certificate_pem), 0600));
    return write_file_atomically(state_dir / "node.key", as_bytes(key_pem), 0600);
}

Result<NodeIdentity> NodeIdentity::load(const std::filesystem::path& state_dir) {
    NodeIdentity identity;
    ARTEL_ASSIGN(identity.key_pem, read_file(state_dir / "node.key", kPemBytesMax));
    ARTEL_ASSIGN(identity.certificate_pem, read_file(state_dir / "node.crt", kPemBytesMax));
    ARTEL_ASSIGN(identity.authority_pem, read_file(state_dir / "cluster.crt", kPemBytesMax));
    ARTEL_ASSIGN(const X509Ptr certificate, read_certificate(identity.certificate_pem));
    ARTEL_TRY(verify_certificate(certificate.get(), identity.authority_pem));
    ARTEL_ASSIGN(const PeerName name, peer_name(certificate.get()));
    identity.cluster = name.cluster;
    identity.node = name.node;
    return identity;
}

}  // namespace artel::net
