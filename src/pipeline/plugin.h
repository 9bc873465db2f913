// What a user's shared object adds to redco. Each macro below adds an entry to a table of the shared object,
// which redco reads after it has loaded the object; no code runs when it is loaded.
//
//   REDCO_PIPELINE(Class)            an algorithm (pipeline/pipeline.h) for `pipeline: ./x.so`; at most one
//   REDCO_MODEL("name", Class)       a model family (models/model.h): the config's model_type. Class has a
//                                    constructor from ModelConfig&; its name is the config's `architectures`.
//   REDCO_OPTIMIZER("name", Class)   an optimizer (optim/update_rule.h) for train.optimizer. A visit() of
//                                    Class declares its settings, those of train.optimizer_settings.
//   REDCO_ENVIRONMENT("name", Class) an environment of pipeline rl (env/environment.h) for rl.env
//   REDCO_METRIC("name", function)   a metric of generated texts (metrics/text_metrics.h) for eval.metrics
//   REDCO_REWARD("name", function)   a reward of answers (pipeline/answer_rewards.h) for grpo.reward: double
//                                    function(const RewardedAnswer&)
//
// They are used outside of namespaces, in any source file of the shared object. redco loads the shared
// objects of `plugins:` and of `pipeline:`, and no others: a checkpoint never loads one of `plugins:`.
#pragma once

#include <memory>
#include <string_view>

#include "env/environment.h"
#include "metrics/text_metrics.h"
#include "models/model.h"
#include "optim/update_rule.h"
#include "pipeline/abi.h"
#include "pipeline/answer_rewards.h"

namespace redco {

class Pipeline;

// One entry: one of the functions is set.
struct PluginExport {
  const char* name = "";   // of the family, optimizer, metric, environment or reward; "": a pipeline
  const char* klass = "";  // the class, as the macro got it
  Pipeline* (*pipeline)() = nullptr;
  std::unique_ptr<Model> (*model)(ModelConfig& config) = nullptr;
  bool vocabulary = true;  // of a family: see vocabulary_of()
  std::unique_ptr<UpdateRule> (*optimizer)(const std::string& settings) = nullptr;  // from a JSON object
  TextMetric metric = nullptr;
  std::unique_ptr<Environment> (*environment)() = nullptr;
  double (*reward)(const RewardedAnswer&) = nullptr;
};

// The table of a shared object: its interface (pipeline/abi.h) and entries.
struct PluginTable {
  const char* abi;
  const PluginExport *const *begin, *const *end;
};

// False if the family neither reads nor writes text: `static constexpr bool kVocabulary = false;` in Class.
template <class Class>
constexpr bool vocabulary_of() {
  if constexpr (requires { Class::kVocabulary; }) return Class::kVocabulary;
  return true;
}

}  // namespace redco

// The linker collects the entries of all source files in one section, and defines its two ends.
extern "C" {
extern const redco::PluginExport* __start_redco_exports[] __attribute__((visibility("hidden")));
extern const redco::PluginExport* __stop_redco_exports[] __attribute__((visibility("hidden")));
// Exists in a shared object with an entry.
__attribute__((visibility("default"))) inline redco::PluginTable redco_plugin_table() {
  return {REDCO_ABI_BEGIN REDCO_ABI REDCO_ABI_END, __start_redco_exports, __stop_redco_exports};
}
}

#define REDCO_JOIN_(a, b) a##b
#define REDCO_NAMED_(a, b) REDCO_JOIN_(a, b)
#define REDCO_EXPORT_(number, ...)                                                                        \
  namespace {                                                                                             \
  constexpr ::redco::PluginExport REDCO_NAMED_(redco_export_, number){__VA_ARGS__};                       \
  __attribute__((used, section("redco_exports")))                                                         \
  const ::redco::PluginExport* REDCO_NAMED_(redco_entry_, number) = &REDCO_NAMED_(redco_export_, number); \
  __attribute__((used)) constexpr ::redco::PluginTable (*REDCO_NAMED_(redco_table_,                       \
                                                                      number))() = &redco_plugin_table;   \
  }

#define REDCO_PIPELINE(Class) \
  REDCO_EXPORT_(              \
      __COUNTER__, .klass = #Class, .pipeline = []() -> ::redco::Pipeline* { return new Class(); })

#define REDCO_MODEL(family, Class)                                                   \
  REDCO_EXPORT_(                                                                     \
      __COUNTER__, .name = family, .klass = #Class,                                  \
      .model = [](::redco::ModelConfig& config) -> std::unique_ptr<::redco::Model> { \
        return std::make_unique<Class>(config);                                      \
      },                                                                             \
      .vocabulary = ::redco::vocabulary_of<Class>())

#define REDCO_OPTIMIZER(optimizer_name, Class)                                               \
  REDCO_EXPORT_(                                                                             \
      __COUNTER__, .name = optimizer_name, .klass = #Class,                                  \
      .optimizer = [](const std::string& settings) -> std::unique_ptr<::redco::UpdateRule> { \
        return ::redco::make_with_settings<Class>(settings, "train.optimizer_settings");     \
      })

#define REDCO_METRIC(metric_name, function) \
  REDCO_EXPORT_(__COUNTER__, .name = metric_name, .klass = #function, .metric = &function)

#define REDCO_ENVIRONMENT(environment_name, Class)            \
  REDCO_EXPORT_(                                              \
      __COUNTER__, .name = environment_name, .klass = #Class, \
      .environment = []() -> std::unique_ptr<::redco::Environment> { return std::make_unique<Class>(); })

#define REDCO_REWARD(reward_name, function) \
  REDCO_EXPORT_(__COUNTER__, .name = reward_name, .klass = #function, .reward = &function)
