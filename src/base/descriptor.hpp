// SPDX-License-Identifier: Apache-2.0
// Descriptor: a file descriptor that is closed with its owner; below 0: none.
#pragma once

#include <unistd.h>

#include <utility>

namespace artel {

class Descriptor {
  public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    int get() const { return number_; }

  private:
    int number_;
};

}  // namespace artel
