// Each call of CUDA fails once, in each way, while a policy is loaded, decides, or waits for its
// next decision. No action is ever wrong: it is the right one, or there is an error that says what
// failed and whether trying again helps; afterwards a new policy works.

#include "tests/policy/cuda/call_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/primitives/cuda_check.h"
#include "kernels/cuda/primitives/gpu_probe.h"
#include "policy/checkpoint/checkpoint.h"
#include "policy/policy.h"
#include "tests/policy/dit/small_dit.h"
#include "tests/support/goldens/act_cases.h"
#include "tests/support/goldens/small_checkpoint.h"
#include "tests/support/gpu/cuda_faults.h"
#include "tests/support/gpu/observations.h"
#include "tests/support/temp_dir.h"

namespace mjp_test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

struct Kind {
  const char* name;
  CudaFault fault;
  friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
};
constexpr Kind kKinds[] = {{"OutOfMemory", {cudaErrorMemoryAllocation, false}},
                           {"OneLaunch", {cudaErrorLaunchOutOfResources, false}},
                           {"LaunchFailure", {cudaErrorLaunchFailure, true}},
                           {"TimedOut", {cudaErrorLaunchTimeout, true}},
                           {"DeviceLost", {cudaErrorUnknown, true}}};

// A network and the way in which it runs.
struct Form {
  const char* name;
  std::shared_ptr<const mjp::Checkpoint> (*make)();
  mjp::SamplerOptions sampler;
  int batch = 1;
  bool large = false;  // takes long to load
  friend void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }
};
std::shared_ptr<const mjp::Checkpoint> SmallUnet() {
  const TempDir folder;
  WriteSmallCheckpoint(folder / "small");
  return mjp::LoadCheckpoint(folder / "small");
}
std::shared_ptr<const mjp::Checkpoint> Shipped() {
  return mjp::LoadCheckpoint(MJPOLICY_SOURCE_DIR "/assets/pusht_image");
}
using enum mjp::SamplerKind;
const Form kForms[] = {
    {"SmallUnet", SmallUnet, {kDdim, 3, 0, 0, 1}},
    {"SmallUnetOfMany", SmallUnet, {kDdim, 3, 0, 0, 1}, 64},
    {"SmallUnetInWindows", SmallUnet, {kDdpm, 20, 5, 0, 1}},
    {"Shipped", Shipped, {kDdim, 10, 0, 0, 1}, 1, true},
    {"ShippedInWindows", Shipped, {kDdpm, 100, 16, 0, 1}, 1, true},
    {"Act", [] { return ActCheckpoint(SmallActConfig()); }, {}, 1, true},
    {"Dit",
     [] { return std::shared_ptr<const mjp::Checkpoint>(SmallDit(SmallDitConfig(true))); },
     {}}};

// Whether the error is of this kind of fault: it says what failed, and its code whether trying
// again helps.
void ExpectSaid(const mjp::Error& error, const Kind& kind, const std::string& at) {
  const std::string text = error.what();
  const bool again = mjp::CudaRetryHelps(kind.fault.error);
  EXPECT_EQ(error.code(), again ? mjp::ExitCode::kRetryable : mjp::ExitCode::kEnvironment)
      << at << ": " << text;
  if (kind.fault.error == cudaErrorMemoryAllocation) {
    EXPECT_THAT(text, AnyOf(HasSubstr("memory"), HasSubstr("room"))) << at;
  } else {
    EXPECT_THAT(text, HasSubstr(cudaGetErrorString(kind.fault.error))) << at;
  }
  EXPECT_TRUE(!again || text.find("start the same command again") != text.npos) << text;
}

class CallFaultsTest : public ::testing::TestWithParam<std::tuple<Form, Kind>> {
 protected:
  void SetUp() override {
    if (!kCallFaultsRuntime.available()) GTEST_SKIP() << "there is no GPU";
    if (form().large && !kCallFaultsRuntime.computes &&
        (form().make == Shipped || kind().fault.error != cudaErrorMemoryAllocation))
      GTEST_SKIP() << "small networks make the same calls in less time";
    checkpoint_ = form().make();
    options_.backend = mjp::Backend::kCuda;
    options_.sampler = form().sampler;
    options_.batch = form().batch;
    options_.self_check = false;
    options_.timing = mjp::TimingDetail::kSteps;
    observations_.emplace(*checkpoint_, 1);
    expected_ = Decide(*Make());
  }
  void TearDown() override {
    DisarmCudaFault();
    EXPECT_EQ(kCallFaultsRuntime.misuse(), "");
  }

  static const Form& form() { return std::get<0>(GetParam()); }
  static const Kind& kind() { return std::get<1>(GetParam()); }

  // A policy of which nothing is on the GPU yet: engines and weights are kept by checkpoint.
  std::unique_ptr<mjp::Policy> Make() const {
    auto checkpoint = std::make_shared<mjp::Checkpoint>(*checkpoint_);
    checkpoint->sha256.clear();  // checked at each load
    return mjp::Policy::Create(checkpoint, options_);
  }
  // What is held once as many engines are kept as ever are.
  std::string Held() const {
    for (int i = 0; i < 5; ++i) Make();
    return kCallFaultsRuntime.objects();
  }
  std::vector<float> Decide(mjp::Policy& policy) const {
    mjp::PolicyOutput output;
    policy.Infer(observations_->input, output);
    return output.actions;
  }

  // The calls that are to fail, from 1: all, or the first and last ones of each function and others
  // between them.
  static std::vector<long> Numbers(const std::vector<std::string>& calls) {
    std::map<std::string, std::vector<long>> of;
    for (size_t i = 0; i < calls.size(); ++i) of[calls[i]].push_back(static_cast<long>(i) + 1);
    std::vector<long> numbers;
    const size_t most = kCallFaultsRuntime.most_tries / (form().large ? 4 : 1);
    const size_t each = std::max<size_t>(2, most / std::max<size_t>(1, of.size()));
    for (const auto& [name, all] : of) {
      if (calls.size() <= most || all.size() <= each) {
        numbers.insert(numbers.end(), all.begin(), all.end());
        continue;
      }
      for (size_t i = 0; i < each; ++i) numbers.push_back(all[i * (all.size() - 1) / (each - 1)]);
    }
    return numbers;
  }

  // Calls whose fault no error tells of: they end something, as engines before they go wait once,
  // or ask which device it is, or memory was found by ending engines that were idle.
  static void ExpectHarmless(const std::map<std::string, int>& silent) {
    for (const auto& [name, count] : silent) {
      const bool ends = name.starts_with("cudaFree") || name.find("Destroy") != name.npos;
      EXPECT_TRUE(ends || name == "cudaGetDevice" ||
                  kind().fault.error == cudaErrorMemoryAllocation ||
                  (name == "cudaStreamSynchronize" && count <= 2))
          << name << " failed in silence, " << count << " times";
    }
  }

  // Those of `calls` that do something on the GPU.
  static std::vector<std::string> DeviceWork(std::vector<std::string> calls) {
    std::erase_if(calls, [](const std::string& call) {
      return call.find("Launch") == call.npos && call.find("Mem") == call.npos;
    });
    return calls;
  }

  // The device work of `work`; nothing where it ends with an error.
  template <typename Work>
  static std::optional<std::vector<std::string>> DeviceWorkUnlessRefused(const Work& work) {
    bool refused = false;
    std::vector<std::string> calls = CudaCallsOf([&] {
      try {
        work();
      } catch (const mjp::Error&) {
        refused = true;
      }
    });
    if (refused) return std::nullopt;
    return DeviceWork(std::move(calls));
  }

  // What an error at the n-th of `calls` left undone is done by the next try, whose work `done` is.
  static void ExpectAllOfIt(const std::vector<std::string>& calls, long n,
                            const std::vector<std::string>& done) {
    const std::vector<std::string> left = DeviceWork({calls.begin() + (n - 1), calls.end()});
    EXPECT_TRUE(done.size() >= left.size() && std::equal(left.rbegin(), left.rend(), done.rbegin()))
        << "after call " << n << ", " << calls[n - 1] << ": " << done.size() << " of "
        << left.size();
  }

  // Does `work` with each of the Numbers-th of its calls failing, each time with what `prepare`
  // makes: its actions are right, or the error is of the fault. Then the same thing does not act
  // wrongly, a new policy decides as before, and nothing is left behind.
  template <typename Prepare, typename Work>
  void TryEach(const Prepare& prepare, const Work& work) {
    const std::string held = Held();
    auto subject = prepare();
    const std::vector<std::string> calls =
        CudaCallsOf([&] { EXPECT_EQ(work(subject), expected_); });
    const std::vector<long> numbers = Numbers(calls);
    size_t errors = 0, failed = 0;
    std::map<std::string, int> silent;
    for (const long n : numbers) {
      const std::string at = "call " + std::to_string(n) + ", " + calls[n - 1];
      subject = prepare();
      const size_t errors_before = errors;
      ArmCudaFault(kind().fault, n);
      try {
        EXPECT_EQ(work(subject), expected_) << at;
        ++silent[calls[n - 1]];
      } catch (const mjp::Error& error) {
        ++errors;
        ExpectSaid(error, kind(), at);
      }
      failed += DisarmCudaFault().empty() ? 0 : 1;
      const auto again = DeviceWorkUnlessRefused(
          [&] { EXPECT_EQ(work(subject), expected_) << "again after " << at; });
      if (again && errors > errors_before) ExpectAllOfIt(calls, n, *again);
      EXPECT_EQ(Decide(*Make()), expected_) << "after " << at;
      if (HasFailure()) return;
    }
    ExpectHarmless(silent);
    subject = {};
    EXPECT_EQ(Held(), held);
    // fewer where the last one ended an engine that an error before it has ended
    EXPECT_GE(10 * failed, 9 * numbers.size());
    EXPECT_GT(errors, 0u);
    std::printf("    %zu calls, %zu fail once, %zu errors\n", calls.size(), failed, errors);
  }

  std::shared_ptr<const mjp::Checkpoint> checkpoint_;
  mjp::PolicyOptions options_;
  std::optional<Observations> observations_;
  std::vector<float> expected_;
};

struct Nothing {};

TEST_P(CallFaultsTest, AtLoad) {
  options_.self_check = kCallFaultsRuntime.computes;
  TryEach([] { return Nothing(); }, [&](const Nothing&) { return Decide(*Make()); });
}

TEST_P(CallFaultsTest, InTheFirstDecision) {
  TryEach([&] { return Make(); }, [&](const auto& policy) { return Decide(*policy); });
}

TEST_P(CallFaultsTest, InALaterDecision) {
  const auto decided = [&] {
    auto policy = Make();
    EXPECT_EQ(Decide(*policy), expected_);
    return policy;
  };
  TryEach(decided, [&](const auto& policy) { return Decide(*policy); });
}

class ProbeFaultsTest : public ::testing::TestWithParam<Kind> {};

// What the GPU is, is right or not known: every choice between kernels depends on it.
TEST_P(ProbeFaultsTest, NeverGiveAnotherGpu) {
  if (!kCallFaultsRuntime.available()) GTEST_SKIP() << "there is no GPU";
  mjp::GpuTraits expected;
  const std::vector<std::string> calls = CudaCallsOf([&] { expected = mjp::ProbeGpu(); });
  int errors = 0;
  for (size_t n = 1; n <= calls.size(); ++n) {
    const std::string at = "call " + std::to_string(n) + ", " + calls[n - 1];
    ArmCudaFault(GetParam().fault, static_cast<long>(n));
    try {
      EXPECT_EQ(mjp::ProbeGpu(), expected) << at;
    } catch (const mjp::Error& error) {
      ++errors;
      ExpectSaid(error, GetParam(), at);
    }
    EXPECT_EQ(DisarmCudaFault(), calls[n - 1]);
    EXPECT_EQ(mjp::ProbeGpu(), expected) << "after " << at;
  }
  EXPECT_GE(errors, 6);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ProbeFaultsTest, ::testing::ValuesIn(kKinds),
                         [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(Forms, CallFaultsTest,
                         ::testing::Combine(::testing::ValuesIn(kForms),
                                            ::testing::ValuesIn(kKinds)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  std::get<1>(info.param).name;
                         });

}  // namespace
}  // namespace mjp_test
