# SPDX-License-Identifier: Apache-2.0
# artel_embed_file(FOLDER FILE NAME) puts src/FOLDER/FILE into the program: the generated header
# "FOLDER/<file without extension>.hpp" defines artel::FOLDER::NAME as a std::string_view of it.

function(artel_embed_file folder file name)
    set(source "${CMAKE_SOURCE_DIR}/src/${folder}/${file}")
    set_property(DIRECTORY "${CMAKE_SOURCE_DIR}" APPEND PROPERTY
        CMAKE_CONFIGURE_DEPENDS "${source}")
    file(READ "${source}" text)
    get_filename_component(stem "${file}" NAME_WE)
    configure_file("${CMAKE_SOURCE_DIR}/cmake/embedded_file.hpp.in"
        "${CMAKE_BINARY_DIR}/generated/${folder}/${stem}.hpp" @ONLY)
endfunction()
