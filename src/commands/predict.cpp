#include "commands/predict.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "base/timing.h"
#include "base/words.h"
#include "comm/group.h"
#include "commands/embeddings_file.h"
#include "commands/predict_images.h"
#include "commands/predict_requests.h"
#include "commands/predictions_file.h"
#include "commands/trained_request.h"
#include "run/run.h"
#include "train/predictor.h"

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

// The number of prompts. All are read before the first is answered, so that a bad line in a long file is
// reported before the work.
i64 count_requests(const JobConfig& job, const PredictModel& m) {
  const PredictScan all = scan_requests(job, m);
  if (all.skipped > 0)
    warn("[predict] {} lines of {} can't be used and are skipped; the first: {}", all.skipped,
         *job.predict.input, all.first_reason);
  return all.n;
}

// The line of the output: the members of the request, then those of the answer.
std::string line_of(const PredictRequest& r, const std::string& answer, const std::string& input) {
  const Json asked = Json::parse(r.head), answered = Json::parse(answer);
  for (const auto& [name, value] : answered.items())
    if (asked.contains(name))
      throw UsageError(
          "[predict] prompt {} of {} and its answer both have a member \"{}\". Rename the one that predict() "
          "returns, or remove it from the prompt",
          r.example.ordinal + 1, input, name);
  const std::string members = r.head.substr(0, r.head.size() - 1);
  return members + (answer == "{}" ? "}" : "," + answer.substr(1)) + "\n";
}

// The name of an answer's image: the line's number, which makes it unique, and the line's id if it has one.
std::string image_name(const PredictRequest& r) {
  const Json id = Json::parse(r.head).at("id");
  const std::string number = fmt::format("{}", r.example.ordinal);
  return id == Json(r.example.ordinal) ? number
                                       : number + "-" + (id.is_string() ? id.get<std::string>() : id.dump());
}

// Text for a prompt of the command line: each answer follows the prompt. An answer without one (embeddings)
// is printed as JSON.
std::string shown(const PredictRequest& r, const std::string& answer) {
  const Json j = Json::parse(answer);
  if (!j.contains("prediction")) return answer + "\n";
  std::string out;
  const Json& prediction = j.at("prediction");
  for (const Json& one : prediction.is_array() ? prediction : Json::array({prediction}))
    out += r.prompt + (one.is_string() ? one.get<std::string>() : one.dump()) + "\n";
  return out;
}

class PredictRun {
 public:
  PredictRun(const JobConfig& job, Context& c) : job_(job), world_(c.world()), first_(c.rank() == 0) {
    m_ = open_predict_model(job, world_);
    world_.together([&] { requests_ = std::make_unique<PredictRequests>(job, m_); });
    i64 counts[2] = {0, 0};
    world_.on_first([&] {
      const auto same = [](const std::string& a, const std::string& b) {
        std::error_code none;
        return std::filesystem::equivalent(a, b, none);
      };
      if (job.predict.output && job.predict.input && same(*job.predict.output, *job.predict.input))
        throw UsageError("[predict] predict.output is predict.input: {}", *job.predict.output);
      if (makes_matrix() && exists(*job.predict.output) && !job.predict.overwrite)
        throw UsageError("[predict] {} exists. predict.overwrite=true replaces it", *job.predict.output);
      counts[0] = count_requests(job, m_);
      if (job.predict.output)
        file_ = std::make_unique<PredictionsFile>(lines_path(), prediction_settings(job, m_),
                                                  job.predict.overwrite);
      counts[1] = file_ ? file_->kept() : 0;
      if (counts[1] > counts[0])
        throw UsageError(
            "[predict] {} has {} lines, more than the {} prompts. predict.overwrite=true replaces the file",
            lines_path(), counts[1], counts[0]);
    });
    world_.broadcast_bytes(counts, sizeof counts);
    total_ = counts[0];
    done_ = counts[1];
    // A user's predict() may generate no text.
    const bool generates = m_.pipeline->origin.empty() || job.origins.given("predict.max_new_tokens");
    if (first_ && generates && m_.model && m_.model->generates_text())
      if (const auto text =
              long_answer_warning(*m_.model, "predict.max_new_tokens", job.predict.max_new_tokens);
          !text.empty())
        warn("[predict] {}", text);
    c.random.seed = static_cast<u64>(job.train.seed);
    c.compute_dtype = job.train.compute_dtype;
    dp_ = c.mesh().dp();
  }

  int run() {
    skip_kept();
    if (done_ == total_ && !makes_matrix()) {
      world_.on_first([&] {
        info("[predict] {} already holds all {} predictions; predict.overwrite=true makes them again",
             *job_.predict.output, total_);
      });
      return 0;
    }
    if (first_ && done_ > 0)
      info("[predict] {} holds {} of {} predictions; continuing", lines_path(), done_, total_);
    const ParamTree params = make_predict_params(job_, m_);
    note_progress();
    std::optional<Progress> progress;
    if (first_ && job_.predict.output) progress.emplace("predict", total_, done_);
    // Answers are written in increments. Within an increment a finished row is replaced by the next prompt;
    // at its end rows stay empty, so an increment should last 20 to 90 seconds.
    i64 batches = 4;
    while (done_ < total_) {
      const double begin = seconds();
      const i64 n = std::min(total_ - done_, batches * job_.predict.batch_size * dp_);
      answer(params, n);
      note_progress();
      if (progress) progress->update(done_, Progress::Fields{});
      const double took = world_.agree(seconds() - begin);
      if (took < 20) batches = std::min<i64>(2 * batches, 1024);
      if (took > 90) batches = std::max<i64>(batches / 2, 1);
    }
    if (progress) progress->finish(done_, {});
    world_.on_first([&] {
      if (makes_matrix()) {
        write_matrix_file(lines_path(), *job_.predict.output);
        file_.reset();
        remove_file(lines_path());
        remove_file(lines_path() + ".settings.json");
      }
      if (job_.predict.output) info("[predict] wrote {} predictions to {}", total_, *job_.predict.output);
    });
    return 0;
  }

 private:
  // For the message of a signal's end, which any rank may print.
  void note_progress() const {
    if (job_.predict.output)
      set_end_note(fmt::format("{} holds {} of {} predictions; the same command continues", lines_path(),
                               done_, total_));
  }

  // A matrix is made of whole predictions, whose file is removed then.
  bool makes_matrix() const { return job_.predict.output && is_matrix_file(*job_.predict.output); }
  std::string lines_path() const { return *job_.predict.output + (makes_matrix() ? ".jsonl" : ""); }
  std::string input() const { return job_.predict.input.value_or("predict.prompt"); }

  // The next n prompts, on every rank.
  std::vector<PredictRequest> take(i64 n) {
    std::vector<PredictRequest> out;
    world_.together([&] {
      PredictRequest r;
      while (static_cast<i64>(out.size()) < n && requests_->next(r)) out.push_back(std::move(r));
      if (static_cast<i64>(out.size()) < n)
        throw ContentsError("[predict] {} became shorter after the run began", input());
    });
    return out;
  }

  // Skips the prompts whose answers are in the file. They must be the prompts of an earlier run.
  void skip_kept() {
    for (i64 at = 0; at < done_;) {
      const auto some = take(std::min<i64>(1024, done_ - at));
      world_.on_first([&] {
        for (std::size_t i = 0; i < some.size(); ++i)
          file_->check(at + static_cast<i64>(i), some[i].head,
                       fmt::format("prompt {} of {}", some[i].example.ordinal + 1, input()));
      });
      at += static_cast<i64>(some.size());
    }
  }

  void answer(const ParamTree& params, i64 n) {
    const auto requests = take(n);
    std::vector<Example> examples;
    for (const PredictRequest& r : requests) examples.push_back(r.example);
    // The answer to a single prompt is printed as it grows.
    const bool lines = job_.predict.output || job_.predict.input;
    bool showed = false;
    std::function<void(std::string_view)> on_text;
    if (!lines && total_ == 1)
      on_text = [&](std::string_view piece) {
        if (!showed) write_stdout(requests[0].prompt);
        showed = true;
        write_stdout(piece);
      };
    auto answers = predict(*m_.pipeline, params, examples, job_.predict.batch_size, on_text);
    world_.on_first([&] {
      std::string text;
      for (std::size_t i = 0; i < requests.size(); ++i) {
        if (!Json::accept(answers[i]) || answers[i].empty() || answers[i][0] != '{')
          throw UsageError("[pipeline] predict() must return a JSON object, got: {}{}", excerpt(answers[i]),
                           m_.pipeline->origin.empty() ? "" : ". The pipeline is " + m_.pipeline->origin);
        // A line of the output holds one answer.
        if (answers[i].find_first_of("\r\n") != std::string::npos)
          answers[i] = Json::parse(answers[i]).dump(-1, ' ', false, Json::error_handler_t::replace);
        if (job_.predict.images || !job_.predict.output)
          answers[i] = save_images(answers[i], image_name(requests[i]), job_.predict.images.value_or("."));
        text += lines    ? line_of(requests[i], answers[i], input())
                : showed ? "\n"
                         : shown(requests[i], answers[i]);
      }
      if (file_) {
        file_->append(text);
      } else {
        write_stdout(text);
      }
    });
    done_ += n;
  }

  const JobConfig& job_;
  Group& world_;
  const bool first_;
  PredictModel m_;
  std::unique_ptr<PredictRequests> requests_;
  std::unique_ptr<PredictionsFile> file_;  // on the first rank
  i64 total_ = 0, done_ = 0, dp_ = 1;
};

}  // namespace

int run_predict(const RunRequest& request) {
  return run(trained_request(request, Weights::needed, JobUse::predict),
             [](Run& run) { return PredictRun(run.job(), run.context()).run(); });
}

}  // namespace redco
