// Models, tokenizers and chat templates.
#include "chat/chat_template.h"
#include "pipeline/token_rows.h"
#include "python/bindings.h"

namespace redco::python {

namespace {

// Positions [B, T] of rows without padding at their beginning.
Tensor default_positions(const Model& model, const Tensor& input_ids) {
  const i64 rows = input_ids.size(0), length = input_ids.size(1);
  const std::vector<i32> one = model.positions(std::vector<i32>(static_cast<std::size_t>(length), 1), false);
  return broadcast_to(from_ids({1, length}, one), {rows, length});
}

struct Inputs {
  std::optional<Tensor> positions, key_mask, memory, memory_mask;
};

DecoderInputs decoder_of(const Model& model, const Tensor& ids, const Inputs& in) {
  DecoderInputs d;
  d.input_ids = ids;
  d.positions = in.positions ? *in.positions : default_positions(model, ids);
  if (in.key_mask) d.key_mask = *in.key_mask;
  if (in.memory) d.memory = *in.memory;
  if (in.memory_mask) d.memory_mask = *in.memory_mask;
  return d;
}

EncoderInputs encoder_of(const std::map<std::string, Tensor>& given) {
  EncoderInputs e;
  for (const auto& [name, value] : given) {
    if (name == "input_ids")
      e.input_ids = value;
    else if (name == "key_mask")
      e.key_mask = value;
    else if (name == "token_type_ids")
      e.token_type_ids = value;
    else if (name == "pixel_values")
      e.pixel_values = value;
    else if (name == "features")
      e.features = value;
    else if (name == "memory")
      e.memory = value;
    else if (name == "positions")
      e.positions = value;
    else
      throw UsageError(
          "an encoder has no input '{}'; it has input_ids, key_mask, token_type_ids, pixel_values, "
          "features, memory, positions",
          name);
  }
  return e;
}

const char* kInputs = "options: ctx.apply. Positions default to those of rows that are padded on the right.";

void bind_model(py::module_& m) {
  py::class_<Model> model(m, "Model");
  model
      .def_property_readonly(
          "task", [](const Model& x) { return name_of(x.task()); }, "causal-lm, sequence-classification, ...")
      .def_property_readonly("family", &Model::family)
      .def_property_readonly("vocab_size", &Model::vocab_size)
      .def_property_readonly("hidden_size", &Model::hidden_size)
      .def_property_readonly("max_length", &Model::max_length)
      .def_property_readonly("n_layers", &Model::n_layers)
      .def_property_readonly("num_labels", &Model::num_labels)
      .def_property_readonly("n_features", &Model::n_features)
      .def_property_readonly("pad_token_id", &Model::pad_token_id)
      .def_property_readonly("decoder_start_token_id", &Model::decoder_start_token_id)
      .def_property_readonly("is_encoder_decoder", &Model::is_encoder_decoder)
      .def_property_readonly("generates_text", &Model::generates_text)
      .def_property_readonly("config_json", &Model::config_json)
      .def_property_readonly("image_shape",
                             [](const Model& x) {
                               const ImageShape& s = x.image_shape();
                               return py::make_tuple(s.channels, s.height, s.width);
                             })
      .def_property_readonly("params", [](const Model& x) { return x.params(); })
      .def(
          "positions",
          [](const Model& x, const std::vector<i32>& mask, bool generating) {
            return x.positions(mask, generating);
          },
          "mask"_a, "generating"_a = false)
      .def(
          "decoder_input_ids",
          [](const Model& x, const std::vector<i32>& l) { return x.decoder_input_ids(l); }, "labels"_a)
      .def(
          "apply",
          [](const Model& x, const ParamTree& p, const Tensor& ids, const std::optional<Tensor>& positions,
             const std::optional<Tensor>& key_mask, const std::optional<Tensor>& memory,
             const std::optional<Tensor>& memory_mask, const ApplyOptions& o) {
            return x.apply(p, decoder_of(x, ids, {positions, key_mask, memory, memory_mask}), o);
          },
          "params"_a, "input_ids"_a, "positions"_a = py::none(), "key_mask"_a = py::none(),
          "memory"_a = py::none(), "memory_mask"_a = py::none(), "options"_a = ApplyOptions{}, Free(),
          kInputs)
      .def(
          "apply_with_hidden_states",
          [](const Model& x, const ParamTree& p, const Tensor& ids, const std::optional<Tensor>& positions,
             const std::optional<Tensor>& key_mask, ApplyOptions o) {
            std::vector<Tensor> states;
            o.hidden_states = &states;
            const Tensor logits = x.apply(p, decoder_of(x, ids, {positions, key_mask, {}, {}}), o);
            return std::make_pair(logits, states);
          },
          "params"_a, "input_ids"_a, "positions"_a = py::none(), "key_mask"_a = py::none(),
          "options"_a = ApplyOptions{}, Free(),
          "The logits, and the states after the embedding and each layer.")
      .def(
          "last_hidden_state",
          [](const Model& x, const ParamTree& p, const Tensor& ids, const std::optional<Tensor>& positions,
             const std::optional<Tensor>& key_mask, const ApplyOptions& o) {
            if (x.task() == ModelTask::causal_lm || x.is_encoder_decoder())
              return x.last_hidden_state(p, decoder_of(x, ids, {positions, key_mask, {}, {}}), o);
            EncoderInputs e;
            e.input_ids = ids;
            if (key_mask) e.key_mask = *key_mask;
            if (positions) e.positions = *positions;
            return x.last_hidden_state(p, e, o);
          },
          "params"_a, "input_ids"_a, "positions"_a = py::none(), "key_mask"_a = py::none(),
          "options"_a = ApplyOptions{}, Free(), "What the head reads, [B, T, hidden_size].")
      .def(
          "encode",
          [](const Model& x, const ParamTree& p, const std::map<std::string, Tensor>& in,
             const ApplyOptions& o) { return x.encode(p, encoder_of(in), o); },
          "params"_a, "inputs"_a, "options"_a = ApplyOptions{}, Free(),
          "The memory of an encoder-decoder model, of a dict of inputs.")
      .def(
          "apply_encoder",
          [](const Model& x, const ParamTree& p, const std::map<std::string, Tensor>& in,
             const ApplyOptions& o) { return x.apply_encoder(p, encoder_of(in), o); },
          "params"_a, "inputs"_a, "options"_a = ApplyOptions{}, Free(), "The logits of an encoder.")
      .def(
          "apply_encoder_with_hidden_states",
          [](const Model& x, const ParamTree& p, const std::map<std::string, Tensor>& in, ApplyOptions o) {
            std::vector<Tensor> states;
            o.hidden_states = &states;
            const Tensor logits = x.apply_encoder(p, encoder_of(in), o);
            return std::make_pair(logits, states);
          },
          "params"_a, "inputs"_a, "options"_a = ApplyOptions{}, Free(),
          "The logits of an encoder, and the states after the embedding and each layer.");
}

void bind_tokenizer(py::module_& m) {
  py::class_<Tokenizer> t(m, "Tokenizer");
  t.def(
       "encode",
       [](const Tokenizer& x, const std::string& text, bool add_special,
          const std::optional<i64>& max_length) {
         return max_length ? x.encode_truncated(text, *max_length, add_special).ids
                           : x.encode(text, add_special);
       },
       "text"_a, "add_special"_a = true, "max_length"_a = py::none())
      .def(
          "encode_pair",
          [](const Tokenizer& x, const std::string& a, const std::string& b,
             const std::optional<i64>& max_length, bool add_special) {
            const Encoding e = x.encode_pair(a, b, max_length, add_special);
            return std::make_pair(e.ids, e.type_ids);
          },
          "text"_a, "pair"_a, "max_length"_a = py::none(), "add_special"_a = true, "(ids, type_ids)")
      .def(
          "decode",
          [](const Tokenizer& x, const std::vector<i32>& ids, bool skip) { return x.decode(ids, skip); },
          "ids"_a, "skip_special"_a = false)
      .def("token_to_id", [](const Tokenizer& x, const std::string& token) { return x.token_to_id(token); })
      .def("id_to_token", [](const Tokenizer& x, i32 id) { return x.id_to_token(id); })
      .def_property_readonly("vocab_size", &Tokenizer::vocab_size)
      .def_property_readonly("bos_id", [](const Tokenizer& x) { return x.special().bos; })
      .def_property_readonly("eos_id", [](const Tokenizer& x) { return x.special().eos; })
      .def_property_readonly("pad_id", [](const Tokenizer& x) { return x.special().pad; })
      .def_property_readonly("mask_id", [](const Tokenizer& x) { return x.special().mask; })
      .def_property_readonly("cls_id", [](const Tokenizer& x) { return x.special().cls; })
      .def_property_readonly("sep_id", [](const Tokenizer& x) { return x.special().sep; });

  py::class_<ChatTemplate, std::shared_ptr<ChatTemplate>>(m, "ChatTemplate")
      .def("_render",
           [](const ChatTemplate& c, const std::string& messages, bool generation, const std::string& tools,
              const std::string& more) {
             ChatVariables v;
             v.add_generation_prompt = generation;
             v.tools = tools;
             v.more = more;
             return c.render(parse_messages(messages, "the messages"), v);
           })
      .def("_tokenize",
           [](const ChatTemplate& c, const Tokenizer& t, const std::string& messages,
              const std::string& tools) {
             ChatVariables v;
             v.tools = tools;
             const ChatTokens out =
                 tokenize_chat(t, c.render_training(parse_messages(messages, "the messages"), v));
             return std::make_pair(out.ids, std::vector<int>(out.in_loss.begin(), out.in_loss.end()));
           })
      .def_property_readonly("source", &ChatTemplate::source);
}

}  // namespace

void bind_models(py::module_& m) {
  bind_model(m);
  bind_tokenizer(m);
  m.def("preset_names", &preset_names);
  m.def("model_families", &model_families);
}

}  // namespace redco::python
