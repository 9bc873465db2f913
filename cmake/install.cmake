include(CMakePackageConfigHelpers)
# Two components: what runs jobs, and what is needed to compile pipelines and models of one's own.
install(TARGETS redco EXPORT redcoTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(TARGETS redco_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redco COMPONENT dev FILES_MATCHING PATTERN "*.h" PATTERN "pch.h" EXCLUDE
        PATTERN "src/python" EXCLUDE)
install(FILES ${CMAKE_BINARY_DIR}/abi/redco_abi_hash DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redco
        COMPONENT dev)
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/redco/configs COMPONENT runtime)
install(EXPORT redcoTargets NAMESPACE redco:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/redco COMPONENT dev)
file(WRITE ${CMAKE_BINARY_DIR}/redcoConfig.cmake
     "include(CMakeFindDependencyMacro)\nfind_dependency(fmt)\ninclude(\${CMAKE_CURRENT_LIST_DIR}/redcoTargets.cmake)\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/redcoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/redcoConfig.cmake ${CMAKE_BINARY_DIR}/redcoConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/redco COMPONENT dev)
if(NOT SKBUILD)
  include(cmake/package.cmake)
endif()
