# What `cmake --install` puts into a prefix: the program, the libraries with their headers, and the files for find_package(lancet).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/lancet")

# The entry point: a program that links this can do everything that lancet does, except its command line.
add_library(lancet_door INTERFACE)
target_link_libraries(lancet_door INTERFACE lancet_session lancet_studies lancet_diff lancet_distributed)
set_target_properties(lancet_door PROPERTIES EXPORT_NAME lancet)
add_library(lancet::lancet ALIAS lancet_door)

install(TARGETS lancet_door ${LANCET_ROOMS} EXPORT lancet_targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT lancet_targets NAMESPACE lancet:: FILE lancetTargets.cmake DESTINATION "${_package}")
install(TARGETS lancet RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(DIRECTORY include/lancet DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
configure_package_config_file(cmake/lancetConfig.cmake.in "${CMAKE_BINARY_DIR}/lancetConfig.cmake" INSTALL_DESTINATION "${_package}")
# The libraries only fit the headers of the same version: there is no promise of compatibility yet.
write_basic_package_version_file("${CMAKE_BINARY_DIR}/lancetConfigVersion.cmake" COMPATIBILITY ExactVersion)
install(FILES "${CMAKE_BINARY_DIR}/lancetConfig.cmake" "${CMAKE_BINARY_DIR}/lancetConfigVersion.cmake" cmake/TorchWheel.cmake
        DESTINATION "${_package}")
