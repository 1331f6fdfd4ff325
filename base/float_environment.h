#ifndef BASE_FLOAT_ENVIRONMENT_H_
#define BASE_FLOAT_ENVIRONMENT_H_

#include <cfenv>

namespace mjp {

// Arithmetic as the standard begins it, for as long as it lives: rounding to nearest, subnormal
// numbers kept, no traps. A host may have set others, libraries built with -ffast-math do; results
// here would depend on that, and a division that is meant to give infinity would end the process.
// What the host had is there again afterwards. A thread begins with what its creator has.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&before_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t before_;
};

}  // namespace mjp

#endif  // BASE_FLOAT_ENVIRONMENT_H_
