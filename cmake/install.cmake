include(CMakePackageConfigHelpers)
install(TARGETS redco EXPORT redcoTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS redco_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redco FILES_MATCHING PATTERN "*.h" PATTERN "pch.h" EXCLUDE
        PATTERN "src/python" EXCLUDE)
install(FILES ${CMAKE_BINARY_DIR}/abi/redco_abi_hash DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/redco)
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/redco/configs)
install(EXPORT redcoTargets NAMESPACE redco:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/redco)
file(WRITE ${CMAKE_BINARY_DIR}/redcoConfig.cmake
     "include(CMakeFindDependencyMacro)\nfind_dependency(fmt)\ninclude(\${CMAKE_CURRENT_LIST_DIR}/redcoTargets.cmake)\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/redcoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/redcoConfig.cmake ${CMAKE_BINARY_DIR}/redcoConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/redco)
