#ifndef POLICY_CUDA_DENOISE_STANDSTILL_H_
#define POLICY_CUDA_DENOISE_STANDSTILL_H_

namespace mjp {

// What the host knows of a kernel whose blocks wait for each other: whether a wait lasted seconds.
class Standstill {
 public:
  // `flag`, pinned host memory that outlives it, becomes 1 where one does; null: no block waits.
  explicit Standstill(const int* flag = nullptr) : flag_(flag) {}

  // What such a decision left behind is of no known pass: no decision after it is trusted. Throws
  // Error(kRetryable) where one up to the last one that has ended did not finish.
  void Check() const;

 private:
  const int* flag_;
};

}  // namespace mjp

#endif  // POLICY_CUDA_DENOISE_STANDSTILL_H_
