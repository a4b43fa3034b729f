// SPDX-License-Identifier: Apache-2.0
#include "runtime/child_process.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <optional>

#include "base/descriptor.hpp"

namespace artel::runtime {
namespace {

TEST(ChildProcess, HoldsNoDescriptorOfItsParent) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);  // not close-on-exec, as sockets of libraries are
    const Descriptor reader(ends[0]);
    std::optional<Descriptor> writer(ends[1]);
    auto child = ChildProcess::start({"/bin/sleep", "60"}, "text");
    ASSERT_TRUE(child.ok()) << child.status().message();
    writer.reset();
    pollfd watched{reader.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&watched, 1, 10'000), 1) << "the child keeps the pipe open";
    EXPECT_EQ(watched.revents, POLLHUP);
    EXPECT_EQ(::kill(child->pid(), 0), 0) << "it must live on for this to say anything";
}

}  // namespace
}  // namespace artel::runtime
