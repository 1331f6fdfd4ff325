#ifndef KERNELS_CPU_TRANSFORMER_ROTARY_H_
#define KERNELS_CPU_TRANSFORMER_ROTARY_H_

#include <cstdint>
#include <vector>

// Rotary position embedding, in the half-split form: with a head's first half a and second half b,
// pair i of position p turns by the angle p base^(-2 i / head_size):
//   a' = a cos - b sin,  b' = b cos + a sin.

namespace mjp::cpu {

struct RotaryTable {
  int positions = 0, half = 0;  // half of the head size
  std::vector<float> cos, sin;  // (positions, half)
};

// Angles are float32 products, as in the original library. head_size is even.
RotaryTable MakeRotaryTable(int positions, int head_size, double base);

// Turns rows [row_begin, row_end) of x (rows, heads * head_size) in place; row r stands at position
// r % positions of its sequence.
void ApplyRotary(const RotaryTable& table, int heads, float* x, int64_t pitch, int row_begin,
                 int row_end);

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_TRANSFORMER_ROTARY_H_
