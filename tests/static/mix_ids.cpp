// SPDX-License-Identifier: Apache-2.0
// Ids of different things do not mix, neither compared nor passed.
#include "base/strong_id.hpp"

namespace artel {

using NodeId = StrongId<struct NodeTag>;
using SequenceId = StrongId<struct SequenceTag>;

bool is_same(NodeId a, NodeId b) {
    return a == b;
}

bool compare(NodeId node, SequenceId sequence) {
#ifdef ARTEL_MUST_NOT_COMPILE
    return is_same(node, sequence);
#else
    return is_same(node, NodeId{sequence.value});
#endif
}

}  // namespace artel
