#include "commands/convert.h"

#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "assembly/calibration.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/process.h"
#include "base/words.h"
#include "chat/chat_template.h"
#include "ckpt/hub.h"
#include "ckpt/model_files.h"
#include "ckpt/peft.h"
#include "ckpt/safetensors_write.h"
#include "comm/group.h"
#include "commands/convert_config.h"
#include "gguf/file_metadata.h"
#include "gguf/folder.h"
#include "gguf/folder_config.h"
#include "gguf/quantize.h"
#include "job/job_config.h"
#include "kernels/threads.h"
#include "models/config_tree.h"
#include "models/hf_keys.h"
#include "tokenizers/tokenizer.h"
#include "train/folder_model.h"

namespace redco {
namespace {

using Json = nlohmann::ordered_json;
using gguf::BlockType;

struct NamedType {
  const char* name;
  BlockType type;
  std::uint32_t file_type;  // llama.cpp's general.file_type
};
constexpr NamedType kTypes[] = {{"f32", BlockType::f32, 0},    {"f16", BlockType::f16, 1},
                                {"bf16", BlockType::bf16, 32}, {"q8_0", BlockType::q8_0, 7},
                                {"q4_0", BlockType::q4_0, 2},  {"q4_1", BlockType::q4_1, 3},
                                {"q4_k", BlockType::q4_k, 15}, {"q6_k", BlockType::q6_k, 18}};

// Texts with which the two tokenizers are compared.
constexpr const char* kTexts[] = {
    "",
    "a",
    " ",
    "Hello world",
    "  two  spaces  ",
    "The end.\n\nA new line\ttab",
    "I'm, you're; DON'T!",
    "1234567 3.14 0x1F",
    "caf\xC3\xA9 na\xC3\xAFve \xE4\xB8\xAD\xE6\x96\x87 \xD0\x9F\xD1\x80\xD0\xB8 \xF0\x9F\x98\x80",
    "def f(x):\n    return x**2  # comment",
    "x=[1,2];y={'a':\"b\"}",
    "https://example.org/a?b=c&d=%20e"};

// The type of a tensor of the file.
BlockType type_of(const gguf::FileTensor& t, BlockType wanted, bool tied) {
  if (t.shape.size() < 2 || t.name.find("ffn_gate_inp") != t.name.npos ||
      t.name.starts_with("position_embd") || t.name.starts_with("token_types"))
    return BlockType::f32;
  const auto fits = [&](BlockType type) { return t.shape.back() % gguf::size_of(type).elements == 0; };
  const bool four = wanted == BlockType::q4_0 || wanted == BlockType::q4_1 || wanted == BlockType::q4_k;
  const bool head = t.name == "output.weight" || (tied && t.name == "token_embd.weight");
  for (const BlockType type : {four && head ? BlockType::q6_k : wanted, BlockType::q8_0, BlockType::f16})
    if (fits(type)) return type;
  return BlockType::f32;
}

// The columns of one layer of a stack, as rows.
std::vector<float> stack_values(const ckpt::ModelFiles::Located& l, const gguf::FileTensor& t) {
  Shape view = l.entry->shape;
  view.back() /= t.stack_layers;
  ckpt::Box box = ckpt::whole(view);
  Strides strides = {numel(t.shape) / t.shape[0]};
  if (view.size() == 3) strides.push_back(1);
  strides.push_back(view.size() == 3 ? view[1] : 1);
  if (t.stack_layers > 1) {
    view.push_back(t.stack_layers);
    box.push_back({t.stack_layer, t.stack_layer + 1});
    strides.push_back(1);
  }
  std::vector<float> values(static_cast<std::size_t>(numel(t.shape)));
  l.file->read(t.stack_layers > 1 ? l.entry->viewed(view) : *l.entry, box, values.data(), strides);
  return values;
}

// The rows of one source of a file's tensor, in the file's order.
std::vector<float> file_values(const ckpt::ModelFiles::Located& l, const gguf::FileTensor& t) {
  std::vector<float> values = t.stack_layers > 0 ? stack_values(l, t) : l.file->read<float>(*l.entry);
  const Shape& shape = l.entry->shape;
  if (t.transposed || t.rotary_heads > 0) {
    const i64 rows = shape[0], columns = static_cast<i64>(values.size()) / std::max<i64>(1, rows);
    std::vector<float> moved(values.size());
    for (i64 r = 0; r < rows; ++r)
      for (i64 c = 0; c < columns; ++c) {
        const i64 to = t.transposed ? c * rows + r : gguf::rotary_row(t.rotary_heads, rows, r) * columns + c;
        moved[static_cast<std::size_t>(to)] = values[static_cast<std::size_t>(r * columns + c)];
      }
    values = std::move(moved);
  }
  if (t.add != 0)
    for (float& x : values) x += t.add;
  for (const float x : values)
    if (!std::isfinite(x))
      throw ContentsError("[convert] {}: {} has values that are not finite", l.file->path(), l.entry->name);
  return values;
}

std::uint32_t file_type(BlockType t) {
  for (const NamedType& n : kTypes)
    if (n.type == t) return n.file_type;
  return 0;
}

std::string read_or_empty(const std::string& path) {
  return exists(path) ? read_file(path, i64{256} << 20) : std::string();
}

gguf::MetadataList tokenizer_metadata(const std::string& folder, const Tokenizer& t, i64 rows) {
  const std::string path = join_path(folder, "tokenizer.json");
  if (!exists(path))
    throw ContentsError(
        "[convert] {} has no tokenizer.json, from which the file's vocabulary is made. In Python, "
        "AutoTokenizer.from_pretrained(...).save_pretrained(...) writes one",
        folder);
  const Json j = Json::parse(read_or_empty(path));
  gguf::TokenizerSource s{.json = j, .where = path, .rows = std::max<i64>(rows, t.vocab_size())};
  const SpecialIds& ids = t.special();
  const std::vector<i32> empty = t.encode("");
  s.adds_bos = ids.bos && !empty.empty() && empty.front() == *ids.bos;
  s.adds_eos = ids.eos && !empty.empty() && empty.back() == *ids.eos && !(s.adds_bos && empty.size() == 1);
  for (const auto& [role, id] :
       {std::pair("bos", ids.bos), std::pair("eos", ids.eos), std::pair("unknown", ids.unk),
        std::pair("padding", ids.pad), std::pair("seperator", ids.sep), std::pair("cls", ids.cls),
        std::pair("mask", ids.mask)})
    if (id) s.roles.emplace_back(role, *id);
  const Json generation = Json::parse(
      without_python_floats(read_or_empty(join_path(folder, "generation_config.json"))), nullptr, false);
  if (generation.is_object() && generation.contains("eos_token_id") && generation["eos_token_id"].is_array())
    for (const Json& id : generation["eos_token_id"])
      if (id.is_number_integer() && ids.eos && id != *ids.eos) {
        s.roles.emplace_back("eot", id.get<i64>());
        break;
      }
  std::string chat = read_or_empty(join_path(folder, "chat_template.jinja"));
  if (chat.empty()) {
    const Json tokenizer =
        Json::parse(read_or_empty(join_path(folder, "tokenizer_config.json")), nullptr, false);
    if (tokenizer.is_object() && tokenizer.contains("chat_template") &&
        tokenizer["chat_template"].is_string())
      chat = tokenizer["chat_template"];
  }
  s.chat_template = chat;
  return gguf::file_tokenizer(s);
}

void check_tokenizer(const Tokenizer& own, const std::string& file, const std::string& where) {
  const auto read = load_tokenizer(gguf::folder_of(file, gguf::Contents::tokenizer));
  for (const char* text : kTexts)
    if (own.encode(text) != read->encode(text))
      throw ContentsError(
          "[convert] {}: its tokenizer gives other ids for {} than the one that the file's keys describe. Use "
          "--to hf",
          where, excerpt(text));
}

// What a conversion reads: the model's folder, its config, and the names of its tensors in the model.
struct Source {
  std::string folder;
  Json config, full;
  std::unique_ptr<Model> model;
};

Source open_source(const std::string& folder) {
  Source s{.folder = folder};
  const std::string path = join_path(folder, "config.json");
  if (!is_folder(folder))
    throw UsageError("[convert] no such folder or GGUF file: {}{}", folder, ckpt::hub_hint(folder));
  if (!exists(path)) throw UsageError("[convert] {} has no config.json: it is not a model's folder", folder);
  const ConfigJson config = ConfigJson::of_file(path);
  s.config = config.tree().json;
  s.model = make_folder_model(folder, {.config = config});
  s.full = full_config(s.config);
  return s;
}

// Of the columns of the folder's tensors.
ckpt::Importances importances_of(const ConvertOptions& o, const Source& s) {
  if (o.calibration.empty()) return {};
  const JobConfig job = load_job(
      {}, {"model.path=" + s.folder, "model.weight_dtype=int4", "data.calibration=" + o.calibration});
  check_files(job, JobUse::predict, {});
  Context context(Mesh(1, 1), make_self_group());
  const Context::Use use(context);
  kernels::set_threads(usable_cpus());
  const ckpt::Importances by_parameter = importance_of(job);
  ckpt::Importances out;
  for (const ParamSpec& spec : s.model->params().specs)
    if (const auto found = by_parameter.find(spec.name); found != by_parameter.end())
      out[spec.stored.name] = found->second;
  return out;
}

// Rows on all threads.
void quantize_weighted(BlockType type, const std::vector<float>& x, i64 columns,
                       const ckpt::Importance& importance, unsigned char* to) {
  constexpr i64 kRows = 16;
  const gguf::BlockSize size = gguf::size_of(type);
  const i64 rows = std::ssize(x) / columns;
  parallel::for_each(ceil_div(rows, kRows), [&](i64 piece) {
    const i64 first = piece * kRows;
    gguf::quantize_rows(type, x.data() + first * columns, std::min(kRows, rows - first), columns,
                        importance.squares.data(), importance.feedback.get(),
                        to + first * columns / size.elements * size.bytes);
  });
}

int to_gguf(const ConvertOptions& o, const Source& s, BlockType wanted) {
  const std::string architecture = gguf::architecture_of(s.config);
  if (architecture.empty())
    throw ContentsError("[convert] {}: GGUF files of redco hold no models of type {}. Use --to hf", s.folder,
                        s.config.value("model_type", "?"));
  const ckpt::ModelFiles files = ckpt::ModelFiles::open(s.folder);
  const auto& aliases = s.model->params().aliases;
  std::vector<gguf::FolderName> names;
  std::map<std::string, const ckpt::ModelFiles::Located*> located;
  for (const auto& l : files.tensors()) {
    const std::string name = s.model->canonical_name(l.entry->name);
    if (name.empty() || aliases.count(name)) continue;  // buffers and tied copies
    names.push_back({name, l.entry->shape});
    located[name] = &l;
  }
  std::vector<std::string> unknown;
  auto tensors = gguf::file_tensors(architecture, gguf::file_shape(s.full), names, unknown);
  // llama.cpp has no pooler or heads of encoders.
  std::erase_if(unknown, [&](const std::string& n) { return architecture == "bert" && !n.empty(); });
  if (!unknown.empty())
    throw ContentsError("[convert] {}: {} has no name in a GGUF file of {}", s.folder, unknown[0],
                        architecture);
  const bool tied = std::ranges::none_of(tensors, [](const auto& t) { return t.name == "output.weight"; });

  gguf::ModelMetadata m = gguf::file_metadata(s.full, join_path(s.folder, "config.json"));
  m.values.emplace_back("general.name", file_name(s.folder));
  m.values.emplace_back("general.file_type", file_type(wanted));
  std::unique_ptr<Tokenizer> tokenizer;
  if (has_tokenizer(s.folder)) {
    tokenizer = load_tokenizer(s.folder);
    for (auto& pair : tokenizer_metadata(s.folder, *tokenizer, s.model->vocab_size()))
      m.values.push_back(std::move(pair));
  }
  std::vector<gguf::PlannedTensor> plan;
  for (const auto& [name, values] : m.tensors)
    plan.push_back({name, BlockType::f32, {static_cast<i64>(values.size())}});
  i64 other = 0;
  for (const auto& t : tensors) {
    plan.push_back({t.name, type_of(t, wanted, tied), t.shape});
    other += t.shape.size() > 1 && plan.back().type != wanted ? 1 : 0;
  }
  const ckpt::Importances importances = importances_of(o, s);
  const std::string temp = o.output + ".tmp.gguf";
  try {
    gguf::Writer writer(temp, m.values, plan);
    for (const auto& [name, values] : m.tensors) writer.append(values.data(), std::ssize(values) * 4);
    std::vector<unsigned char> bytes;
    for (std::size_t k = 0; k < tensors.size(); ++k)
      for (const std::string& source : tensors[k].sources) {
        const BlockType type = plan[m.tensors.size() + k].type;
        const std::vector<float> values = file_values(*located.at(source), tensors[k]);
        const gguf::BlockSize size = gguf::size_of(type);
        const i64 blocks = std::ssize(values) / size.elements;
        bytes.resize(static_cast<std::size_t>(blocks * size.bytes));
        const auto importance = importances.find(source);
        if (importance == importances.end())
          gguf::quantize(type, values.data(), blocks, bytes.data());
        else
          quantize_weighted(type, values, tensors[k].shape.back(), importance->second, bytes.data());
        writer.append(bytes.data(), std::ssize(bytes));
      }
    writer.commit();
    const gguf::Model written = gguf::open_model(temp);
    check_config(s.config, s.full, Json::parse(gguf::folder_config(written)), s.folder);
    if (tokenizer) check_tokenizer(*tokenizer, temp, s.folder);
  } catch (...) {
    std::filesystem::remove(temp);
    throw;
  }
  rename_durable(temp, o.output);
  info("[convert] {} tensors in {}, {}{}", plan.size(), o.output, gguf::name_of(wanted),
       other > 0 ? fmt::format(" ({} matrices in another type: the head, routers, or rows that its blocks do "
                               "not divide)",
                               other)
                 : "");
  return 0;
}

// A LoRA adapter as llama.cpp reads it: lora_a and lora_b after the name of the layer.
int adapter_to_gguf(const ConvertOptions& o, BlockType wanted) {
  const ckpt::PeftAdapter adapter = ckpt::read_adapter(o.model);
  const std::string base = gguf::folder_of(
      o.base.empty() ? ckpt::base_folder(adapter, "give --base, the folder of the adapter's base model")
                     : o.base);
  const Source s = open_source(base);
  const std::string architecture = gguf::architecture_of(s.config);
  const LoraConfig& lora = adapter.config;
  if (architecture.empty() || !lora.rank_pattern.empty() || !lora.alpha_pattern.empty() ||
      !lora.modules_to_save.empty())
    throw ContentsError(
        "[convert] {}: llama.cpp has no adapters of {}. Merge it: redco merge {} --output FOLDER", o.model,
        architecture.empty()          ? "this family"
        : !lora.rank_pattern.empty()  ? "several ranks"
        : !lora.alpha_pattern.empty() ? "several alphas"
                                      : "layers that are trained whole",
        o.model);
  const ckpt::ModelFiles files = ckpt::ModelFiles::open(o.model, "adapter_model");
  const std::string_view prefix = ckpt::kAdapterPrefix;
  std::vector<gguf::PlannedTensor> plan;
  std::vector<std::vector<float>> data;
  for (const auto& l : files.tensors()) {
    const std::string& stored = l.entry->name;
    const bool a = stored.find(".lora_A.") != stored.npos;
    const auto at = stored.find(a ? ".lora_A." : ".lora_B.");
    if (at == stored.npos || !stored.starts_with(prefix))
      throw ContentsError("[convert] {}: {} is no matrix of a LoRA adapter", l.file->path(), stored);
    const std::string layer =
        s.model->canonical_name(stored.substr(prefix.size(), at - prefix.size()) + ".weight");
    // Rows of the layer, of which lora_B has all: those of lora_A are the rank.
    const auto b =
        std::ranges::find_if(files.tensors(), [other = stored.substr(0, at) + ".lora_B."](const auto& o) {
          return o.entry->name.starts_with(other);
        });
    if (b == files.tensors().end())
      throw ContentsError("[convert] {}: {} has no lora_B", l.file->path(), stored);
    const Shape shape = {b->entry->shape[0], l.entry->shape.back()};
    std::vector<std::string> unknown;
    const auto named = gguf::file_tensors(architecture, gguf::file_shape(s.full), {{layer, shape}}, unknown);
    if (named.size() != 1)
      throw ContentsError("[convert] {}: {} has no name in a GGUF file", l.file->path(), layer);
    gguf::FileTensor t = named[0];
    t.transposed = false;  // PEFT's matrices of a Conv1D are those of a linear layer
    if (a) t.rotary_heads = 0;
    plan.push_back({t.name + (a ? ".lora_a" : ".lora_b"), wanted, l.entry->shape});
    data.push_back(file_values(l, t));
  }
  // llama.cpp scales by alpha / rank.
  const double rank = static_cast<double>(lora.rank);
  const double alpha = lora.use_rslora ? lora.alpha * std::sqrt(rank) : lora.alpha;
  const gguf::MetadataList metadata = {{"general.type", std::string("adapter")},
                                       {"general.architecture", architecture},
                                       {"general.file_type", file_type(wanted)},
                                       {"adapter.type", std::string("lora")},
                                       {"adapter.lora.alpha", static_cast<float>(alpha)}};
  gguf::Writer writer(o.output, metadata, plan);
  for (std::size_t k = 0; k < plan.size(); ++k) {
    std::vector<unsigned char> bytes(static_cast<std::size_t>(plan[k].bytes()));
    gguf::quantize(wanted, data[k].data(), std::ssize(data[k]), bytes.data());
    writer.append(bytes.data(), std::ssize(bytes));
  }
  writer.commit();
  info("[convert] an adapter of {} matrices in {}, {}", plan.size(), o.output, gguf::name_of(wanted));
  return 0;
}

// Slices of dim 0 at a time, because experts may be one tensor.
template <class T>
void copy_tensor(const ckpt::ModelFiles::Located& l, ckpt::SafetensorsWriter& writer) {
  constexpr i64 kElements = 16 << 20;
  const Shape& shape = l.entry->shape;
  ckpt::Box box = ckpt::whole(shape);
  if (ckpt::numel(box) <= kElements)
    return writer.write(l.entry->name, box, l.file->read<T>(*l.entry).data());
  const i64 step = std::max<i64>(1, kElements / (ckpt::numel(box) / shape[0]));
  std::vector<T> values;
  for (i64 r = 0; r < shape[0]; r += step) {
    box[0] = {r, std::min(shape[0], r + step)};
    values.resize(static_cast<std::size_t>(ckpt::numel(box)));
    l.file->read(*l.entry, box, values.data());
    writer.write(l.entry->name, box, values.data());
  }
}

int to_hf(const ConvertOptions& o, const Source& s, ckpt::StoredType type) {
  const ckpt::ModelFiles files = ckpt::ModelFiles::open(s.folder);
  std::vector<ckpt::TensorPlan> tensors;
  for (const auto& l : files.tensors())
    tensors.push_back({l.entry->name, ckpt::is_float(l.entry->type) ? type : l.entry->type, l.entry->shape});
  const ckpt::ModelPlan plan = ckpt::plan_model(tensors);
  const std::string temp = o.output + ".tmp";
  make_dirs(temp);
  try {
    for (const ckpt::FilePlan& file : plan.files) {
      auto writer = ckpt::SafetensorsWriter::create(temp, file);
      for (const auto& e : file.entries) {
        const auto& l = files.at(e.name);
        if (ckpt::is_float(e.type))
          copy_tensor<float>(l, writer);
        else
          copy_tensor<i64>(l, writer);
      }
      writer.commit();
    }
    if (!plan.index_name.empty()) write_file_durable(join_path(temp, plan.index_name), plan.index_json);
    Json config = s.config;
    config.erase("torch_dtype");
    config.erase("quantization_config");
    config["dtype"] = type == ckpt::StoredType::f32   ? "float32"
                      : type == ckpt::StoredType::f16 ? "float16"
                                                      : "bfloat16";
    write_file_durable(join_path(temp, "config.json"), config.dump(2) + "\n");
    for (const char* name : {"generation_config.json", "preprocessor_config.json"})
      if (const std::string text = read_or_empty(join_path(s.folder, name)); !text.empty())
        write_file_durable(join_path(temp, name), text);
    if (has_tokenizer(s.folder)) load_tokenizer(s.folder)->save(temp);
    sync_dir(temp);
  } catch (...) {
    remove_tree(temp);
    throw;
  }
  rename_durable(temp, o.output);
  info("[convert] {} tensors in {}, {}", tensors.size(), o.output, ckpt::name_of(type));
  return 0;
}

}  // namespace

int run_convert(const ConvertOptions& options) {
  ConvertOptions o = options;
  while (o.output.size() > 1 && o.output.ends_with("/")) o.output.pop_back();
  if (exists(o.output)) throw UsageError("[convert] the output {} exists. Name another", o.output);
  if (o.dtype.empty()) o.dtype = o.to == "hf" ? "f32" : "f16";
  const auto type = std::ranges::find_if(kTypes, [&](const NamedType& t) { return o.dtype == t.name; });
  if (type == std::end(kTypes)) throw UsageError("[convert] --dtype {}: no such type", o.dtype);
  const bool four_to_six = type->type == BlockType::q4_0 || type->type == BlockType::q4_1 ||
                           type->type == BlockType::q4_k || type->type == BlockType::q6_k;
  if (!o.calibration.empty() && !four_to_six)
    throw UsageError("[convert] --calibration has no effect on {}. Set --dtype to q4_0, q4_1, q4_k or q6_k",
                     o.dtype);
  const bool whole =
      type->type == BlockType::f32 || type->type == BlockType::f16 || type->type == BlockType::bf16;
  if (is_folder(o.model) && ckpt::is_adapter(o.model)) {
    if (o.to != "gguf")
      throw UsageError("[convert] {} is an adapter; merge it: redco merge {} --output FOLDER", o.model,
                       o.model);
    if (!whole) throw UsageError("[convert] --dtype {}: adapters are stored as f32, f16 or bf16", o.dtype);
    return adapter_to_gguf(o, type->type);
  }
  const std::string found = ckpt::local_source(o.model);
  const Source s = open_source(gguf::folder_of(found));
  if (o.to == "gguf") {
    if (!o.output.ends_with(".gguf"))
      throw UsageError("[convert] --output {}: expected a file that ends in .gguf", o.output);
    return to_gguf(o, s, type->type);
  }
  if (!whole) throw UsageError("[convert] --dtype {} needs --to gguf; expected f32, f16 or bf16", o.dtype);
  return to_hf(o, s,
               type->type == BlockType::f32   ? ckpt::StoredType::f32
               : type->type == BlockType::f16 ? ckpt::StoredType::f16
                                              : ckpt::StoredType::bf16);
}

}  // namespace redco
