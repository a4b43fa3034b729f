# SPDX-License-Identifier: Apache-2.0
# Compiler options that hold for the whole tree, and the developer's switches.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()
# Checks (ARTEL_CHECK) are always on; NDEBUG only removes ARTEL_DCHECK.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

option(ARTEL_DEVELOPER "Warnings are errors" OFF)
option(ARTEL_TESTS "Build the tests" ON)
set(ARTEL_SANITIZE "" CACHE STRING "Sanitizers for the whole tree: address,undefined or thread")
option(ARTEL_FUZZ "Build the libFuzzer targets (needs Clang)" OFF)

find_program(ARTEL_CCACHE ccache)
if(ARTEL_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${ARTEL_CCACHE}")
endif()

add_library(artel_options INTERFACE)
target_include_directories(artel_options INTERFACE
    "${CMAKE_SOURCE_DIR}/src" "${CMAKE_BINARY_DIR}/generated")
# Contraction would fuse a*b+c where we did not write it: results would depend on the compiler.
target_compile_options(artel_options INTERFACE
    -ffp-contract=off -Wall -Wextra -Wconversion -Wshadow -Wswitch-enum -Werror=unused-result
    $<$<BOOL:${ARTEL_DEVELOPER}>:-Werror>)
if(ARTEL_SANITIZE)
    # Line numbers are all that a report needs, and they cost half the compile time of the rest.
    target_compile_options(artel_options INTERFACE
        -fsanitize=${ARTEL_SANITIZE} -fno-omit-frame-pointer -g1)
    target_link_options(artel_options INTERFACE -fsanitize=${ARTEL_SANITIZE})
    # What a sanitizer build spends its time on is headers, so the files of a library share them
    # (two of one folder can't use a name for different things), and optimising, so tests are not.
    set(artel_library_properties UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    set(artel_library_options -O1)
    if(ARTEL_SANITIZE MATCHES "undefined")
        target_compile_options(artel_options INTERFACE -fno-sanitize-recover=undefined)
    endif()
endif()
if(ARTEL_FUZZ)
    list(APPEND artel_library_options -fsanitize=fuzzer-no-link)
endif()
