#ifndef APPS_BENCH_BASELINE_BASELINE_H_
#define APPS_BENCH_BASELINE_BASELINE_H_

#include <string>

#include "apps/bench/harness.h"

// The same networks through another library, timed in the same process and run. The library is
// loaded only when it is asked for, so nothing else of the program needs it.

namespace mjp::app {

// What a baseline's module exports as `mjp_baseline_rows`: appends its rows, among them why there
// are none. The module is mjpolicy_baseline_<name>.so beside the program, built with it, so C++
// types may pass.
using BaselineFunction = void (*)(const BenchOptions& options, BenchRows& rows);
inline constexpr char kBaselineSymbol[] = "mjp_baseline_rows";

// What it exports as `mjp_baseline_layout`: a module from another tree would read the options
// wrongly.
inline constexpr size_t kBaselineLayout = 1024 * sizeof(BenchOptions) + sizeof(BenchRow);
inline constexpr char kBaselineLayoutSymbol[] = "mjp_baseline_layout";

// Throws Error(kEnvironment), before anything is measured, where the module of the baseline called
// `name` ("torch") was not built. It is not loaded yet: that would change what is measured.
void CheckBaseline(const std::string& name);

// The rows of the baseline. Throws Error(kEnvironment) where its module does not load.
BenchRows BenchBaseline(const std::string& name, const BenchOptions& options);

}  // namespace mjp::app

#endif  // APPS_BENCH_BASELINE_BASELINE_H_
