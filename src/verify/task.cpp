#include "verify/task.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "models/router_loss.h"
#include "nn/activations_by_name.h"
#include "ops/create.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "pipelines/pair_losses.h"
#include "pipelines/pooling.h"

namespace redco {

namespace {

bool is_encoder(const Model& model) {
  return model.task() == ModelTask::masked_lm || model.task() == ModelTask::sequence_classification ||
         model.task() == ModelTask::feature_extraction || model.task() == ModelTask::image_classification ||
         model.task() == ModelTask::vector_regression;
}
bool reads_images(const Model& model) {
  return model.task() == ModelTask::image_classification || model.task() == ModelTask::image_captioning ||
         (model.task() == ModelTask::feature_extraction && model.image_shape().channels > 0);
}

// Ids [rows, length] from the file, with the same shape as another field of the batch.
std::vector<i32> ids_like(const Expected& e, const std::string& name, const std::string& like, i32 absent) {
  const Shape shape = e.shape(like);
  if (!e.has(name)) return std::vector<i32>(numel(shape), absent);
  if (e.shape(name) != shape)
    throw ContentsError("[verify] {}: '{}' has shape {}, '{}' has {}", e.path(), name,
                        to_string(e.shape(name)), like, to_string(shape));
  return e.ids(name);
}

PositionMask read_mask(const Expected& e, const std::string& name, const std::string& like) {
  return {name, e.has(name) ? ids_like(e, name, like, 1) : std::vector<i32>()};
}

// Labels of a decoder-only model are its ids; its logits predict the next token.
std::vector<i32> shifted(const std::vector<i32>& labels, i64 T) {
  std::vector<i32> out(labels.size(), -100);
  for (size_t i = 0; i + 1 < labels.size(); ++i)
    if (static_cast<i64>(i + 1) % T != 0) out[i] = labels[i + 1];
  return out;
}

// Negative targets are ignored.
void set_targets(TaskInputs& in, const Shape& shape, const std::vector<i32>& targets) {
  for (const i32 t : targets) in.n_targets += t >= 0;
  in.targets = from_ids(shape, targets, batch_layout());
}

// Values from the file, one row per example.
Tensor read_values(const Expected& e, const std::string& name) {
  const std::vector<double> values = e.values(name);
  const std::vector<float> floats(values.begin(), values.end());
  return from_values(e.shape(name), std::span(floats), batch_layout());
}
// Images, or the log-mel energies of recordings.
bool reads_values(const Model& model) {
  return reads_images(model) || model.task() == ModelTask::speech_to_text;
}
Tensor read_images(const Expected& e) { return read_values(e, "pixel_values"); }

// Noisy images `pixel_values`, their times `features` [B, 1], captions `input_ids` with `attention_mask`, and
// the images `labels` that the model should return.
TaskInputs read_image_inputs(const Expected& e) {
  TaskInputs in;
  in.encoder.pixel_values = read_images(e);
  in.encoder.features = read_values(e, "features");
  const Shape images = e.shape("pixel_values"), captions = e.shape("input_ids");
  const auto expect = [&](const char* name, const Shape& shape) {
    if (e.shape(name) != shape)
      throw ContentsError("[verify] {}: '{}' has shape {}, expected {}", e.path(), name,
                          to_string(e.shape(name)), to_string(shape));
  };
  expect("features", {images[0], 1});
  expect("input_ids", {images[0], captions.back()});
  in.caption.input_ids = from_ids(captions, e.ids("input_ids"), batch_layout());
  in.caption.key_mask = from_ids(captions, ids_like(e, "attention_mask", "input_ids", 1), batch_layout());
  if (!e.has("labels")) {
    in.values = zeros_like(in.encoder.pixel_values);
    return in;
  }
  expect("labels", images);
  in.values = read_values(e, "labels");
  in.n_targets = numel(images);
  return in;
}

// Images `pixel_values` and their texts `input_ids`, with `attention_mask` unless the model pads texts.
TaskInputs read_pair_inputs(const Model& model, const Expected& e) {
  TaskInputs in;
  in.pairs = true;
  if (model.image_shape().channels > 0) in.encoder.pixel_values = read_images(e);
  if (model.vocab_size() == 0) return in;
  e.check_ids("input_ids", model.vocab_size());
  const Shape texts = e.shape("input_ids");
  in.caption.input_ids = from_ids(texts, e.ids("input_ids"), batch_layout());
  in.encoder_mask = read_mask(e, "attention_mask", "input_ids");
  if (!in.encoder_mask.values.empty())
    in.caption.key_mask = from_ids(texts, in.encoder_mask.values, batch_layout());
  if (in.encoder.pixel_values.defined()) in.n_targets = texts[0];
  return in;
}

// One class per row, or the values of a regression.
void set_labels(TaskInputs& in, const Model& model, const Expected& e, i64 rows) {
  if (model.problem_type() == "regression" && e.has("labels")) {
    const Shape shape = {rows, model.num_labels()};
    if (e.shape("labels") != shape)
      throw ContentsError("[verify] {}: 'labels' has shape {}, expected {}", e.path(),
                          to_string(e.shape("labels")), to_string(shape));
    in.values = read_values(e, "labels");
    in.n_targets = numel(shape);
    return;
  }
  const std::vector<i32> classes = e.has("labels") ? e.row_ids("labels") : std::vector<i32>(rows, -100);
  if (static_cast<i64>(classes.size()) != rows)
    throw ContentsError("[verify] {}: {} 'labels' for {} rows of inputs", e.path(), classes.size(), rows);
  set_targets(in, {rows}, classes);
}

TaskInputs read_encoder_inputs(const Model& model, const Expected& e) {
  TaskInputs in;
  if (reads_images(model)) {
    in.encoder.pixel_values = read_images(e);
    set_labels(in, model, e, in.encoder.pixel_values.size(0));
    return in;
  }
  if (model.n_features() > 0) {
    in.encoder.features = read_values(e, "features");
    set_labels(in, model, e, in.encoder.features.size(0));
    return in;
  }
  const Layout rows = batch_layout();
  const Shape shape = e.shape("input_ids");
  const auto tensor = [&](const char* name, i32 absent) {
    return from_ids(shape, ids_like(e, name, "input_ids", absent), rows);
  };
  in.encoder.input_ids = tensor("input_ids", 0);
  in.encoder.key_mask = tensor("attention_mask", 1);
  in.encoder_mask = read_mask(e, "attention_mask", "input_ids");
  if (e.has("token_type_ids")) in.encoder.token_type_ids = tensor("token_type_ids", 0);
  if (model.task() == ModelTask::masked_lm) {
    set_targets(in, shape, ids_like(e, "labels", "input_ids", -100));
    return in;
  }
  set_labels(in, model, e, shape[0]);
  return in;
}

void check_decoder_input(const Model& model, const Expected& e, const std::vector<i32>& ids,
                         const std::vector<i32>& labels, i64 T) {
  for (size_t row = 0; row < ids.size(); row += T) {
    const auto expected = model.decoder_input_ids(std::span(labels).subspan(row, T));
    if (!std::equal(expected.begin(), expected.end(), ids.begin() + static_cast<i64>(row)))
      throw ContentsError(
          "[verify] {}: row {} of 'decoder_input_ids' is not the labels shifted one to the right", e.path(),
          static_cast<i64>(row) / T);
  }
}

}  // namespace

TaskInputs read_task_inputs(const Model& model, const Expected& e, const std::string& folder) {
  TaskInputs in;
  const Layout rows = batch_layout();
  const bool two = model.is_encoder_decoder();
  if (two && !e.has("decoder_input_ids") && !e.has("labels"))
    throw ContentsError("[verify] {}: a {} model needs 'decoder_input_ids' or 'labels'", e.path(),
                        name_of(model.task()));
  if (model.task() == ModelTask::image_text_contrastive) return read_pair_inputs(model, e);
  const bool values = reads_values(model);
  if (!values && model.n_features() == 0) e.check_ids("input_ids", model.vocab_size());
  if (model.task() == ModelTask::text_to_image) return read_image_inputs(e);
  if (is_encoder(model)) {
    in = read_encoder_inputs(model, e);
    in.sentences = read_sentences(model, folder.empty() ? parent_path(e.path()) : folder, e);
    return in;
  }
  Tensor ids, key_mask;
  if (reads_images(model)) {
    in.encoder.pixel_values = read_images(e);
  } else if (values) {
    in.encoder.features = read_values(e, "input_features");
  } else {
    ids = from_ids(e.shape("input_ids"), e.ids("input_ids"), rows);
    key_mask = from_ids(ids.shape(), ids_like(e, "attention_mask", "input_ids", 1), rows);
  }
  const Tensor& source = reads_images(model) ? in.encoder.pixel_values : values ? in.encoder.features : ids;
  const i64 B = source.size(0);

  const std::string decoded = !two                         ? "input_ids"
                              : e.has("decoder_input_ids") ? "decoder_input_ids"
                                                           : "labels";
  const Shape shape = e.shape(decoded);
  const std::vector<i32> labels = ids_like(e, "labels", decoded, -100);
  if (shape.size() != 2 || shape[0] != B)
    throw ContentsError("[verify] {}: '{}' has shape {}, but there are {} rows of inputs", e.path(), decoded,
                        to_string(shape), B);
  const i64 T = shape[1];
  if (two) {
    if (!values) in.encoder = {.input_ids = ids, .key_mask = key_mask};
    std::vector<i32> decoder_ids;
    if (decoded == "labels") {
      for (i64 r = 0; r < shape[0]; ++r)
        for (const i32 id : model.decoder_input_ids(std::span(labels).subspan(r * T, T)))
          decoder_ids.push_back(id);
    } else {
      e.check_ids(decoded, model.vocab_size());
      decoder_ids = e.ids(decoded);
      if (e.has("labels")) check_decoder_input(model, e, decoder_ids, labels, T);
    }
    in.decoder.input_ids = from_ids(shape, decoder_ids, rows);
    in.decoder.memory_mask = key_mask;
    if (!values) in.encoder_mask = read_mask(e, "attention_mask", "input_ids");
  } else {
    in.decoder.input_ids = ids;
  }
  in.decoder_mask = read_mask(e, two ? "decoder_attention_mask" : "attention_mask", decoded);
  const std::vector<i32> seen = ids_like(e, in.decoder_mask.name, decoded, 1);
  if (!in.decoder_mask.values.empty()) in.decoder.key_mask = from_ids(shape, seen, rows);
  std::vector<i32> positions;
  for (i64 r = 0; r < shape[0]; ++r) {
    const auto row = model.positions(std::span(seen).subspan(r * T, T), false);
    positions.insert(positions.end(), row.begin(), row.end());
  }
  in.decoder.positions = from_ids(shape, positions, rows);
  set_targets(in, shape, two ? labels : shifted(labels, T));
  return in;
}

const PositionMask* mask_of(const Model& model, const TaskInputs& in, const std::string& tensor) {
  if (model.task() == ModelTask::text_to_image) return nullptr;  // of the patches none is hidden
  if (in.pairs && !tensor.starts_with("text_hidden.") && tensor != "text_last") return nullptr;
  // Values of whole rows have no positions.
  if (is_encoder(model) && model.task() != ModelTask::masked_lm && !tensor.starts_with("hidden."))
    return nullptr;
  const bool encoder = in.pairs || is_encoder(model) || tensor.starts_with("encoder_hidden.");
  const PositionMask& mask = encoder ? in.encoder_mask : in.decoder_mask;
  return mask.values.empty() ? nullptr : &mask;
}

Tensor task_logits(const Model& model, const ParamTree& params, const TaskInputs& in, ApplyOptions o,
                   std::map<std::string, Tensor>* hidden) {
  std::vector<Tensor> states;
  if (hidden) o.hidden_states = &states;
  const auto keep = [&](const char* stack) {
    for (size_t i = 0; i < states.size(); ++i) (*hidden)[fmt::format("{}.{}", stack, i)] = states[i];
    states.clear();
  };
  if (model.task() == ModelTask::text_to_image) {
    EncoderInputs image = in.encoder;
    image.memory = model.encode(params, in.caption, o);
    image.key_mask = in.caption.key_mask;
    states.clear();
    const Tensor y = model.apply_encoder(params, image, o);
    keep("hidden");
    return y;
  }
  if (in.pairs) {
    std::map<std::string, Tensor> rows;
    for (const EncoderInputs& one : {in.encoder, in.caption}) {
      const bool image = one.pixel_values.defined();
      if (!image && !one.input_ids.defined()) continue;
      const std::string name = image ? "image" : "text";
      if (hidden)
        o.activations = std::make_shared<Activations>(std::vector<std::string>{"final_norm", "pooled"});
      rows[name] = unit_rows(model.apply_encoder(params, one, o));
      if (!hidden) continue;
      keep(image ? "image_hidden" : "text_hidden");
      (*hidden)[name + "_last"] = (*o.activations)["final_norm"];
      (*hidden)[name + "_pooled"] = (*o.activations)["pooled"];
      (*hidden)[name + "_embeds"] = rows[name];
    }
    if (rows.size() == 1) return rows.begin()->second;
    return pair_logits(rows["image"], rows["text"], params["logit_scale"], params.find("logit_bias"));
  }
  if (is_encoder(model)) {
    const Tensor logits = model.apply_encoder(params, in.encoder, o);
    keep("hidden");
    return in.sentences.found() ? sentence_logits(model, params, in.sentences, logits, hidden) : logits;
  }
  DecoderInputs decoder = in.decoder;
  if (model.is_encoder_decoder()) {
    decoder.memory = model.encode(params, in.encoder, o);
    keep("encoder_hidden");
  }
  const Tensor logits = model.apply(params, decoder, o);
  keep(model.is_encoder_decoder() ? "decoder_hidden" : "hidden");
  return logits;
}

Tensor task_loss(const Model& model, const TaskInputs& in, const Tensor& logits,
                 const std::vector<Tensor>& router_logits) {
  if (in.pairs && in.n_targets > 0) {
    const auto& specs = model.params().specs;
    const bool sigmoid =
        std::any_of(specs.begin(), specs.end(), [](const ParamSpec& s) { return s.name == "logit_bias"; });
    const Tensor sum = sigmoid ? sigmoid_pair_loss(logits) : softmax_pair_loss(logits);
    return scale(sum, 1.0 / static_cast<double>(in.n_targets));
  }
  if (in.pairs) return scale(sum_all(logits), 0);  // a tower alone has no loss
  const Tensor losses = in.values.defined() ? square(logits - in.values) : cross_entropy(logits, in.targets);
  const Tensor mean = scale(sum_all(losses), in.n_targets ? 1.0 / static_cast<double>(in.n_targets) : 0.0);
  const auto& balance = model.router_loss();
  if (!balance) return mean;
  const RouterSums sums = router_sums(router_logits, balance->per_token, in.decoder.key_mask);
  return mean + scale(load_balancing_loss(sums), balance->coefficient);
}

}  // namespace redco
