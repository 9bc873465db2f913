#include "train/predictor.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "comm/group.h"
#include "pipeline/bad_ids.h"
#include "pipeline/longest_first.h"

namespace redco {

namespace {

i64 length_of(const Example& e) { return std::max(longest_ids(e), static_cast<i64>(e.text.size())); }

}  // namespace

std::vector<std::string> predict(const Pipeline& pipeline, const ParamTree& params,
                                 std::span<const Example> examples, i64 batch_size,
                                 const std::function<void(std::string_view piece)>& on_text) {
  Context& c = Context::current();
  const i64 n = static_cast<i64>(examples.size()), dp = c.mesh().dp();
  const std::vector<i64> order = longest_first(n, [&](i64 i) { return length_of(examples[i]); });
  nlohmann::json mine = nlohmann::json::array();  // [[place in examples, text], ...]
  std::string bad_id;
  {
    NoGrad off;
    const ParamTree whole = params.gathered();  // a replica works alone
    auto replica = Context::mp_submesh(c);
    Context::Use use(*replica);
    std::vector<Example> dealt;
    std::vector<i64> places;
    for (i64 i = 0; i < n; ++i) {
      if (i % dp != c.coord().dp()) continue;
      dealt.push_back(examples[order[i]]);
      places.push_back(order[i]);
    }
    const i64 all = static_cast<i64>(dealt.size());
    const i64 at_once = pipeline.predicts_any_number() ? std::max<i64>(1, all) : batch_size;
    StepContext ctx;
    if (n == 1) ctx.on_text = on_text;
    for (i64 first = 0; first < all; first += at_once) {
      const i64 rows = std::min(at_once, all - first);
      replica->random.rows.clear();
      for (i64 r = first; r < first + rows; ++r) replica->random.rows.push_back(dealt[r].ordinal);
      const auto answers = in_pipeline(pipeline, "predict()", [&] {
        auto out = pipeline.predict(whole, std::span<const Example>(dealt).subspan(first, rows), ctx);
        REDCO_CHECK(static_cast<i64>(out.size()) == rows, "it gave {} answers to {} examples", out.size(),
                    rows);
        return out;
      });
      if (c.coord().mp() == 0)
        for (i64 r = 0; r < rows; ++r) mine.push_back({places[first + r], answers[r]});
    }
    if (const auto bad = replica->queue().take_bad_id()) bad_id = describe(*bad);
  }
  std::vector<std::string> out(n);
  const nlohmann::json message = {{"answers", mine}, {"bad_id", bad_id}};
  for (const std::string& text :
       c.world().gather(message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))) {
    const auto of_rank = nlohmann::json::parse(text);
    if (const auto bad = of_rank["bad_id"].get<std::string>(); !bad.empty())
      c.world().together([&] { throw_bad_id(pipeline, "predict()", bad); });
    for (const auto& entry : of_rank["answers"]) out[entry[0].get<i64>()] = entry[1].get<std::string>();
  }
  return out;
}

}  // namespace redco
