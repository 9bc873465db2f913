# `pip install .` (pyproject.toml): the folders of a wheel. The package redco is in site-packages, its libraries in
# redco/lib, and the program where the environment has its programs.
set(CMAKE_INSTALL_LIBDIR redco/lib)
set(CMAKE_INSTALL_BINDIR ${SKBUILD_SCRIPTS_DIR})
set(CMAKE_INSTALL_DATADIR ${SKBUILD_DATA_DIR}/share)
set(CMAKE_INSTALL_MANDIR ${SKBUILD_DATA_DIR}/share/man)
if(NOT REDCO_PYTHON)
  set(REDCO_PYTHON ${Python_EXECUTABLE})
endif()
execute_process(
  COMMAND ${REDCO_PYTHON} -c "import os, sysconfig
print(os.path.relpath(sysconfig.get_path('platlib'), sysconfig.get_path('scripts')))"
  OUTPUT_VARIABLE REDCO_PACKAGES OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY
)
set(REDCO_WHEEL_RPATH "$ORIGIN/${REDCO_PACKAGES}/redco/lib")  # of the program
