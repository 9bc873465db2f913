# Ends the configuration with another MPI than Open MPI: redco starts, names and watches ranks as Open MPI does.
find_file(MPI_HEADER mpi.h PATHS ${MPI_CXX_INCLUDE_DIRS} NO_CACHE NO_DEFAULT_PATH)
if(MPI_HEADER)
  file(STRINGS ${MPI_HEADER} IS_OPEN_MPI REGEX "define +OPEN_MPI " LIMIT_COUNT 1)
  file(STRINGS ${MPI_HEADER} IS_MPICH REGEX "define +MPICH_VERSION " LIMIT_COUNT 1)
  set(OTHER_MPI "another MPI")
  if(IS_MPICH)
    set(OTHER_MPI "MPICH, or an MPI made from it")
  endif()
  if(NOT IS_OPEN_MPI)
    message(FATAL_ERROR "redco needs Open MPI 4.1 or 5, but ${MPI_HEADER} belongs to ${OTHER_MPI}. Install Open MPI "
                        "(Debian: libopenmpi-dev), and name its compiler: -DMPI_CXX_COMPILER=/usr/bin/mpicxx.openmpi")
  endif()
endif()
