#include "run/agreement.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

RankFacts facts(const std::string& host) {
  return {.host = host,
          .program = "aa",
          .library = "bb",
          .job = "cc",
          .shared_objects = "",
          .isa = "avx2",
          .blas_core = "Haswell",
          .threads = "2"};
}

TEST(Agreement, EqualRanksHaveNoDifference) {
  EXPECT_EQ(disagreement({facts("a")}), "");
  EXPECT_EQ(disagreement({facts("a"), facts("a"), facts("b")}), "");
}

TEST(Agreement, ADifferenceNamesHostsValuesAndRemedy) {
  struct Case {
    std::string RankFacts::*what;
    const char* value;
    std::vector<std::string> words;
  };
  for (const Case& c : {Case{&RankFacts::program, "ff", {"program (build id)", "install the same redco"}},
                        {&RankFacts::library, "ff", {"libredco", "LD_LIBRARY_PATH"}},
                        {&RankFacts::job, "ff", {"job (hash)", "start the command once"}},
                        {&RankFacts::shared_objects, "ff", {"shared object", "has none"}},
                        {&RankFacts::isa, "avx512", {"instruction set", "REDCO_ISA"}},
                        {&RankFacts::blas_core, "Zen", {"OpenBLAS core", "OPENBLAS_CORETYPE"}},
                        {&RankFacts::threads, "4", {"threads", "parallel.threads_per_rank"}}}) {
    std::vector<RankFacts> ranks = {facts("node1"), facts("node1"), facts("node2")};
    ranks[2].*c.what = c.value;
    const std::string message = disagreement(ranks);
    for (const std::string& w : c.words) EXPECT_NE(message.find(w), message.npos) << message;
    EXPECT_NE(message.find("rank 0 on node1"), message.npos) << message;
    EXPECT_NE(message.find(std::string("rank 2 on node2 has ") + c.value), message.npos) << message;
  }
}

TEST(Agreement, ThisProcessHasBuildIdsAndKernels) {
  const RankFacts f = rank_facts("job", {});
  EXPECT_EQ(f.library.size(), 40u);
  EXPECT_EQ(f.library.find_first_not_of("0123456789abcdef"), f.library.npos);
  EXPECT_EQ(f.library, library_build_id());
  EXPECT_NE(f.program, f.library);
  EXPECT_FALSE(f.isa.empty());
  EXPECT_FALSE(f.blas_core.empty());
  EXPECT_EQ(f.shared_objects, "");
}

TEST(Agreement, ADifferenceIsTheSameErrorOnAllRanks) {
  run_threads(3, [](Group& g) {
    RankFacts mine = facts("host");
    agree_on_program(g, mine);
    if (g.rank() == 1) mine.isa = "avx512";
    try {
      agree_on_program(g, mine);
      ADD_FAILURE() << "rank " << g.rank();
    } catch (const UsageError& e) {
      EXPECT_NE(std::string(e.what()).find("rank 1 on host has avx512"), std::string::npos) << e.what();
    }
  });
}

TEST(Agreement, AWorkdirThatIsNotSharedIsAnError) {
  const test::TempDir shared{test::TempDir::in_memory}, other{test::TempDir::in_memory};
  run_threads(2, [&](Group& g) { agree_on_workdir(g, shared.path()); });
  EXPECT_TRUE(std::filesystem::is_empty(shared.path()));
  run_threads(2, [&](Group& g) {
    EXPECT_THROW(agree_on_workdir(g, g.rank() == 0 ? shared.path() : other.path()), UsageError);
  });
  EXPECT_TRUE(std::filesystem::is_empty(shared.path()));
}

}  // namespace
}  // namespace redco
