#include "policy/cuda/picture_memory.h"

#include <cuda_runtime_api.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fork.h"
#include "kernels/cuda/primitives/cuda_check.h"
#include "policy/cuda/arena.h"

namespace mjp {

using Block = std::unique_ptr<DeviceArena>;

class PictureMemory::Blocks {
 public:
  Blocks(size_t bytes, int device) : bytes(bytes), device(device) {}
  ~Blocks() {
    for (Block& block : idle_) Drop(std::move(block));
  }

  Block Take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        Block block = std::move(idle_.back());
        idle_.pop_back();
        return block;
      }
    }
    auto block = std::make_unique<DeviceArena>();
    block->TakeBytes(bytes);
    block->Seal();
    return block;
  }
  void Return(Block block) {
    if (Foreign()) return Drop(std::move(block));
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(block));
  }

  const size_t bytes;
  const int device;

 private:
  // In a child made by fork() the memory is its parent's, and CUDA is not to be asked.
  bool Foreign() const { return generation_ != ForkGeneration(); }
  void Drop(Block block) const {
    if (Foreign()) static_cast<void>(block.release());
  }

  const uint64_t generation_ = ForkGeneration();
  std::mutex mutex_;
  std::vector<Block> idle_;
};

class PictureMemory::Picture : public GpuPicture {
 public:
  Picture(std::shared_ptr<Blocks> blocks, Block block)
      : GpuPicture(block->Base<uint8_t>(), blocks->bytes, blocks->device),
        blocks_(std::move(blocks)),
        block_(std::move(block)) {}
  ~Picture() override { blocks_->Return(std::move(block_)); }

  void Download(std::span<uint8_t> rgb) const override {
    if (rgb.size() != bytes()) {
      throw BadInput("a picture of " + std::to_string(bytes()) + " bytes does not fit into " +
                     std::to_string(rgb.size()));
    }
    CheckCuda(cudaMemcpy(rgb.data(), data(), bytes(), cudaMemcpyDeviceToHost),
              "copy of a picture to the host");
  }

 private:
  std::shared_ptr<Blocks> blocks_;
  Block block_;
};

PictureMemory::PictureMemory(size_t bytes, int device)
    : blocks_(std::make_shared<Blocks>(bytes, device)) {}

std::shared_ptr<GpuPicture> PictureMemory::Make(const std::function<void(uint8_t* rgb)>& fill) {
  Block block = blocks_->Take();
  fill(block->Base<uint8_t>());
  return std::make_shared<Picture>(blocks_, std::move(block));
}

}  // namespace mjp
