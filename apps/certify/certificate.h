#ifndef APPS_CERTIFY_CERTIFICATE_H_
#define APPS_CERTIFY_CERTIFICATE_H_

#include <cstdint>
#include <string>

#include "base/json.h"
#include "policy/policy.h"

namespace mjp::app {

// What a certificate is made of. It keeps all of it but the paths.
struct CertifyOptions {
  std::string checkpoint;  // directory
  std::string model;       // MJCF with the plugin; empty: none
  int episodes = 100;      // of the model's task, else of Push-T
  uint32_t seed = 100000;  // of the first
  int batch = 0;           // episodes beside each other; 0: all, 64 at most, one in the plugin
  int timed = 300;         // decisions of one robot whose latency is taken
  mjp::PolicyOptions policy;
  bool hold_noise_given = false;  // as EvaluationOptions has it
};

// Measures everything and returns the certificate. What a policy cannot do stands in it as
// {"absent": why}. Throws Error for a checkpoint or model that cannot be loaded.
Json MakeCertificate(CertifyOptions options);

// The options of a stored certificate; `checkpoint` and `model` stay empty. Throws Error that names
// `file` for a value that is missing or not possible.
CertifyOptions OptionsOf(const Json& certificate, const std::string& file);

// The certificate as a page of Markdown, which begins so; `name` is the policy's.
inline constexpr char kPageTitle[] = "# Certificate of a policy";
std::string PageOf(const Json& certificate, const std::string& name);

}  // namespace mjp::app

#endif  // APPS_CERTIFY_CERTIFICATE_H_
