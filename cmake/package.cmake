# Debian packages: `cpack` in a build folder makes redco (program, library, Python, manual page) and redco-dev (headers
# for pipelines and models of one's own). scripts/package builds both and checks them with lintian.
set(CPACK_PACKAGE_NAME redco)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
# Debian's variables for who makes a package.
set(PACKAGER "The redco authors <redco@localhost>")
if(DEFINED ENV{DEBEMAIL})
  set(PACKAGER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(CPACK_PACKAGE_CONTACT ${PACKAGER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed training and inference of transformers on CPUs")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
    "redco trains and runs transformers on several machines from one job file. It
shards a model over ranks by two rules (tensor parallelism), starts the ranks
over ssh or in a SLURM allocation, and reads the folders of Hugging Face.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL runtime dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/src)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME redco)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "openmpi-bin, libopenblas0-openmp")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "openssh-client, python3-numpy")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS redco-dev)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
file(WRITE ${CMAKE_BINARY_DIR}/package/triggers "activate-noawait ldconfig\n")
# What Python compiled of the package.
file(WRITE ${CMAKE_BINARY_DIR}/package/prerm
     "#!/bin/sh\nset -e\nfind /usr/lib/redco/python -depth -type d -name __pycache__ -exec rm -rf {} +\n")
file(CHMOD ${CMAKE_BINARY_DIR}/package/prerm PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
     WORLD_EXECUTE)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/package/triggers ${CMAKE_BINARY_DIR}/package/prerm)
set(CPACK_DEBIAN_DEV_PACKAGE_NAME redco-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "redco (= ${PROJECT_VERSION}-1), libfmt-dev, g++, cmake, ninja-build")
set(CPACK_COMPONENT_DEV_DESCRIPTION
    "Headers of redco for pipelines, models, optimizers and metrics in C++, and what
CMake needs to find them.")

# What Debian's policy asks of each package: the licence and the changes.
string(TIMESTAMP PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${CMAKE_BINARY_DIR}/package/changelog
     "redco (${PROJECT_VERSION}-1) unstable; urgency=medium\n\n  * See CHANGELOG.md of the sources.\n\n"
     " -- ${PACKAGER}  ${PACKAGE_DATE}\n")
file(WRITE ${CMAKE_BINARY_DIR}/package/copyright
     "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: redco\n\n"
     "Files: *\nCopyright: 2026 The redco authors\nLicense: Apache-2.0\n\nLicense: Apache-2.0\n"
     " On Debian systems the full text of the Apache License 2.0 is in\n /usr/share/common-licenses/Apache-2.0.\n")
execute_process(COMMAND gzip -9nkf ${CMAKE_BINARY_DIR}/package/changelog)
# What lintian says of packages for Debian's archive, or of a library that other packages use.
file(WRITE ${CMAKE_BINARY_DIR}/package/redco
     "# Not for Debian's archive, so no request of Debian is closed.\nredco: initial-upload-closes-no-bugs\n"
     "# The library belongs to the program; plugins are checked against a hash of its headers.\n"
     "redco: package-name-doesnt-match-sonames *\n"
     "# The program loads it by its name.\nredco: shared-library-lacks-version *\n"
     "# CPack writes these scripts.\nredco: maintscript-calls-ldconfig *\n")
file(WRITE ${CMAKE_BINARY_DIR}/package/redco-dev "redco-dev: initial-upload-closes-no-bugs\n")
if(NOT DEFINED ENV{DEBEMAIL})
  foreach(NAME redco redco-dev)
    file(APPEND ${CMAKE_BINARY_DIR}/package/${NAME}
         "# DEBEMAIL was not set.\n${NAME}: bogus-mail-host *\n${NAME}: bogus-mail-host-in-debian-changelog *\n")
  endforeach()
endif()
# Manual pages are compressed in packages only.
file(WRITE ${CMAKE_BINARY_DIR}/package/compress_manual.cmake
     "file(GLOB_RECURSE PAGES \${CPACK_TEMPORARY_DIRECTORY}/redco.1)\n"
     "foreach(PAGE \${PAGES})\n  execute_process(COMMAND gzip -9n \${PAGE} COMMAND_ERROR_IS_FATAL ANY)\nendforeach()\n")
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_BINARY_DIR}/package/compress_manual.cmake)
foreach(PACKAGE runtime dev)
  set(NAME redco)
  if(PACKAGE STREQUAL dev)
    set(NAME redco-dev)
  endif()
  install(FILES ${CMAKE_BINARY_DIR}/package/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${NAME} COMPONENT ${PACKAGE})
  install(FILES ${CMAKE_BINARY_DIR}/package/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${NAME}
          RENAME changelog.Debian.gz COMPONENT ${PACKAGE})
  install(FILES ${CMAKE_BINARY_DIR}/package/${NAME} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT ${PACKAGE})
endforeach()
include(CPack)
