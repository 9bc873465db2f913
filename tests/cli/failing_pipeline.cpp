// A user's pipeline that fails in step 3 as REDCO_TEST_FAIL says: WHAT:RANK, RANK may be `all`. Built by
// failures_test.cpp. `term-eval-N:RANK` sends SIGTERM to the rank in its N-th batch of evaluations.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/signals.h"
#include "comm/group.h"
#include "pipeline/plugin.h"
#include "pipelines/pipelines.h"
#include "tensor/context.h"

namespace {

class Failing : public redco::Pipeline {
 public:
  redco::Batch collate(std::span<const redco::Example> mine, const redco::BatchShape& shape) const override {
    return inner().collate(mine, shape);
  }
  redco::LossTerms loss(const redco::ParamTree& p, const redco::Batch& b,
                        const redco::StepContext& ctx) const override {
    if (ctx.step == 2 && ctx.apply.train) fail();
    if (!ctx.apply.train) {
      static int batches = 0;
      fail("term-eval-" + std::to_string(++batches));
    }
    return inner().loss(p, b, ctx);
  }

 private:
  static void fail(const std::string& only = "") {
    const char* said = std::getenv("REDCO_TEST_FAIL");
    const std::string how = said ? said : "";
    const auto colon = how.find(':');
    if (colon == std::string::npos) return;
    const std::string what = how.substr(0, colon), who = how.substr(colon + 1);
    if (only.empty() ? what.starts_with("term-eval") : what != only) return;
    redco::Group& world = redco::Context::current().world();
    const bool me = who == "all" || std::to_string(world.rank()) == who;
    if (what == "agreed")
      world.together([&] {
        if (me) throw redco::ContentsError("[test] bad file on rank {}", world.rank());
      });
    if (!me) return;
    if (what == "throw") throw redco::ContentsError("[test] bad file\nof two lines on {}", world.rank());
    if (what == "std") throw std::out_of_range("[test] index");
    if (what == "int") throw 5;
    if (what == "kill") raise(SIGKILL);
    if (what == "abort") std::abort();
    if (what == "exit") std::_Exit(9);
    if (what == only) {
      raise(SIGTERM);
      while (redco::end_requested() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (what == "hang")
      while (true) pause();
  }
  redco::Pipeline& inner() const {
    if (!inner_) inner_ = redco::make_pipeline("lm");
    inner_->model = model;
    inner_->tokenizer = tokenizer;
    return *inner_;
  }
  mutable std::unique_ptr<redco::Pipeline> inner_;
};

}  // namespace

REDCO_PIPELINE(Failing)
