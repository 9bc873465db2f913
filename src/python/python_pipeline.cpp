#include "python/python_pipeline.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/activity.h"
#include "base/hash.h"
#include "base/log_once.h"
#include "data/index/epoch_order.h"
#include "data/text/record_lines.h"
#include "pipeline/load_python.h"
#include "python/reads.h"
#include "python/script.h"
#include "python/stacked.h"
#include "python/table.h"

namespace redco::python {

namespace {

// An example of a record that the user's example() makes; nullopt: it is left out.
std::optional<Example> example_of(const py::object& object, const Record& record) {
  const py::object made = glue("example")(object, record.json(), record.where());
  if (made.is_none()) return std::nullopt;
  return to_example(made);
}

template <class Base>
class PythonPipeline : public Base {
 public:
  explicit PythonPipeline(Script script) : script_(std::move(script)) { script_.attach(*this); }

  // --- the three functions ---
  Batch collate(std::span<const Example> mine, const BatchShape& shape) const override {
    script_.prepare();
    if (Pipeline* base = without("collate")) return base->collate(mine, shape);
    if (!script_.defines("collate") && !mine.empty())
      return Table::has(mine) ? table_->batch(mine, shape, weights()) : stacked_batch(mine, shape, weights());
    // Without examples: a batch of a plan, or of a replica without rows. The shapes are those of a sample.
    std::vector<Example> sample;
    if (mine.empty()) sample = samples(shape);
    return script_.run([&](const py::object& o) {
      const i64 n = static_cast<i64>(mine.empty() ? sample.size() : mine.size());
      const py::tuple made =
          mine.empty() ? collate_samples(o, sample, shape) : glue("collate")(o, from_examples(mine), shape);
      Batch b;
      b.shape = shape;
      b.weights = py::cast<std::map<std::string, double>>(made[1]);
      std::optional<std::vector<i32>> labels;
      for (const auto& [key, value] : py::cast<py::dict>(made[0])) {
        const std::string name = py::cast<std::string>(key);
        if (py::isinstance<Tensor>(value)) {
          b.fields[name] = py::cast<Tensor>(value);
          continue;
        }
        b.fields[name] = rows_of(name, value, n, mine.size(), shape);
        if (name == "labels" && is_ids(value)) labels = elements<i32>(value);
      }
      // Weights of other names than `terms` are those of all terms.
      const auto& named = weights().terms;
      if (std::ranges::all_of(b.weights, [&](const auto& w) { return std::ranges::count(named, w.first); }))
        weights().add_to(b, n, labels);
      if (mine.empty())
        for (auto& [term, weight] : b.weights) weight = 0;
      return b;
    });
  }

  LossTerms loss(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    if (Pipeline* base = without("loss")) return base->loss(params, batch, ctx);
    LossTerms terms =
        script_.run([&](const py::object& o) { return to_terms(o.attr("loss")(params, batch, ctx)); });
    for (const LossTerm& t : terms)
      if (!batch.weights.contains(t.name))
        throw PythonError(
            fmt::format("the term '{}' has no weight. Name it in `terms` of the class (its weight is "
                        "then the number of rows), or let collate() return (fields, {{\"{}\": weight}})",
                        t.name, t.name));
    return terms;
  }

  std::vector<std::string> predict(const ParamTree& params, std::span<const Example> examples,
                                   const StepContext& ctx) const override {
    if (Pipeline* base = without("predict")) return base->predict(params, examples, ctx);
    return script_.run([&](const py::object& o) {
      return py::cast<std::vector<std::string>>(
          glue("answers")(o.attr("predict")(params, from_examples(examples), ctx), examples.size()));
    });
  }
  bool predicts_any_number() const override {
    if (Pipeline* base = without("predict")) return base->predicts_any_number();
    if (!script_.defines("predict")) return true;  // predict_text()
    return script_.run([](const py::object& o) { return py::cast<bool>(o.attr("predicts_any_number")); });
  }

  // --- data ---
  std::shared_ptr<const Dataset> open(const DataRequest& request) override {
    agree_on_code();
    script_.seed("open", request.evaluation);
    if (script_.defines("open"))
      if (auto data = opened(request)) return data;
    if (request.files.empty()) return nullptr;
    if (const Reads* reads = this->reads()) return reads->open(*this, request);
    if (script_.defines("example"))
      return read_records(request, this->settings->data, [this](const Record& r) {
        return script_.run([&](const py::object& o) { return example_of(o, r); });
      });
    if (Pipeline* base = script_.base()) return base->open(request);
    return nullptr;
  }
  bool opens_own_data() const override { return script_.defines("open"); }
  std::optional<Example> request(const std::string& json, const std::string& where) const override {
    // Without an own predict(), answers continue prompts.
    if (!script_.defines("request") && !(script_.defines("example") && script_.defines("predict"))) {
      if (const Reads* reads = this->reads()) return reads->request(*this, json, where);
      if (Pipeline* base = script_.base()) return base->request(json, where);
      if (this->model) return std::nullopt;  // a prompt
      return script_.run([&](const py::object&) { return to_example(glue("loads")(json)); });
    }
    return script_.run([&](const py::object& o) -> std::optional<Example> {
      const py::object made = glue("request")(o, json, where);
      if (made.is_none()) return std::nullopt;
      return to_example(made);
    });
  }

  // --- optional ---
  const ModelParams& params() const override {
    if (Pipeline* base = without("params")) return base->params();
    script_.prepare();
    if (!script_.defines("params")) return Pipeline::params();
    if (!params_) params_ = declared("params");
    return *params_;
  }
  ModelParams extra_params() const override {
    if (Pipeline* base = without("extra_params")) return base->extra_params();
    return script_.defines("extra_params") ? declared("extra_params") : ModelParams{};
  }
  ModelParams extra_params_of(const std::string& name) const override {
    if (!script_.defines("extra_params_of")) return Pipeline::extra_params_of(name);
    return script_.run([&](const py::object& o) {
      return py::cast<ModelParams>(glue("declared")(o.attr("extra_params_of")(name)));
    });
  }
  std::vector<std::string> predicts_with() const override {
    return script_.run([](const py::object& o) {
      return py::cast<std::vector<std::string>>(py::list(o.attr("predicts_with")));
    });
  }
  std::vector<ParamGroup> groups() const override {
    if (Pipeline* base = without("groups")) return base->groups();
    if (!script_.defines("groups")) return Pipeline::groups();
    return script_.run([](const py::object& o) { return to_groups(o.attr("groups")()); });
  }
  std::map<std::string, Tensor> after_update(const ParamTree& params, const StepContext& ctx) const override {
    if (Pipeline* base = without("after_update")) return base->after_update(params, ctx);
    if (!script_.defines("after_update")) return {};
    return script_.run([&](const py::object& o) {
      const py::object made = o.attr("after_update")(params, ctx);
      return made.is_none() ? std::map<std::string, Tensor>() : py::cast<std::map<std::string, Tensor>>(made);
    });
  }

  StepLog after_step(const ParamTree& params, const std::map<std::string, double>& means,
                     const StepContext& ctx) override {
    if (Pipeline* base = without("after_step")) return base->after_step(params, means, ctx);
    if (!script_.defines("after_step")) return {};
    return script_.run(
        [&](const py::object& o) { return to_step_log(o.attr("after_step")(params, means, ctx)); });
  }
  std::map<std::string, std::string> model_files() const override {
    if (Pipeline* base = without("model_files")) return base->model_files();
    if (!script_.defines("model_files")) return {};
    return script_.run([](const py::object& o) {
      return py::cast<std::map<std::string, std::string>>(glue("files")(o.attr("model_files")()));
    });
  }

  std::shared_ptr<const Dataset> source(const ParamTree& params, const StepContext& ctx) override {
    agree_on_code();
    if (!script_.defines("source")) {
      if (Pipeline* base = script_.base()) return base->source(params, ctx);
      return Pipeline::source(params, ctx);
    }
    script_.seed("source", ctx.epoch);
    const auto [passes, shuffles] = script_.run([](const py::object& o) {
      return std::make_pair(py::cast<i64>(o.attr("passes")), py::cast<bool>(o.attr("shuffles")));
    });
    auto list = epoch_.source(
        ctx, script_.path(), passes,
        [&] {
          table_.reset();
          const EpochExamples::Made made = script_.run([&](const py::object& o) {
            const py::tuple parts = py::cast<py::tuple>(glue("source")(o, params, ctx));
            const bool columns = py::isinstance<py::dict>(parts[0]);
            if (columns) table_ = std::make_shared<Table>(py::cast<py::dict>(parts[0]));
            return EpochExamples::Made{columns ? std::vector<Example>() : to_examples(parts[0]),
                                       to_numbers(parts[1])};
          });
          if (Context::current().world().size() > 1)
            agree_on_examples(table_ ? fmt::format("{:x}", table_->digest())
                                     : examples_to_json(made.examples));
          return made;
        },
        shuffles);
    if (!table_) return list;
    const i64 n = table_->size();
    std::vector<i32> order;
    for (i64 pass = 0; pass < passes; ++pass)
      for (const i64 row : EpochOrder(n, Context::current().random.seed,
                                      static_cast<u64>(ctx.epoch * passes + pass), shuffles)
                               .range(0, n))
        order.push_back(static_cast<i32>(row));
    return Table::rows(
        table_, std::move(order),
        fmt::format("{} {} x {}{}{:016x}", script_.path(), n, passes, kEpochDigest, table_->digest()),
        script_.defines("collate"));
  }
  std::map<std::string, double> notes() const override {
    if (Pipeline* base = without("source")) return base->notes();
    return epoch_.notes();
  }
  std::vector<EvalSet> evaluation() override {
    if (Pipeline* base = script_.base()) return base->evaluation();
    return Pipeline::evaluation();
  }
  std::string unit() const override {
    if (Pipeline* base = without("unit")) return base->unit();
    return script_.run([](const py::object& o) { return py::cast<std::string>(o.attr("unit")); });
  }
  bool evaluates_loss() const override {
    return script_.run([](const py::object& o) { return py::cast<bool>(o.attr("evaluates_loss")); });
  }
  std::map<std::string, double> metrics(const std::map<std::string, double>& means) const override {
    if (Pipeline* base = without("metrics")) return base->metrics(means);
    if (!script_.defines("metrics")) return Pipeline::metrics(means);
    return script_.run([&](const py::object& o) { return to_numbers(o.attr("metrics")(means)); });
  }
  std::string output(const Example& example, const std::string& prediction) const override {
    if (Pipeline* base = without("output")) return base->output(example, prediction);
    if (!script_.defines("output")) return Pipeline::output(example, prediction);
    return script_.run([&](const py::object& o) {
      return py::cast<std::string>(glue("dumps")(o.attr("output")(example, glue("loads")(prediction))));
    });
  }
  bool measures_outputs() const override {
    if (Pipeline* base = without("output_metrics")) return base->measures_outputs();
    return script_.defines("output_metrics");
  }
  std::map<std::string, double> output_metrics(std::span<const Example> examples,
                                               const std::vector<std::string>& outputs) const override {
    if (Pipeline* base = without("output_metrics")) return base->output_metrics(examples, outputs);
    if (!script_.defines("output_metrics")) return {};
    return script_.run([&](const py::object& o) {
      return to_numbers(o.attr("output_metrics")(from_examples(examples), glue("loaded")(outputs)));
    });
  }
  std::string state() const override {
    nlohmann::json j;
    j["epoch"] = epoch_.state();
    if (table_) j["table"] = table_->json();
    if (script_.defines("state"))
      j["own"] = script_.run(
          [](const py::object& o) { return py::cast<std::string>(glue("dumps")(o.attr("state")())); });
    if (Pipeline* base = script_.base()) j["base"] = base->state();
    return j.dump();
  }
  void restore(const std::string& json) override {
    const auto j = nlohmann::json::parse(json, nullptr, false);
    if (!j.is_object()) throw ContentsError("the state of the pipeline in the checkpoint is no JSON object");
    if (j.contains("epoch")) epoch_.restore(j.at("epoch").get<std::string>());
    if (j.contains("table")) table_ = std::make_shared<Table>(j.at("table").get<std::string>());
    if (j.contains("own") && script_.defines("restore"))
      script_.run(
          [&](const py::object& o) { o.attr("restore")(glue("loads")(j.at("own").get<std::string>())); });
    if (Pipeline* base = script_.base(); base && j.contains("base"))
      base->restore(j.at("base").get<std::string>());
  }

 protected:
  const Script& script() const { return script_; }

 private:
  // What the class attribute `reads` says; null: nothing.
  const Reads* reads() const {
    if (!reads_)
      reads_ = script_.run([](const py::object& o) { return std::make_unique<Reads>(o.attr("reads")); });
    return reads_->any() ? reads_.get() : nullptr;
  }
  const DefaultWeights& weights() const {
    if (!weights_)
      weights_ = script_.run([](const py::object& o) {
        return DefaultWeights{py::cast<std::vector<std::string>>(py::list(o.attr("terms"))),
                              py::cast<std::string>(o.attr("unit"))};
      });
    return *weights_;
  }

  // The built-in pipeline that gives this function; null: the user's class defines it, or there is no
  // base.
  Pipeline* without(const char* function) const {
    return script_.defines(function) ? nullptr : script_.base();
  }

  ModelParams declared(const char* function) const {
    return script_.run(
        [&](const py::object& o) { return py::cast<ModelParams>(glue("declared")(o.attr(function)())); });
  }

  // REQUIRES: Python's lock.
  py::tuple collate_samples(const py::object& o, const std::vector<Example>& sample,
                            const BatchShape& shape) const {
    try {
      return glue("collate")(o, from_examples(sample), shape);
    } catch (py::error_already_set& e) {
      if (!guessed_ || !script_.defines("source")) throw;
      throw NoPlanError(
          "collate() refuses an example of the data ({}), and source() does not run in a plan. {}(self, length)",
          py::cast<std::string>(py::str(e.value())), kDefinePlanExample);
    }
  }

  // Examples in place of those of a batch without any: of `length` tokens in their longest field of ids.
  std::vector<Example> samples(const BatchShape& shape) const {
    const bool plan = Context::current().is_meta();
    const auto n = static_cast<std::size_t>(plan ? std::max<i64>(shape.mine.size(), 1) : 1);
    if (!sample_ && !script_.defines("plan_example")) sample_ = first_of_source();
    if (const Reads* reads = this->reads(); reads && !sample_ && !script_.defines("plan_example"))
      if (const auto e = reads->sample(*this, std::max<i64>(shape.length, 1)))
        return std::vector<Example>(n, *e);
    if (table_ && table_->size() > 0) return std::vector<Example>(n, table_->example(0));
    if (!sample_) {
      sample_ = find_sample(std::max<i64>(shape.length, 1));
      guessed_ = plan && !script_.defines("plan_example");
    }
    Example e = *sample_;
    const std::size_t longest = static_cast<std::size_t>(longest_ids(e)),
                      length = static_cast<std::size_t>(shape.length);
    if (shape.length > 0 && longest > 1)
      for (auto& [name, ids] : e.ids)
        if (ids.size() + 1 >= longest)  // the ids, and labels that are shifted by one
          ids.resize(ids.size() == longest ? length : std::max<std::size_t>(length, 2) - 1,
                     ids.empty() ? 0 : ids.back());
    return std::vector<Example>(n, e);
  }
  Example find_sample(i64 length) const {
    if (script_.defines("plan_example"))
      return script_.run([&](const py::object& o) { return to_example(o.attr("plan_example")(length)); });
    if (this->train_data && this->train_data->size() > 0) return this->train_data->get(0);
    for (const EvalSet& s : this->eval_sets)
      if (s.data && s.data->size() > 0) return s.data->get(0);
    if (script_.defines("open")) {
      const DataRequest request{.files = this->settings->data.files(false), .max_length = length};
      auto first = script_.run([&](const py::object& o) -> std::optional<Example> {
        const py::object items = py::cast<py::tuple>(glue("opened")(o, request))[0];
        const py::object item = items.is_none() ? items : glue("next_item")(items);
        if (item.is_none()) return std::nullopt;
        return to_example(item);
      });
      if (first) return *first;
    }
    if (script_.defines("example"))
      if (auto e = first_of_files()) return *e;
    Example e;  // as those of pipeline lm
    std::vector<i32> ids(static_cast<std::size_t>(length), 1);
    e.ids["input_ids"] = ids;
    e.ids["labels"] = ids;
    e.ids["prompt"] = ids;
    return e;
  }
  // The first example of source(), of another object of the class and parameters without contents; nullopt:
  // it cannot run with them (it generates texts).
  std::optional<Example> first_of_source() const {
    const Context& c = Context::current();
    if (!script_.defines("source") || !c.is_meta()) return std::nullopt;
    const ModelParams all = this->all_params();
    const ParamTree params = make_params(all, shard_specs(all.specs, c.mesh().mp()).layouts);
    return script_.run([&](const py::object& o) -> std::optional<Example> {
      try {
        const py::object examples =
            py::cast<py::tuple>(glue("source")(glue("another")(o), params, StepContext{}))[0];
        if (py::isinstance<py::dict>(examples)) {
          const Table table(py::cast<py::dict>(examples));
          if (table.size() > 0) return table.example(0);
        } else if (py::len(examples) > 0) {
          return to_example(py::cast<py::list>(examples)[0]);
        }
      } catch (py::error_already_set& e) {
        log_once(LogLevel::info,
                 fmt::format("source() does not run in a plan, which has no data and no values "
                             "of parameters ({}): the plan uses another example. {}(self, length)",
                             py::cast<std::string>(py::str(e.value())), kDefinePlanExample));
      }
      return std::nullopt;
    });
  }
  std::optional<Example> first_of_files() const {
    for (const DataSource& s : this->settings->data.sources(false)) {
      if (s.files.empty() || s.files[0].starts_with("builtin:")) continue;
      RecordLines lines(s.files, this->settings->data);
      std::string line;
      for (int tries = 0; tries < 100 && lines.next(line); ++tries) {
        const Record record = Record::of_line(line, lines.where(), lines.only_texts());
        auto e = script_.run([&](const py::object& o) { return example_of(o, record); });
        if (e) return e;
      }
    }
    return std::nullopt;
  }

  // What the user's open() returns, spooled to the cache by the first rank; null: nothing.
  std::shared_ptr<const Dataset> opened(const DataRequest& request) {
    Group& world = Context::current().world();
    Held items;
    std::string key;
    world.on_first([&] {
      script_.run([&](const py::object& o) {
        const py::tuple made = py::cast<py::tuple>(glue("opened")(o, request));
        if (made[0].is_none()) return;
        items = hold(made[0]);
        key = py::cast<std::string>(made[1]);
      });
    });
    if (world.agree(std::string(items ? "data" : "")) != "data") return nullptr;
    return spool_examples(request, key, [this, items]() -> std::optional<Example> {
      return script_.run([&](const py::object&) -> std::optional<Example> {
        const py::object next = glue("next_item")(*items);
        if (next.is_none()) return std::nullopt;
        return to_example(next);
      });
    });
  }

  // The first rank whose text differs from that of rank 0; 0: none does. Collective.
  static std::size_t other_rank(const std::string& text) {
    const std::vector<std::string> all = Context::current().world().gather(text);
    const auto other = std::ranges::find_if(all, [&](const std::string& s) { return s != all[0]; });
    return other == all.end() ? 0 : static_cast<std::size_t>(other - all.begin());
  }
  // UsageError unless all ranks run the same script and modules.
  void agree_on_code() {
    if (std::exchange(agreed_, true)) return;
    if (const std::size_t r = other_rank(script_.code_hash()))
      throw UsageError(
          "rank {} runs another version of the script, or of a module in its folder, than rank 0. Use the "
          "same files on all hosts",
          r);
  }
  static void agree_on_examples(const std::string& text) {
    if (const std::size_t r = other_rank(hash128(text).hex()))
      throw UsageError(
          "source() made other examples on rank {} than on rank 0. What may differ between ranks (a "
          "random number without ctx.rng(), a clock, an external program) belongs into ctx.on_first(f)",
          r);
  }

  Script script_;
  EpochExamples epoch_;
  std::shared_ptr<const Table> table_;  // the examples of the epoch, if source() returned columns
  mutable std::unique_ptr<Reads> reads_;
  mutable std::optional<DefaultWeights> weights_;
  mutable std::optional<ModelParams> params_;
  mutable std::optional<Example> sample_;
  mutable bool guessed_ = false;  // sample_ is no example of source(), which the script defines
  bool agreed_ = false;
};

class PythonEmbeddingPipeline : public PythonPipeline<EmbeddingPipeline> {
 public:
  using PythonPipeline::PythonPipeline;
  Embeddings embed(const ParamTree& params, const Batch& batch, const StepContext& ctx) const override {
    return script().run(
        [&](const py::object& o) { return py::cast<Embeddings>(o.attr("embed")(params, batch, ctx)); });
  }
};

}  // namespace

std::unique_ptr<Pipeline> make_python_pipeline(const std::string& path) {
  activity::set_place(
      []() -> std::string { return with_python([] { return py::cast<std::string>(glue("where")()); }); });
  return with_python([&]() -> std::unique_ptr<Pipeline> {
    Script script(path);
    std::unique_ptr<Pipeline> out;
    const std::string hash = script.code_hash();
    if (script.is_embedding())
      out = std::make_unique<PythonEmbeddingPipeline>(std::move(script));
    else
      out = std::make_unique<PythonPipeline<Pipeline>>(std::move(script));
    out->code_hash = hash;
    return out;
  });
}

}  // namespace redco::python
