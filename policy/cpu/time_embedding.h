#ifndef POLICY_CPU_TIME_EMBEDDING_H_
#define POLICY_CPU_TIME_EMBEDDING_H_

#include "kernels/shared/exact_math.h"

namespace mjp::cpu {

// What a denoiser knows of the time: sines, then cosines, of |time| < 2^18 times the size / 2
// frequencies exp(-j ln(10000) / (size / 2 - 1)). The same bits on every processor.
inline void TimeEmbedding(double time, int size, float* embedding) {
  constexpr double kLn10000 = 9.210340371976184;
  const int half = size / 2;
  for (int j = 0; j < half; ++j) {
    double sine, cosine;
    exact::SinCosOfSeveralTurns(time * exact::Exp(-j * kLn10000 / (half - 1)), &sine, &cosine);
    embedding[j] = static_cast<float>(sine);
    embedding[half + j] = static_cast<float>(cosine);
  }
}

}  // namespace mjp::cpu

#endif  // POLICY_CPU_TIME_EMBEDDING_H_
