# Runs at each build. Writes OUT, a header with the revision of the sources, if the revision has changed.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 OUTPUT_VARIABLE REVISION ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE)
set(TEXT "#define REDCO_REVISION \"${REVISION}\"\n")
if(EXISTS ${OUT})
  file(READ ${OUT} OLD)
endif()
if(NOT "${OLD}" STREQUAL "${TEXT}")
  file(WRITE ${OUT} "${TEXT}")
endif()
