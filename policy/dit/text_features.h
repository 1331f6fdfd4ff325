#ifndef POLICY_DIT_TEXT_FEATURES_H_
#define POLICY_DIT_TEXT_FEATURES_H_

#include <map>
#include <vector>

#include "policy/dit/clip_tower.h"
#include "policy/dit/dit_model.h"
#include "policy/policy.h"

namespace mjp::cpu {

// The features of the instructions that a policy was given, each made once.
class TextFeatures {
 public:
  // All outlive it.
  TextFeatures(const DitModel& model, const PackedText& text, const ConvLayer& projection)
      : model_(model), text_(text), projection_(projection) {}

  // The feature (hidden) of environment n's instruction, valid until the next call. Throws Error
  // without a tokenizer, and for a token that the model does not know.
  const std::vector<float>& Of(const PolicyInput& input, const PolicyOptions& options, int n,
                               ThreadPool& pool);

 private:
  std::vector<int> Ids(const PolicyInput& input, const PolicyOptions& options, int n) const;

  const DitModel& model_;
  const PackedText& text_;
  const ConvLayer& projection_;
  std::map<std::vector<int>, std::vector<float>> features_;  // by tokens
};

}  // namespace mjp::cpu

#endif  // POLICY_DIT_TEXT_FEATURES_H_
