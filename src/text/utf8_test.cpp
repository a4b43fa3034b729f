// SPDX-License-Identifier: Apache-2.0
#include "text/utf8.hpp"

#include <gtest/gtest.h>

namespace artel::text {
namespace {

TEST(Utf8, EveryCodePointIsEncodedAsOneCharacterThatDecodesToIt) {
    for (std::uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
        if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
        std::string text;
        append_utf8(text, code_point);
        const Utf8Prefix prefix = read_utf8(text);
        ASSERT_EQ(prefix.kind, Utf8Prefix::Kind::Character) << code_point;
        ASSERT_EQ(prefix.count, text.size()) << code_point;
        ASSERT_EQ(decode_utf8(text), code_point);
    }
}

TEST(Utf8, SurrogatesOverlongFormsAndTooLargeValuesAreInvalid) {
    for (const char* text : {"\xED\xA0\x80", "\xC0\xAF", "\xE0\x80\x80", "\xF0\x80\x80\x80",
                             "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\x80"})
        EXPECT_EQ(read_utf8(text).kind, Utf8Prefix::Kind::Invalid) << text;
}

TEST(Utf8, AnInvalidPrefixIsTheMaximalSubpart) {
    EXPECT_EQ(read_utf8("\xE2\x80\x41").count, 2U);
    EXPECT_EQ(read_utf8("\xF0\x80\x80\x41").count, 1U);
    EXPECT_EQ(read_utf8("\xF0\x9F\x98\x41").count, 3U);
}

TEST(Utf8, ACutCharacterIsIncomplete) {
    const std::string whole = "\xF0\x9F\x98\x80";
    for (std::size_t count = 1; count < whole.size(); ++count)
        EXPECT_EQ(read_utf8(whole.substr(0, count)).kind, Utf8Prefix::Kind::Incomplete) << count;
}

TEST(Utf8, ValidBytesEndAtTheFirstWrongOne) {
    EXPECT_EQ(valid_utf8_bytes("a\xC3\xA9z"), 4U);
    EXPECT_EQ(valid_utf8_bytes("a\xC3"), 1U);
    EXPECT_TRUE(is_valid_utf8(""));
}

}  // namespace
}  // namespace artel::text
