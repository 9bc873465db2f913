# Runs at each build in which a header has changed. Writes OUT, a header with the hash of the preprocessed public headers
# (src/redco.h and all that it includes, also those of the C++ library and of fmt), of the compiler and of FLAGS.
separate_arguments(ARGUMENTS UNIX_COMMAND "${FLAGS}")
foreach(FOLDER ${INCLUDES})
  list(APPEND ARGUMENTS -I${FOLDER})
endforeach()
execute_process(
  COMMAND ${CXX} ${ARGUMENTS} -E -P -x c++ -DREDCO_ABI_HASH="" -I${SOURCE}/src ${SOURCE}/src/redco.h
  OUTPUT_VARIABLE TEXT ERROR_VARIABLE SAID RESULT_VARIABLE CODE
)
if(NOT CODE EQUAL 0)
  message(FATAL_ERROR "the public headers cannot be preprocessed:\n${SAID}")
endif()
# The place of a check (REDCO_CHECK) is no part of the interface.
string(REGEX REPLACE "check_failed\\(\"[^\"]*\", *[0-9]+," "check_failed(" TEXT "${TEXT}")
string(SHA256 HASH "${COMPILER}\n${FLAGS}\n${TEXT}")
string(SUBSTRING "${HASH}" 0 16 HASH)
set(HEADER "#pragma once\n#define REDCO_ABI_HASH \"${HASH}\"\n")
if(EXISTS ${OUT})
  file(READ ${OUT} OLD)
endif()
if(NOT "${OLD}" STREQUAL "${HEADER}")
  file(WRITE ${OUT} "${HEADER}")
endif()
