#include "pipeline/algorithm_sections.h"

namespace redco {

void AlgorithmSections::visit_algorithms(SettingsVisitor& v) {
  v.section("maml", maml, "Tasks and inner loop of model-agnostic meta-learning")
      .only_with("pipeline", {"maml"})
      .decided_by(DecidedBy::checkpoint);
  v.section("rl", rl, "Environment and algorithm of reinforcement learning")
      .only_with("pipeline", {"rl"})
      .decided_by(DecidedBy::either);
  v.section("dpo", dpo, "Loss of preference optimization: DPO, IPO, SimPO, ORPO, KTO")
      .only_with("pipeline", {"dpo"})
      .decided_by(DecidedBy::overridable);
  v.section("reward", reward, "Loss of a reward model")
      .only_with("pipeline", {"reward"})
      .decided_by(DecidedBy::overridable);
  v.section("distillation", distillation, "Loss of knowledge distillation")
      .only_with("pipeline", {"distillation"})
      .decided_by(DecidedBy::overridable);
  v.section("contrastive", contrastive, "Loss of contrastive learning of images and texts")
      .only_with("pipeline", {"contrastive"})
      .decided_by(DecidedBy::overridable);
  v.section("grpo", grpo, "Rollouts, reward and loss of group relative policy optimization")
      .only_with("pipeline", {"grpo"})
      .decided_by(DecidedBy::overridable);
  v.section("diffusion", diffusion, "Training and sampling of images with a diffusion model")
      .only_with("pipeline", {"text_to_image"})
      .decided_by(DecidedBy::overridable);
  v.section("embedding", embedding, "Pooling, prompts and losses of sentence embeddings")
      .only_with("pipeline", {"embedding"})
      .decided_by(DecidedBy::overridable);
  v.section("question_answering", question_answering, "Rows and answers of extractive question answering")
      .only_with("pipeline", {"question_answering"})
      .decided_by(DecidedBy::overridable);
  v.section("transcription", transcription, "Language, task and times of speech to text")
      .only_with("pipeline", {"transcription"})
      .decided_by(DecidedBy::overridable);
}

}  // namespace redco
