# A recipe for Spack 1.0 or later. In your own repository of recipes:
#
#   spack repo create my-repo && spack repo add my-repo
#   mkdir -p my-repo/spack_repo/my_repo/packages/redco && cp package.py my-repo/spack_repo/my_repo/packages/redco/
#   spack dev-build redco@0.2.0          # in the folder with redco's sources
from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Redco(CMakePackage):
    """Trains and runs large models on several CPU machines from one job file:
    tensor parallelism by two rules, with MPI and OpenBLAS."""

    # Without an address of releases `spack dev-build` takes the sources from a folder.
    license("Apache-2.0")

    version("0.2.0")

    variant("python", default=True, description="Pipelines in Python, and the Python package")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("openmpi@4.1:5")
    depends_on("openblas threads=openmp")
    depends_on("hwloc@2:")
    depends_on("yaml-cpp")
    depends_on("cli11@2.1:")
    depends_on("fmt@9:11")
    depends_on("spdlog")
    depends_on("nlohmann-json@3.11:")
    depends_on("zlib-api")
    depends_on("zstd")
    depends_on("xxhash")
    depends_on("re2+pic")
    depends_on("oniguruma")
    depends_on("utf8proc+shared")
    depends_on("libpng")
    depends_on("jpeg")
    depends_on("libzip")
    depends_on("libwebp")
    # Recordings need libsndfile, libsamplerate and kissfft. Spack has no recipe of kissfft, so this redco reads none.
    depends_on("openssh", type="run")
    depends_on("googletest+gmock", type="test")

    with when("+python"):
        depends_on("python@3.9:+shared", type=("build", "link", "run"))
        depends_on("py-numpy", type=("build", "run"))
        depends_on("py-pybind11", type="build")

    requires("%gcc@12:", "%clang@16:", policy="any_of", msg="redco needs a C++20 compiler")
    requires("target=x86_64:", "target=aarch64:", policy="any_of", msg="redco has kernels for both")

    generator("ninja")

    def cmake_args(self):
        python = self.spec["python"].command.path if self.spec.satisfies("+python") else "OFF"
        return [
            self.define("REDCO_PYTHON", python),
            self.define("REDCO_TESTS", self.run_tests),
            self.define("OPENBLAS_LIBRARY", self.spec["openblas"].libs[0]),
            self.define("OPENBLAS_INCLUDE", self.spec["openblas"].prefix.include),
        ]
