# Pipelines in Python (src/python): the module redco._redco, and libredco_python.so, which starts an interpreter in a
# rank. Built if a Python from 3.9 on has its headers, its library and NumPy, and pybind11 is there; redco itself and
# its other libraries never link Python.
set(REDCO_PYTHON "" CACHE STRING "the Python program to build for; empty: the first that can be used; OFF: none")

# Sets PYTHON_* of the first usable one of the candidates.
function(find_usable_python)
  foreach(PROGRAM ${ARGN})
    if(NOT PROGRAM OR NOT EXISTS "${PROGRAM}")
      continue()
    endif()
    execute_process(
      COMMAND ${PROGRAM} -c "import sys, sysconfig, os, numpy
v = sysconfig.get_config_var
assert sys.version_info >= (3, 9)
include = sysconfig.get_path('include')
assert os.path.exists(os.path.join(include, 'Python.h'))
folders = [v('LIBDIR'), os.path.join(v('LIBDIR'), v('MULTIARCH') or '')]
library = [p for p in (os.path.join(f, v('LDLIBRARY')) for f in folders) if p.endswith('.so') and os.path.exists(p)][0]
print(include, library, v('EXT_SUFFIX'), '%d.%d' % sys.version_info[:2], sys.executable, sep=';')"
      OUTPUT_VARIABLE FOUND ERROR_QUIET RESULT_VARIABLE FAILED OUTPUT_STRIP_TRAILING_WHITESPACE
    )
    if(NOT FAILED)
      set(PYTHON_FOUND "${FOUND}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(PYTHON_FOUND "" PARENT_SCOPE)
endfunction()

set(REDCO_HAS_PYTHON OFF)
if(NOT REDCO_PYTHON STREQUAL OFF)
  if(REDCO_PYTHON)
    # pybind11 may be a package of this Python.
    execute_process(COMMAND ${REDCO_PYTHON} -c "import pybind11; print(pybind11.get_include())"
                    OUTPUT_VARIABLE OWN_PYBIND11 ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  find_path(PYBIND11_INCLUDE pybind11/pybind11.h HINTS ${OWN_PYBIND11})
  if(REDCO_PYTHON)
    find_usable_python(${REDCO_PYTHON})
  else()
    find_program(PATH_PYTHON python3)
    find_usable_python(${PATH_PYTHON} /usr/bin/python3)
  endif()
  if(PYTHON_FOUND AND PYBIND11_INCLUDE)
    set(REDCO_HAS_PYTHON ON)
  elseif(REDCO_PYTHON)
    message(FATAL_ERROR "REDCO_PYTHON=${REDCO_PYTHON}: it needs its headers and shared library, NumPy and pybind11")
  endif()
endif()
if(NOT REDCO_HAS_PYTHON)
  message(STATUS "no Python with headers, library and NumPy, or no pybind11: pipelines in Python are left out")
  return()
endif()
list(GET PYTHON_FOUND 0 PYTHON_INCLUDE)
list(GET PYTHON_FOUND 1 PYTHON_LIBRARY)
list(GET PYTHON_FOUND 2 PYTHON_SUFFIX)
list(GET PYTHON_FOUND 3 PYTHON_VERSION)
list(GET PYTHON_FOUND 4 PYTHON_PROGRAM)

set(PACKAGE ${CMAKE_BINARY_DIR}/python/redco)
file(MAKE_DIRECTORY ${PACKAGE})
file(GLOB PYTHON_FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/python/redco/*.py* ${CMAKE_SOURCE_DIR}/src/python/redco/py.typed)
foreach(FILE ${PYTHON_FILES} )
  get_filename_component(NAME ${FILE} NAME)
  file(CREATE_LINK ${FILE} ${PACKAGE}/${NAME} SYMBOLIC)
endforeach()

file(GLOB PYTHON_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/python/*.cpp)
add_library(redco_python_module MODULE ${PYTHON_SOURCES})
set_target_properties(
  redco_python_module PROPERTIES OUTPUT_NAME _redco PREFIX "" SUFFIX ${PYTHON_SUFFIX} LIBRARY_OUTPUT_DIRECTORY ${PACKAGE}
                                 CXX_VISIBILITY_PRESET hidden INSTALL_RPATH "$ORIGIN/../../.."
                                 UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6
)
target_include_directories(redco_python_module SYSTEM PRIVATE ${PYTHON_INCLUDE} ${PYBIND11_INCLUDE})
target_link_libraries(redco_python_module PRIVATE redco nlohmann_json::nlohmann_json)
target_precompile_headers(redco_python_module PRIVATE ${CMAKE_SOURCE_DIR}/src/python/bindings.h)
# Bindings only convert arguments. With less optimization they compile in less time.
target_compile_options(redco_python_module PRIVATE -O1 -g0)

add_library(redco_python SHARED ${CMAKE_SOURCE_DIR}/src/python/embed/embed.cpp)
target_include_directories(redco_python SYSTEM PRIVATE ${PYTHON_INCLUDE})
target_compile_definitions(redco_python PRIVATE REDCO_PYTHON="${PYTHON_PROGRAM}")
target_link_libraries(redco_python PRIVATE redco ${PYTHON_LIBRARY})
set_target_properties(
  redco_python PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/src INSTALL_RPATH "$ORIGIN" LINK_FLAGS -Wl,--no-as-needed
)
add_dependencies(redco_python redco_python_module)
add_dependencies(redco_programs redco_python)

set(PYTHON_DESTINATION ${CMAKE_INSTALL_LIBDIR}/redco/python/redco)
if(SKBUILD)
  set_target_properties(redco_python_module PROPERTIES INSTALL_RPATH "$ORIGIN/lib")
  set(PYTHON_DESTINATION redco)
endif()
install(TARGETS redco_python LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
install(TARGETS redco_python_module LIBRARY DESTINATION ${PYTHON_DESTINATION} COMPONENT runtime)
install(FILES ${PYTHON_FILES} DESTINATION ${PYTHON_DESTINATION} COMPONENT runtime)
