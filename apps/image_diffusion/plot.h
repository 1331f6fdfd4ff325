#ifndef APPS_IMAGE_DIFFUSION_PLOT_H_
#define APPS_IMAGE_DIFFUSION_PLOT_H_

#include <string>
#include <vector>

namespace mjp::app {

struct Bar {
  std::string name;
  double value = 0;  // > 0
};
struct BarGroup {
  std::string title;
  std::vector<Bar> bars;
};

// Writes groups of bars of logarithmic length as an SVG. Throws Error if it cannot be written.
void WriteBars(const std::string& path, const std::string& title,
               const std::vector<BarGroup>& groups);

}  // namespace mjp::app

#endif  // APPS_IMAGE_DIFFUSION_PLOT_H_
