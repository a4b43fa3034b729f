// SPDX-License-Identifier: Apache-2.0
// A whole cluster in one process: what can never serve says so instead of waiting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "nodes/model_on_disk.hpp"
#include "runtime/cluster_service.hpp"

namespace artel::runtime {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

struct Service : testing::Test {
    test::ModelOnDisk model;
    ClusterServiceOptions options;
    Service() {
        options.model = model.path();
        options.state_dir = model.directory() / "state";
        options.threads = 1;
        options.chunk = 16;
    }
};

TEST_F(Service, ServesATinyModel) {
    auto service = ClusterService::create(options);
    ASSERT_TRUE(service.ok()) << service.status().message();
    const Error error = (*service)->wait_until_serving(seconds(120));
    EXPECT_TRUE(error.ok()) << error.message();
    EXPECT_EQ((*service)->requests().health().workers.size(), 1U);
}

TEST_F(Service, APlanThatCannotBeEndsTheWait) {
    options.split = {1, 3};  // one worker is there
    auto service = ClusterService::create(options);
    ASSERT_TRUE(service.ok()) << service.status().message();
    const Error error = (*service)->wait_until_serving(seconds(120));
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(std::string(error.message()), HasSubstr("the split names 2 workers, 1 are there"));
}

TEST_F(Service, ATemporaryStateDirGoesWithTheService) {
    options.state_dir.clear();
    const auto temporary = [] {
        std::set<std::filesystem::path> found;
        for (const auto& entry :
             std::filesystem::directory_iterator(std::filesystem::temp_directory_path()))
            found.insert(entry.path());
        return found;
    };
    ::setenv("TMPDIR", model.directory().c_str(), 1);
    const auto before = temporary();
    auto service = ClusterService::create(options);
    ASSERT_TRUE(service.ok()) << service.status().message();
    EXPECT_GT(temporary().size(), before.size());
    service->reset();
    EXPECT_EQ(temporary(), before);
    ::unsetenv("TMPDIR");
}

}  // namespace
}  // namespace artel::runtime
