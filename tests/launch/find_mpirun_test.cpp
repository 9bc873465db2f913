#include "launch/find_mpirun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

class FindMpirun : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(fs::path(dir_.path()) / "opt/lib/arch");
    std::ofstream(library_) << "";
  }
  // A script that prints this version.
  void install(const std::string& file, const std::string& says) {
    const fs::path p = fs::path(dir_.path()) / file;
    fs::create_directories(p.parent_path());
    std::ofstream(p) << "#!/bin/sh\n[ \"$1\" = --version ] && printf '%s\\n\\nReport bugs\\n' '" << says
                     << "'\n";
    fs::permissions(p, fs::perms::owner_all);
  }
  std::string find(const std::string& path) {
    return find_mpirun(library_, "Open MPI v4.1.4", dir_ / path + ":/nowhere");
  }
  test::TempDir dir_;
  const std::string library_ = dir_ / "opt/lib/arch/libmpi.so.40";
};

TEST_F(FindMpirun, LooksNextToTheLibraryFirst) {
  install("opt/bin/mpirun", "mpirun (Open MPI) 4.1.4");
  install("bin/mpirun", "mpirun (Open MPI) 5.0.0");
  EXPECT_EQ(find("bin"), fs::canonical(dir_ / "opt/bin/mpirun"));
  EXPECT_EQ(find("opt/bin"), "mpirun");  // PATH leads to the same one
}

TEST_F(FindMpirun, LooksInPathIfTheLibraryHasNone) {
  install("elsewhere/mpirun", "mpirun (Open MPI) 4.1.4");
  EXPECT_EQ(find("elsewhere"), "mpirun");
}

TEST_F(FindMpirun, FindsDebiansNameNextToAnotherMpi) {
  install("opt/bin/mpirun", "HYDRA build details:");
  install("opt/bin/mpirun.openmpi", "mpirun.openmpi (Open MPI) 4.1.4");
  EXPECT_EQ(find("opt/bin"), "mpirun.openmpi");
}

TEST_F(FindMpirun, AnotherVersionIsAnErrorWithBothVersions) {
  install("elsewhere/mpirun", "mpirun (Open MPI) 4.0.3");
  EXPECT_THAT(usage_error([&] { find("elsewhere"); }),
              AllOf(HasSubstr("linked with Open MPI v4.1.4"), HasSubstr(library_),
                    HasSubstr("elsewhere/mpirun is 'mpirun (Open MPI) 4.0.3'")));
  EXPECT_THAT(usage_error([&] { find("empty"); }), HasSubstr("there is no mpirun in PATH"));
}

}  // namespace
}  // namespace redco
