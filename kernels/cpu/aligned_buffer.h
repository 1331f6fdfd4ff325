#ifndef KERNELS_CPU_ALIGNED_BUFFER_H_
#define KERNELS_CPU_ALIGNED_BUFFER_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace mjp::cpu {

// A zeroed array of floats on the host, aligned to a cache line, or to a huge page where it is
// large enough for page misses to count. Move-only.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size) : size_(size) {
    constexpr size_t kLine = 64, kHugePage = size_t{2} << 20;
    const size_t alignment = size * sizeof(float) >= 2 * kHugePage ? kHugePage : kLine;
    const size_t bytes = (size * sizeof(float) + alignment - 1) / alignment * alignment;
    if (bytes == 0) return;
    data_ = static_cast<float*>(std::aligned_alloc(alignment, bytes));
    if (data_ == nullptr) throw std::bad_alloc();
    if (alignment == kHugePage) madvise(data_, bytes, MADV_HUGEPAGE);  // a hint: may fail
    std::memset(data_, 0, bytes);
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~AlignedBuffer() { std::free(data_); }

  float* data() { return data_; }
  const float* data() const { return data_; }
  size_t size() const { return size_; }
  float& operator[](size_t i) { return data_[i]; }
  float operator[](size_t i) const { return data_[i]; }

 private:
  float* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace mjp::cpu

#endif  // KERNELS_CPU_ALIGNED_BUFFER_H_
