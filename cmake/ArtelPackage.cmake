# SPDX-License-Identifier: Apache-2.0
# What is installed where, and the Debian package: `cpack --config build/release/CPackConfig.cmake`.
include(GNUInstallDirs)
install(TARGETS artel RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(FILES README.md CHANGELOG.md LICENSE NOTICE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES docs/cluster-file.md packaging/serve.toml.example packaging/worker.toml.example
    DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES packaging/artel-serve.service packaging/artel-worker.service
    DESTINATION lib/systemd/system)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME artel)
set(CPACK_PACKAGE_CONTACT "The artel developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "one language model over many machines")
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/package")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)   # the shared libraries, read off the program
set(CPACK_DEBIAN_PACKAGE_DEPENDS "python3, python3-jinja2")   # chat templates
include(CPack)
