# SPDX-License-Identifier: Apache-2.0
# Outside libraries (Debian 12 packages), each reached through one interface target a folder.
# The reasons are in docs/decisions/0002-dependencies.md.
find_package(PkgConfig REQUIRED)
find_package(absl REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(Protobuf REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)

add_library(artel_base_external INTERFACE)
target_link_libraries(artel_base_external INTERFACE
    absl::status absl::statusor absl::strings fmt::fmt spdlog::spdlog Threads::Threads)
target_compile_definitions(artel_base_external INTERFACE SPDLOG_FMT_EXTERNAL)

add_library(artel_text_external INTERFACE)
target_link_libraries(artel_text_external INTERFACE PkgConfig::PCRE2 nlohmann_json::nlohmann_json)

add_library(artel_engine_external INTERFACE)   # Random123 is headers only

add_library(artel_protocol_external INTERFACE)
target_link_libraries(artel_protocol_external INTERFACE
    protobuf::libprotobuf PkgConfig::XXHASH)

add_library(artel_net_external INTERFACE)
target_link_libraries(artel_net_external INTERFACE Boost::headers OpenSSL::SSL OpenSSL::Crypto)

add_library(artel_runtime_external INTERFACE)
target_link_libraries(artel_runtime_external INTERFACE
    Boost::headers PkgConfig::XXHASH tomlplusplus::tomlplusplus nlohmann_json::nlohmann_json)

add_library(artel_api_external INTERFACE)
target_link_libraries(artel_api_external INTERFACE
    Boost::headers OpenSSL::SSL OpenSSL::Crypto nlohmann_json::nlohmann_json)

add_library(artel_cli_external INTERFACE)
target_link_libraries(artel_cli_external INTERFACE
    CLI11::CLI11 nlohmann_json::nlohmann_json tomlplusplus::tomlplusplus)

if(ARTEL_TESTS)
    find_package(GTest REQUIRED)
    include(GoogleTest)
endif()
