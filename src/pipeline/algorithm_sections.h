// The sections of a job file that belong to single pipelines.
#pragma once

#include "pipeline/algorithm_settings.h"
#include "pipeline/task_settings.h"

namespace redco {

struct AlgorithmSections {
  MamlSettings maml;
  RlSettings rl;
  DpoSettings dpo;
  RewardSettings reward;
  DistillationSettings distillation;
  ContrastiveSettings contrastive;
  GrpoSettings grpo;
  DiffusionSettings diffusion;
  EmbeddingSettings embedding;
  QuestionAnsweringSettings question_answering;
  TranscriptionSettings transcription;

  void visit_algorithms(SettingsVisitor& v);
};

}  // namespace redco
