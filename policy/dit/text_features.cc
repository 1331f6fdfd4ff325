#include "policy/dit/text_features.h"

#include <string>
#include <utility>

#include "base/error.h"

namespace mjp::cpu {
namespace {

constexpr size_t kMostTexts = 256;  // features kept; an episode has one or a few

}  // namespace

std::vector<int> TextFeatures::Ids(const PolicyInput& input, const PolicyOptions& options,
                                   int n) const {
  if (!input.instruction_ids.empty()) {
    const std::vector<int>& ids = input.instruction_ids[n];
    const int words = model_.config.clip.vocabulary;
    for (const int id : ids) {
      if (id >= 0 && id < words) continue;
      throw BadInput("policy input: token " + std::to_string(id) + " of an instruction; the text " +
                     "encoder knows 0 to " + std::to_string(words - 1));
    }
    return ids;
  }
  const std::string& text =
      input.instructions.empty() ? options.instruction : input.instructions[n];
  if (model_.tokenizer == nullptr) throw BadInput(model_.tokenizer_lack);
  try {
    return model_.tokenizer->Encode(text, model_.text_tokens());
  } catch (const Error& error) {
    throw Error(error.code(), "instruction \"" + text + "\": " + error.what());
  }
}

const std::vector<float>& TextFeatures::Of(const PolicyInput& input, const PolicyOptions& options,
                                           int n, ThreadPool& pool) {
  const std::vector<int> ids = Ids(input, options, n);
  const auto found = features_.find(ids);
  if (found != features_.end()) return found->second;
  const DitConfig& config = model_.config;
  std::vector<float> pooled(config.clip.text.width), feature(config.hidden);
  EncodeText(text_, config.clip, ids, pooled.data(), pool);
  LinearTokens(pool, projection_, pooled.data(), config.clip.text.width, 1, TokenActivation::kNone,
               feature.data(), config.hidden);
  if (features_.size() >= kMostTexts) features_.clear();
  return features_[ids] = std::move(feature);
}

}  // namespace mjp::cpu
