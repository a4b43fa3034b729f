// SPDX-License-Identifier: Apache-2.0
#include "api/api_keys.hpp"

#include <gtest/gtest.h>

#include <string>

namespace artel::api {
namespace {

TEST(ApiKeys, AllowsWhatTheFileLists) {
    const auto keys = ApiKeys::parse("alpha-1\n\n  beta-2 \r\ngamma-3");
    ASSERT_TRUE(keys.ok());
    for (const char* good : {"Bearer alpha-1", "bearer beta-2", "Bearer  gamma-3 "})
        EXPECT_TRUE(keys->allows(good)) << good;
    for (const char* bad : {"", "Bearer ", "Bearer alpha", "Bearer alpha-12", "alpha-1",
                            "Basic alpha-1", "Bearer alpha-1\nbeta-2"})
        EXPECT_FALSE(keys->allows(bad)) << bad;
    EXPECT_FALSE(keys->allows(std::nullopt));
    EXPECT_TRUE(ApiKeys().allows(std::nullopt));
}

TEST(ApiKeys, RefusesBadFilesWithoutShowingKeys) {
    EXPECT_FALSE(ApiKeys::parse("").ok());
    EXPECT_FALSE(ApiKeys::parse(" \n\r\n").ok());
    EXPECT_FALSE(ApiKeys::parse(std::string(513, 'x')).ok());
    const auto spaced = ApiKeys::parse("good\nsecret word\n");
    ASSERT_FALSE(spaced.ok());
    EXPECT_EQ(spaced.status().message().find("secret"), std::string::npos);
    EXPECT_NE(spaced.status().message().find("line 2"), std::string::npos);
    EXPECT_EQ(ApiKeys::load("/no/such/file").status().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace artel::api
