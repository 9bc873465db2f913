#include "pipeline/rollouts.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/signals.h"
#include "base/words.h"
#include "comm/group.h"
#include "data/index/epoch_order.h"
#include "generate/forward_pass.h"
#include "generate/generate.h"
#include "generate/text_stream.h"
#include "ops/create.h"
#include "pipeline/bad_ids.h"
#include "pipeline/longest_first.h"
#include "pipeline/token_rows.h"

namespace redco {

namespace {

// Log-probabilities of the answers' tokens, batch_size rows at a time. On a replica.
void add_log_probs(const Model& model, const ParamTree& params, const std::vector<TokenRow>& rows,
                   std::vector<Rollout*>& to, i64 batch_size) {
  const i64 n = static_cast<i64>(rows.size());
  for (i64 begin = 0; begin < n; begin += batch_size) {
    const i64 count = std::min(batch_size, n - begin);
    Batch b;
    b.shape = {.rows = count, .mine = {0, count}};
    for (i64 r = 0; r < count; ++r)
      b.shape.length = std::max(b.shape.length, static_cast<i64>(rows[begin + r].ids.size()));
    add_token_rows(b, model, std::span(rows).subspan(begin, count));
    const std::vector<double> values = to_values(token_log_probs(model, params, b, {}));
    for (i64 r = 0; r < count; ++r) {
      const TokenRow& row = rows[begin + r];
      for (i64 t = row.first; t < static_cast<i64>(row.ids.size()); ++t)
        to[begin + r]->log_probs.push_back(static_cast<float>(values[r * b.shape.length + t - 1]));
    }
  }
}

// A Rollout as bytes, for the exchange between replicas.
void put(std::string& out, const void* data, std::size_t n) { out.append(static_cast<const char*>(data), n); }
template <class T>
void put_list(std::string& out, const T& list) {
  const i64 n = static_cast<i64>(list.size());
  put(out, &n, sizeof n);
  put(out, list.data(), list.size() * sizeof(list[0]));
}
template <class T>
void take_list(const std::string& in, std::size_t& at, T& list) {
  i64 n = 0;
  std::memcpy(&n, in.data() + at, sizeof n);
  list.resize(static_cast<std::size_t>(n));
  std::memcpy(list.data(), in.data() + at + sizeof n, list.size() * sizeof(list[0]));
  at += sizeof n + list.size() * sizeof(list[0]);
}

// Runs `work` on the replica, without recording, with the whole parameters and this replica's share of
// `items`, which are dealt one by one.
void on_replica(const ParamTree& params, const std::vector<i64>& items,
                const std::function<void(const ParamTree& whole, const std::vector<i64>& share)>& work) {
  Context& c = Context::current();
  const NoGrad off;
  const ParamTree whole = params.gathered();
  const auto replica = Context::mp_submesh(c);
  const Context::Use use(*replica);
  const i64 n = static_cast<i64>(items.size()), dp = c.mesh().dp();
  std::vector<i64> share;
  for (i64 i = c.coord().dp(); i < n; i += dp) share.push_back(items[i]);
  work(whole, share);
}

}  // namespace

void trace_sample(const Model& model, const ParamTree& params, i64 rows, i64 prompt, i64 length) {
  REDCO_CHECK(Context::current().is_meta() && rows >= 1 && prompt >= 1 && prompt < length, "{} x ({} of {})",
              rows, prompt, length);
  on_replica(params, {}, [&](const ParamTree& whole, const std::vector<i64>&) {
    trace_generation(model, whole, rows, 0, prompt, length, GenerationSettings().cache_dtype, [] {});
    Batch b;
    b.shape = {.rows = rows, .mine = {0, rows}, .length = length};
    add_token_rows(b, model, {});
    token_log_probs(model, whole, b, {});
  });
}

std::vector<std::vector<Rollout>> sample(const Pipeline& pipeline, const ParamTree& params,
                                         std::span<const std::vector<i32>> prompts, const TextGeneration& g,
                                         i64 first_ordinal) {
  const Model& model = *pipeline.model;
  const Tokenizer& tokenizer = *pipeline.tokenizer;
  REDCO_CHECK(!Context::current().is_meta(), "sample() can't be planned; call it in source()");
  if (model.is_encoder_decoder())
    throw UsageError("[pipeline] sample() needs a decoder-only model, and {} is an encoder-decoder model",
                     model.family());
  Context& c = Context::current();
  const i64 n = static_cast<i64>(prompts.size());
  const std::vector<i64> order = longest_first(n, [&](i64 i) { return static_cast<i64>(prompts[i].size()); });
  std::string mine;
  on_replica(params, order, [&](const ParamTree& whole, const std::vector<i64>& share) {
    std::vector<GenerationPrompt> asked;
    for (const i64 i : share) asked.push_back({prompts[i], first_ordinal + i});
    const Decode decode = [&](std::span<const i32> ids) { return tokenizer.decode(ids, true); };
    const StopTexts stop(g.settings.stop, decode);
    GenerateOptions o{.batch_size = g.batch_size};
    o.interrupted = [] { return end_requested() != 0; };
    if (!stop.empty()) o.stops = [&](std::span<const i32> ids) { return stop.ends(ids); };
    std::vector<std::vector<Rollout>> answers(asked.size());
    std::vector<TokenRow> rows;
    std::vector<Rollout*> to;
    const auto generated = generate(model, whole, asked, g.settings, g.tokens, o);
    for (std::size_t i = 0; i < generated.size(); ++i) {
      answers[i].resize(generated[i].size());
      for (std::size_t k = 0; k < generated[i].size(); ++k) {
        const Answer& a = generated[i][k];
        Rollout& r = answers[i][k];
        r.ids = a.ids;
        r.text = stop.cut(decode(a.ids));
        r.finish_reason = name_of(a.finish);
        if (a.ids.empty()) continue;
        TokenRow& row = rows.emplace_back(TokenRow{asked[i].ids, static_cast<i64>(asked[i].ids.size())});
        row.ids.insert(row.ids.end(), a.ids.begin(), a.ids.end());
        to.push_back(&r);
      }
    }
    add_log_probs(model, whole, rows, to, g.batch_size);
    if (c.coord().mp() == 0)
      for (std::size_t i = 0; i < answers.size(); ++i) {
        const i64 header[2] = {share[i], static_cast<i64>(answers[i].size())};
        put(mine, header, sizeof header);
        for (const Rollout& r : answers[i]) {
          put_list(mine, r.ids);
          put_list(mine, r.text);
          put_list(mine, r.log_probs);
          put_list(mine, r.finish_reason);
        }
      }
  });
  std::vector<std::vector<Rollout>> out(static_cast<std::size_t>(n));
  for (const std::string& text : c.world().gather(mine))
    for (std::size_t at = 0; at < text.size();) {
      i64 header[2];
      std::memcpy(header, text.data() + at, sizeof header);
      at += sizeof header;
      auto& of_prompt = out[static_cast<std::size_t>(header[0])];
      of_prompt.resize(static_cast<std::size_t>(header[1]));
      for (Rollout& r : of_prompt) {
        take_list(text, at, r.ids);
        take_list(text, at, r.text);
        take_list(text, at, r.log_probs);
        take_list(text, at, r.finish_reason);
      }
    }
  if (c.world().any(end_requested() != 0))
    throw Error(ExitCode::interrupted, "[train] a signal stopped the run while it sampled answers");
  return out;
}

std::vector<float> score_examples(const ParamTree& params, std::span<const Example> examples, i64 batch_size,
                                  const Score& score) {
  REDCO_CHECK(batch_size > 0, "score_examples() got batch_size={}; expected 1 or more", batch_size);
  Context& c = Context::current();
  const i64 n = static_cast<i64>(examples.size()), dp = c.mesh().dp();
  const std::vector<i64> order = longest_first(n, [&](i64 i) { return longest_ids(examples[i]); });
  std::vector<float> mine;  // of this replica's examples, in their order
  std::optional<BadId> bad;
  on_replica(params, order, [&](const ParamTree& whole, const std::vector<i64>& share) {
    for (std::size_t begin = 0; begin < share.size(); begin += batch_size) {
      const i64 count = std::min(batch_size, static_cast<i64>(share.size() - begin));
      std::vector<Example> rows;
      for (i64 r = 0; r < count; ++r) rows.push_back(examples[share[begin + r]]);
      const BatchShape shape{
          .rows = count, .mine = {0, count}, .length = longest_ids(rows.front()), .target_length = 0};
      const Tensor scores = score(whole, rows, shape);
      REDCO_CHECK(scores.shape() == Shape{count} && scores.is_float(),
                  "score_examples() got {} for {} examples; expected a number for each, [rows]",
                  describe(scores), count);
      for (const double v : to_values(scores)) {
        REDCO_CHECK(std::isfinite(v), "score_examples() got the score {}; expected a finite number", v);
        mine.push_back(static_cast<float>(v));
      }
    }
    bad = Context::current().queue().take_bad_id();
  });
  c.world().together([&] { REDCO_CHECK(!bad, "score_examples(): {}", describe(*bad)); });
  std::string bytes;
  if (c.coord().mp() == 0) put_list(bytes, mine);
  std::vector<float> out(static_cast<std::size_t>(n));
  i64 first = 0;  // of the replicas in their order: their examples are first, first + dp, ...
  for (const std::string& text : c.world().gather(bytes)) {
    if (text.empty()) continue;
    std::vector<float> theirs;
    std::size_t at = 0;
    take_list(text, at, theirs);
    for (std::size_t k = 0; k < theirs.size(); ++k) out[order[first + static_cast<i64>(k) * dp]] = theirs[k];
    ++first;
  }
  return out;
}

std::vector<std::vector<double>> score_shares(i64 n, i64 width, const ScoreShare& f) {
  Context& c = Context::current();
  const i64 dp = c.mesh().dp();
  std::string mine;
  c.world().together([&] {
    std::vector<i64> share;
    for (i64 i = c.coord().dp(); i < n; i += dp) share.push_back(i);
    if (c.coord().mp() == 0)
      for (const std::vector<double>& values : f(share)) put_list(mine, values);
  });
  std::vector<std::vector<double>> out(static_cast<std::size_t>(width),
                                       std::vector<double>(static_cast<std::size_t>(n)));
  i64 first = 0;  // of the replicas in their order: their items are first, first + dp, ...
  for (const std::string& text : c.world().gather(mine)) {
    if (text.empty()) continue;
    std::size_t at = 0;
    for (std::vector<double>& all : out) {
      std::vector<double> theirs;
      take_list(text, at, theirs);
      for (std::size_t k = 0; k < theirs.size(); ++k) all.at(first + static_cast<i64>(k) * dp) = theirs[k];
    }
    ++first;
  }
  return out;
}

std::vector<Example> endless_examples(const Dataset& data, i64 first, i64 n, u64 stream) {
  std::vector<Example> out;
  const u64 seed = Context::current().random.seed ^ stream;
  for (i64 k = first; k < first + n; ++k) {
    const EpochOrder order(data.size(), seed, static_cast<u64>(k / data.size()));
    out.push_back(data.get(order.at(k % data.size())));
  }
  return out;
}

std::shared_ptr<const Dataset> EpochExamples::source(const StepContext& ctx, const std::string& name,
                                                     i64 passes, const std::function<Made()>& make,
                                                     bool shuffle) {
  if (ctx.epoch != epoch_) {
    made_ = make();
    epoch_ = ctx.epoch;
    digest_ = hash64(examples_to_json(made_.examples));
  }
  const i64 n = static_cast<i64>(made_.examples.size());
  std::vector<i64> order;
  for (i64 pass = 0; pass < passes; ++pass) {
    const EpochOrder shuffled(n, Context::current().random.seed, static_cast<u64>(ctx.epoch * passes + pass),
                              shuffle);
    for (i64 i = 0; i < n; ++i) order.push_back(shuffled.at(i));
  }
  return std::make_shared<ExampleList>(
      made_.examples, fmt::format("{} {} x {}{}{:016x}", name, n, passes, kEpochDigest, digest_),
      std::move(order));
}

std::string without_epoch_digest(const std::string& fingerprint) {
  const std::size_t at = fingerprint.find(kEpochDigest);
  return at == std::string::npos ? fingerprint : std::string(fingerprint).erase(at, kEpochDigest.size() + 16);
}

std::string EpochExamples::state() const {
  return nlohmann::ordered_json{{"epoch", epoch_},
                                {"examples", nlohmann::ordered_json::parse(examples_to_json(made_.examples))},
                                {"notes", made_.notes}}
      .dump();
}

void EpochExamples::restore(const std::string& json) {
  const auto j = nlohmann::ordered_json::parse(json);
  REDCO_CHECK(
      j.contains("epoch") && j.contains("examples") && j.contains("notes"),
      "EpochExamples::restore() got {}; expected the text of EpochExamples::state(), which the pipeline's "
      "state() must return",
      excerpt(json));
  epoch_ = j.at("epoch");
  made_ = {examples_from_json(j.at("examples").dump()), j.at("notes").get<std::map<std::string, double>>()};
  digest_ = hash64(examples_to_json(made_.examples));
}

}  // namespace redco
