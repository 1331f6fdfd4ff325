#ifndef TESTS_SUPPORT_FAKE_POLICY_H_
#define TESTS_SUPPORT_FAKE_POLICY_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "policy/pictures/picture_look.h"
#include "policy/policy.h"

namespace mjp_test {

// One call of Policy::Infer as the fake saw it.
struct SeenInput {
  std::vector<uint8_t> frames;
  std::vector<std::vector<uint8_t>> gpu_pictures;
  std::vector<std::byte> scenes;
  std::vector<float> state, environment;
  mjp::NoiseKey key;
  uint32_t noise = 0;  // the number of its noise, as the policy's options have it
  std::string sha256;  // of the policy's weights
};

// What a fake policy is and what it saw. One object for all policies of a test.
class FakePolicyLog {
 public:
  mjp::PolicyConfig config;
  mjp::NormalizerStats stats;                // none: nothing is known of units
  mjp::PictureLooks looks;                   // of its training
  std::string sha256;                        // of its weights
  std::map<std::string, std::string> files;  // name -> SHA-256 of the others that are read
  // Gives the actions (horizon x action_dim); may throw. Default: a function of state and key.
  std::function<std::vector<float>(const SeenInput&)> act;

  FakePolicyLog();
  // Puts fakes in place of all policies of the process, for every directory that exists.
  void Install();

  std::vector<SeenInput> Take();  // the calls since the last Take
  int loads = 0, made = 0;        // checkpoints read, policies made
  int text_tokens = 0;            // of the instruction that they read
  std::string refuse;             // if not empty, why no policy can be made
  size_t remembered = 0;          // decisions that are not made twice; read by Install

 private:
  friend class FakePolicy;
  std::mutex mutex_;
  std::vector<SeenInput> seen_;
};

}  // namespace mjp_test

#endif  // TESTS_SUPPORT_FAKE_POLICY_H_
