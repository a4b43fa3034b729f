// SPDX-License-Identifier: Apache-2.0
#include "runtime/control_socket.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>

namespace artel::runtime {
namespace {

using ::testing::HasSubstr;

class ControlSocketTest : public ::testing::Test {
  protected:
    ControlSocketTest() {
        std::string name = (std::filesystem::temp_directory_path() / "artel-XXXXXX").string();
        root_ = ::mkdtemp(name.data());
        // Longer than the address of a Unix socket may be.
        directory_ = root_ / std::string(150, 'd');
        std::filesystem::create_directory(directory_);
    }
    ~ControlSocketTest() override { std::filesystem::remove_all(root_); }

    static Result<std::string> echo(const std::string& line) {
        if (line == "bad") return invalid_argument("bad is not known");
        return "<" + line + ">";
    }

    std::filesystem::path root_, directory_;
};

TEST_F(ControlSocketTest, AnswersOneLineAfterAnother) {
    const auto socket = ControlSocket::open(directory_, echo);
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_EQ(*ask_control_socket(directory_, "status"), "<status>");
    const auto refused = ask_control_socket(directory_, "bad");
    EXPECT_EQ(refused.status().message(), "bad is not known");
    EXPECT_EQ(*ask_control_socket(directory_, "status"), "<status>");
}

TEST_F(ControlSocketTest, OnlyItsUserMayOpenIt) {
    const auto socket = ControlSocket::open(directory_, echo);
    struct stat status {};
    ASSERT_EQ(::stat((directory_ / "control").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(ControlSocketTest, ASecondServerInTheSameDirectoryIsRefused) {
    const auto first = ControlSocket::open(directory_, echo);
    const auto second = ControlSocket::open(directory_, echo);
    EXPECT_EQ(second.status().code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(second.status().message(), HasSubstr("another artel serve"));
    EXPECT_EQ(*ask_control_socket(directory_, "x"), "<x>");
}

TEST_F(ControlSocketTest, WhatAKilledServerLeftIsReplaced) {
    std::ofstream(directory_ / "control") << "not a socket";
    EXPECT_EQ(ask_control_socket(directory_, "x").status().code(), ErrorCode::kNotFound);
    const auto socket = ControlSocket::open(directory_, echo);
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_EQ(*ask_control_socket(directory_, "x"), "<x>");
}

TEST_F(ControlSocketTest, NobodyThereIsSaid) {
    const auto answer = ask_control_socket(root_ / "none", "x");
    EXPECT_EQ(answer.status().code(), ErrorCode::kNotFound);
    { const auto socket = ControlSocket::open(directory_, echo); }
    EXPECT_EQ(ask_control_socket(directory_, "x").status().code(), ErrorCode::kNotFound);
}

TEST_F(ControlSocketTest, ALineThatIsTooLongIsNotAnswered) {
    const auto socket = ControlSocket::open(directory_, echo);
    const auto answer = ask_control_socket(directory_, std::string(100'000, 'x'));
    EXPECT_FALSE(answer.ok());
    EXPECT_EQ(*ask_control_socket(directory_, "x"), "<x>");
}

}  // namespace
}  // namespace artel::runtime
