# A toolchain file: Debian's cross compiler for arm64, with the libraries of arm64 next to the machine's (scripts/build-arm64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
# The wrapper of Open MPI that prints compiler options is a program of arm64 too.
set(MPI_CXX_COMPILER /usr/bin/mpicxx)
