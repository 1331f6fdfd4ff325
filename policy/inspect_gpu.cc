#include "policy/inspect_gpu.h"

#include "base/error.h"
#include "base/json.h"
#include "base/text_stream.h"
#include "policy/network_types.h"

namespace mjp {

Json ExecutionJson(const Checkpoint& checkpoint, const std::string& gpu) {
  const NetworkType& type = NetworkTypeOf(checkpoint.config.type);
  if (type.plans == nullptr) throw EnvironmentError("--gpu: " + std::string(type.no_cuda));
  return type.plans(checkpoint, gpu);
}

std::string ExecutionTable(const Checkpoint& checkpoint, const std::string& gpu) {
  if (gpu.empty()) return "";
  TextWriter out;
  const Json plans = ExecutionJson(checkpoint, gpu);
  const auto text = [](const Json& plan, const char* key) {
    return plan.at(key).get<std::string>();
  };
  out << "on " << text(plans.at(0), "gpu") << " (" << text(plans.at(0), "traits") << "), "
      << text(plans.at(0), "format") << ", with its own sampler:\n";
  for (const Json& plan : plans) {
    out << "  batch " << plan.at("environments").get<int>() << ": " << text(plan, "text")
        << "\n    since " << text(plan, "why") << "\n";
  }
  return out.str();
}

}  // namespace mjp
