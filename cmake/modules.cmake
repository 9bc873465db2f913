# The kinds of CPUs that have kernels: REDCO_CPU is the folder of this one in src/kernels/cpu.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(REDCO_CPU neon)
  set(REDCO_OTHER_CPU x86)
else()
  set(REDCO_CPU x86)
  set(REDCO_OTHER_CPU neon)
endif()

# redco_module(NAME DEPS folder... [LIBS target...] [LINK target...]): the folder src/NAME as an object library that sees
# only its dependencies. LINK: libraries that the folder links but is not compiled with. All of them together are the
# shared library `redco`.
set(REDCO_OBJECTS "" CACHE INTERNAL "")
set(REDCO_LIBS "" CACHE INTERNAL "")
add_library(redco_pch OBJECT ${CMAKE_SOURCE_DIR}/src/base/pch.cpp)
target_link_libraries(redco_pch PUBLIC fmt::fmt)
target_include_directories(redco_pch PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_precompile_headers(redco_pch PRIVATE ${CMAKE_SOURCE_DIR}/src/base/pch.h)
function(redco_module NAME)
  cmake_parse_arguments(M "" "" "DEPS;LIBS;LINK" ${ARGN})
  file(GLOB_RECURSE SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${NAME}/*.cpp)
  list(FILTER SOURCES EXCLUDE REGEX "/isa/|/avx512_bf16/|/amx/|/${REDCO_OTHER_CPU}/|/pch.cpp$")
  if(NOT SOURCES)
    add_library(redco_${NAME} INTERFACE)
    target_include_directories(redco_${NAME} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    foreach(D ${M_DEPS})
      target_link_libraries(redco_${NAME} INTERFACE redco_${D})
    endforeach()
    return()
  endif()
  add_library(redco_${NAME} OBJECT ${SOURCES})
  target_include_directories(redco_${NAME} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(redco_${NAME} PUBLIC fmt::fmt)
  if(M_LIBS)
    target_link_libraries(redco_${NAME} PRIVATE ${M_LIBS})
  endif()
  # kernels has other compiler options (-fopenmp), so it has its own precompiled header.
  if(NAME STREQUAL kernels)
    target_precompile_headers(redco_${NAME} PRIVATE ${CMAKE_SOURCE_DIR}/src/kernels/pch.h)
  else()
    target_precompile_headers(redco_${NAME} REUSE_FROM redco_pch)
  endif()
  # Folders with many files compile several files together, because shared headers take most of the time. So names in
  # unnamed namespaces must be unique within the folder. Without precompiled headers each file is compiled alone, so
  # that several build folders share a compiler cache.
  if(NAME MATCHES "^(assembly|base|check|ckpt|commands|config|data|env|generate|gguf|jinja|job|launch|metrics|models|nn|ops|optim|pipeline|pipelines|plan|report|shard|tokenizers|train|unicode|verify|workdir)$"
     AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    set_target_properties(redco_${NAME} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 20)
    # GCC warns about types of unnamed namespaces in included files, and a unity file includes all files.
    target_compile_options(redco_${NAME} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
  set(REDCO_OBJECTS "${REDCO_OBJECTS};$<TARGET_OBJECTS:redco_${NAME}>" CACHE INTERNAL "")
  set(REDCO_LIBS "${REDCO_LIBS};${M_LIBS};${M_LINK}" CACHE INTERNAL "")
endfunction()

# redco_bf16_sources(NAME ISA FLAGS files...): files for CPUs that multiply pairs of bf16 (src/NAME/.../ISA).
function(redco_bf16_sources NAME ISA FLAGS)
  add_library(redco_${NAME}_${ISA} OBJECT ${ARGN})
  target_include_directories(redco_${NAME}_${ISA} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  # GCC 12 takes the undefined operands inside its intrinsics for uninitialized variables.
  target_compile_options(
    redco_${NAME}_${ISA} PRIVATE -march=x86-64-v4 -mavx512bf16 ${FLAGS} -mprefer-vector-width=512 -O3
                                 $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  )
  set(REDCO_OBJECTS "${REDCO_OBJECTS};$<TARGET_OBJECTS:redco_${NAME}_${ISA}>" CACHE INTERNAL "")
endfunction()

# redco_isa_sources(NAME files...): compiles each file of src/NAME/isa once per instruction set. REDCO_ISA is the name of
# the namespace. The dispatch of the folder selects one at run time.
function(redco_isa_sources NAME)
  if(REDCO_CPU STREQUAL neon)
    set(ISAS baseline)
    set(FLAGS_baseline -march=armv8-a)
  else()
    set(ISAS baseline avx2 avx512)
    set(FLAGS_baseline -march=x86-64-v2)
    set(FLAGS_avx2 -march=x86-64-v3)
    set(FLAGS_avx512 -march=x86-64-v4 -mprefer-vector-width=512)
  endif()
  foreach(ISA ${ISAS})
    add_library(redco_${NAME}_${ISA} OBJECT ${ARGN})
    target_include_directories(redco_${NAME}_${ISA} PRIVATE ${CMAKE_SOURCE_DIR}/src)
    target_compile_definitions(redco_${NAME}_${ISA} PRIVATE REDCO_ISA=${ISA})
    # Vectors are passed within one file only, so how GCC 4.6 passed them is no news.
    target_compile_options(redco_${NAME}_${ISA} PRIVATE ${FLAGS_${ISA}} -O3 -fno-trapping-math -fno-signed-zeros -Wno-psabi)
    target_link_libraries(redco_${NAME}_${ISA} PRIVATE fmt::fmt OpenMP::OpenMP_CXX)
    # Without the intrinsics: precompiled, they lose the pragmas that silence their warnings.
    target_precompile_headers(
      redco_${NAME}_${ISA} PRIVATE <algorithm> <cmath> ${CMAKE_SOURCE_DIR}/src/${NAME}/cpu/isa/ranges.h
    )
    set(REDCO_OBJECTS "${REDCO_OBJECTS};$<TARGET_OBJECTS:redco_${NAME}_${ISA}>" CACHE INTERNAL "")
  endforeach()
endfunction()
