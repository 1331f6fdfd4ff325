#ifndef POLICY_PICTURES_PAGE_LOCKED_H_
#define POLICY_PICTURES_PAGE_LOCKED_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace mjp {

// Memory for pictures on their way to a policy. Page-locked, if that is asked for and a GPU is
// there, so that it copies them from here; else ordinary memory. Begins as zeros.
class PictureMemory {
 public:
  PictureMemory() = default;
  PictureMemory(size_t size, bool page_locked);

  uint8_t* data() const { return memory_.get(); }
  size_t size() const { return size_; }
  std::span<const uint8_t> bytes() const { return {data(), size_}; }

 private:
  std::unique_ptr<uint8_t[], void (*)(uint8_t*)> memory_ = {nullptr, [](uint8_t*) {}};
  size_t size_ = 0;
};

// Whether all of `bytes` is page-locked memory, whoever made it so.
bool InPageLockedMemory(std::span<const uint8_t> bytes);

}  // namespace mjp

#endif  // POLICY_PICTURES_PAGE_LOCKED_H_
