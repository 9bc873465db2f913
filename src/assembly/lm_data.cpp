#include "assembly/lm_data.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log_once.h"
#include "base/progress.h"
#include "base/words.h"
#include "data/builtin/builtin.h"
#include "pipeline/indexed_data.h"

namespace redco {

namespace {

constexpr i64 kMaxTemplate = i64{1} << 20;

// The texts of a tokenizer's special tokens, for a template file without them.
std::vector<std::pair<std::string, std::string>> special_texts(const Tokenizer& t) {
  std::vector<std::pair<std::string, std::string>> out;
  const SpecialIds& s = t.special();
  const std::pair<const char*, std::optional<i32>> all[] = {
      {"bos_token", s.bos}, {"eos_token", s.eos}, {"unk_token", s.unk},  {"pad_token", s.pad},
      {"cls_token", s.cls}, {"sep_token", s.sep}, {"mask_token", s.mask}};
  for (const auto& [name, id] : all)
    if (const auto text = id ? t.id_to_token(*id) : std::nullopt) out.emplace_back(name, *text);
  return out;
}

Documents documents_of(const DataSettings& d) {
  return d.documents == "line"        ? Documents::line
         : d.documents == "paragraph" ? Documents::paragraph
                                      : Documents::file;
}

RowSettings row_settings(const LmDataRequest& r) {
  const DataSettings& d = r.job->data;
  // With skip_bad, a too long example is skipped like a bad line.
  std::string too_long = d.too_long.value_or("");
  if (too_long == "error" && d.skip_bad) too_long = "skip";
  return {.max_length = r.max_length, .packing = d.packing && !r.evaluation, .too_long = too_long};
}

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::string name_of(const LmDataRequest& r) { return source_name(r.source, r.evaluation); }

}  // namespace

std::string source_name(const DataSource& source, bool evaluation) {
  const std::string kind = evaluation ? "evaluation data" : "training data";
  return source.name.empty() ? kind : kind + " " + source.name;
}

std::optional<ChatTemplate> folder_chat_template(const std::string& folder, const Tokenizer& tokenizer) {
  std::optional<ChatTemplate> t = ChatTemplate::load(folder);
  if (t) t->add_special(special_texts(tokenizer));
  return t;
}

std::optional<ChatTemplate> job_chat_template(const JobConfig& job, const Tokenizer& tokenizer,
                                              const std::string& folder) {
  if (const auto& path = job.data.chat_template) {
    if (*path == "builtin:chat")
      return ChatTemplate::parse(builtin_chat_template(), *path, special_texts(tokenizer));
    if (!exists(*path))
      throw UsageError("[data] data.chat_template={} ({}): no such file. Give a Jinja file or builtin:chat",
                       *path, job.origins.where("data.chat_template"));
    if (is_folder(*path)) return folder_chat_template(*path, tokenizer);
    return ChatTemplate::parse(read_file(*path, kMaxTemplate), *path, special_texts(tokenizer));
  }
  std::string from = folder;
  if (job.model.tokenizer && exists(*job.model.tokenizer))
    from = is_folder(*job.model.tokenizer) ? *job.model.tokenizer : parent_path(*job.model.tokenizer);
  if (from.empty() || !is_folder(from)) return std::nullopt;
  return folder_chat_template(from, tokenizer);
}

LmDataRequest lm_data_request(const JobConfig& job, const DataSource& source, bool evaluation,
                              const Tokenizer& tokenizer, const Model* model, const std::string& folder,
                              const std::string& cache) {
  LmDataRequest r{.job = &job,
                  .source = source,
                  .evaluation = evaluation,
                  .tokenizer = &tokenizer,
                  .folder = folder,
                  .cache = cache};
  if (!job.data.max_length && !model)
    throw UsageError(
        "[data] data.max_length is missing, and there is no model to take it from. Set data.max_length");
  r.max_length = job.data.max_length.value_or(model ? model->max_length() : 0);
  if (model) {
    if (r.max_length > model->max_length())
      throw UsageError("[data] data.max_length={} ({}) is more than the model's {} positions", r.max_length,
                       job.origins.where("data.max_length"), model->max_length());
    r.embedding_rows = model->vocab_size();
    check_vocab(tokenizer, model->vocab_size());
  }
  return r;
}

std::string build_lm_data(const LmDataRequest& r) {
  const DataSettings& d = r.job->data;
  const auto files = data_files(r.source.files, r.evaluation, r.cache);
  LateProgress progress(fmt::format("tokenize {}", name_of(r)));
  const BuildProgress show = [&](i64 done, i64 total) { progress(done, total); };
  if (!d.has_records()) {
    if (const auto bos = d.bos ? document_bos(*r.tokenizer) : std::nullopt)
      log_once(
          LogLevel::info,
          fmt::format("text documents begin with {}, as the tokenizer adds it; data.bos=false leaves it out",
                      r.tokenizer->id_to_token(*bos).value_or("")));
    note_end_token(*r.tokenizer, "documents");
    return build_token_index({.paths = files, .documents = documents_of(d), .bos = d.bos}, *r.tokenizer,
                             r.cache, show);
  }
  const std::optional<ChatTemplate> chat = job_chat_template(*r.job, *r.tokenizer, r.folder);
  if (!chat) note_end_token(*r.tokenizer, "texts and completions");
  const ExampleSource source{.paths = files,
                             .fields = d.fields,
                             .chat = chat ? &*chat : nullptr,
                             .skip_bad = d.skip_bad,
                             .references = r.evaluation,
                             .data = &d};
  const std::string index = build_example_index(source, *r.tokenizer, r.cache, show);
  return index + "\n" + build_rows(ExampleIndex::open(index, files), row_settings(r));
}

std::shared_ptr<const Dataset> open_lm_data(const LmDataRequest& r, const std::string& built) {
  const auto border = built.find('\n');
  const bool segmented = r.job->data.segmented();
  if (border == std::string::npos) {
    auto data = std::make_shared<WindowDataset>(TokenIndex::open(built), r.max_length, segmented);
    if (r.embedding_rows) data->index().check_vocab(*r.embedding_rows);
    return data;
  }
  const auto files = data_file_names(r.source.files, r.evaluation, r.cache);
  auto data = std::make_shared<ExampleDataset>(ExampleIndex::open(built.substr(0, border), files),
                                               ExampleRows::open(built.substr(border + 1)), row_settings(r),
                                               segmented);
  if (r.embedding_rows) data->index().check_vocab(*r.embedding_rows);
  return data;
}

std::vector<std::string> describe_lm_data(const LmDataRequest& r, const Dataset& data) {
  if (const auto* text = dynamic_cast<const WindowDataset*>(&data))
    return {fmt::format("{}: {} tokens of {} in {} of {}; unigram entropy {:.4f} nats per token", name_of(r),
                        text->index().size(), counted(text->index().n_documents(), "document"),
                        counted(data.size(), "window"), r.max_length, text->index().unigram_entropy())};
  const auto& examples = dynamic_cast<const ExampleDataset&>(data);
  const ExampleIndex& index = examples.index();
  const RowCounts& c = examples.rows().counts();
  std::vector<std::string> out;
  const bool packed = row_settings(r).packing;
  const double places =
      static_cast<double>(c.rows) * static_cast<double>(packed ? static_cast<u64>(r.max_length) : c.longest);
  const std::string rows = packed ? fmt::format("in {} of {}", counted(c.rows, "row"), r.max_length)
                                  : fmt::format("a row each, at most {} tokens", c.longest);
  out.push_back(
      fmt::format("{}: {} of {} tokens, {} to learn ({}), {}; {} padding", name_of(r),
                  counted(index.size(), "example"), index.n_tokens(), index.n_targets(),
                  percent(static_cast<double>(index.n_targets()) / static_cast<double>(index.n_tokens())),
                  rows, percent(1 - static_cast<double>(c.tokens) / places)));
  if (index.longest() > r.max_length) {
    std::string what;
    auto add = [&](u64 n, const std::string& words) {
      if (n > 0) what += fmt::format("{}{} {}", what.empty() ? "" : ", ", n, words);
    };
    add(c.split, "cut into several");
    add(c.truncated + c.without_target, fmt::format("cut at the end ({} tokens left out)", c.left_out));
    add(c.without_target, "of these left out whole: nothing to learn before the cut");
    add(c.skipped, "left out");
    out.push_back(fmt::format("{}: examples of more than data.max_length={} tokens: {} (data.too_long)",
                              name_of(r), r.max_length, what));
  }
  if (index.n_empty() > 0)
    out.push_back(
        fmt::format("{}: {} without a text left out", name_of(r), counted(index.n_empty(), "record")));
  if (index.n_bad() > 0) out.push_back(fmt::format("{}: {}", name_of(r), index.describe_bad()));
  return out;
}

std::shared_ptr<const Dataset> make_lm_data(const LmDataRequest& r) {
  return open_indexed({.build = [&] { return build_lm_data(r); },
                       .open = [&](const std::string& built) { return open_lm_data(r, built); },
                       .report =
                           [&](const Dataset& data) {
                             for (const std::string& line : describe_lm_data(r, data))
                               info("[data] {}", line);
                           }});
}

}  // namespace redco
