#ifndef BASE_DYNAMIC_LIBRARY_H_
#define BASE_DYNAMIC_LIBRARY_H_

#include <dlfcn.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace mjp {

// A shared library opened at run time, which nothing links to. It stays open: its threads and
// tables may outlive whoever opened it.
class DynamicLibrary {
 public:
  // Opens the first of `paths` that can be opened, with dlopen's `flags`. Throws EnvironmentError
  // with the loader's reason for the first and `remedy`, which ends the sentence.
  DynamicLibrary(const std::vector<std::string>& paths, int flags, std::string remedy)
      : name_(paths.front()), remedy_(std::move(remedy)) {
    std::string reason;
    for (const std::string& path : paths) {
      if (library_ = dlopen(path.c_str(), flags); library_ != nullptr) return;
      if (reason.empty()) reason = dlerror();
    }
    throw EnvironmentError("cannot open " + name_ + ": " + reason + remedy_);
  }

  // Points `function` at `symbol`; throws EnvironmentError where the library lacks it.
  template <typename Function>
  void Find(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(dlsym(library_, symbol));
    if (function == nullptr) throw EnvironmentError(name_ + " lacks " + symbol + remedy_);
  }

 private:
  std::string name_, remedy_;
  void* library_ = nullptr;
};

}  // namespace mjp

#endif  // BASE_DYNAMIC_LIBRARY_H_
