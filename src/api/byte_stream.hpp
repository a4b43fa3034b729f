// SPDX-License-Identifier: Apache-2.0
// ByteStream: one accepted connection as the HTTP code sees it, so that TLS is another
// implementation and not another instantiation. One read and one write may be in flight; both
// complete on the io thread, after the call has returned; close() completes them with an error.
#pragma once

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

namespace artel::api {

class ByteStream {
  public:
    using Completion = std::function<void(boost::system::error_code error, std::size_t bytes)>;

    virtual ~ByteStream() = default;
    /// The bytes must stay until `done` runs.
    virtual void async_read_some(std::span<char> target, Completion done) = 0;
    virtual void async_write_some(std::string_view source, Completion done) = 0;
    virtual void shutdown_write() = 0;
    virtual void close() = 0;
    /// For poll(2): whether the peer is still there, without reading.
    virtual int descriptor() const = 0;
};

}  // namespace artel::api
