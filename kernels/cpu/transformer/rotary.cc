#include "kernels/cpu/transformer/rotary.h"

#include <cmath>

namespace mjp::cpu {

RotaryTable MakeRotaryTable(int positions, int head_size, double base) {
  RotaryTable table{.positions = positions, .half = head_size / 2, .cos = {}, .sin = {}};
  for (int p = 0; p < positions; ++p) {
    for (int i = 0; i < table.half; ++i) {
      const auto period = static_cast<float>(std::pow(base, 2.0 * i / head_size));
      const float angle = static_cast<float>(p) * (1.0f / period);
      table.cos.push_back(std::cos(angle));
      table.sin.push_back(std::sin(angle));
    }
  }
  return table;
}

void ApplyRotary(const RotaryTable& table, int heads, float* x, int64_t pitch, int row_begin,
                 int row_end) {
  const int half = table.half;
  for (int r = row_begin; r < row_end; ++r) {
    const int64_t position = int64_t{r % table.positions} * half;
    const float *cos = table.cos.data() + position, *sin = table.sin.data() + position;
    float* first = x + r * pitch;
    for (int h = 0; h < heads; ++h, first += 2 * half) {
      float* second = first + half;
      for (int i = 0; i < half; ++i) {
        const float a = first[i], b = second[i];
        first[i] = a * cos[i] - b * sin[i];
        second[i] = b * cos[i] + a * sin[i];
      }
    }
  }
}

}  // namespace mjp::cpu
