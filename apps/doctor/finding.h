#ifndef APPS_DOCTOR_FINDING_H_
#define APPS_DOCTOR_FINDING_H_

#include <string>
#include <vector>

namespace mjp::app {

enum class Health {
  kWell,
  kAbsent,  // what is not needed to run: something is slower or left out
  kIll,     // what stops something that was built for
};

// One line of `mjpolicy doctor`.
struct Finding {
  std::string name;  // "engine"
  Health health = Health::kWell;
  std::string text;    // what was found
  std::string remedy;  // what to do about it; empty where nothing is to be done
};
using Findings = std::vector<Finding>;

// The driver, every GPU, and how the shipped policy runs there. Never throws. A build without CUDA
// says so, and what driver is there.
Findings ExamineGpus();

}  // namespace mjp::app

#endif  // APPS_DOCTOR_FINDING_H_
