// SPDX-License-Identifier: Apache-2.0
#include "net/identity.hpp"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include "base/file.hpp"
#include "net/openssl_pointers.hpp"

namespace artel::net {
namespace {

namespace fs = std::filesystem;

class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        std::string name = (fs::temp_directory_path() / "artel-identity-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~TemporaryDirectory() { fs::remove_all(path_); }
    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

X509Ptr parse(const std::string& pem) {
    const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    return X509Ptr(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

TEST(Identity, IssuedCertificateNamesItsNodeAndVerifies) {
    const TemporaryDirectory dir;
    const auto authority = ClusterAuthority::load_or_create(dir.path() / "state");
    ASSERT_TRUE(authority.ok()) << authority.status().message();
    const auto identity = authority->issue("worker-1");
    ASSERT_TRUE(identity.ok());
    const auto certificate = parse(identity->certificate_pem);
    EXPECT_TRUE(verify_certificate(certificate.get(), authority->certificate_pem()).ok());
    EXPECT_EQ(peer_name(certificate.get())->node, "worker-1");
    EXPECT_EQ(peer_name(certificate.get())->cluster, authority->cluster());
}

TEST(Identity, AnotherClustersAuthorityAndSelfSignedAreRefused) {
    const TemporaryDirectory dir;
    const auto ours = ClusterAuthority::load_or_create(dir.path() / "a");
    const auto theirs = ClusterAuthority::load_or_create(dir.path() / "b");
    const auto stranger = theirs->issue("worker-1");
    const auto unenrolled = make_unenrolled_identity("worker-1");
    for (const std::string& pem : {stranger->certificate_pem, unenrolled->certificate_pem}) {
        const Error error = verify_certificate(parse(pem).get(), ours->certificate_pem());
        EXPECT_EQ(error.code(), ErrorCode::kUnauthenticated);
    }
}

TEST(Identity, SurvivesARestartWithPrivateFiles) {
    const TemporaryDirectory dir;
    const auto first = ClusterAuthority::load_or_create(dir.path() / "state");
    const auto second = ClusterAuthority::load_or_create(dir.path() / "state");
    EXPECT_EQ(first->cluster(), second->cluster());
    EXPECT_EQ(*first->fingerprint(), *second->fingerprint());
    const auto identity = second->issue("n");
    ASSERT_TRUE(identity->store(dir.path() / "node").ok());
    EXPECT_EQ(NodeIdentity::load(dir.path() / "node")->node, "n");
    EXPECT_EQ(NodeIdentity::load(dir.path() / "nowhere").status().code(), ErrorCode::kNotFound);
    for (const char* file : {"state/authority.key", "node/node.key"}) {
        struct stat status {};
        ASSERT_EQ(::stat((dir.path() / file).c_str(), &status), 0);
        EXPECT_EQ(status.st_mode & 0777u, 0600u) << file;
    }
}

TEST(Identity, SignIgnoresTheNameInTheRequestAndRefusesGarbage) {
    const TemporaryDirectory dir;
    const auto authority = ClusterAuthority::load_or_create(dir.path());
    const auto request = make_certificate_request("i-want-to-be-coordinator");
    const auto signed_pem = authority->sign(request->request_pem, "worker-7");
    EXPECT_EQ(peer_name(parse(*signed_pem).get())->node, "worker-7");
    EXPECT_FALSE(authority->sign("garbage", "worker-7").ok());
    EXPECT_FALSE(authority->sign(request->request_pem, "evil/../name").ok());
}

TEST(JoinKey, RoundTripsAndRefusesEveryChangedCharacter) {
    JoinKey key;
    key.address = "127.0.0.1:7100";
    key.secret.fill(7);
    const std::string text = key.to_text();
    const auto parsed = JoinKey::parse(text + "\n");
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(parsed->address, key.address);
    EXPECT_EQ(parsed->secret, key.secret);
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::string damaged = text;
        damaged[i] = damaged[i] == 'A' ? 'B' : 'A';
        EXPECT_FALSE(JoinKey::parse(damaged).ok()) << i;
        EXPECT_FALSE(JoinKey::parse(text.substr(0, i)).ok()) << i;
    }
    EXPECT_FALSE(JoinKey::parse(std::string(100000, 'A')).ok());
}

}  // namespace
}  // namespace artel::net
