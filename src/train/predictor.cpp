#include "train/predictor.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "comm/group.h"

namespace redco {

std::vector<std::string> gather_texts(Group& g, const std::string& mine) {
  const std::vector<i64> ones(g.size(), 1);
  std::vector<i32> sizes(g.size());
  const i32 size = static_cast<i32>(mine.size());
  g.all_gather<i32>(&size, sizes.data(), ones);
  std::vector<i64> words;
  i64 total = 0;
  for (i32 n : sizes) total += words.emplace_back((n + 3) / 4);
  std::vector<i32> padded((size + 3) / 4), all(total);
  if (size > 0) std::memcpy(padded.data(), mine.data(), size);
  g.all_gather<i32>(padded.data(), all.data(), words);
  std::vector<std::string> out;
  const i32* p = all.data();
  for (size_t r = 0; r < words.size(); ++r) {
    out.emplace_back(reinterpret_cast<const char*>(p), sizes[r]);
    p += words[r];
  }
  return out;
}

namespace {

i64 length_of(const Example& e) {
  std::size_t longest = e.text.size();
  for (const auto& [name, ids] : e.ids) longest = std::max(longest, ids.size());
  return static_cast<i64>(longest);
}

}  // namespace

std::vector<std::string> predict(const Pipeline& pipeline, const ParamTree& params,
                                 std::span<const Example> examples, i64 batch_size,
                                 const std::function<void(std::string_view piece)>& on_text) {
  Context& c = Context::current();
  const i64 n = static_cast<i64>(examples.size()), dp = c.mesh().dp;
  std::vector<i64> order(n);
  std::iota(order.begin(), order.end(), i64{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](i64 a, i64 b) { return length_of(examples[a]) > length_of(examples[b]); });
  nlohmann::json mine = nlohmann::json::array();  // [[place in examples, text], ...]
  {
    NoGrad off;
    auto replica = Context::mp_submesh(c);
    Context::Use use(*replica);
    std::vector<Example> dealt;
    std::vector<i64> places;
    for (i64 i = 0; i < n; ++i) {
      if (i % dp != c.coord().dp) continue;
      dealt.push_back(examples[order[i]]);
      places.push_back(order[i]);
    }
    const i64 all = static_cast<i64>(dealt.size());
    const i64 at_once = pipeline.predicts_any_number() ? std::max<i64>(1, all) : batch_size;
    StepContext ctx;
    if (n == 1) ctx.on_text = on_text;
    for (i64 first = 0; first < all; first += at_once) {
      const i64 rows = std::min(at_once, all - first);
      const auto answers =
          pipeline.predict(params, std::span<const Example>(dealt).subspan(first, rows), ctx);
      REDCO_CHECK(static_cast<i64>(answers.size()) == rows, "predict() gave {} answers to {} examples",
                  answers.size(), rows);
      if (c.coord().mp == 0)
        for (i64 r = 0; r < rows; ++r) mine.push_back({places[first + r], answers[r]});
    }
  }
  std::vector<std::string> out(n);
  for (const std::string& text :
       gather_texts(c.world(), mine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)))
    for (const auto& entry : nlohmann::json::parse(text))
      out[entry[0].get<i64>()] = entry[1].get<std::string>();
  return out;
}

}  // namespace redco
